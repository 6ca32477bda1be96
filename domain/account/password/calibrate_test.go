package password

import (
	"context"
	"math"
	"testing"
	"time"
)

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
	if got, want := DefaultParams().Traffic(), float64((2+3)*19<<20); got != want {
		t.Errorf("a guess moves %.0f bytes, want %.0f", got, want)
	}
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
	if _, err := Measure(ctx, cheap, 2, time.Hour); err == nil {
		t.Error("measured after the end of its context")
	}
}
