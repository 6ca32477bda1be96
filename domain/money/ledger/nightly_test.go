package ledger_test

import (
	"errors"
	"strings"
	"testing"

	"castellan/domain/money/ledger"
)

// Days that cannot be closed do not keep the ledger from being verified, and a broken ledger does not keep days open.
// Each of them is an alarm of its own.
func TestNightly(t *testing.T) {
	for _, c := range []struct {
		name               string
		change             func(*books, *calendar)
		alarms             int64
		fault, err, closed bool
	}{
		{"sound, with money in suspense", func(*books, *calendar) {}, 1, false, false, true},
		{"days fail", func(_ *books, c *calendar) { c.fail = "OfDay" }, 2, false, true, false},
		{"broken", func(b *books, _ *calendar) { b.transfers[1].Ref = "other" }, 1, true, false, true},
		{"both", func(b *books, c *calendar) { b.transfers[1].Ref, c.fail = "other", "OfDay" }, 2, true, false, false},
		{"unreadable", func(b *books, _ *calendar) { b.failing = "Lines" }, 1, false, true, true},
	} {
		b, days := sound(), newCalendar()
		c.change(b, days)
		n := ledger.Nightly(t.Context(), b, days, days, end(103))
		fault, err := n.Result()
		if n.Alarms() != c.alarms || (fault != "") != c.fault || (err != nil) != c.err || (len(days.closed) > 0) != c.closed {
			t.Errorf("%s: %+v, %q, %v, %d days", c.name, n, fault, err, len(days.closed))
		}
		if c.fault && strings.Contains(fault, errDown.Error()) == c.closed {
			t.Errorf("%s: %s", c.name, fault)
		}
		if c.err && !errors.Is(err, errDown) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
