// Package foureyestest is the contract of foureyes.Store as tests.
package foureyestest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/foureyes"
)

// Run checks an implementation of foureyes.Store.
func Run(t *testing.T, open storetest.Open[foureyes.Store]) {
	storetest.Run(t, open, storetest.Cases[foureyes.Store]{
		"RoundTrip":  roundTrip,
		"Lists":      lists,
		"DecideOnce": decideOnce,
		"Holds":      holds,
		"Purge":      purge,
	})
}

var at = time.UnixMilli(1_700_000_000_000).UTC()

// request returns the nth request; requests are made a minute apart and live for five.
func request(n int) foureyes.Request {
	made := at.Add(time.Duration(n) * time.Minute)
	return foureyes.Request{ID: id.Of(made, "request"), Method: "POST", Path: "/admin/things/{id}",
		Summary: fmt.Sprint("THING_CHANGE: ", n), RequestedBy: fmt.Sprint("u", n), RequestedAt: made,
		ExpiresAt: made.Add(5 * time.Minute), Status: foureyes.Pending, Sealed: []byte{0, 1, byte(n)}}
}

// decided returns a request after a decision.
func decided(r foureyes.Request, to foureyes.Status) foureyes.Request {
	r.Status, r.DecidedBy, r.DecidedAt, r.Reason, r.Sealed = to, "boss", r.RequestedAt.Add(time.Second), "why", nil
	r.Result = []byte{9, 0}
	return r
}

func roundTrip(t *testing.T, s foureyes.Store, _ commit.Committer) {
	ctx, r := t.Context(), request(1)
	_, err := s.Get(ctx, r.ID)
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = s.Hold(ctx, r.ID)
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Wants(t, s.Decide(ctx, decided(r, foureyes.Approved)), fault.RecordNotFound)
	storetest.Must(t, s.Add(ctx, r))
	storetest.Wants(t, s.Add(ctx, r), fault.RecordAlreadyExist)
	for range 2 {
		got, err := s.Get(ctx, r.ID)
		storetest.Must(t, err)
		storetest.Same(t, got, r)
		if r.Status != foureyes.Pending {
			break
		}
		r = decided(r, foureyes.Approved)
		next := r
		next.Summary, next.RequestedBy, next.Path = "other", "other", "/other" // these never change
		storetest.Must(t, s.Decide(ctx, next))
	}
	storetest.Wants(t, s.Decide(ctx, decided(r, foureyes.Refused)), fault.RecordNotFound)
}

func lists(t *testing.T, s foureyes.Store, _ commit.Committer) {
	var all []foureyes.Request // newest first
	for n := range 10 {
		r := request(n)
		storetest.Must(t, s.Add(t.Context(), r))
		if to := map[int]foureyes.Status{2: foureyes.Approved, 7: foureyes.Refused, 8: foureyes.Failed}[n]; to != "" {
			r = decided(r, to)
			storetest.Must(t, s.Decide(t.Context(), r))
		}
		all = append([]foureyes.Request{r}, all...)
	}
	now := at.Add(8 * time.Minute) // the request of the third minute has just expired
	of := map[foureyes.Status][]foureyes.Request{}
	for i := range all {
		if n := 9 - i; n <= 3 && n != 2 {
			all[i].Status = foureyes.Expired
		}
		of[all[i].Status] = append(of[all[i].Status], all[i])
	}
	if len(of) != 5 || len(of[foureyes.Expired]) != 3 || len(of[foureyes.Pending]) != 4 {
		t.Fatalf("the case is not what it says: %v", of)
	}
	of[""] = all
	for status, want := range of {
		pagetest.CheckBoth(t, s.List, foureyes.Query{Status: status, Now: now}, want)
	}
}

// Of many concurrent decisions on one request one succeeds.
func decideOnce(t *testing.T, s foureyes.Store, _ commit.Committer) {
	r := request(1)
	storetest.Must(t, s.Add(t.Context(), r))
	won := storetest.Race(t, 16, fault.RecordNotFound, func(i int) error {
		return s.Decide(t.Context(), decided(r, []foureyes.Status{foureyes.Approved, foureyes.Refused}[i%2]))
	})
	if won != 1 {
		t.Errorf("%d of 16 decided", won)
	}
}

// A transaction that holds a request sees the result of the previous holder, and decides alone.
func holds(t *testing.T, s foureyes.Store, c commit.Committer) {
	r := request(1)
	storetest.Must(t, s.Add(t.Context(), r))
	errOver := errors.New("it is decided")
	var mu sync.Mutex
	var wg sync.WaitGroup
	inside, done, late := 0, 0, 0
	for range 8 {
		wg.Go(func() {
			err := c.InTx(t.Context(), func(ctx context.Context) error {
				got, err := s.Hold(ctx, r.ID)
				if err != nil {
					return err
				}
				mu.Lock()
				if inside++; inside > 1 {
					t.Error("two hold one request")
				}
				mu.Unlock()
				defer func() { mu.Lock(); inside--; mu.Unlock() }()
				if got.Status != foureyes.Pending {
					return errOver
				}
				return s.Decide(ctx, decided(r, foureyes.Approved))
			})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				done++
			case errors.Is(err, errOver):
				late++
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if done != 1 || late != 7 {
		t.Errorf("%d decided and %d came late", done, late)
	}
}

func purge(t *testing.T, s foureyes.Store, _ commit.Committer) {
	for n := range 3 {
		storetest.Must(t, s.Add(t.Context(), request(n)))
	}
	storetest.Must(t, s.Purge(t.Context(), request(2).RequestedAt))
	pagetest.Check(t, s.List, foureyes.Query{Now: at}, []foureyes.Request{request(2)})
}
