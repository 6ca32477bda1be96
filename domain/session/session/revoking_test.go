package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
)

// The node's table contains an end as soon as it is durable, and not before.
func TestRevoking(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	revocations := session.NewRevocations(time.Hour, time.Now)
	var told []commit.Write
	r := session.Revoking{Committer: b.db, Revocations: revocations, Also: func(w commit.Write) { told = append(told, w) }}
	ctx := t.Context()
	expect := func(what string, ended bool, sid string, sv int64) {
		t.Helper()
		if revocations.Revoked(sid, u.ID, sv) != ended {
			t.Errorf("%s: session %s of version %d ended: %v", what, sid, sv, !ended)
		}
	}
	end := func(sid string) commit.Write { return session.End{SessionID: sid, UserID: u.ID, At: b.now} }

	if err := r.Commit(ctx, end("s1"), user.EndSessions{UserID: u.ID, SV: 99,
		At: b.now}); !errors.Is(err, commit.ErrFenced) {
		t.Fatal(err)
	}
	expect("a refused unit", false, "s1", 1)
	storetest.Must(t, r.Commit(ctx, end("s1")))
	expect("one session", true, "s1", 1)

	storetest.Must(t, r.InTx(ctx, func(ctx context.Context) error {
		storetest.Must(t, r.Commit(ctx, end("s2")))
		storetest.Must(t, r.InTx(ctx, func(ctx context.Context) error { return r.Commit(ctx, end("s3")) }))
		expect("an open transaction", false, "s2", 1)
		expect("a nested one", false, "s3", 1)
		return nil
	}))
	expect("a transaction", true, "s2", 1)
	expect("a nested one", true, "s3", 1)
	no := fault.New(fault.InvalidState, "no")
	if err := r.InTx(ctx, func(ctx context.Context) error {
		storetest.Must(t,
			r.Commit(ctx, end("s4")))
		return no
	}); !errors.Is(err, no) {
		t.Fatal(err)
	}
	expect("a transaction that was rolled back", false, "s4", 1)

	storetest.Must(t, r.Commit(ctx, session.EndAll(u, b.now)...))
	expect("all sessions", true, "s5", 1)
	expect("a later session", false, "s6", 2)

	// Also gets the same writes.
	if all := session.EndAll(u, b.now); !slices.Equal(told, append([]commit.Write{end("s1"), end("s2"), end("s3")},
		all...)) {
		t.Errorf("reported %v", told)
	}
}
