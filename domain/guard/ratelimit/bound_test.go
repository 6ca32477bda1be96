package ratelimit_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// bounded returns a table that keeps at most this many keys of a rule.
func bounded(most int) (*ratelimit.Bounded, *ratelimit.Table, *clock) {
	c := new(clock)
	c.ns.Store(int64(time.Hour))
	table := ratelimit.NewTable(c.now)
	table.Bound(most)
	return ratelimit.NewBounded(table, hash, c.now, slog.New(slog.DiscardHandler)), table, c
}

func ask(t testing.TB, l ratelimit.Limiter, k ratelimit.Key, limit int64, period time.Duration) (bool,
	ratelimit.Standing) {
	standings := make([]ratelimit.Standing, 1)
	ok, err := l.Allow(context.Background(), []ratelimit.Demand{{Key: k, Limit: limit, Period: period}}, standings)
	if err != nil {
		t.Fatal(err)
	}
	return ok, standings[0]
}

func ipKey(text string) ratelimit.Key {
	return ratelimit.Key{Rule: "r", IP: netip.MustParseAddr(text)}
}

// subscriber returns the n-th network of a stranger with many networks.
func subscriber(n uint32) ratelimit.Key {
	a := [16]byte{0x2a, 0x00}
	binary.BigEndian.PutUint32(a[4:], n)
	return ratelimit.Key{Rule: "r", IP: netip.AddrFrom16(a)}
}

// A million strangers use no more memory than the bound.
func TestStrangersStayWithinBound(t *testing.T) {
	const most = 4000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	b, table, c := bounded(most)
	r := rand.New(rand.NewPCG(1, 1))
	for n := range uint32(1_000_000) {
		key := subscriber(n)
		switch n % 4 {
		case 1:
			key = subscriber(r.Uint32()) // any network
		case 2:
			a := r.Uint32()
			key.IP = netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
		}
		ask(t, b, key, 5, time.Hour)
		c.ns.Add(100)
	}
	// IPv4 and IPv6 exactly, five widths of a quarter each, and the key of all.
	if n := table.Keys(); n < 2*most || n > 2*most+5*most/4+1 {
		t.Errorf("%d keys", n)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if n := int64(after.HeapAlloc) - int64(before.HeapAlloc); n > 8<<20 {
		t.Errorf("%d bytes", n)
	}
	runtime.KeepAlive(b)
}

// Below the bound, every answer equals that of a table without a bound.
func TestBelowBoundNothingIsShared(t *testing.T) {
	b, _, c := bounded(50)
	plain := ratelimit.NewTable(c.now)
	r := rand.New(rand.NewPCG(2, 2))
	for range 20_000 {
		c.ns.Add(r.Int64N(int64(time.Second)))
		key := ratelimit.Key{Rule: fmt.Sprint("rule ", r.IntN(3)), IP: netip.AddrFrom4([4]byte{192, 0, 2, byte(r.IntN(50))})}
		ok, at := ask(t, b, key, 4, time.Minute)
		if want, stand := ask(t, plain, key, 4, time.Minute); ok != want || at != stand {
			t.Fatalf("%v: %v %+v, not %v %+v", key, ok, at, want, stand)
		}
	}
	for rule := range b.SharedByRule() {
		t.Errorf("%s shares", rule)
	}
}

// At the bound, while keys come and go, the limit is never exceeded in any window. A kept key is exact, and a refused
// client gets the time to retry.
func TestLimitIsNeverExceeded(t *testing.T) {
	const limit, period = 3, time.Minute
	shared, alone := 0, 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 3))
		b, table, c := bounded(8)
		admitted := map[ratelimit.Key][]int64{}
		for n := range 4000 {
			c.ns.Add(r.Int64N(int64(period / 40)))
			if n%1000 > 800 { // a quiet period, in which keys become free
				c.ns.Add(r.Int64N(int64(period / 2)))
			}
			if r.IntN(20) == 0 {
				table.Sweep()
			}
			var key ratelimit.Key
			switch v := r.IntN(3); v {
			case 0:
				key = ratelimit.Key{Rule: "r", IP: netip.AddrFrom4([4]byte{10, byte(r.IntN(3)), byte(r.IntN(2)), byte(r.IntN(3))})}
			case 1:
				key = subscriber(uint32(r.IntN(3)<<16 | r.IntN(2)<<8 | r.IntN(3)))
			default:
				key = ratelimit.Key{Rule: "users", Name: fmt.Sprint("u", r.IntN(20))}
			}
			now := c.ns.Load()
			within := 0
			for _, at := range admitted[key] {
				if at > now-int64(period) {
					within++
				}
			}
			standings := make([]ratelimit.Standing, 1)
			demands := []ratelimit.Demand{{Key: key, Limit: limit, Period: period}}
			storetest.Must(t, table.Look(t.Context(), demands, standings))
			keptExact := standings[0].Sharing == ratelimit.Alone
			ok, at := ask(t, b, key, limit, period)
			switch {
			case ok && within >= limit:
				t.Fatalf("seed %d, request %d of %v: admitted beside %d", seed, n, key, within)
			case keptExact && ok != (within < limit):
				t.Fatalf("seed %d, request %d of %v: %v beside %d, though the key is kept", seed, n, key, ok, within)
			case !ok && at.Retry <= 0:
				t.Fatalf("refused, and may come at once: %+v", at)
			}
			if keptExact {
				alone++
			} else {
				shared++
			}
			if ok {
				admitted[key] = append(admitted[key], now)
			}
		}
	}
	if shared < 10_000 || alone < 10_000 {
		t.Errorf("%d shared, %d alone", shared, alone)
	}
}

