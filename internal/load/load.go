// Package load describes how busy the machine is. A test that waited in vain adds it to its failure, so that a starved
// process is not taken for a broken one.
package load

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

const (
	nap  = 10 * time.Millisecond
	naps = 5
)

// Now returns the load of the last 1, 5 and 15 minutes, where the machine reports it, and how late a timer of this
// process fires.
func Now() string {
	var late time.Duration
	for range naps {
		began := time.Now()
		time.Sleep(nap)
		late = max(late, time.Since(began)-nap)
	}
	said := fmt.Sprintf("a timer of %v is up to %v late", nap, late.Round(100*time.Microsecond))
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		if f := strings.Fields(string(text)); len(f) > 2 {
			said = fmt.Sprintf("load %s for %d processors, %s", strings.Join(f[:3], " "), runtime.NumCPU(), said)
		}
	}
	return said
}
