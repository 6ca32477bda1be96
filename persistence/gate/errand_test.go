package gate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"castellan/domain/gate/errand"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/gate"
	"castellan/persistence/persistencetest"
)

func TestErrandStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) errand.Store { return gate.NewErrands(db) },
		storetest.Cases[errand.Store]{
			"RoundTrip":  errandRoundTrip,
			"References": errandReferences,
			"Settle":     errandSettle,
			"Redeem":     errandRedeem,
			"Overdue":    errandOverdue,
			"Purge":      errandPurge,
		}, "errand")
}

var start = time.UnixMilli(1_700_000_000_123).UTC()

func pendingErrand(name string) errand.Errand {
	return errand.Errand{ID: id.Of(start, name), Service: "shop", Reference: name, Digest: []byte("digest\x00\xff"),
		Action: "PAYOUT", UserID: "u1", Status: errand.Pending, CreatedAt: start, ExpiresAt: start.Add(3 * time.Minute),
		Methods: []string{}}
}

func settledErrand(e errand.Errand, s errand.Status) errand.Errand {
	e.Status, e.SettledAt, e.Intent, e.Methods = s, start.Add(time.Minute), "int", []string{"PUSH", "SMS"}
	e.Payload = []byte("sealed\x00")
	return e
}

func readsErrand(t *testing.T, s errand.Store, want errand.Errand) {
	t.Helper()
	for _, read := range []func() (errand.Errand, error){
		func() (errand.Errand, error) { return s.Get(t.Context(), want.ID) },
		func() (errand.Errand, error) { return s.Referenced(t.Context(), want.Service, want.Reference) },
	} {
		storetest.Same(t, storetest.Value(read())(t), want, "read")
	}
}

func errandRoundTrip(t *testing.T, s errand.Store, c commit.Committer) {
	whole := persistencetest.Whole(t, func(e *errand.Errand) {
		e.Status, e.Methods = errand.Failed, []string{"PUSH", "SMS"}
	})
	storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: whole}))
	readsErrand(t, s, whole)
	e := pendingErrand("a")
	storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: e}))
	readsErrand(t, s, e)
	_, err := s.Get(t.Context(), "none")
	storetest.Wants(t, err, fault.RecordNotFound)
	storetest.Wants(t, storetest.Err(s.Referenced(t.Context(), "other", "a")), fault.RecordNotFound)
	done := settledErrand(e, errand.Completed)
	storetest.Must(t, c.Commit(t.Context(), errand.Settle{Errand: done}))
	readsErrand(t, s, done)
	storetest.Must(t, c.Commit(t.Context(), errand.Redeem{ID: e.ID, At: start.Add(time.Hour), Redemption: "r"}))
	done.Payload, done.RedeemedAt, done.Redemption = nil, start.Add(time.Hour), "r"
	readsErrand(t, s, done)
}

// A reference belongs to its service, and to one challenge.
func errandReferences(t *testing.T, s errand.Store, c commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(i int) error {
		e := pendingErrand(fmt.Sprint(i))
		e.Reference = "one"
		return c.Commit(t.Context(), errand.Add{Errand: e})
	})
	other := pendingErrand("b")
	other.Service, other.Reference = "other", "one"
	storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: other}))
	readsErrand(t, s, other)
}

// fenced makes the refusal of a fence one that storetest.OneWins counts.
func fenced(err error) error {
	if errors.Is(err, commit.ErrFenced) {
		return fault.New(fault.GrantUsed, "fenced")
	}
	return err
}

// An errand has one outcome.
func errandSettle(t *testing.T, s errand.Store, c commit.Committer) {
	e := pendingErrand("a")
	storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: e}))
	if err := c.Commit(t.Context(), errand.Redeem{ID: e.ID, At: start, Redemption: "r"}); !errors.Is(err,
		commit.ErrFenced) {
		t.Errorf("redeemed while pending: %v", err)
	}
	all := []errand.Status{errand.Completed, errand.Denied, errand.Expired, errand.Failed}
	storetest.OneWins(t, 8, fault.GrantUsed, func(i int) error {
		return fenced(c.Commit(t.Context(), errand.Settle{Errand: settledErrand(e, all[i%4])}))
	})
	got, err := s.Get(t.Context(), e.ID)
	if err != nil || got.Status == errand.Pending {
		t.Errorf("%+v, %v", got, err)
	}
}

// A grant is redeemed once, and only that of a completed errand.
func errandRedeem(t *testing.T, s errand.Store, c commit.Committer) {
	for _, state := range []errand.Status{errand.Denied, errand.Expired, errand.Failed} {
		e := pendingErrand(string(state))
		storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: e}))
		storetest.Must(t, c.Commit(t.Context(), errand.Settle{Errand: settledErrand(e, state)}))
		storetest.Is(t, c.Commit(t.Context(), errand.Redeem{ID: e.ID, At: start}), commit.ErrFenced, state)
	}
	e := pendingErrand("a")
	storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: e}))
	storetest.Must(t, c.Commit(t.Context(), errand.Settle{Errand: settledErrand(e, errand.Completed)}))
	storetest.OneWins(t, 32, fault.GrantUsed, func(i int) error {
		at := start.Add(time.Duration(i))
		return fenced(c.Commit(t.Context(), errand.Redeem{ID: e.ID, At: at, Redemption: fmt.Sprint(i)}))
	})
	if got, err := s.Get(t.Context(), e.ID); err != nil || got.Payload != nil || got.Redemption == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func errandOverdue(t *testing.T, s errand.Store, c commit.Committer) {
	for i, name := range []string{"c", "b", "a"} {
		e := pendingErrand(name)
		e.ExpiresAt = start.Add(time.Duration(i) * time.Second)
		storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: e}))
	}
	names := func(at time.Time, max int) (out string) {
		t.Helper()
		all := storetest.Value(s.Overdue(t.Context(), at, max))(t)
		for _, e := range all {
			out += e.Reference
		}
		return out
	}
	for want, got := range map[string]string{"": names(start.Add(-time.Millisecond), 9),
		"cb": names(start.Add(time.Second), 9),
		"c":  names(start.Add(time.Hour), 1), "cba": names(start.Add(time.Hour), 9)} {
		storetest.Equal(t, got, want)
	}
	storetest.Must(t, c.Commit(t.Context(), errand.Settle{Errand: settledErrand(pendingErrand("b"), errand.Expired)}))
	storetest.Equal(t, names(start.Add(time.Hour), 9), "ca")
}

func errandPurge(t *testing.T, s errand.Store, c commit.Committer) {
	storetest.Must(t, c.Commit(t.Context(), errand.Add{Errand: pendingErrand("a")}))
	storetest.Must(t, s.Purge(t.Context(), start))
	readsErrand(t, s, pendingErrand("a"))
	storetest.Must(t, s.Purge(t.Context(), start.Add(time.Hour)))
	_, err := s.Get(t.Context(), pendingErrand("a").ID)
	storetest.Wants(t, err, fault.RecordNotFound)
}
