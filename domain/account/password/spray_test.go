package password

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// sprayed is a bound of three wrong passwords with its clock.
type sprayed struct {
	*Spray
	now time.Time
}

func newSprayed(exempt ...netip.Prefix) *sprayed {
	s := &sprayed{now: time.UnixMilli(1_700_000_000_000)}
	clock := func() time.Time { return s.now }
	s.Spray = NewSpray(ratelimit.NewTable(clock), 3, exempt, clock)
	return s
}

// waits checks how long a stranger at an address has to wait; 0: not at all.
func (s *sprayed) waits(t *testing.T, ip string, want time.Duration) {
	t.Helper()
	err := s.Judge(Guard{}, DefaultGuardRules(), client.From(netip.MustParseAddr(ip)))
	var f *fault.Error
	if errors.As(err, &f) != (want > 0) || f != nil && (f.Code != fault.RateLimited || f.RetryAfter != want) {
		t.Errorf("%s: %+v, want %v", ip, f, want)
	}
}

func (s *sprayed) wrong(t *testing.T, ips ...string) {
	t.Helper()
	for _, ip := range ips {
		s.Wrong(t.Context(), client.From(netip.MustParseAddr(ip)))
	}
}

// The third wrong password of a site within ten minutes closes it, for all accounts, until the oldest one leaves.
func TestSprayClosesASite(t *testing.T) {
	s := newSprayed()
	const one, neighbour, other = "203.0.113.1", "198.51.100.1", "198.51.100.2"
	s.wrong(t, one)
	s.now = s.now.Add(time.Minute)
	s.wrong(t, one)
	s.waits(t, one, 0)
	s.wrong(t, one)
	s.waits(t, one, 9*time.Minute)
	s.waits(t, "::ffff:"+one, 9*time.Minute)
	s.waits(t, neighbour, 0)
	s.now = s.now.Add(9*time.Minute - time.Millisecond)
	s.waits(t, one, time.Millisecond)
	s.now = s.now.Add(time.Millisecond)
	s.waits(t, one, 0)
	s.wrong(t, one) // with the two others of the window
	s.waits(t, one, time.Minute)

	// A further wrong password, which was being judged, does not shorten the wait.
	s.now = s.now.Add(30 * time.Second)
	s.wrong(t, one)
	s.waits(t, one, 30*time.Second)
	s.wrong(t, other, other, other)
	storetest.Equal(t, len(s.closed), 2, s.closed)
	s.now = s.now.Add(10 * time.Minute)
	s.wrong(t, neighbour, neighbour, neighbour)
	storetest.Equal(t, len(s.closed), 1, s.closed)
}

// A caller whom the account knows is not refused, and neither is an exempt address.
func TestSprayKnowsCallers(t *testing.T) {
	s := newSprayed(netip.MustParsePrefix("192.0.2.0/24"))
	const ip = "203.0.113.1"
	s.wrong(t, ip, ip, ip, "192.0.2.7", "192.0.2.7", "192.0.2.7", "::ffff:192.0.2.7")
	s.waits(t, "192.0.2.7", 0)
	for known, want := range map[string]fault.Code{ip: "", "203.0.113.2": fault.RateLimited} {
		guard := Guard{Good: []Good{{Prefix: client.Prefix(netip.MustParseAddr(known)), At: s.now.UnixMilli()}}}
		storetest.Wants(t, s.Judge(guard, DefaultGuardRules(), client.From(netip.MustParseAddr(ip))), want)
	}
	s.Wrong(t.Context(), client.Origin{})
	storetest.Must(t, s.Judge(Guard{}, DefaultGuardRules(), client.Origin{})) // without an address
}

// away is a limiter that cannot count.
type away struct{ ratelimit.Limiter }

func (away) Allow(_ context.Context, _ []ratelimit.Demand, stands []ratelimit.Standing) (bool, error) {
	stands[0].Used, stands[0].Retry = 9, int64(time.Minute)
	return false, errors.New("away")
}

