package replace_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/password/legacy"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/replace"
	"castellan/domain/session/session"
	"castellan/persistence/persistencetest"
)

var from = challenge.Starter{IP: "192.0.2.7", RequestID: "r1", Country: "TR"}

func (w *world) reset(phone string) (challenge.Started, error) {
	return w.StartReset(w.t.Context(), replace.ResetRequest{CountryCode: "090", Phone: phone}, from)
}

func (w *world) update(tokenID, next string) error {
	return w.Update(w.t.Context(), replace.UpdateRequest{TokenID: tokenID, Password: next, Verify: next, From: from})
}

func TestStartResetRefuses(t *testing.T) {
	w := newWorld(t)
	for _, r := range []replace.ResetRequest{{CountryCode: "x", Phone: "5320000001"}, {CountryCode: "90", Phone: "x"}} {
		_, err := w.StartReset(t.Context(), r, from)
		storetest.Wants(t, err, fault.InvalidField)
		storetest.Wants(t, r.Validate(), fault.InvalidField)
	}
	storetest.Must(t, replace.ResetRequest{CountryCode: "90", Phone: "5320000001"}.Validate())
	_, err := w.reset("5329999999")
	storetest.Wants(t, err, fault.Unavailable)
	w.refuse = []error{fault.New(fault.MFANotAvailable, "no mail")}
	_, err = w.reset("5320000001") // its challenge cannot be created, so it gets a decoy
	if storetest.Must(t, err); w.started[0].Decoy != "subject of +905320000001" {
		t.Errorf("%+v", w.started[0])
	}
	w.refuse = []error{commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, nil}
	_, err = w.reset("5320000001")
	storetest.Must(t, err)
	w.refuse = []error{commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, nil}
	_, err = w.reset("5320000001")
	storetest.Wants(t, err, fault.Unavailable)
	w.refuse = []error{fault.New(fault.Overloaded, "full")}
	_, err = w.reset("5320000001")
	storetest.Wants(t, err, fault.Overloaded)
}

// A refused request leaves the token unchanged.
func TestUpdateRefuses(t *testing.T) {
	w := newWorld(t)
	id := w.token()
	storetest.Wants(t, w.update("unknown", second), fault.TokenRevoked)
	for columns, back := range map[string]string{"cv = cv + 1": "cv = cv - 1", "status = 'passive'": "status = 'active'",
		"demo = true": "demo = false", "id = 'x'": ""} {
		w.set(columns)
		storetest.Wants(t, w.update(id, second), fault.TokenRevoked)
		if back == "" {
			persistencetest.Exec(t, w.db, "UPDATE users SET id = ? WHERE id = 'x'", w.user.ID)
		} else {
			w.set(back)
		}
	}
	w.now = w.now.Add(10 * time.Minute)
	storetest.Wants(t, w.update(id, second), fault.TokenExpired)
	w.now = w.now.Add(-time.Millisecond)
	w.set("demo = true")
	w.Dev = true
	storetest.Must(t, w.update(id, second))
}

// Each caller takes a place of its site in the queue of hashes.
func TestPlaces(t *testing.T) {
	w := newWorld(t)
	var asked []netip.Addr
	w.Place = func(from client.Origin) string { asked = append(asked, from.Addr); return "" }
	storetest.Must(t, w.update(w.token(), second))
	if len(asked) != 1 || asked[0].String() != "192.0.2.7" {
		t.Errorf("%v", asked)
	}
	full, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Slots: 1, Queue: 0, Wait: time.Millisecond})
	storetest.Must(t, err)
	w.Hasher = full
	place := storetest.Value(full.Admit(password.Caller{}))(t)
	defer place.Leave()
	for range 300 {
		if p, err := full.Admit(password.Caller{}); err == nil {
			defer p.Leave()
		}
	}
	storetest.Wants(t, w.update("x", second), fault.Overloaded)
	_, err = w.prepare(first, second)
	storetest.Wants(t, err, fault.Overloaded)
}

func (w *world) prepare(old, next string) (replace.Command, error) {
	return w.PrepareChange(w.t.Context(), replace.ChangeRequest{UserID: w.user.ID, Old: old, Password: next, Verify: next,
		From: challenge.Starter{SessionID: "s1", IP: "192.0.2.7", RequestID: "r1"}})
}

// A session that begins while a change commits fails the change.
func TestNoSessionIsForgotten(t *testing.T) {
	w := newWorld(t)
	command := storetest.Value(w.prepare(first, second))(t)
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

// A hash of another service is stored in wrapped form before the password changes. It is then the previous hash, so
// the old password cannot be set again.
func TestHashOfAnotherServiceBecomesPrevious(t *testing.T) {
	strong := func(w *world, secret string) string {
		recipe, err := legacy.ParseRecipe("scrypt$ln=14,r=8,p=1")
		storetest.Must(t, err)
		h := legacy.Hash{Recipe: recipe, Salt: []byte("0123456789abcdef"), Size: 32}
		h.Tag, err = h.Derive([]byte(secret), nil)
		storetest.Must(t, err)
		return storetest.Value(w.Hasher.Adopt(t.Context(), h))(t)
	}
	for name, change := range map[string]func(w *world) error{
		"change": func(w *world) error {
			command, err := w.prepare(first, second)
			if err == nil {
				_, err = w.build(w.ChangeAction(), w.challenge(challenge.Starter{}), command)
			}
			return err
		},
		"reset": func(w *world) error { return w.update(w.token(), second) },
	} {
		w := newWorld(t)
		foreign := strong(w, first)
		w.set("password_hash = '" + foreign + "'")
		storetest.Must(t, change(w))
		stored := storetest.Value(w.Users.Secret(t.Context(), w.user.ID))(t)
		tag := foreign[strings.LastIndex(foreign, "$"):]
		if password.Imported(stored.Hash) || !password.Imported(stored.Previous) || strings.Contains(stored.Previous, tag) {
			t.Errorf("%s: %+v", name, stored)
		}
		w.reload()
		storetest.Wants(t, w.update(w.token(), first), fault.PasswordReused)
		w.set("password_hash = '$imported$nonsense'")
		if err := change(w); err == nil || fault.CodeOf(err) == fault.PasswordWrong {
			t.Errorf("%s of a malformed hash: %v", name, err)
		}
	}
}

// A password is not replaced while one of the stored hashes cannot be compared or wrapped.
func TestHashesThatCannotBeUsed(t *testing.T) {
	w := newWorld(t)
	w.set("previous_hash = 'nonsense'")
	if _, err := w.prepare(first, second); err == nil || fault.CodeOf(err) == fault.PasswordReused {
		t.Errorf("a malformed previous hash: %v", err)
	}
	w.set("previous_hash = ''")
	recipe := storetest.Value(legacy.ParseRecipe("scrypt$ln=14,r=8,p=1"))(t)
	h := legacy.Hash{Recipe: recipe, Salt: []byte("0123456789abcdef"), Size: 32, Tag: make([]byte, 32)}
	foreign := storetest.Value(w.Hasher.Adopt(t.Context(), h))(t)
	w.set("password_hash = '" + foreign + "'")
	db := w.Commit
	w.Commit = persistencetest.Unaudited(w.db)
	if _, err := w.prepare(first, second); !errors.Is(err, persistencetest.ErrNoAudit) {
		t.Errorf("a hash that was not wrapped: %v", err)
	}
	w.Commit = db
	if now, err := w.Users.Secret(t.Context(), w.user.ID); err != nil || now.Hash != foreign {
		t.Errorf("%+v, %v", now, err)
	}
}
