package people_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/document"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

func TestDocumentStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) document.Store { return people.NewDocuments(db) },
		storetest.Cases[document.Store]{
			"RoundTrip": documentRoundTrip, "Change": documentChange,
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
		got := storetest.Value(s.Get(t.Context(), d.ID))(t)
		storetest.Same(t, got, d)
		got = storetest.Value(s.ByPath(t.Context(), d.Path))(t)
		storetest.Same(t, got, d)
	}
	storetest.Wants(t, s.Add(t.Context(), full, 1, quotaBytes), fault.RecordAlreadyExist)
	storetest.Wants(t, storetest.Err(s.Get(t.Context(), "D99")), fault.RecordNotFound)
	storetest.Wants(t, storetest.Err(s.ByPath(t.Context(), "document/aa/bb")), fault.RecordNotFound)
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
	storetest.Same(t, storetest.Value(s.Get(t.Context(), "D01"))(t), want)
	refusal := fault.New(fault.InvalidState, "no")
	err := s.Change(t.Context(), "D01", func(d document.Document) (document.Document, error) { return d, refusal })
	storetest.Wants(t, err, fault.InvalidState)
	err = s.Change(t.Context(), "D02", func(d document.Document) (document.Document, error) { return d, nil })
	storetest.Wants(t, err, fault.RecordNotFound)
}
