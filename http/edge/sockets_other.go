//go:build !linux

package edge

import "time"

// setUserTimeout is for Linux alone; elsewhere the kernel's own time-out ends a
// connection whose client takes nothing.
func setUserTimeout(int, time.Duration) {}
