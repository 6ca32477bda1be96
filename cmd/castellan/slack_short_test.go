//go:build !faults

package main

// slack is how many times longer than promised something may take here.
const slack = 30
