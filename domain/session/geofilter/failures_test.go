package geofilter_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/geofilter"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	"castellan/persistence/session"
)

// fenced answers the first units as if the account changed meanwhile.
type fenced struct {
	commit.Committer
	left, units int
}

func (f *fenced) Commit(ctx context.Context, writes ...commit.Write) error {
	if f.units++; f.units <= f.left {
		return commit.ErrFenced
	}
	return f.Committer.Commit(ctx, writes...)
}

// Clear tries five times while its account changes. It then reports that the account is busy.
func TestClearWhileAccountChanges(t *testing.T) {
	for left, want := range map[int]fault.Code{0: "", 4: "", 5: fault.Unavailable} {
		db := persistencetest.SQLite(t)
		u := usertest.Sample(1)
		storetest.Must(t, db.Commit(t.Context(), u))
		storetest.Must(t, db.Commit(t.Context(), user.SetCountries{UserID: u.ID, CV: u.CV, Countries: "TR"}))
		units := &fenced{Committer: db, left: left}
		clock := func() time.Time { return usertest.Now }
		s := &geofilter.Service{Store: session.NewGeofilters(db), Users: account.NewUsers(db), Commit: units, Now: clock,
			Notices: challengetest.Notices{Now: clock}}
		codes, err := s.Clear(t.Context(), u.ID, audit.Operator)
		if fault.CodeOf(err) != want || units.units != min(left+1, 5) || slices.Equal(codes, []string{"TR"}) != (want == "") {
			t.Errorf("%d: %v, %v after %d units", left, codes, err, units.units)
		}
		if s.Commit = persistencetest.Unaudited(db); want != "" {
			_, err := s.Clear(t.Context(), u.ID, audit.Operator)
			if !errors.Is(err, persistencetest.ErrNoAudit) {
				t.Errorf("a change without its audit: %v", err)
			}
		}
		is, err := s.Users.Get(t.Context(), u.ID)
		if err != nil || (is.Countries == "") != (want == "") {
			t.Errorf("%d: %q, %v", left, is.Countries, err)
		}
	}
}

// An action describes its country. It fails for a damaged command and for an unknown account.
func TestActionsOfFilters(t *testing.T) {
	db := persistencetest.SQLite(t)
	s := &geofilter.Service{Store: session.NewGeofilters(db), Users: account.NewUsers(db), Commit: db}
	for code, a := range map[string]challenge.Action{"GEOFILTER_ADD": s.AddAction(),
		"GEOFILTER_REMOVE": s.RemoveAction()} {
		if a.Code != code || a.Flow != challenge.FlowSession || !a.KeepsFilter {
			t.Errorf("%+v", a)
		}
		if got := a.Describe([]byte(`{"c":"TR"}`)); len(got) != 1 || got[0] != (challenge.Detail{Key: mfa.HeaderAllowed,
			Value: "TR"}) {
			t.Errorf("%s: %+v", code, got)
		}
		if got := a.Describe([]byte("x")); got != nil {
			t.Errorf("%s: %+v", code, got)
		}
		build := func(command string) error {
			r, writes, err := a.Build(t.Context(), challenge.Execution{Challenge: challenge.Challenge{UserID: "none"},
				Command: []byte(command)})
			if r.Success || writes != nil {
				t.Errorf("%s: %+v, %v", code, r, writes)
			}
			return err
		}
		storetest.Wants(t, build(`{"c":"TR"}`), fault.RecordNotFound)
		if err := build("x"); err == nil || fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: %v", code, err)
		}
	}
}
