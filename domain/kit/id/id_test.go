package id_test

import (
	"testing"
	"time"

	"castellan/domain/kit/id"
)

// A range from a day before 1970 covers everything.
func TestBefore(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	made := id.New(now)
	for at, before := range map[time.Time]bool{
		now:                       true,
		now.Add(time.Millisecond): false,
		time.Unix(0, 0):           true,
		time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC): true,
		time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC): false,
	} {
		if got := id.Before(at) <= made; got != before {
			t.Errorf("the bound of %s stands before an identifier of %s: %v", at, now, got)
		}
	}
}

// The same random bits make the same identifiers until end is called; then they are random again.
func TestRepeat(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	draw := func() (ids [3]string, end func()) {
		n := byte(0)
		end = id.Repeat(func(b []byte) {
			for i := range b {
				n++
				b[i] = n
			}
		})
		for i := range ids {
			ids[i] = id.New(now)
		}
		return ids, end
	}
	first, _ := draw()
	again, end := draw()
	if again != first || first[0] == first[1] {
		t.Errorf("%v, then %v", first, again)
	}
	end()
	for range 100 {
		if a, b := id.New(now), id.New(now); a == b || a[:10] != first[0][:10] {
			t.Fatalf("%s and %s after the end", a, b)
		}
	}
}
