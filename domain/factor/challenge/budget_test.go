package challenge_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/storetest"
)

const (
	quarter = int64(15 * 60_000) // the window of TOTP, ms
	hour    = int64(60 * 60_000) // the window of SMS and MAIL, ms
)

// spread returns n instants, 1 ms apart, the first at ms.
func spread(n int, ms int64) []int64 {
	var ts []int64
	for i := range n {
		ts = append(ts, t0+ms+int64(i))
	}
	return ts
}

// The rolling windows of D-2FA-13: an instant counts while it is younger than
// the window, and the wait ends when the number falls below the limit.
func TestBudgetWait(t *testing.T) {
	const now = 2 * hour
	for _, c := range []struct {
		name      string
		otp, totp []int64
		sms, code time.Duration // the wait of SMS and MAIL, and of TOTP
	}{
		{name: "nothing spent"},
		{name: "10", totp: spread(10, now-100), code: 15*time.Minute - 100*time.Millisecond},
		{name: "20", otp: spread(20, now-100), sms: time.Hour - 100*time.Millisecond},
		{name: "in this very millisecond", totp: slices.Repeat([]int64{t0 + now}, 10), code: 15 * time.Minute},
		{name: "the first leaves in 1 ms", totp: spread(10, now-quarter+1), code: time.Millisecond},
		{name: "the first leaves now", totp: spread(10, now-quarter)},
		{name: "the first left 1 ms ago", totp: spread(10, now-quarter-1)},
		{name: "an hour, 1 ms before", otp: spread(20, now-hour+1), sms: time.Millisecond},
		{name: "an hour", otp: spread(20, now-hour)},
		{name: "an hour, 1 ms after", otp: spread(20, now-hour-1)},
		{name: "more than the limit: two must leave", totp: spread(11, now-quarter+1), code: 2 * time.Millisecond},
		{name: "old ones do not count", totp: append(spread(30, 0), spread(9, now-50)...)},
		{name: "the youngest ten count", totp: append(spread(30, 0), spread(10, now-50)...),
			code: 15*time.Minute - 50*time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := challenge.Budget{OTP: c.otp, TOTP: c.totp}
			for n, want := range map[challenge.Name]time.Duration{
				challenge.SMS: c.sms, challenge.MAIL: c.sms, challenge.TOTP: c.code, challenge.PUSH: 0,
			} {
				storetest.Equal(t, b.Wait(at(now), challenge.DefaultRules(), n), want, n)
			}
		})
	}
}

// New challenges do not refill a budget: the wrong values of all challenges count (SEC-03), and the window rolls.
func TestBudgetAcrossChallenges(t *testing.T) {
	for _, c := range []struct {
		id     string
		limit  int
		window int64
		want   string // the answer at 1 000 ms once the limit is spent
	}{
		{"totp", 10, quarter, "RATE_LIMITED 14m59s"},
		{"sms", 20, hour, "RATE_LIMITED 59m59s"},
		{"mail", 20, hour, "RATE_LIMITED 59m59s"},
	} {
		t.Run(c.id, func(t *testing.T) {
			g := newGame(t, start(1, c.id))
			for i := range c.limit {
				if i%5 == 0 {
					g.c = start(1, c.id)
				}
				if got, want := g.do(int64(i), c.id+" wrong"), "OTP_INVALID "+strconv.Itoa(4-i%5); got != want {
					t.Fatalf("wrong value %d: got %s, want %s", i+1, got, want)
				}
			}
			g.c = start(1, c.id)
			g.c.ExpiresAt += 2 * hour
			g.c.Methods[0].ExpiresAt += 2 * hour
			g.play([]step{
				{1_000, c.id + " right", c.want},
				{1_000, c.id + " wrong", c.want},
				{c.window - 1, c.id + " right", "RATE_LIMITED 1ms"},
				{c.window, c.id + " wrong", "OTP_INVALID 4"}, // the first has left, this one takes its place
				{c.window, c.id + " right", "RATE_LIMITED 1ms"},
				{c.window + 1, c.id + " right", "executing"}, // the second has left
			})
		})
	}
}

// Instants that have left the window are dropped, so a budget stays small. Spending does not modify the given budget.
func TestBudgetForgets(t *testing.T) {
	memory := append(spread(3, -hour-2), t0-hour+5, t0+99, t0+99)
	g := newGame(t, start(1, "sms"))
	g.b.OTP = memory[:4]
	g.do(0, "sms wrong")
	if want := []int64{t0 - hour + 5, t0}; !slices.Equal(g.b.OTP, want) {
		t.Errorf("kept %v, want %v", g.b.OTP, want)
	}
	if memory[4] != t0+99 {
		t.Error("spending wrote behind the given instants")
	}
}
