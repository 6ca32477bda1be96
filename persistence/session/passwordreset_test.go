package session_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/replace"
	"castellan/persistence"
	"castellan/persistence/persistencetest"
	"castellan/persistence/session"
)

func TestResetTokenStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) replace.Store { return session.NewResetTokens(db) },
		storetest.Cases[replace.Store]{
			"IssueAndRedeem":       tokenIssueAndRedeem,
			"LaterReplacesEarlier": tokenReplacesEarlier,
			"RedeemUnderRace":      tokenRedeemUnderRace,
			"IssueUnderRace":       tokenIssueUnderRace,
			"Purge":                tokenPurge,
		}, "reset_token")
}

func resetToken(userID, id string) replace.Token {
	return replace.Token{ID: id, UserID: userID, CV: 7, CreatedAt: now, ExpiresAt: now.Add(10 * time.Minute)}
}

func tokenIsGone(t *testing.T, s replace.Store, id string) {
	t.Helper()
	storetest.Wants(t, storetest.Err(s.Token(t.Context(), id)), fault.RecordNotFound, id)
}

func tokenIssueAndRedeem(t *testing.T, s replace.Store, c commit.Committer) {
	ctx := t.Context()
	tokenIsGone(t, s, "h1")
	storetest.Must(t, c.Commit(ctx, replace.Issue{Token: resetToken("u1", "h1")},
		replace.Issue{Token: resetToken("u2", "h2")}))
	got, err := s.Token(ctx, "h1")
	if storetest.Must(t, err); got != resetToken("u1", "h1") {
		t.Errorf("%+v", got)
	}
	for _, w := range []replace.Redeem{{UserID: "u1", ID: "h3"}, {UserID: "u3", ID: "h4"}} {
		storetest.Is(t, c.Commit(ctx, w), commit.ErrFenced, w)
	}
	storetest.Must(t, c.Commit(ctx, replace.Redeem{UserID: "u1", ID: "h1"}))
	tokenIsGone(t, s, "h1")
	storetest.Is(t, c.Commit(ctx, replace.Redeem{UserID: "u1", ID: "h1"}), commit.ErrFenced, "used twice")
	storetest.Value(s.Token(ctx, "h2"))(t)
	// A refused unit uses up no token.
	storetest.Is(t, c.Commit(ctx, replace.Redeem{UserID: "u2", ID: "h2"},
		replace.Redeem{UserID: "u1", ID: "h1"}), commit.ErrFenced, "half a unit")
	storetest.Value(s.Token(ctx, "h2"))(t)
}

func tokenReplacesEarlier(t *testing.T, s replace.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, replace.Issue{Token: resetToken("u1", "h1")}))
	later := persistencetest.Whole(t, func(r *replace.Token) { r.UserID = "u1" })
	storetest.Must(t, c.Commit(ctx, replace.Issue{Token: later}))
	tokenIsGone(t, s, "h1")
	storetest.Equal(t, storetest.Value(s.Token(ctx, later.ID))(t), later)
	storetest.Is(t, c.Commit(ctx, replace.Redeem{UserID: "u1", ID: "h1"}), commit.ErrFenced, "the earlier one")
}

func tokenRedeemUnderRace(t *testing.T, s replace.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, c.Commit(ctx, replace.Issue{Token: resetToken("u1", "h1")}))
	used := storetest.RaceOfFences(t, 50, func(int) error {
		return c.Commit(ctx, replace.Redeem{UserID: "u1", ID: "h1"})
	})
	storetest.Equal(t, used, 1)
	tokenIsGone(t, s, "h1")
}

func tokenIssueUnderRace(t *testing.T, s replace.Store, c commit.Committer) {
	ctx := t.Context()
	storetest.Race(t, 50, "", func(i int) error {
		return c.Commit(ctx, replace.Issue{Token: resetToken("u1", fmt.Sprint("h", i))})
	})
	living := 0
	for i := range 50 {
		if _, err := s.Token(ctx, fmt.Sprint("h", i)); err == nil {
			living++
		}
	}
	storetest.Equal(t, living, 1)
}

func tokenPurge(t *testing.T, s replace.Store, c commit.Committer) {
	ctx := t.Context()
	old := resetToken("u1", "h1")
	old.ExpiresAt = now.Add(-time.Millisecond)
	edge := resetToken("u2", "h2")
	edge.ExpiresAt = now
	storetest.Must(t, c.Commit(ctx, replace.Issue{Token: old}, replace.Issue{Token: edge}))
	storetest.Must(t, s.Purge(ctx, now))
	tokenIsGone(t, s, "h1")
	storetest.Value(s.Token(ctx, "h2"))(t)
}
