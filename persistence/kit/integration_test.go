package kit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestIntegrationStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) integration.Store { return kit.NewIntegration(db) },
		storetest.Cases[integration.Store]{
			"Claims":       claims,
			"RacingClaims": racingClaims,
			"Rebind":       rebind,
			"Feed":         feed,
			"NoneSkipped":  feedSkipsNone,
		}, "integration_claim", "integration_event")
}

var integrationStart = time.UnixMilli(1_700_000_000_123).UTC()

func sampleClaim(t *testing.T, externalID string) integration.Claim {
	return persistencetest.Whole(t, func(c *integration.Claim) {
		c.Kind, c.ExternalID, c.RecordID = integration.Deposits, externalID, "record of "+externalID
	})
}

func claims(t *testing.T, s integration.Store, c commit.Committer) {
	_, err := s.Claim(t.Context(), integration.Deposits, "a")
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Must(t, c.Commit(t.Context(), integration.Add{Claim: sampleClaim(t, "a")}))
	got := storetest.Value(s.Claim(t.Context(), integration.Deposits, "a"))(t)
	storetest.Same(t, got, sampleClaim(t, "a"))
	storetest.Wants(t, storetest.Err(s.Claim(t.Context(), integration.Withdrawals, "a")), fault.RecordNotFound)
	storetest.Wants(t, c.Commit(t.Context(), integration.Add{Claim: sampleClaim(t, "a")}), fault.RecordAlreadyExist)
	other := sampleClaim(t, "a")
	other.Kind = integration.Withdrawals
	storetest.Must(t, c.Commit(t.Context(), integration.Add{Claim: other}))
	got = storetest.Value(s.ClaimOf(t.Context(), integration.Withdrawals, other.RecordID))(t)
	storetest.Same(t, got, other)
	storetest.Wants(t, storetest.Err(s.ClaimOf(t.Context(), integration.Users, other.RecordID)), fault.RecordNotFound)
	_, err = s.ClaimOf(t.Context(), integration.Deposits, "another record")
	storetest.Wants(t, err, fault.RecordNotFound)
}

// Of concurrent requests with one external id, one makes the record and all get it; another body is rejected.
func racingClaims(t *testing.T, s integration.Store, c commit.Committer) {
	ctx := t.Context()
	var made, again int
	var mu sync.Mutex
	once := func(body string) (string, error) {
		claim := integration.Claim{Kind: integration.Deposits, ExternalID: "x", Digest: integration.Digest(body),
			RecordID: id.New(integrationStart), At: integrationStart}
		record, repeated, err := integration.Once(ctx, s, claim,
			func(_ context.Context, recordID string) (string, error) { return recordID, nil },
			func(ctx context.Context) (string, error) {
				return claim.RecordID, c.Commit(ctx, integration.Add{Claim: claim})
			})
		mu.Lock()
		defer mu.Unlock()
		if repeated {
			again++
		} else if err == nil {
			made++
		}
		return record, err
	}
	records := make([]string, 8)
	storetest.Race(t, len(records), fault.InvalidState, func(i int) (err error) {
		records[i], err = once("body")
		return err
	})
	if made != 1 || again != 7 || len(slices.Compact(slices.Sorted(slices.Values(records)))) != 1 {
		t.Errorf("made %d, repeated %d: %v", made, again, records)
	}
	_, err := once("other body")
	storetest.Wants(t, err, fault.InvalidState)
}