// When strangers use many networks, IPv6 clients share keys with their neighbours, the nearest first. Other clients
// do not share. When the strangers' keys are gone, sharing ends.
func TestSharing(t *testing.T) {
	b, table, c := bounded(8)
	for n := range uint32(8) {
		ask(t, b, subscriber(n), 2, time.Minute)
	}
	used := func(ip string) int64 {
		ok, at := ask(t, b, ipKey(ip), 2, time.Minute)
		if !ok {
			return -1
		}
		return at.Used
	}
	for _, step := range []struct {
		ip   string
		used int64
	}{
		{"2001:db8:0:100::", 1}, {"2001:db8:0:101::", 2}, {"2001:db8:0:102::", -1}, // one /56
		{"2001:db8:0:200::", 1}, // another
		{"2a00::", 2},           // a kept key
		{"192.0.2.1", 1}, {"192.0.2.2", 1},
		{"2001:db8:1::", 1}, {"2001:db8:1:100::", 2}, {"2001:db8:1:200::", -1}, // no more /56: one /48
	} {
		storetest.Equal(t, used(step.ip), step.used, step.ip)
	}
	c.ns.Add(int64(time.Minute))
	table.Sweep()
	for _, step := range []struct {
		ip   string
		used int64
	}{
		{"2001:db8:0:100::", 1}, {"2001:db8:0:101::", 2}, {"2001:db8:0:102::", -1}, // counted both ways
	} {
		storetest.Equal(t, used(step.ip), step.used, "just after", step.ip)
	}
	c.ns.Add(int64(2 * time.Minute))
	table.Sweep()
	for _, ip := range []string{"2001:db8:0:100::", "2001:db8:0:101::", "2001:db8:0:102::"} {
		storetest.Equal(t, used(ip), 1, "later", ip)
	}
}

// Users and countries share keys that they cannot choose.
func TestUsersShare(t *testing.T) {
	b, table, _ := bounded(10)
	for n := range 100_000 {
		ask(t, b, ratelimit.Key{Rule: "r", Name: fmt.Sprint("user", n)}, 3, time.Hour)
	}
	if n := table.Keys(); n < 4000 || n > 10+4096 {
		t.Errorf("%d keys", n)
	}
}

