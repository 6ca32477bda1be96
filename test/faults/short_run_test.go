//go:build !faults

package faults

// everyFault is for make faults.
const everyFault = false
