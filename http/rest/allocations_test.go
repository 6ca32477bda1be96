package rest

import (
	"math"
	"testing"
)

// leastAllocations is the smallest count of many runs: at random, the race detector empties pools.
func leastAllocations(run func()) float64 {
	least := math.Inf(1)
	for range 300 {
		least = min(least, testing.AllocsPerRun(1, run))
	}
	return least
}

// Every request with a body pays for these. Raise a bound only on purpose.
func TestAllocationsOfABody(t *testing.T) {
	e := endpointOf[benchIn]("POST")
	body, escaped := []byte(benchBody), []byte(`{"a":"\n"}`)
	in, _, err := e.Bind(Query{}, body)
	if err != nil {
		t.Fatal(err)
	}
	out := any(Data[any]{in})
	for _, c := range []struct {
		name string
		most float64
		run  func() error
	}{
		{"checking", 0, func() error { return checkObject(body) }},
		{"checking, token by token", 0, func() error { return checkObject(escaped) }},
		{"binding: the struct and its four strings", 5, func() error {
			_, _, err := e.Bind(Query{}, body)
			return err
		}},
		{"encoding", 0, func() error {
			a, err := e.Encode(out)
			a.Release()
			return err
		}},
	} {
		got := leastAllocations(func() {
			if err := c.run(); err != nil {
				t.Fatal(err)
			}
		})
		if got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, got, c.most)
		}
	}
}
