//go:build !faults

package harness

// Slack is how many times longer than promised something may take here.
const Slack = 30
