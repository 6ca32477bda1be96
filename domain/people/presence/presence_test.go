package presence

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// A heartbeat counts for its lifetime and no longer. People are listed in order of arrival, without the caller.
func TestRoom(t *testing.T) {
	start := time.UnixMilli(1_700_000_000_000)
	steps := []struct {
		after  time.Duration
		who    string
		leaves bool
		others string
	}{
		{0, "a", false, ""},
		{0, "a", false, ""},
		{time.Second, "b", false, "a"},
		{2 * time.Second, "c", false, "a b"},
		{2 * time.Second, "a", false, "b c"},
		{3 * time.Second, "b", true, "a c"},
		{3 * time.Second, "b", true, "a c"},
		{32*time.Second - time.Millisecond, "d", false, "a c"}, // both sent heartbeats at 2 s
		{32 * time.Second, "d", false, ""},
		{40 * time.Second, "a", false, "d"},
	}
	var r Room
	for i, s := range steps {
		var names []string
		for _, p := range r.Say(start.Add(s.after), Person{UserID: s.who, Name: s.who}, s.leaves) {
			names = append(names, p.Name)
		}
		storetest.Equal(t, strings.Join(names, " "), s.others, i, s.who)
	}
	if end := start.Add(40*time.Second + Lifetime); r.Empty(end.Add(-time.Millisecond)) || !r.Empty(end) {
		t.Error("the room is not empty exactly when the last word has ended")
	}
}

// The size of a room is limited.
func TestRoomIsBounded(t *testing.T) {
	var r Room
	now := time.UnixMilli(1_700_000_000_000)
	for i := range 2 * maxPeople {
		r.Say(now, Person{UserID: string(rune('a' + i))}, false)
	}
	storetest.Equal(t, len(r.people), maxPeople)
}