// Sharing is reported: the requests by rule, and one log line a minute.
func TestSharingIsReported(t *testing.T) {
	c, lines := new(clock), new(bytes.Buffer)
	table := ratelimit.NewTable(c.now)
	table.Bound(1)
	b := ratelimit.NewBounded(table, hash, c.now, slog.New(slog.NewTextHandler(lines, nil)))
	for n := range 100 {
		c.ns.Add(int64(time.Second))
		ask(t, b, ratelimit.Key{Rule: "login", IP: netip.AddrFrom4([4]byte{1, byte(n), 2, 3})}, 100, 24*time.Hour)
	}
	for rule, n := range b.SharedByRule() {
		if rule != "login" || n != 99 {
			t.Errorf("%s: %d", rule, n)
		}
	}
	storetest.Equal(t, strings.Count(lines.String(), "keys_per_rule"), 2, "lines", lines)
}

// Look returns the answer for the next request.
func TestLookShares(t *testing.T) {
	b, _, _ := bounded(1)
	ask(t, b, ipKey("192.0.2.1"), 2, time.Hour)
	for want := range int64(3) {
		standings := make([]ratelimit.Standing, 1)
		d := ratelimit.Demand{Key: ipKey("198.51.100.9"), Limit: 2, Period: time.Hour}
		if err := b.Look(t.Context(), []ratelimit.Demand{d}, standings); err != nil || standings[0].Used != want {
			t.Errorf("%+v, %v; want %d", standings[0], err, want)
		}
		ask(t, b, ipKey(fmt.Sprint("198.51.100.", want)), 2, time.Hour)
	}
}

// stubborn is a limiter that always asks to share, or fails after some questions.
type stubborn struct {
	ratelimit.Limiter
	asked, fails int
}

var errGone = errors.New("gone")

func (s *stubborn) ask(standings []ratelimit.Standing) error {
	if s.asked++; s.asked == s.fails {
		return errGone
	}
	for i := range standings {
		standings[i].Sharing = ratelimit.Together
		if i > 0 {
			standings[i].Sharing = ratelimit.Alone
		}
	}
	return nil
}

func (s *stubborn) Allow(_ context.Context, _ []ratelimit.Demand, standings []ratelimit.Standing) (bool, error) {
	return false, s.ask(standings)
}

func (s *stubborn) Look(_ context.Context, _ []ratelimit.Demand, standings []ratelimit.Standing) error {
	return s.ask(standings)
}

// A request is repeated under wider keys sixteen times at most, and fails with the limiter.
func TestSharingEnds(t *testing.T) {
	demands := []ratelimit.Demand{{Key: ipKey("192.0.2.1"), Limit: 2, Period: time.Hour}}
	for fails, asked := range map[int]int{0: 17, 1: 1, 2: 2} {
		for name, do := range map[string]func(b *ratelimit.Bounded) (bool, error){
			"allow": func(b *ratelimit.Bounded) (bool, error) {
				return b.Allow(t.Context(), demands, make([]ratelimit.Standing, 1))
			},
			"look": func(b *ratelimit.Bounded) (bool, error) {
				return false, b.Look(t.Context(), demands, make([]ratelimit.Standing, 1))
			},
		} {
			s := &stubborn{fails: fails}
			b := ratelimit.NewBounded(s, hash, time.Now, slog.New(slog.DiscardHandler))
			admitted, err := do(b)
			var f *fault.Error
			busy := errors.As(err, &f) && f.Code == fault.Unavailable && f.RetryAfter == time.Second
			if admitted || s.asked != asked || busy != (fails == 0) || errors.Is(err, errGone) != (fails > 0) {
				t.Errorf("%s, %d: %v, %v after %d questions", name, fails, admitted, err, s.asked)
			}
		}
	}
}
