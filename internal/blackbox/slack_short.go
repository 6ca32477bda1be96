//go:build !faults

package blackbox

// Slack is the factor by which promised times are extended here.
const Slack = 30
