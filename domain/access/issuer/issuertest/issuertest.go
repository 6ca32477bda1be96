// Package issuertest is the contract of issuer.Store as a test. The persistence package runs it on both databases.
package issuertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"castellan/domain/access/issuer"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Run checks an implementation of issuer.Store.
func Run(t *testing.T, open storetest.Open[issuer.Store]) {
	storetest.Run(t, open, storetest.Cases[issuer.Store]{
		"RoundTrip": roundTrip,
		"Unique":    unique,
		"Remove":    remove,
		"Links":     links,
	})
}

var start = time.UnixMilli(1_700_000_000_123).UTC()

func link(userID, from, subject string) issuer.Link {
	return issuer.Link{UserID: userID, Issuer: from, Subject: subject, CreatedAt: start}
}

func found(t *testing.T, s issuer.Store, from, subject, want string) {
	t.Helper()
	got, err := s.User(t.Context(), from, subject)
	if code := map[bool]fault.Code{true: fault.RecordNotFound}[want == ""]; got != want || fault.CodeOf(err) != code {
		t.Errorf("%s of %s is %q, %v; want %q", subject, from, got, err, want)
	}
}

// An account may have several subjects, and a subject of one issuer is not that of another.
func roundTrip(t *testing.T, s issuer.Store, _ commit.Committer) {
	found(t, s, "a", "jane", "")
	for _, l := range []issuer.Link{link("u1", "a", "jane"), link("u1", "b", "jane"), link("u2", "a", "JANE"),
		link("u2", "a", "jane ")} {
		storetest.Must(t, s.Add(t.Context(), l))
	}
	found(t, s, "a", "jane", "u1")
	found(t, s, "b", "jane", "u1")
	found(t, s, "a", "JANE", "u2")
	found(t, s, "a", "jane ", "u2")
	found(t, s, "A", "jane", "")
}

// Of callers that link one subject to several accounts, one succeeds.
func unique(t *testing.T, s issuer.Store, _ commit.Committer) {
	won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
		return s.Add(t.Context(), link(fmt.Sprint("u", i%4), "a", "jane"))
	})
	if won != 1 {
		t.Errorf("%d of 8 linked", won)
	}
}

func remove(t *testing.T, s issuer.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), link("u1", "a", "jane")))
	for _, l := range []issuer.Link{link("u2", "a", "jane"), link("u1", "b", "jane"), link("u1", "a", "kurt")} {
		storetest.Wants(t, s.Remove(t.Context(), l), fault.RecordNotFound)
	}
	found(t, s, "a", "jane", "u1")
	storetest.Must(t, s.Remove(t.Context(), link("u1", "a", "jane")))
	found(t, s, "a", "jane", "")
	storetest.Wants(t, s.Remove(t.Context(), link("u1", "a", "jane")), fault.RecordNotFound)
	storetest.Must(t, s.Add(t.Context(), link("u2", "a", "jane")))
	found(t, s, "a", "jane", "u2")
}

// The links of an account are listed in order, and no others.
func links(t *testing.T, s issuer.Store, _ commit.Committer) {
	want := []issuer.Link{link("u1", "a", "jane"), link("u1", "a", "kurt"), link("u1", "b", "jane")}
	for _, l := range []issuer.Link{want[2], want[1], link("u2", "a", "ann"), want[0]} {
		storetest.Must(t, s.Add(t.Context(), l))
	}
	for user, want := range map[string][]issuer.Link{"u1": want, "u3": {}} {
		got, err := s.Links(t.Context(), user)
		storetest.Must(t, err)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", user, got, want)
		}
	}
}