// An external id is rebound only if it is still bound to the expected record, and by only one of several concurrent
// calls. Its digest and its kind are unchanged.
func rebind(t *testing.T, s integration.Store, c commit.Committer) {
	ctx, first := t.Context(), sampleClaim(t, "a")
	other := first
	other.Kind = integration.Withdrawals
	bind := func(externalID, from, to string) error {
		return c.Commit(ctx, integration.Rebind{Kind: first.Kind, ExternalID: externalID, From: from, To: to})
	}
	fenced := func(err error) {
		t.Helper()
		storetest.Is(t, err, commit.ErrFenced)
	}
	fenced(bind("a", first.RecordID, "second"))
	storetest.Must(t, c.Commit(ctx, integration.Add{Claim: first}, integration.Add{Claim: other}))
	fenced(bind("a", "another record", "second"))
	fenced(bind("b", first.RecordID, "second"))
	won := make([]bool, 8)
	storetest.Race(t, len(won), fault.RecordAlreadyExist, func(i int) error {
		err := bind("a", first.RecordID, fmt.Sprint("second ", i))
		if errors.Is(err, commit.ErrFenced) {
			return fault.New(fault.RecordAlreadyExist, "fenced")
		}
		won[i] = err == nil
		return err
	})
	i := slices.Index(won, true)
	if i < 0 || slices.Contains(won[i+1:], true) {
		t.Fatalf("bound by %v", won)
	}
	got := storetest.Value(s.Claim(ctx, first.Kind, "a"))(t)
	first.RecordID = fmt.Sprint("second ", i)
	storetest.Same(t, got, first)
	got = storetest.Value(s.Claim(ctx, other.Kind, "a"))(t)
	storetest.Same(t, got, other)
	// Two events in one unit, and none with a rejected write.
	storetest.Must(t, c.Commit(ctx, integration.Add{Claim: sampleClaim(t, "b")}))
	storetest.Must(t, c.Commit(ctx,
		integration.Rebind{Kind: first.Kind, ExternalID: "b", From: sampleClaim(t, "b").RecordID, To: "third"},
		integration.Rebind{Kind: first.Kind, ExternalID: "a", From: first.RecordID, To: "third of a"}))
	fenced(c.Commit(ctx, integration.Rebind{Kind: first.Kind, ExternalID: "b", From: "third", To: "fourth"},
		integration.Rebind{Kind: first.Kind, ExternalID: "a", From: "nothing", To: "fourth of a"}))
	got = storetest.Value(s.Claim(ctx, first.Kind, "b"))(t)
	storetest.Equal(t, got.RecordID, "third")
}

func queuedEvent(n int) integration.Publish {
	return integration.Publish{Event: integration.Event{ID: id.New(integrationStart), Type: integration.WithdrawalQueued,
		UserID: "u1", Data: map[string]string{"n": fmt.Sprint(n)}, At: integrationStart}}
}

// readFeed reads the feed to its end, in pages.
func readFeed(t *testing.T, s integration.Store, q integration.EventQuery, from *integration.Place,
	limit int) (all []integration.Event) {
	t.Helper()
	for {
		got := storetest.Value(s.Events(t.Context(), q, page.Query[integration.Place]{After: from, Limit: limit}))(t)
		all = append(all, got.Records...)
		if !got.More {
			return all
		}
		from = new(got.Records[len(got.Records)-1].Mark())
	}
}

// settledFeed waits until n events are listed: on PostgreSQL the events of a transaction appear when no older
// transaction is running, and parallel tests may have one.
func settledFeed(t *testing.T, s integration.Store, from *integration.Place, n int) []integration.Event {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		all := readFeed(t, s, integration.EventQuery{}, from, 7)
		if len(all) >= n || time.Now().After(deadline) {
			return all
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func feed(t *testing.T, s integration.Store, c commit.Committer) {
	for n := range 20 {
		storetest.Must(t, c.Commit(t.Context(), queuedEvent(n)))
	}
	decided := queuedEvent(20)
	decided.Type = integration.KYCDecided
	storetest.Must(t, c.Commit(t.Context(), decided))
	all := settledFeed(t, s, nil, 21)
	var order []string
	for _, e := range all {
		order = append(order, e.Data["n"])
	}
	if got, want := strings.Join(order, " "), "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20"; got != want {
		t.Fatalf("in the order %s", got)
	}
	last := all[len(all)-1]
	last.Tx = 0
	storetest.Same(t, last, decided.Event)
	storetest.Equal(t, len(settledFeed(t, s, new(all[17].Mark()), 3)), 3, "events after the eighteenth")
	decisions := integration.EventQuery{Types: []integration.Type{integration.KYCDecided}}
	storetest.Equal(t, len(readFeed(t, s, decisions, nil, 5)), 1, "events of the type")
}

// A reader that follows the feed while many writers commit misses no event and reads none twice, although transactions
// end in a different order than they began.
func feedSkipsNone(t *testing.T, s integration.Store, c commit.Committer) {
	const writers, each = 8, 25
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				storetest.Is(t, c.InTx(t.Context(), func(ctx context.Context) error {
					if err := c.Commit(ctx, queuedEvent(w*each+n)); err != nil {
						return err
					}
					if n%3 == 0 {
						time.Sleep(time.Duration(w) * time.Millisecond)
					}
					return nil
				}), nil)
			}
		})
	}
	seen := map[string]bool{}
	var from *integration.Place
	for len(seen) < writers*each {
		got := settledFeed(t, s, from, 1)
		if len(got) == 0 {
			break
		}
		for _, e := range got {
			if seen[e.ID] {
				t.Fatalf("the event %s was read twice", e.ID)
			}
			seen[e.ID] = true
		}
		from = new(got[len(got)-1].Mark())
	}
	all.Wait()
	if more := readFeed(t, s, integration.EventQuery{}, from, 7); len(more) > 0 {
		t.Errorf("%d further events", len(more))
	}
	storetest.Equal(t, len(seen), writers*each)
}
