package password

import (
	"context"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Five hundred concurrent changes of three hashes each cost the memory of the slots, not of the hashes. The test
// counts the allocated bytes (SEC-13). Allocating memory for each hash would need 1500 times as many.
func TestMemoryOfManyChanges(t *testing.T) {
	const (
		changes, slots = 500, 3
		memory         = 1 << 20 // of one hash
		beside         = 8 << 10 // what one hash may allocate otherwise: salts, texts, timers
	)
	h := small(t, HasherOptions{Params: Params{MemoryKiB: memory >> 10, Passes: 1, Lanes: 1}, Slots: slots, Queue: changes,
		Wait: time.Hour})
	change := func(stored string) error {
		p, err := h.Admit(own)
		if err != nil {
			return err
		}
		defer p.Leave()
		right, _, err := p.Verify(t.Context(), "kedi7şeker", stored) // the old one
		if err == nil && right {
			_, _, err = p.Verify(t.Context(), "köpek8limon", stored) // history
		}
		if err == nil {
			_, err = p.Hash(t.Context(), "köpek8limon")
		}
		return err
	}
	stored := storetest.Value(h.Hash(t.Context(), "kedi7şeker"))(t)
	h.arenas = nil // the memory left by the first hash counts too
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var wg sync.WaitGroup
	for range changes {
		wg.Go(func() {
			storetest.Wants(t, change(stored), "")
		})
	}
	wg.Wait()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(changes*3*beside); got > most {
		t.Errorf("%d changes allocated %d bytes, want at most %d: little besides the %d arenas", changes, got, most, slots)
	}
	if h.running != 0 || len(h.arenas) > slots {
		t.Errorf("afterwards %d run and %d arenas are kept", h.running, len(h.arenas))
	}
	for _, a := range h.arenas {
		storetest.Equal(t, a.Size(), memory, "bytes that a slot keeps")
	}
}

// A caller that finds slots and queue full is refused before it touches any hashing memory, however many such callers
// arrive (SEC-13).
func TestOverflowIsRefusedAtNoCost(t *testing.T) {
	const slots, queue, callers = 2, 16, 500
	h := small(t, HasherOptions{Slots: slots, Queue: queue, Wait: time.Hour})
	var mu sync.Mutex
	var places []*Place
	admitted := storetest.Race(t, callers, fault.Overloaded, func(int) error {
		p, err := h.Admit(Caller{})
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			places = append(places, p)
		}
		return err
	})
	if admitted != slots+queue || len(h.arenas) != 0 {
		t.Errorf("%d admitted, %d arenas", admitted, len(h.arenas))
	}
	for _, p := range places {
		p.Leave()
	}
	storetest.Equal(t, h.Waiting(), 0, "still hold a place")
}

// Every proposed set is valid and not weaker than the default.
func TestCandidatesAreStrong(t *testing.T) {
	for _, c := range Candidates() {
		if err := c.Validate(); err != nil || c.Traffic() < 0.9*DefaultParams().Traffic() {
			t.Errorf("%+v: %v, moves %.0f bytes", c, err, c.Traffic())
		}
	}
}

// Two passes over 19 MiB read a block and write one, and then read another one too.
func TestTraffic(t *testing.T) {
	storetest.Equal(t, DefaultParams().Traffic(), float64((2+3)*19<<20), "bytes that a guess moves")
}

func TestServed(t *testing.T) {
	for _, c := range []struct {
		slots, processors int
		want              float64
	}{{1, 2, 1 / 0.0095}, {2, 2, 2 / 0.010}, {1, 1, 1 / 0.010}} {
		if got := Served(9500*time.Microsecond, c.slots, c.processors); math.Abs(got-c.want) > 0.01 {
			t.Errorf("%d slots of %d processors: %.2f, want %.2f", c.slots, c.processors, got, c.want)
		}
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if took, err := Measure(ctx, cheap, 2, time.Millisecond); err != nil || took <= 0 {
		t.Errorf("%v, %v", took, err)
	}
	cancel()
	storetest.Fails(t, storetest.Err(Measure(ctx, cheap, 2, time.Hour)), "", "after the end of its context")
}
