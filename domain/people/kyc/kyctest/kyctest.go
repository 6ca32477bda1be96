// Package kyctest tests the contract of kyc.Store.
package kyctest

import (
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/kyc"
)

// Run checks an implementation of kyc.Store.
func Run(t *testing.T, open storetest.Open[kyc.Store]) {
	storetest.Run(t, open, storetest.Cases[kyc.Store]{"Last": last})
}

func last(t *testing.T, s kyc.Store, _ commit.Committer) {
	_, err := s.Last(t.Context(), "u1", kyc.Identity)
	storetest.Wants(t, err, fault.RecordNotFound)
	d := kyc.Decision{UserID: "u1", Kind: kyc.Identity, Value: "rejected", DocumentID: "D1", Reason: "blurred",
		Reasons: map[string]any{"tr": "bulanık", "fields": []any{"front"}}, DecidedBy: "a1",
		At: time.UnixMilli(1_700_000_000_000).UTC()}
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
