//go:build !faults

package faults

// everyFault is true in make faults.
const everyFault = false

// How often TestKillLosesNoAcknowledgedStep kills the service on each database, and how many first starts
// TestKillDuringFirstStart interrupts.
const kills, firstStarts = 5, 3
