package proof_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/issuer"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

func TestUserLinkStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) issuer.Store { return proof.NewUserLinks(db) },
		storetest.Cases[issuer.Store]{"RoundTrip": linkRoundTrip, "Unique": linkUnique, "Remove": linkRemove,
			"Links": linksOfAccount}, "user_link")
}

var start = time.UnixMilli(1_700_000_000_123).UTC()

func link(userID, from, subject string) issuer.Link {
	return issuer.Link{UserID: userID, Issuer: from, Subject: subject, CreatedAt: start}
}

func foundLink(t *testing.T, s issuer.Store, from, subject, want string) {
	t.Helper()
	got, err := s.User(t.Context(), from, subject)
	if code := map[bool]fault.Code{true: fault.RecordNotFound}[want == ""]; got != want || fault.CodeOf(err) != code {
		t.Errorf("%s of %s is %q, %v; want %q", subject, from, got, err, want)
	}
}

// An account may have several subjects, and a subject of one issuer is not that of another.
func linkRoundTrip(t *testing.T, s issuer.Store, _ commit.Committer) {
	foundLink(t, s, "a", "jane", "")
	for _, l := range []issuer.Link{link("u1", "a", "jane"), link("u1", "b", "jane"), link("u2", "a", "JANE"),
		link("u2", "a", "jane ")} {
		storetest.Must(t, s.Add(t.Context(), l))
	}
	foundLink(t, s, "a", "jane", "u1")
	foundLink(t, s, "b", "jane", "u1")
	foundLink(t, s, "a", "JANE", "u2")
	foundLink(t, s, "a", "jane ", "u2")
	foundLink(t, s, "A", "jane", "")
}

// Of callers that link one subject to several accounts, one succeeds.
func linkUnique(t *testing.T, s issuer.Store, _ commit.Committer) {
	storetest.OneWins(t, 8, fault.RecordAlreadyExist, func(i int) error {
		return s.Add(t.Context(), link(fmt.Sprint("u", i%4), "a", "jane"))
	})
}

func linkRemove(t *testing.T, s issuer.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), link("u1", "a", "jane")))
	for _, l := range []issuer.Link{link("u2", "a", "jane"), link("u1", "b", "jane"), link("u1", "a", "kurt")} {
		storetest.Wants(t, s.Remove(t.Context(), l), fault.RecordNotFound)
	}
	foundLink(t, s, "a", "jane", "u1")
	storetest.Must(t, s.Remove(t.Context(), link("u1", "a", "jane")))
	foundLink(t, s, "a", "jane", "")
	storetest.Wants(t, s.Remove(t.Context(), link("u1", "a", "jane")), fault.RecordNotFound)
	storetest.Must(t, s.Add(t.Context(), link("u2", "a", "jane")))
	foundLink(t, s, "a", "jane", "u2")
}

// The links of an account are listed in order, and no others.
func linksOfAccount(t *testing.T, s issuer.Store, _ commit.Committer) {
	whole := persistencetest.Whole[issuer.Link](t)
	storetest.Must(t, s.Add(t.Context(), whole))
	want := []issuer.Link{link("u1", "a", "jane"), link("u1", "a", "kurt"), link("u1", "b", "jane")}
	for _, l := range []issuer.Link{want[2], want[1], link("u2", "a", "ann"), want[0]} {
		storetest.Must(t, s.Add(t.Context(), l))
	}
	for user, want := range map[string][]issuer.Link{"u1": want, "u3": {}, whole.UserID: {whole}} {
		got := storetest.Value(s.Links(t.Context(), user))(t)
		storetest.Same(t, got, want, user)
	}
}
