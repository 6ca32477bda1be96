package app

import (
	"context"
	"runtime/debug"
	rtm "runtime/metrics"
	"time"
)

// The Go runtime keeps the memory of a burst for the next one, and collects an
// idle heap every two minutes only. A service that thousands of idle sockets
// hang on is mostly idle, so it gives back what a burst left behind: when the
// burst is over, and again when the actors that it woke have gone to sleep.
const (
	memoryLook = 5 * time.Second
	quietBytes = 8 << 20  // allocated between two looks: more is a burst still
	smallHeap  = 24 << 20 // not worth a collection
	asleep     = 8        // looks after a burst: an idle actor sleeps after 30 s
)

// giveBack returns memory to the system after bursts, until ctx ends. Each of
// the two collections costs about a millisecond per MiB alive.
func giveBack(ctx context.Context) {
	tick := time.NewTicker(memoryLook)
	defer tick.Stop()
	last, _ := heap()
	quiet := asleep // looks since the last burst
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		allocated, held := heap()
		if allocated-last >= quietBytes {
			quiet = 0
		} else if quiet++; (quiet == 1 || quiet == asleep) && held > smallHeap {
			debug.FreeOSMemory()
		}
		last = allocated
	}
}

// heap tells what was allocated since the start, and what objects dead or
// alive and free memory hold of the system, in bytes.
func heap() (allocated, held uint64) {
	s := []rtm.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	rtm.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() + s[2].Value.Uint64()
}
