package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/geofilter"
	"castellan/domain/session/session"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

func TestGeofilterStore(t *testing.T) {
	persistencetest.RunCases(t, newFilterBench, storetest.Cases[*filterBench]{"Changes": filterChanges,
		"Refusals": filterRefusals, "Race": filterRace, "Clear": filterClear, "Cache": filterCache}, "users",
		"geofilter_country", "outbox")
}

// filterBench is the service over the store.
type filterBench struct {
	store  geofilter.Store
	outbox outbox.Store
	users  user.Store
	svc    *geofilter.Service
	now    time.Time
	ids    []string
}

func newFilterBench(db *persistence.DB) *filterBench {
	b := &filterBench{store: sessionstore.NewGeofilters(db), users: account.NewUsers(db),
		outbox: delivery.NewOutbox(db), now: time.UnixMilli(1_700_000_000_000)}
	b.svc = &geofilter.Service{Store: b.store, Users: b.users, Commit: db, Now: func() time.Time { return b.now }}
	b.svc.Notices = challengetest.Notices{Now: b.svc.Now}
	for n := range 3 {
		b.ids = append(b.ids, usertest.Sample(n+1).ID)
	}
	return b
}

// run executes an action like the owner of a challenge: its writes commit under the guard of the credentials at the
// start.
func (b *filterBench) run(ctx context.Context, a challenge.Action, userID, code string, cv int64) error {
	cmd, err := json.Marshal(geofilter.Command{Code: code})
	if err != nil {
		return err
	}
	c := challenge.Challenge{UserID: userID, Body: challenge.Body{CV: cv,
		Starter: challenge.Starter{IP: "192.0.2.1", RequestID: "request-1"}}}
	r, writes, err := a.Build(ctx, challenge.Execution{Challenge: c, Command: cmd, Now: b.now})
	if err != nil {
		return err
	}
	if !r.Success || r.Data != nil {
		return errors.New("an outcome that is none")
	}
	return b.svc.Commit.Commit(ctx, append(writes, commit.Guard{On: commit.UserCredentials, Key: userID, Version: cv})...)
}

func (b *filterBench) user(t *testing.T, n int) user.User {
	t.Helper()
	return storetest.Value(b.users.Get(t.Context(), b.ids[n]))(t)
}

// change makes a completed change of account n.
func (b *filterBench) change(t *testing.T, a challenge.Action, n int, code string) {
	t.Helper()
	storetest.Must(t, b.run(t.Context(), a, b.ids[n], code, b.user(t, n).CV))
}

func (b *filterBench) codes(t *testing.T, n int) (codes []string) {
	t.Helper()
	all := storetest.Value(b.store.Countries(t.Context(), b.ids[n]))(t)
	for _, c := range all {
		codes = append(codes, c.Code)
	}
	return codes
}

// Records and row agree after every change, ids are never reused, both versions rise, and no other account changes.
func filterChanges(t *testing.T, b *filterBench, c commit.Committer) {
	storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2), usertest.Sample(3)))
	if all, err := b.store.Countries(t.Context(), b.ids[0]); err != nil || all == nil || len(all) != 0 {
		t.Errorf("an empty filter: %v, %v", all, err)
	}
	before, other := b.user(t, 0), b.user(t, 1)
	b.change(t, b.svc.AddAction(), 0, "TR")
	b.now = b.now.Add(time.Minute)
	b.change(t, b.svc.AddAction(), 0, "DE")
	u := b.user(t, 0)
	if u.Countries != "DE,TR" || u.SV != before.SV+2 || u.CV <= before.CV+1 {
		t.Errorf("countries %q, sv %d, cv %d after %d", u.Countries, u.SV, u.CV, before.CV)
	}
	all := storetest.Value(b.store.Countries(t.Context(), b.ids[0]))(t)
	if len(all) != 2 || all[0].Code != "TR" || all[1].Code != "DE" || all[0].UserID != b.ids[0] ||
		!all[1].CreatedAt.Equal(b.now) || !all[1].UpdatedAt.Equal(b.now) || all[0].ID >= all[1].ID {
		t.Errorf("records %+v", all)
	}
	b.change(t, b.svc.RemoveAction(), 0, "DE")
	b.change(t, b.svc.AddAction(), 0, "DE")
	again := storetest.Value(b.store.Countries(t.Context(), b.ids[0]))(t)
	if len(again) != 2 || again[1].ID <= all[1].ID {
		t.Errorf("records %+v", again)
	}
	b.change(t, b.svc.RemoveAction(), 0, "TR")
	b.change(t, b.svc.RemoveAction(), 0, "DE")
	if u := b.user(t, 0); u.Countries != "" || b.codes(t, 0) != nil {
		t.Errorf("%q, %v", u.Countries, b.codes(t, 0))
	}
	if got := b.user(t, 1); got.CV != other.CV || got.SV != other.SV || got.Countries != "" {
		t.Errorf("another account: %+v", got)
	}
}

