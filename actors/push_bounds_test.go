package actors

import (
	"testing"
	"time"
)

// Three denials in less than ten minutes stop pushes for an hour after the third.
func TestTired(t *testing.T) {
	const minute = 60_000
	now := time.UnixMilli(1_700_000_000_000)
	for _, c := range []struct {
		name string
		ago  []int64 // ms, oldest first
		want bool
	}{
		{"none", nil, false},
		{"two", []int64{minute, 0}, false},
		{"three at once", []int64{5, 5, 5}, true},
		{"in just less than the window", []int64{10*minute - 1, 5, 0}, true},
		{"in just the window", []int64{10 * minute, 5, 0}, false},
		{"the pause ends in 1 ms", []int64{60 * minute, 60 * minute, 60*minute - 1}, true},
		{"the pause is over", []int64{60 * minute, 60 * minute, 60 * minute}, false},
		{"one more later does not count", []int64{61 * minute, 61 * minute, 60 * minute, 5}, false},
		{"four", []int64{30 * minute, 9 * minute, 8 * minute, 7 * minute}, true},
		{"spread", []int64{40 * minute, 25 * minute, 12 * minute, 0}, false},
	} {
		var at []int64
		for _, ago := range c.ago {
			at = append(at, now.UnixMilli()-ago)
		}
		if got := tired(at, now, 3, 10*time.Minute, time.Hour); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
