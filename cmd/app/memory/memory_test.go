package memory

import (
	"context"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/storetest"
)

// burst is memory that requests keep for a while.
var burst [][]byte

func percentNow() int {
	p := debug.SetGCPercent(calmPercent)
	debug.SetGCPercent(p)
	return p
}

// The heap may grow during a burst; its garbage is returned when the burst is over, and later garbage a while after.
func TestMemoryOfABurst(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(calmPercent)) // make test sets another one
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go Manage(ctx)
		synctest.Wait()
		for range 96 {
			burst = append(burst, make([]byte, 1<<20))
		}
		time.Sleep(memoryLook + memoryLook/2) // sees the burst
		storetest.Equal(t, percentNow(), busyPercent, "GOGC is", "in a burst")
		burst = burst[:48]
		clear(burst[48:96])
		time.Sleep(over * memoryLook)
		_, after := heap()
		if after < 48<<20 || after > 80<<20 {
			t.Errorf("%d MiB are held after the burst, of which 48 are in use", after>>20)
		}
		storetest.Equal(t, percentNow(), calmPercent, "GOGC is", "after it")
		burst = nil
		time.Sleep(2 * memoryLook)
		if _, now := heap(); now < 48<<20 {
			t.Errorf("%d MiB are held: collected again at once", now>>20)
		}
		time.Sleep(asleep * memoryLook)
		if _, rest := heap(); rest > after-40<<20 {
			t.Errorf("%d MiB are held long after the burst, %d when it was over", rest>>20, after>>20)
		}
		stop()
		synctest.Wait()
	})
}

// A start leaves garbage that would be too small after a burst. It is returned all the same, at once, and again after
// the first seconds, but not later.
func TestMemoryOfTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		debug.FreeOSMemory()
		garbage := func() (held uint64) {
			for range 16 { // MiB; the live heap may grow by a few beside the garbage
				burst = append(burst, make([]byte, 1<<20))
			}
			burst = nil
			_, held = heap()
			return held
		}
		ctx, stop := context.WithCancel(t.Context())
		before := garbage()
		go Manage(ctx)
		synctest.Wait()
		for _, when := range []string{"after the start", "after the first seconds"} {
			if _, after := heap(); before < 12<<20 || after > before-12<<20 || after > smallHeap {
				t.Errorf("%d MiB are held %s, %d before", after>>20, when, before>>20)
			}
			before = garbage()
			time.Sleep(over*memoryLook + memoryLook/2)
		}
		time.Sleep(asleep * memoryLook)
		if _, later := heap(); later < 12<<20 {
			t.Errorf("%d MiB are held: collected again", later>>20)
		}
		stop()
		synctest.Wait()
	})
}

// GOGC of an operator is not changed.
func TestOperatorsGOGCIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer debug.SetGCPercent(debug.SetGCPercent(150))
		ctx, stop := context.WithCancel(t.Context())
		go Manage(ctx)
		synctest.Wait()
		burst = append(burst, make([]byte, 2*busyBytes))
		time.Sleep(2 * memoryLook)
		burst = nil
		storetest.Equal(t, debug.SetGCPercent(150), 150, "GOGC was 150 and is")
		stop()
		synctest.Wait()
	})
}