// While the windows are unavailable nothing is counted, and no site is closed.
func TestSprayWithoutWindows(t *testing.T) {
	s := newSprayed()
	s.windows = away{}
	s.wrong(t, "203.0.113.1", "203.0.113.1", "203.0.113.1", "203.0.113.1")
	s.waits(t, "203.0.113.1", 0)
}

// The standing of a prefix has the tries of its window and the end of its lock.
func TestStanding(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	rules := GuardRules{PerPrefix: 2, Window: time.Minute, Total: 3, TotalSpan: time.Hour}
	ago := func(prefix string, d time.Duration) Try { return Try{Prefix: prefix, At: now.Add(-d).UnixMilli()} }
	for name, c := range map[string]struct {
		tries []Try
		want  Standing
	}{
		"none":              {nil, Standing{Limit: 2}},
		"one":               {[]Try{ago("p", 0)}, Standing{Tries: 1, Limit: 2}},
		"of another":        {[]Try{ago("q", 0), ago("q", 0)}, Standing{Limit: 2}},
		"at the edge":       {[]Try{ago("p", time.Minute-time.Millisecond)}, Standing{Tries: 1, Limit: 2}},
		"out of the window": {[]Try{ago("p", time.Minute)}, Standing{Limit: 2}},
		"locked":            {[]Try{ago("p", 20*time.Second), ago("p", 0)}, Standing{2, 2, now.Add(40 * time.Second)}},
		"locked by the total": {[]Try{ago("q", 59*time.Minute), ago("q", 0), ago("r", 0)},
			Standing{0, 2, now.Add(time.Minute)}},
		"the total is not yet": {[]Try{ago("q", time.Hour), ago("q", 0), ago("r", 0)}, Standing{Limit: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Same(t, Guard{Tries: c.tries}.standing(now, rules, "p"), c.want)
		})
	}
	g := NewGuards(&rows{}, &rows{}, rules, func() time.Time { return now })
	storetest.Same(t, g.Rules(), rules)
	at := &Attempt{g: g, prefix: "p", guard: Guard{Tries: []Try{ago("p", 0)}}}
	storetest.Same(t, at.Standing(), Standing{Tries: 1, Limit: 2})
}

var errLost = errors.New("lost")

// failing is a committer that fails with some errors first.
type failing struct {
	commit.Committer
	fail []error
}

func (f *failing) Commit(ctx context.Context, writes ...commit.Write) error {
	if len(f.fail) > 0 {
		err := f.fail[0]
		f.fail = f.fail[1:]
		return err
	}
	return f.Committer.Commit(ctx, writes...)
}

// A right password of a login that fails is no wrong try, also if another node changed the guard meanwhile.
func TestRefundAlone(t *testing.T) {
	for name, c := range map[string]struct {
		fail  []error
		want  error
		tries int
	}{
		"saved": {nil, nil, 0}, "changed meanwhile": {[]error{commit.ErrFenced, commit.ErrFenced}, nil, 0},
		"lost": {[]error{errLost}, errLost, 1}, "lost at the second": {[]error{commit.ErrFenced, errLost}, errLost, 1},
	} {
		g, r := keeper()
		a := storetest.Value(g.Charge(t.Context(), "u", "p"))(t)
		storetest.Must(t, storetest.Err(a.Refund(t.Context())))
		g.commit = &failing{r, c.fail}
		if err := a.RefundAlone(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		a.Wrong()
		if got := r.guards["u"]; len(got.Tries) != c.tries || (len(got.Good) == 1) != (c.tries == 0) {
			t.Errorf("%s: %+v", name, got)
		}
		if next, err := g.Charge(t.Context(), "u", "p"); err != nil {
			t.Errorf("%s: the next try: %v", name, err)
		} else {
			next.Wrong()
		}
	}
}
