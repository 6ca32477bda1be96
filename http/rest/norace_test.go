//go:build !race

package rest

const instrumented = 0