// The refusals of a start are repeated when the challenge is complete (D-GEO-04), and a decision on an older version
// of the account commits nothing.
func filterRefusals(t *testing.T, b *filterBench, c commit.Committer) {
	storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2), usertest.Sample(3)))
	ctx := t.Context()
	b.change(t, b.svc.AddAction(), 0, "TR")
	u := b.user(t, 0)
	storetest.Wants(t, b.run(ctx, b.svc.AddAction(), u.ID, "TR", u.CV), fault.RecordAlreadyExist, "added twice")
	storetest.Wants(t, b.run(ctx, b.svc.RemoveAction(), u.ID, "DE", u.CV), fault.RecordNotFound)
	storetest.Is(t, b.run(ctx, b.svc.AddAction(), u.ID, "DE", u.CV-1), commit.ErrFenced, "with older credentials")
	if got := b.user(t, 0); got.CV != u.CV || got.SV != u.SV || !slices.Equal(b.codes(t, 0), []string{"TR"}) {
		t.Errorf("something was written: %+v, %v", got, b.codes(t, 0))
	}
	country := geofilter.Country{UserID: u.ID, Code: "TR", CreatedAt: b.now, UpdatedAt: b.now}
	storetest.Wants(t, b.svc.Commit.Commit(ctx, geofilter.Add{Country: country}), fault.RecordAlreadyExist)
}

// Of concurrent changes of one version of the account one succeeds.
func filterRace(t *testing.T, b *filterBench, c commit.Committer) {
	storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2), usertest.Sample(3)))
	cv := b.user(t, 0).CV
	codes := geo.Codes()[:8]
	made := storetest.RaceOfFences(t, len(codes), func(i int) error {
		return b.run(t.Context(), b.svc.AddAction(), b.ids[0], codes[i], cv)
	})
	if u := b.user(t, 0); made != 1 || len(b.codes(t, 0)) != 1 || !slices.Equal(u.Countries.Codes(), b.codes(t, 0)) {
		t.Errorf("%d of %d changes were made: %v, %q", made, len(codes), b.codes(t, 0), u.Countries)
	}
}

func filterClear(t *testing.T, b *filterBench, c commit.Committer) {
	storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2), usertest.Sample(3)))
	ctx := t.Context()
	b.change(t, b.svc.AddAction(), 0, "TR")
	b.change(t, b.svc.AddAction(), 0, "DE")
	b.change(t, b.svc.AddAction(), 1, "TR")
	before := b.user(t, 0)
	codes, err := b.svc.Clear(ctx, b.ids[0], audit.Operator)
	if after := b.user(t, 0); err != nil || !slices.Equal(codes, []string{"DE", "TR"}) || after.Countries != "" ||
		b.codes(t, 0) != nil || after.SV != before.SV+1 || after.CV <= before.CV {
		t.Errorf("%v, %v; %+v", codes, err, after)
	}
	if told := challengetest.Committed(t, b.outbox); len(told) != 4 ||
		told[0] != usertest.Sample(1).Email+" geofilter-changed " {
		t.Errorf("notified %q", told)
	}
	storetest.Same(t, b.codes(t, 1), []string{"TR"}, "another account")
	before = b.user(t, 0)
	codes, err = b.svc.Clear(ctx, b.ids[0], audit.Operator)
	if after := b.user(t, 0); err != nil || codes != nil || after.CV != before.CV || after.SV != before.SV {
		t.Errorf("nothing to clear: %v, %v", codes, err)
	}
	storetest.Wants(t, storetest.Err(b.svc.Clear(ctx, "nobody", audit.Operator)), fault.RecordNotFound)
}

// The copy contains the loaded, the told and the followed filters, and an older answer never replaces a newer one.
func filterCache(t *testing.T, b *filterBench, c commit.Committer) {
	storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2), usertest.Sample(3)))
	ctx, l := t.Context(), geofilter.NewCache(b.store)
	want := func(n int, f geo.Filter) {
		t.Helper()
		storetest.Equal(t, l.Filter(b.ids[n]), f, n)
	}
	b.change(t, b.svc.AddAction(), 0, "TR")
	b.change(t, b.svc.AddAction(), 1, "DE")
	want(0, "")
	storetest.Must(t, l.Reload(ctx))
	want(0, "TR")
	want(1, "DE")
	want(2, "")
	b.change(t, b.svc.AddAction(), 1, "NL")
	b.change(t, b.svc.RemoveAction(), 0, "TR")
	want(1, "DE")
	storetest.Must(t, l.Follow(ctx, b.ids[0]))
	storetest.Must(t, l.Follow(ctx, b.ids[1]))
	storetest.Must(t, l.Follow(ctx, "nobody"))
	want(0, "")
	want(1, "DE,NL")

	cv := b.user(t, 2).CV
	l.Apply(user.SetCountries{UserID: b.ids[2], CV: cv, Countries: "TR"})
	l.Apply(session.End{SessionID: "s1"})
	want(2, "TR")
	l.Apply(user.SetCountries{UserID: b.ids[2], CV: cv + 2, Countries: ""})
	l.Apply(user.SetCountries{UserID: b.ids[2], CV: cv, Countries: "TR"}) // late
	want(2, "")
	storetest.Must(t, l.Follow(ctx, b.ids[2])) // the database is behind the told write
	want(2, "")
}
