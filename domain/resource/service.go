package resource

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"castellan/domain/audit"
	"castellan/domain/change"
	"castellan/domain/commit"
	"castellan/domain/fault"
)

// Author is who makes a change, for the records and the audit.
type Author struct{ UserID, IP, RequestID string }

// Admin carries out what administrators change: the registry (registry.go),
// roles and who holds them (role.go), grants (grant.go). Each change commits
// together with its audit row (D-EXT-03), a note to all nodes and, where it is
// about a grant, a line of the permission log; this node works with it before
// the call returns. Besides the errors named at each method all return
// UNAVAILABLE when the database, or the reading back, fails.
type Admin struct {
	Store    Store
	Accounts Accounts
	Commit   commit.Committer
	Live     *Live
	Table    Table
	// Dev lets demonstration accounts count as administrators.
	Dev bool
	Now func() time.Time
}

// reloadTimeout bounds the reading back after a write.
const reloadTimeout = 5 * time.Second

// entry says what was done, for the audit.
type entry struct {
	userID, target, detail string
	writes                 []commit.Write // that the change is made of, beside the store's
}

// write runs do while nobody else changes roles or the registry, on any node,
// and commits what it did with its audit row and note.
func (a *Admin) write(ctx context.Context, by Author, action string, do func(context.Context) (entry, error)) error {
	err := a.Commit.InTx(ctx, func(ctx context.Context) error {
		if err := a.Store.Lock(ctx); err != nil {
			return err
		}
		e, err := do(ctx)
		if err != nil {
			return err
		}
		return a.Commit.Commit(ctx, append(e.writes, audit.Record{
			At: a.Now(), ActorID: by.UserID, UserID: e.userID, Action: action, Target: e.target, Outcome: audit.Success,
			IP: by.IP, RequestID: by.RequestID, Detail: e.detail,
		}, change.Note{Topic: change.Roles, Key: e.target})...)
	})
	if err != nil {
		return err
	}
	// A context of its own: that the caller has gone away must not keep this
	// node from working with the change, and inside a wider transaction of the
	// caller (D-2FA-28), which may yet be rolled back, only what is committed
	// may be read. There the note brings the change.
	fresh, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	return a.Live.Reload(fresh)
}

func (a *Admin) stamp(by Author) Stamp {
	now := a.Now()
	return Stamp{CreatedBy: by.UserID, CreatedAt: now, UpdatedBy: by.UserID, UpdatedAt: now}
}

func number(id int64) string { return strconv.FormatInt(id, 10) }

func notFound(what string) error { return fault.New(fault.RecordNotFound, "there is no such %s", what) }

func state(format string, args ...any) error { return fault.New(fault.InvalidState, format, args...) }

func taken(c Context, code string) error {
	return fault.New(fault.RecordAlreadyExist, "the code %q is taken in the context %s", code, c)
}

func first[T any](all []T, match func(T) bool) (T, bool) {
	for _, x := range all {
		if match(x) {
			return x, true
		}
	}
	var none T
	return none, false
}

func describe(c Context, code, name string, s Status) string {
	return fmt.Sprintf("%s %q, name %q, status %d", c, code, name, s)
}
