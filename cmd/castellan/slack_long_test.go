//go:build faults

package main

// slack is 1: the service must meet its promised times.
const slack = 1
