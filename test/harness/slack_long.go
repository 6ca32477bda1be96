//go:build faults

package harness

// Slack is 1: the service is held to the times that it promises.
const Slack = 1
