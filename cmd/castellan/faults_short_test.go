//go:build !faults

package main

// everyFault is for make faults.
const everyFault = false

// slack is how many times longer than promised something may take here.
const slack = 30
