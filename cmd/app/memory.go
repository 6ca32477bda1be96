package app

import (
	"context"
	"runtime/debug"
	rtm "runtime/metrics"
	"time"
)

// How the Go runtime's memory is kept, where the operator did not say it
// (GOGC). While the service is busy its heap may grow to four times what is
// alive, which leaves a third of the work of collecting it. When a burst is
// over, what it left behind is given back to the system: the runtime would keep
// it for the next one, and collect an idle heap every two minutes only, but a
// service that thousands of idle sockets hang on is mostly idle. It is given
// back again when the actors that the burst woke have gone to sleep.
//
// The start counts as a burst: more than half of the heap is garbage of tables that
// were read and plans that were made. It is given back whatever its size, and with it
// the pages of the program that only the start needed.
const (
	memoryLook = time.Second
	busyBytes  = 32 << 20 // allocated between two looks: some 700 logins
	over       = 5        // looks without a burst until it is over
	asleep     = 40       // looks until idle actors sleep, which they do after 30 s

	busyPercent, calmPercent = 300, 100
	smallHeap                = 24 << 20  // not worth a collection
	largeHeap                = 512 << 20 // does not grow more than it must
)

// keepMemory looks after the heap until ctx ends. Each of the two collections
// after a burst costs about a millisecond per MiB alive.
func keepMemory(ctx context.Context) {
	percent := debug.SetGCPercent(calmPercent) // the only way to read it is to set it
	ours := percent == calmPercent             // what is so by default
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
	last, _ := heap()
	quiet, starting := 0, true // quiet: looks since the last burst
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
			if quiet == over && starting || (quiet == over || quiet == asleep) && held > smallHeap {
				debug.FreeOSMemory()
			}
			if quiet == over && starting {
				starting = false
				releaseProgramPages()
			}
		}
		last = allocated
	}
}

// heap tells what was allocated since the start, and what objects dead or
// alive and free memory hold of the system, in bytes.
func heap() (allocated, held uint64) {
	s := []rtm.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}}
	rtm.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() + s[2].Value.Uint64()
}
