package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// burst is what requests keep for a while.
var burst [][]byte

// What a burst leaves behind is given back when it is over, and what dies
// later, a while after.
func TestMemoryOfABurstIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go giveBack(ctx)
		synctest.Wait()
		for range 96 {
			burst = append(burst, make([]byte, 1<<20))
		}
		time.Sleep(memoryLook + time.Second) // sees the burst
		burst = burst[:48]
		clear(burst[48:96])
		time.Sleep(memoryLook)
		_, over := heap()
		if over < 48<<20 || over > 80<<20 {
			t.Errorf("%d MiB are held after the burst, of which 48 are in use", over>>20)
		}
		burst = nil
		time.Sleep(memoryLook)
		if _, now := heap(); now < 48<<20 {
			t.Errorf("%d MiB are held: collected again at once", now>>20)
		}
		time.Sleep(asleep * memoryLook)
		if _, rest := heap(); rest > over-40<<20 {
			t.Errorf("%d MiB are held long after the burst, %d when it was over", rest>>20, over>>20)
		}
		stop()
		synctest.Wait()
	})
}
