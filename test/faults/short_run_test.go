//go:build !faults

package faults

// everyFault is true in make faults.
const everyFault = false
