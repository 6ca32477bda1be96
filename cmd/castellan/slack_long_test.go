//go:build faults

package main

// slack is 1: the service is held to the times that it promises.
const slack = 1
