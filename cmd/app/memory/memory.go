// Package memory returns the memory of a burst of requests, and that of the start, to the system.
//
// Start reading at Manage.
package memory

import (
	"context"
	"runtime/debug"
	rtm "runtime/metrics"
	"time"
)

// The settings of the Go runtime's memory, unless the operator sets GOGC. While the service is busy its heap may grow
// to four times the live memory, which reduces the work of the collector to a third. After a burst the garbage is
// returned to the system. The runtime would keep it for the next burst, and collect an idle heap only every two
// minutes; but a service with thousands of idle sockets is mostly idle. Memory is returned again when the actors of the
// burst have become inactive.
//
// The start counts as a burst: more than half of the heap is garbage from loaded tables and plans. It is returned
// whatever its size, together with the pages of the program that only the start needed: at once, and again when the
// first seconds are over.
const (
	memoryLook = time.Second
	busyBytes  = 32 << 20 // allocated between two checks: some 700 logins
	over       = 5        // checks without a burst until it is over
	asleep     = 40       // checks until idle actors are passivated, after 30 s

	busyPercent, calmPercent = 300, 100
	smallHeap                = 24 << 20  // not worth a collection
	largeHeap                = 512 << 20 // does not grow more than necessary
)

// Manage manages the heap until ctx ends. It is called when the start is over. Each of its collections costs about a
// millisecond per live MiB.
func Manage(ctx context.Context) {
	percent := debug.SetGCPercent(calmPercent) // the only way to read it is to set it
	ours := percent == calmPercent             // the default value
	if !ours {
		debug.SetGCPercent(percent)
	}
	let := func(p int) {
		if ours && percent != p {
			percent = p
			debug.SetGCPercent(p)
		}
	}
	defer let(calmPercent)
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	releaseStart()
	last, _ := heap()
	quiet, starting := 0, true // quiet: checks since the last burst
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		allocated, held := heap()
		if allocated-last >= busyBytes {
			quiet = 0
			if held < largeHeap {
				let(busyPercent)
			} else {
				let(calmPercent)
			}
		} else {
			quiet++
			if quiet == over {
				let(calmPercent)
			}
			switch {
			case quiet == over && starting:
				starting = false
				releaseStart()
			case (quiet == over || quiet == asleep) && held > smallHeap:
				debug.FreeOSMemory()
			}
		}
		last = allocated
	}
}

func releaseStart() {
	debug.FreeOSMemory()
	releaseProgramPages()
}

// heap returns the bytes allocated since the start, and the bytes held from the system by live or dead objects and free
// memory.
func heap() (allocated, held uint64) {
	s := []rtm.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}}
	rtm.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() + s[2].Value.Uint64()
}
