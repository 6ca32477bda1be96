package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

func table() (*Revocations, *time.Time) {
	now := time.UnixMilli(1_700_000_000_000)
	return NewRevocations(30*time.Minute, func() time.Time { return now }), &now
}

func TestRevoked(t *testing.T) {
	r, _ := table()
	r.End("s1")
	r.Raise("u2", 5)
	r.Raise("u2", 3) // a version never decreases
	for _, c := range []struct {
		sid, user string
		sv        int64
		want      bool
	}{
		{"s1", "u1", 1, true}, {"s1", "u2", 9, true}, {"s2", "u1", 1, false}, {"s2", "u2", 4, true}, {"s2", "u2", 5, false},
		{"s2", "u2", 6, false}, {"u2", "s1", 0, false}, {"", "", 0, false},
	} {
		if got := r.Revoked(c.sid, c.user, c.sv); got != c.want || r.Live(c.user, c.sid, c.sv) == got {
			t.Errorf("session %s of %s, version %d: revoked %v", c.sid, c.user, c.sv, got)
		}
	}
}

func TestApply(t *testing.T) {
	r, _ := table()
	ctx := t.Context()
	for range 2 { // the feed repeats itself
		for _, n := range []string{Ended("s1", "u1").Key, svKey("u2", 7)} {
			storetest.Is(t, r.Apply(ctx, n), nil)
		}
	}
	if !r.Revoked("s1", "u1", 1) || !r.Revoked("s9", "u2", 6) || r.Revoked("s9", "u2", 7) || r.Len() != 2 {
		t.Errorf("%d entries", r.Len())
	}
	for _, bad := range []string{"", "sid", "sid/", "sid//u", "sid/s", "sv/u", "sv/u/x", "sv//1", "sv/u/1/2",
		"other/a/b"} {
		storetest.Fails(t, r.Apply(ctx, bad), "", bad)
	}
	storetest.Equal(t, r.Len(), 2, "entries after notes that mean nothing")
}

type listed []Revocation

func (l listed) Revoked(_ context.Context, since time.Time) (out []Revocation, err error) {
	for _, r := range l {
		if !r.At.Before(since) {
			out = append(out, r)
		}
	}
	return out, nil
}

func TestLoadAndForget(t *testing.T) {
	r, now := table()
	start := *now
	store := loader{listed: listed{
		{UserID: "u", SessionID: "old", At: start.Add(-31 * time.Minute)},
		{UserID: "u", SessionID: "s", At: start.Add(-29 * time.Minute)},
		{UserID: "v", SV: 4, At: start.Add(-time.Minute)},
	}}
	storetest.Must(t, r.Load(t.Context(), store))
	if r.Len() != 2 || !r.Revoked("s", "u", 1) || !r.Revoked("x", "v", 3) {
		t.Fatalf("%d entries", r.Len())
	}
	fill := func(prefix string) { // writes to every shard
		for i := range 20_000 {
			r.End(fmt.Sprint(prefix, i))
		}
	}
	// Tokens of s end after a minute, those of v later. The clocks of nodes differ by two seconds at most.
	for before, want := range map[time.Duration]bool{time.Millisecond: true, 0: false} {
		r, now = table()
		*now = start
		storetest.Must(t, r.Load(t.Context(), store))
		*now = start.Add(time.Minute + 2*time.Second - before)
		if fill("n"); r.Revoked("s", "u", 1) != want || !r.Revoked("x", "v", 3) {
			t.Errorf("%v before its end, an entry is kept: %t", before, !want)
		}
	}
	*now = start.Add(40 * time.Minute)
	fill("m")
	if n := r.Len(); n > 20_001 {
		t.Errorf("%d entries, the first 20000 are of no use any more", n)
	}
}

// loader is a store that has only the revocations.
type loader struct {
	Store
	listed
}

func (l loader) Revoked(ctx context.Context, since time.Time) ([]Revocation, error) {
	return l.listed.Revoked(ctx, since)
}

// A revocation reported to one goroutine is visible to all others at once.
func TestRevocationsUnderRace(t *testing.T) {
	r, _ := table()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				sid, user := fmt.Sprintf("s%d.%d", g, i), fmt.Sprint("u", i%7)
				r.End(sid)
				r.Raise(user, int64(i))
				if !r.Revoked(sid, "", 0) || !r.Revoked("", user, int64(i)-1) {
					t.Errorf("%s or %s at %d is live", sid, user, i)
				}
			}
		})
	}
	wg.Wait()
	storetest.Equal(t, r.Len(), 8*500+7, "entries")
}

// A node does not begin with a part of the revocations.
func TestLoadFails(t *testing.T) {
	r, _ := table()
	down := errors.New("down")
	if err := r.Load(t.Context(), unloaded{err: down}); !errors.Is(err, down) || r.Len() != 0 {
		t.Errorf("%v, %d entries", err, r.Len())
	}
}

// unloaded is a store that cannot list the revocations to their end.
type unloaded struct {
	Store
	err error
}

func (u unloaded) Revoked(context.Context, time.Time) ([]Revocation, error) {
	return []Revocation{{UserID: "u", SV: 2}}, u.err
}
