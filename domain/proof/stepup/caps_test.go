package stepup

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/delivery/outbox"
)

var capsNow = time.UnixMilli(1_700_000_000_000)

// sentAgo lists messages to a destination, oldest first.
func sentAgo(to string, ago ...time.Duration) (all []outbox.Sending) {
	for _, d := range ago {
		all = append(all, outbox.Sending{Destination: []byte(to), At: capsNow.Add(-d).UnixMilli()})
	}
	return all
}

// A start with a proof waits until each of its messages fits under every cap, and at least a second. The cap with the
// longest wait is named.
func TestWaitForCaps(t *testing.T) {
	const h = time.Hour
	most := Caps{DestinationHour: 2, DestinationDay: 3, UserDay: 4}
	for _, c := range []struct {
		name string
		caps Caps
		sent []outbox.Sending
		to   []string
		want time.Duration
		cap  string
	}{
		{"nothing was sent", most, nil, []string{"a"}, time.Second, anyCap},
		{"one below each cap", most, sentAgo("a", h/2), []string{"a"}, time.Second, anyCap},
		{"the hour is full", most, sentAgo("a", h/2, h/4), []string{"a"}, h / 2, "limits.destination_per_hour"},
		{"the hour is full elsewhere", most, sentAgo("b", h/2, h/4), []string{"a"}, time.Second, anyCap},
		{"the hour is over by one", most, sentAgo("a", h/2, h/3, h/4), []string{"a"}, 24*h - h/2,
			"limits.destination_per_day"},
		{"a message of an hour ago", most, sentAgo("a", h, h/4), []string{"a"}, time.Second, anyCap},
		{"the day is full", most, sentAgo("a", 20*h, 10*h, 2*h), []string{"a"}, 4 * h,
			"limits.destination_per_day"},
		{"a message of a day ago", most, sentAgo("a", 24*h, 10*h, 2*h), []string{"a"}, time.Second, anyCap},
		{"the user's day is full", most, sentAgo("b", 20*h, 10*h, 5*h, 2*h), []string{"a"}, 4 * h,
			"limits.user_per_day"},
		{"two messages need two places", most, sentAgo("b", 20*h, 10*h, 5*h, 2*h), []string{"a", "b"}, 14 * h,
			"limits.user_per_day"},
		{"more messages than the cap", Caps{UserDay: 1}, sentAgo("b", 20*h, 10*h), []string{"a", "c", "d"}, 14 * h,
			"limits.user_per_day"},
		{"the last of several destinations", most, sentAgo("b", 20*h, 10*h, 2*h), []string{"a", "b"}, 4 * h,
			"limits.user_per_day"},
		{"no caps", Caps{}, sentAgo("a", h/2, h/3, h/4), []string{"a"}, time.Second, anyCap},
	} {
		var letters []letter
		for _, to := range c.to {
			letters = append(letters, letter{to: to})
		}
		got, limit := c.caps.wait(capsNow, c.sent, letters, func(to string) []byte { return []byte(to) })
		if got != c.want || limit != c.cap {
			t.Errorf("%s: %s by %s, want %s by %s", c.name, got, limit, c.want, c.cap)
		}
	}
}

// A start without a proof has half of each cap, rounded up, for each destination alone.
func TestStartWithoutAProofHasHalfOfTheCaps(t *testing.T) {
	const h = time.Hour
	for _, c := range []struct {
		name string
		caps Caps
		sent []outbox.Sending
		to   []string
		want []bool
	}{
		{"nothing was sent", Caps{1, 1, 1}, nil, []string{"a", "b"}, []bool{true, true}},
		{"half of the hour", Caps{DestinationHour: 3}, sentAgo("a", h/2), []string{"a"}, []bool{true}},
		{"over half of the hour", Caps{DestinationHour: 3}, sentAgo("a", h/2, h/3), []string{"a"}, []bool{false}},
		{"an hour ago", Caps{DestinationHour: 3}, sentAgo("a", h, h/3), []string{"a"}, []bool{true}},
		{"over half of the day", Caps{DestinationDay: 4}, sentAgo("a", 5*h, 4*h), []string{"a"}, []bool{false}},
		{"over half of the user's day", Caps{UserDay: 2}, sentAgo("a", 5*h), []string{"a", "b"}, []bool{false, true}},
		{"below half of the hour", Caps{DestinationHour: 4}, sentAgo("a", h/2), []string{"a"}, []bool{true}},
		{"half of an even hour", Caps{DestinationHour: 4}, sentAgo("a", h/2, h/3), []string{"a"}, []bool{false}},
		{"half of the day", Caps{DestinationDay: 3}, sentAgo("a", 5*h), []string{"a"}, []bool{true}},
		{"half of an odd day", Caps{DestinationDay: 3}, sentAgo("a", 5*h, 4*h), []string{"a"}, []bool{false}},
		{"the only one of the hour", Caps{DestinationHour: 1}, sentAgo("a", h/2), []string{"a"}, []bool{false}},
		{"two to one destination", Caps{DestinationHour: 2}, nil, []string{"a", "a"}, []bool{true, false}},
		{"no caps", Caps{}, sentAgo("a", h/2, h/3), []string{"a"}, []bool{true}},
	} {
		var sendings []Sending
		for _, to := range c.to {
			sendings = append(sendings, Sending{Destination: []byte(to)})
		}
		if got := c.caps.allow(capsNow, c.sent, sendings); !slices.Equal(got, c.want) {
			t.Errorf("%s: %t, want %t", c.name, got, c.want)
		}
	}
}
