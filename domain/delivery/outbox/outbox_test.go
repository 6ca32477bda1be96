package outbox_test

import (
	"bytes"
	"testing"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/storetest"
)

// A message that is created once per period has the same id in the whole period.
func TestMessageOncePerPeriod(t *testing.T) {
	begin := time.UnixMilli(1_700_000_000_000).UTC().Truncate(time.Hour)
	made := func(user, what string, at time.Time) outbox.AddOnce {
		return outbox.NewOnce(outbox.Message{UserID: user, MethodID: "m", CreatedAt: at}, what, time.Hour)
	}
	first, last := made("u1", "a", begin), made("u1", "a", begin.Add(time.Hour-time.Millisecond))
	next := made("u1", "a", begin.Add(time.Hour))
	if first.ID != last.ID || next.ID == first.ID || next.Earlier != first.ID || first.MethodID != "m" {
		t.Errorf("%+v, %+v, %+v", first, last, next)
	}
	if !last.Since.Equal(begin.Add(-time.Millisecond)) || !first.Since.Equal(begin.Add(-time.Hour)) {
		t.Errorf("%s, %s", last.Since, first.Since)
	}
	for _, other := range []outbox.AddOnce{made("u2", "a", begin), made("u1", "b", begin)} {
		if other.ID == first.ID || other.Earlier == first.Earlier {
			t.Errorf("%+v", other)
		}
	}
}

// A message went to a destination if one of the destination's hashes is that of its row.
func TestDestinationOfSending(t *testing.T) {
	hash := func(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }
	all := bytes.Join([][]byte{hash(1), hash(2), hash(3)}, nil)
	for b, want := range map[byte]bool{1: true, 2: true, 3: true, 4: false} {
		storetest.Equal(t, (outbox.Sending{Destination: hash(b)}).To(all), want, b)
	}
	if !(outbox.Sending{Destination: hash(1)}).To(hash(1)) || (outbox.Sending{Destination: hash(1)}).To(nil) {
		t.Error("one hash, or none")
	}
	storetest.Same(t, outbox.First(all), hash(1))
	storetest.Same(t, outbox.First([]byte{1, 2}), []byte{1, 2})
}
