package people_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page/pagetest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/document"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestDocumentStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) document.Store { return people.NewDocuments(db) },
		storetest.Cases[document.Store]{
			"RoundTrip": documentRoundTrip, "Change": documentChange, "List": listDocuments,
			"Named":  documentNamed,
			"Decide": documentDecide,
		}, "document", "document_quota")
}

const quotaBytes = 1000

// sampleDocument is the nth document; the first is the oldest.
func sampleDocument(n int, userID string) document.Document {
	return document.Document{ID: fmt.Sprintf("D%02d", n), UserID: userID, Name: "ü.png", MimeType: "image/png",
		Status: document.Active, Reason: new(document.WaitingApproval), Path: fmt.Sprint("document/aa/bb/", n), Size: 7,
		CreatedAt: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC()}
}

func addDocument(t *testing.T, s document.Store, d document.Document) {
	t.Helper()
	storetest.Must(t, s.Add(t.Context(), d, 1, quotaBytes))
}

func documentRoundTrip(t *testing.T, s document.Store, _ commit.Committer) {
	plain, full := sampleDocument(1, "u1"), persistencetest.Whole(t, func(d *document.Document) {
		d.OwnerName, d.OwnerKYC = "", "" // in lists only
	})
	plain.Reason = nil
	for _, d := range []document.Document{plain, full} {
		addDocument(t, s, d)
		got, err := s.Get(t.Context(), d.ID)
		storetest.Must(t, err)
		storetest.Same(t, got, d)
		got, err = s.ByPath(t.Context(), d.Path)
		storetest.Must(t, err)
		storetest.Same(t, got, d)
	}
	storetest.Wants(t, s.Add(t.Context(), full, 1, quotaBytes), fault.RecordAlreadyExist)
	_, err := s.Get(t.Context(), "D99")
	storetest.Wants(t, err, fault.RecordNotFound)
	_, err = s.ByPath(t.Context(), "document/aa/bb")
	storetest.Wants(t, err, fault.RecordNotFound)
}

func documentChange(t *testing.T, s document.Store, _ commit.Committer) {
	addDocument(t, s, sampleDocument(1, "u1"))
	want, old := persistencetest.Whole[document.Document](t), sampleDocument(1, "u1")
	storetest.Must(t, s.Change(t.Context(), "D01", func(d document.Document) (document.Document, error) {
		storetest.Same(t, d, old)
		return want, nil
	}))
	// These never change, or belong to the owner.
	want.ID, want.UserID, want.MimeType, want.Path, want.Size = old.ID, old.UserID, old.MimeType, old.Path, old.Size
	want.CreatedAt, want.OwnerName, want.OwnerKYC = old.CreatedAt, "", ""
	got, err := s.Get(t.Context(), "D01")
	storetest.Must(t, err)
	storetest.Same(t, got, want)
	refusal := fault.New(fault.InvalidState, "no")
	err = s.Change(t.Context(), "D01", func(d document.Document) (document.Document, error) { return d, refusal })
	storetest.Wants(t, err, fault.InvalidState)
	err = s.Change(t.Context(), "D02", func(d document.Document) (document.Document, error) { return d, nil })
	storetest.Wants(t, err, fault.RecordNotFound)
}

func listDocuments(t *testing.T, s document.Store, _ commit.Committer) {
	var all []document.Document // newest first
	for n := range 6 {
		d := sampleDocument(n, fmt.Sprint("u", n%2))
		if n == 4 {
			d.Type, d.Status, d.Reason, d.MimeType = 2, "deActive", new("blurred"), document.PDF
		}
		addDocument(t, s, d)
		all = append([]document.Document{d}, all...)
	}
	for _, c := range []struct {
		q    document.Query
		want []document.Document
	}{
		{document.Query{}, all},
		{document.Query{UserID: new("u1")}, []document.Document{all[0], all[2], all[4]}},
		{document.Query{Type: new(int64(2))}, all[1:2]},
		{document.Query{Status: new("deActive")}, all[1:2]},
		{document.Query{UserID: new("u0"), Pictures: true}, []document.Document{all[3], all[5]}},
		{document.Query{Reason: new("blurred"), UserID: new("u0")}, all[1:2]},
		{document.Query{Reason: new("blurred"), UserID: new("u1")}, nil},
	} {
		pagetest.CheckBoth(t, s.List, c.q, c.want)
	}
}

func documentNamed(t *testing.T, s document.Store, _ commit.Committer) {
	addDocument(t, s, sampleDocument(1, "u1"))
	addDocument(t, s, sampleDocument(2, "u2"))
	first, second := sampleDocument(1, "").Path, sampleDocument(2, "").Path
	got, err := s.ReferencedPaths(t.Context(), []string{second, "document/none", first})
	storetest.Must(t, err)
	slices.Sort(got)
	storetest.Same(t, got, []string{first, second})
	got, err = s.ReferencedPaths(t.Context(), []string{"document/none"})
	if storetest.Must(t, err); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func documentDecide(t *testing.T, s document.Store, _ commit.Committer) {
	for n, owner := range []string{"u1", "u1", "u2", "u1"} {
		d := sampleDocument(n, owner)
		d.Type = int64(n % 2)
		addDocument(t, s, d)
	}
	owned, err := s.Owned(t.Context(), "u1", []string{"D02", "D01", "D00", "D09"})
	storetest.Must(t, err)
	slices.Sort(owned)
	storetest.Same(t, owned, []string{"D00", "D01"})
	wants := func(d document.Decision, want ...string) {
		t.Helper()
		changed, err := s.Decide(t.Context(), d)
		storetest.Must(t, err)
		slices.Sort(changed)
		storetest.Same(t, append([]string{}, changed...), append([]string{}, want...))
		for _, id := range want {
			if got, err := s.Get(t.Context(), id); err != nil || got.Status != d.Status || *got.Reason != d.Reason {
				t.Errorf("%s is %v, %v", id, got, err)
			}
		}
	}
	byID := document.Decision{UserID: "u1", IDs: []string{"D00", "D02"}, Status: "deActive", Reason: "rejected"}
	wants(byID, "D00")
	wants(byID)
	byType := document.Decision{UserID: "u1", Type: 1, Status: "active", Reason: "approved"}
	wants(byType, "D01", "D03")
	byType.Reason = "blurred"
	wants(byType, "D01", "D03")
	wants(byType)
}
