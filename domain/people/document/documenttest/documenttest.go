// Package documenttest tests the contract of document.Store.
package documenttest

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
)

// Run checks an implementation of document.Store.
func Run(t *testing.T, open storetest.Open[document.Store]) {
	storetest.Run(t, open, storetest.Cases[document.Store]{
		"RoundTrip": roundTrip, "Change": change, "List": list, "Quota": quota, "QuotaRace": quotaRace, "Named": named,
		"Decide": decide,
	})
}

const quotaBytes = 1000

// sample is the nth document; the first is the oldest.
func sample(n int, userID string) document.Document {
	return document.Document{ID: fmt.Sprintf("D%02d", n), UserID: userID, Name: "ü.png", MimeType: "image/png",
		Status: document.Active, Reason: new(document.WaitingApproval), Path: fmt.Sprint("document/aa/bb/", n), Size: 7,
		CreatedAt: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC()}
}

func add(t *testing.T, s document.Store, d document.Document) {
	t.Helper()
	storetest.Must(t, s.Add(t.Context(), d, 1, quotaBytes))
}

func roundTrip(t *testing.T, s document.Store, _ commit.Committer) {
	plain, full := sample(1, "u1"), sample(2, "u1")
	full.Description, full.Type, full.NameTexts = new("my passport"), 3, map[string]string{"tr": "Pasaport"}
	full.DescriptionTexts = map[string]string{"ar": "جواز", "en": "a passport"}
	plain.Reason = nil
	for _, d := range []document.Document{plain, full} {
		add(t, s, d)
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

func change(t *testing.T, s document.Store, _ commit.Committer) {
	add(t, s, sample(1, "u1"))
	want := sample(1, "u1")
	want.Description, want.Status, want.Reason, want.Type = new("d"), "deActive", nil, 3
	storetest.Must(t, s.Change(t.Context(), "D01", func(d document.Document) (document.Document, error) {
		storetest.Same(t, d, sample(1, "u1"))
		next := want
		next.UserID, next.MimeType, next.Path, next.Size = "u2", "text/html", "document/other", 8 // never change
		return next, nil
	}))
	got, err := s.Get(t.Context(), "D01")
	storetest.Must(t, err)
	storetest.Same(t, got, want)
	refusal := fault.New(fault.InvalidState, "no")
	err = s.Change(t.Context(), "D01", func(d document.Document) (document.Document, error) { return d, refusal })
	storetest.Wants(t, err, fault.InvalidState)
	err = s.Change(t.Context(), "D02", func(d document.Document) (document.Document, error) { return d, nil })
	storetest.Wants(t, err, fault.RecordNotFound)
}

func list(t *testing.T, s document.Store, _ commit.Committer) {
	var all []document.Document // newest first
	for n := range 6 {
		d := sample(n, fmt.Sprint("u", n%2))
		if n == 4 {
			d.Type, d.Status, d.Reason, d.MimeType = 2, "deActive", new("blurred"), document.PDF
		}
		add(t, s, d)
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

func quota(t *testing.T, s document.Store, _ commit.Committer) {
	ctx := t.Context()
	used := func(user string, want int64) {
		t.Helper()
		if n, err := s.Used(ctx, user); n != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", user, n, err, want)
		}
	}
	used("u1", 0)
	storetest.Wants(t, s.Add(ctx, sample(1, "u1"), quotaBytes+1, quotaBytes), fault.RecordLimitReached)
	used("u1", 0)
	storetest.Must(t, s.Add(ctx, sample(1, "u1"), 400, quotaBytes))
	storetest.Must(t, s.Add(ctx, sample(2, "u1"), 600, quotaBytes))
	storetest.Wants(t, s.Add(ctx, sample(3, "u1"), 1, quotaBytes), fault.RecordLimitReached)
	used("u1", quotaBytes)
	storetest.Must(t, s.Add(ctx, sample(3, "u1"), 1, quotaBytes+1)) // the quota was raised
	storetest.Must(t, s.Add(ctx, sample(4, "u2"), quotaBytes, quotaBytes))
	used("u2", quotaBytes)
	_, err := s.Get(ctx, "D03")
	storetest.Must(t, err)
}

func quotaRace(t *testing.T, s document.Store, _ commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordLimitReached, func(i int) error {
		return s.Add(t.Context(), sample(i, "u1"), 300, quotaBytes)
	})
	if n, err := s.Used(t.Context(), "u1"); won != 3 || n != 900 || err != nil {
		t.Errorf("%d of 8 fit, %d bytes, %v", won, n, err)
	}
}

func named(t *testing.T, s document.Store, _ commit.Committer) {
	add(t, s, sample(1, "u1"))
	add(t, s, sample(2, "u2"))
	got, err := s.ReferencedPaths(t.Context(), []string{sample(2, "").Path, "document/none", sample(1, "").Path})
	storetest.Must(t, err)
	slices.Sort(got)
	storetest.Same(t, got, []string{sample(1, "").Path, sample(2, "").Path})
	got, err = s.ReferencedPaths(t.Context(), []string{"document/none"})
	if storetest.Must(t, err); len(got) != 0 {
		t.Errorf("%q", got)
	}
}

func decide(t *testing.T, s document.Store, _ commit.Committer) {
	for n, owner := range []string{"u1", "u1", "u2", "u1"} {
		d := sample(n, owner)
		d.Type = int64(n % 2)
		add(t, s, d)
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
