package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
)

// calendar is a ledger in memory with its closed days. It reads two transfers a page.
type calendar struct {
	transfers map[int64][]ledger.Transfer
	closed    []ledger.Day
	units     []int
	fail      string
	refuse    error // the next commit
}

func (c *calendar) did(name string) error {
	if c.fail == name {
		return errDown
	}
	return nil
}

func (c *calendar) FirstDay(context.Context) (first int64, ok bool, err error) {
	for day := range c.transfers {
		if !ok || day < first {
			first, ok = day, true
		}
	}
	return first, ok, c.did("FirstDay")
}

func (c *calendar) LastDay(context.Context) (last int64, ok bool, err error) {
	for _, d := range c.closed {
		last, ok = max(last, d.Day), true
	}
	return last, ok, c.did("LastDay")
}

func (c *calendar) OfDay(_ context.Context, day int64, after string) (page []ledger.Transfer, err error) {
	for _, t := range c.transfers[day] {
		if t.ID > after && len(page) < 2 {
			page = append(page, t)
		}
	}
	return page, c.did("OfDay")
}

func (c *calendar) DayBefore(_ context.Context, account string, day int64) (before ledger.Day, err error) {
	for _, d := range c.closed {
		if d.Account == account && d.Day <= day && d.Day >= before.Day {
			before = d
		}
	}
	return before, c.did("DayBefore")
}

func (c *calendar) Commit(_ context.Context, writes ...commit.Write) error {
	if err := c.refuse; err != nil {
		c.refuse = nil
		return err
	}
	for _, w := range writes {
		c.closed = append(c.closed, w.(ledger.Close).Day)
	}
	c.units = append(c.units, len(writes))
	return nil
}

func (c *calendar) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// of returns the closed days of an account.
func (c *calendar) of(a ledger.Account) (days []string) {
	for _, d := range c.closed {
		if d.Account == a.ID() {
			days = append(days, fmt.Sprintf("%d: +%s -%s = %s by %d", d.Day, d.In, d.Out, d.Posted, d.Seq))
		}
	}
	return days
}

var (
	ayse = ledger.Account{Kind: ledger.User, Owner: "ayse", Asset: 1}
	veli = ledger.Account{Kind: ledger.User, Owner: "veli", Asset: 1}
)

func transfer(day int64, n int, from, to ledger.Account, sum string) ledger.Transfer {
	return ledger.Transfer{ID: idOf(day, n), Debit: from, Credit: to, Amount: amount.Must(sum)}
}

func newCalendar() *calendar {
	return &calendar{transfers: map[int64][]ledger.Transfer{
		100: {transfer(100, 1, treasury, ayse, "5"), transfer(100, 2, ayse, veli, "2"), transfer(100, 3, veli, ayse, "1")},
		102: {transfer(102, 1, treasury, veli, "7")},
		103: {transfer(103, 1, veli, treasury, "1")},
	}}
}

// end returns the first instant at which a day is closed.
func end(day int64) time.Time { return time.UnixMilli((day + 1) * 24 * 3600 * 1000).Add(time.Hour) }

// A day is closed an hour after its end, for the accounts that moved, with their sums since the beginning.
func TestCloseDays(t *testing.T) {
	c := newCalendar()
	for _, step := range []struct {
		now                  time.Time
		ayse, veli, treasury []string
	}{
		{now: end(100).Add(-time.Millisecond)},
		{end(100), []string{"100: +6 -2 = 4 by 3"}, []string{"100: +2 -1 = 1 by 2"}, []string{"100: +0 -5 = -5 by 1"}},
		{end(102).Add(-time.Millisecond), nil, nil, nil},
		{end(102), nil, []string{"102: +7 -0 = 8 by 3"}, []string{"102: +0 -7 = -12 by 2"}},
		{end(102), nil, nil, nil},
		{end(110), nil, []string{"103: +0 -1 = 7 by 4"}, []string{"103: +1 -0 = -11 by 3"}},
		{end(110), nil, nil, nil},
	} {
		before := len(c.closed)
		storetest.Must(t, ledger.CloseDays(t.Context(), c, c, step.now))
		added := calendar{closed: c.closed[before:]}
		if !slices.Equal(added.of(ayse), step.ayse) || !slices.Equal(added.of(veli), step.veli) ||
			!slices.Equal(added.of(treasury), step.treasury) {
			t.Errorf("%s: %+v", step.now.UTC(), added.closed)
		}
	}
	if len(c.closed) != 7 || !slices.Equal(c.units, []int{3, 2, 2}) {
		t.Errorf("%d days in units of %v", len(c.closed), c.units)
	}
	empty := &calendar{}
	if err := ledger.CloseDays(t.Context(), empty, empty, end(100)); err != nil || len(empty.closed) != 0 {
		t.Errorf("without transfers: %+v, %v", empty.closed, err)
	}
}

// Closing continues after an interruption, in units of a hundred accounts.
func TestCloseDaysContinues(t *testing.T) {
	c := &calendar{transfers: map[int64][]ledger.Transfer{}}
	for n := range 249 {
		c.transfers[100] = append(c.transfers[100], transfer(100, n+1, treasury, ledger.Account{Kind: ledger.User,
			Owner: fmt.Sprint("u", n), Asset: 1}, "1"))
	}
	c.refuse = errDown
	if err := ledger.CloseDays(t.Context(), c, c, end(100)); !errors.Is(err, errDown) || len(c.closed) != 0 {
		t.Errorf("%d closed, %v", len(c.closed), err)
	}
	if err := ledger.CloseDays(t.Context(), c, c, end(100)); err != nil || !slices.Equal(c.units, []int{100, 100, 50}) {
		t.Errorf("units of %v, %v", c.units, err)
	}
	c.closed, c.units = c.closed[:120], nil
	if err := ledger.CloseDays(t.Context(), c, c, end(100)); err != nil || !slices.Equal(c.units, []int{100, 30}) {
		t.Errorf("the rest in units of %v, %v", c.units, err)
	}
	seen := map[string]bool{}
	for _, d := range c.closed {
		seen[d.Account] = true
	}
	storetest.Equal(t, len(seen), 250)
	storetest.Equal(t, len(c.closed), 250)
}

// A day that another node closes at the same time is no error; any other failure ends the closing.
func TestCloseDaysFails(t *testing.T) {
	c := newCalendar()
	c.refuse = fault.New(fault.RecordAlreadyExist, "closed")
	if err := ledger.CloseDays(t.Context(), c, c, end(102)); err != nil || len(c.of(veli)) != 1 {
		t.Errorf("%+v, %v", c.closed, err)
	}
	for _, name := range []string{"FirstDay", "LastDay", "OfDay", "DayBefore", "Commit"} {
		c = newCalendar()
		if c.fail = name; name == "Commit" {
			c.refuse = errDown
		}
		if err := ledger.CloseDays(t.Context(), c, c, end(102)); !errors.Is(err, errDown) || len(c.closed) != 0 {
			t.Errorf("%s: %+v, %v", name, c.closed, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c = newCalendar()
	if err := ledger.CloseDays(ended, c, c, end(102)); !errors.Is(err, context.Canceled) || len(c.closed) != 0 {
		t.Errorf("%+v, %v", c.closed, err)
	}
}

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
