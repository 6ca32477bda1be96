//go:build !faults

package main

// everyFault is for make faults.
const everyFault = false
