//go:build faults

package blackbox

// Slack is 1: the service must meet its promised times.
const Slack = 1
