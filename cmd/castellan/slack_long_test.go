//go:build faults

package main

// slack is 1: the service must keep its promised times.
const slack = 1
