package people_test

import (
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/kyc"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestDecisionStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) kyc.Store { return people.NewDecisions(db) },
		storetest.Cases[kyc.Store]{"Last": lastDecision},
		"account_decision")
}

func lastDecision(t *testing.T, s kyc.Store, _ commit.Committer) {
	_, err := s.Last(t.Context(), "u1", kyc.Identity)
	storetest.Wants(t, err, fault.RecordNotFound)
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
		got, err := s.Last(t.Context(), want.UserID, want.Kind)
		storetest.Must(t, err)
		storetest.Same(t, got, want)
	}
}
