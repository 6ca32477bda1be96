package id_test

import (
	"testing"
	"time"

	"castellan/domain/id"
)

// What is asked for from a day before 1970 on is everything.
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
