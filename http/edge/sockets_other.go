//go:build !linux

package edge

import "time"

// setUserTimeout is for Linux only; elsewhere the kernel's own timeout ends a connection whose
// client reads nothing.
func setUserTimeout(int, time.Duration) {}
