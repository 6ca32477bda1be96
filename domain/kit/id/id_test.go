package id_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
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
		storetest.Equal(t, id.Before(at) <= made, before, at, now)
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

// An identifier of texts is always the same, differs for other texts and other instants, and sorts by its instant.
func TestIdentifierOfTexts(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_123)
	one := id.Of(at, "a", "b")
	if one != id.Of(at, "a", "b") || len(one) != id.Len || id.Millis(one) != at.UnixMilli() {
		t.Errorf("%s of %d", one, id.Millis(one))
	}
	seen := map[string]string{one: "a, b"}
	for name, other := range map[string]string{"the other order": id.Of(at, "b", "a"), "joined": id.Of(at, "ab"),
		"split elsewhere": id.Of(at, "a1:b"), "one": id.Of(at, "a"), "none": id.Of(at),
		"an empty text more": id.Of(at, "a", "b", ""), "a millisecond later": id.Of(at.Add(time.Millisecond), "a", "b")} {
		if was, twice := seen[other]; twice {
			t.Errorf("%s is %s too", name, was)
		}
		seen[other] = name
	}
	if first, next := id.Before(at), id.Before(at.Add(time.Millisecond)); one < first || one >= next {
		t.Errorf("%s is not between %s and %s", one, first, next)
	}
}

// The instant of an identifier is read back to the millisecond, and no other text has one.
func TestMillis(t *testing.T) {
	for _, ms := range []int64{0, 1, 31, 32, 1023, 1024, 1_700_000_000_123, 1<<48 - 1} {
		storetest.Equal(t, id.Millis(id.Before(time.UnixMilli(ms))), ms)
		storetest.Equal(t, id.Millis(id.New(time.UnixMilli(ms))), ms)
	}
	whole := id.New(time.UnixMilli(1_700_000_000_123))
	for _, text := range []string{"", "x", whole[1:], whole + "0", strings.Repeat("!", id.Len)} {
		storetest.Equal(t, id.Millis(text), 0, text)
	}
}
