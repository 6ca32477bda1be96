package sessiontest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/domain/access/session"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
)

func taken(t *testing.T, s session.Store, c commit.Committer, before time.Time, limit int) (all []session.Refused) {
	t.Helper()
	storetest.Must(t, c.InTx(t.Context(), func(ctx context.Context) (err error) {
		all, err = s.TakeRefused(ctx, before, limit)
		return err
	}))
	return all
}

// Refusals add up by site and minute, whichever node adds them, and are taken once.
func refused(t *testing.T, s session.Store, c commit.Committer) {
	ctx, minute := t.Context(), now.Truncate(time.Minute).UTC()
	add := func(site string, at time.Time) {
		storetest.Must(t, c.Commit(ctx, session.Refused{Site: site, Minute: at, Count: 1}))
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { add("a/32", minute) })
	}
	wg.Wait()
	add("b/56", minute)
	add("a/32", minute.Add(time.Minute))
	take := func(before time.Time, limit int) []string {
		all := taken(t, s, c, before, limit)
		var out []string
		for _, r := range all {
			out = append(out, fmt.Sprint(r.Site, " ", r.Minute.Sub(minute), " ", r.Count))
		}
		return out
	}
	if got := take(minute, 10); len(got) != 0 {
		t.Errorf("of a minute that begins now %v", got)
	}
	if got := take(minute.Add(time.Minute), 1); !slices.Equal(got, []string{"a/32 0s 20"}) {
		t.Errorf("the first %v", got)
	}
	if got := take(minute.Add(time.Minute), 10); !slices.Equal(got, []string{"b/56 0s 1"}) {
		t.Errorf("the others %v", got)
	}
	add("a/32", minute) // too late for its minute: it is not lost
	if got := take(minute.Add(time.Minute+1), 10); !slices.Equal(got, []string{"a/32 0s 1", "a/32 1m0s 1"}) {
		t.Errorf("the rest %v", got)
	}
}

// When nodes take at the same time, each refusal goes to one of them.
func refusedUnderRace(t *testing.T, s session.Store, c commit.Committer) {
	minute := now.Truncate(time.Minute)
	for i := range 40 {
		storetest.Must(t, c.Commit(t.Context(), session.Refused{Site: fmt.Sprint(i), Minute: minute, Count: 1}))
	}
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				all := taken(t, s, c, minute.Add(time.Minute), 7)
				if len(all) == 0 {
					return
				}
				mu.Lock()
				for _, r := range all {
					got[r.Site]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for _, r := range taken(t, s, c, minute.Add(time.Minute), 100) { // others were about to take it, and then saw nothing
		got[r.Site]++
	}
	for i := range 40 {
		if n := got[fmt.Sprint(i)]; n != 1 {
			t.Errorf("%d was taken %d times", i, n)
		}
	}
}
