package people_test

import (
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/kyc"
	"castellan/domain/people/standing"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestStandingStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) standing.Store { return people.NewStandings(db) },
		storetest.Cases[standing.Store]{"RoundTrip": standingRoundTrip, "Findings": standingFindings},
		"user_standing", "aml_finding", "users")
}

func standingRoundTrip(t *testing.T, s standing.Store, c commit.Committer) {
	storetest.Same(t, storetest.Value(s.Get(t.Context(), "u1"))(t), standing.Standing{})
	for _, want := range []standing.Standing{
		persistencetest.Whole(t, func(s *standing.Standing) { s.UserID = "u1" }),
		{UserID: "u1", Status: user.Active, By: "other", At: usertest.Now},
	} {
		storetest.Must(t, c.Commit(t.Context(), standing.Put{Standing: want}))
		storetest.Same(t, storetest.Value(s.Get(t.Context(), "u1"))(t), want)
	}
}

func standingFindings(t *testing.T, s standing.Store, c commit.Committer) {
	storetest.Wants(t, storetest.Err(s.Finding(t.Context(), "f1")), fault.RecordNotFound)
	f := persistencetest.Whole(t, func(f *standing.Finding) { f.ID = "f1" })
	storetest.Must(t, c.Commit(t.Context(), standing.AddFinding{Finding: f}))
	storetest.Same(t, storetest.Value(s.Finding(t.Context(), "f1"))(t), f)
	storetest.Wants(t, c.Commit(t.Context(), standing.AddFinding{Finding: f}), fault.RecordAlreadyExist)
}

func TestDecisionStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) kyc.Store { return people.NewDecisions(db) },
		storetest.Cases[kyc.Store]{"Last": lastDecision},
		"account_decision")
}

func lastDecision(t *testing.T, s kyc.Store, _ commit.Committer) {
	storetest.Wants(t, storetest.Err(s.Last(t.Context(), "u1", kyc.Identity)), fault.RecordNotFound)
	d := persistencetest.Whole(t, func(d *kyc.Decision) {
		d.UserID, d.Kind = "u1", kyc.Identity
		d.Reasons = map[string]any{"tr": "bulanık", "fields": []any{"front"}}
	})
	storetest.Must(t, s.Add(t.Context(), d))
	next, other, address := d, d, d
	next.Value, next.Reasons, next.DocumentID = "manuelApproved", nil, ""
	other.UserID, other.Value = "u2", "ocrOrNfcApproved"
	address.Kind, address.Value = kyc.Address, "rejected"
	for _, a := range []kyc.Decision{next, other, address} {
		storetest.Must(t, s.Add(t.Context(), a))
	}
	for _, want := range []kyc.Decision{next, other, address} {
		storetest.Same(t, storetest.Value(s.Last(t.Context(), want.UserID, want.Kind))(t), want)
	}
}
