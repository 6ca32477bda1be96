package replace_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/replace"
	"castellan/domain/session/session"
	"castellan/persistence/persistencetest"
)

func (w *world) prepare(old, next string) (replace.Command, error) {
	return w.PrepareChange(w.t.Context(), replace.ChangeRequest{UserID: w.user.ID, Old: old, Password: next, Verify: next,
		From: challenge.Starter{SessionID: "s1", IP: "192.0.2.7", RequestID: "r1"}})
}

// A session that begins while a change commits fails the change.
func TestNoSessionIsForgotten(t *testing.T) {
	w := newWorld(t)
	command, err := w.prepare(first, second)
	storetest.Must(t, err)
	w.Sessions = late{w.Sessions, w}
	if _, err := w.build(w.ChangeAction(), w.challenge(challenge.Starter{}), command); err == nil || w.is(second) {
		t.Errorf("changed beside a session that it did not see: %v", err)
	}
}

// late is a store in which a session begins after each listing.
type late struct {
	session.Store
	w *world
}

func (l late) List(ctx context.Context, userID string, now time.Time, limit int) ([]session.Session, error) {
	all, err := l.Store.List(ctx, userID, now, limit)
	l.w.login()
	return all, err
}

func TestChangeFails(t *testing.T) {
	w := newWorld(t)
	command, err := w.prepare(first, second)
	storetest.Must(t, err)
	persistencetest.Fails(t, w.db, "users session", func(context.Context) error {
		_, err := w.build(w.ChangeAction(), w.challenge(challenge.Starter{}), command)
		return err
	})
	w.reload()
	persistencetest.Exec(t, w.db, "ALTER TABLE audit RENAME TO broken")
	if _, err := w.prepare(third, first); err == nil || fault.CodeOf(err) == fault.PasswordWrong {
		t.Errorf("a wrong password without its row in the audit: %v", err)
	}
	w.set("password_hash = 'nonsense'")
	if _, err := w.prepare(second, third); err == nil || errors.Is(err, fault.New(fault.PasswordWrong, "")) {
		t.Errorf("a hash that cannot be read: %v", err)
	}
}
