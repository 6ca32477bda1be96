package replace_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"castellan/domain/account/password"
	"castellan/domain/account/password/legacy"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
)

var errAway = errors.New("away")

// awayUsers is a store of accounts of which one method fails.
type awayUsers struct {
	user.Store
	method string
}

func (a awayUsers) Get(ctx context.Context, id string) (user.User, error) {
	if a.method == "Get" {
		return user.User{}, errAway
	}
	return a.Store.Get(ctx, id)
}

func (a awayUsers) Secret(ctx context.Context, id string) (user.Secret, error) {
	if a.method == "Secret" {
		return user.Secret{}, errAway
	}
	return a.Store.Secret(ctx, id)
}

func (a awayUsers) ByPhone(ctx context.Context, phone, former string) (user.User, error) {
	if a.method == "ByPhone" {
		return user.User{}, errAway
	}
	return a.Store.ByPhone(ctx, phone, former)
}

// A change and a reset report that they could not read the account or its hashes, and change nothing.
func TestAccountCannotBeRead(t *testing.T) {
	w := newWorld(t)
	command, err := w.prepare(first, second)
	storetest.Must(t, err)
	id, stored := w.token(), w.Users
	for _, method := range []string{"Get", "Secret"} {
		w.Users = awayUsers{stored, method}
		if got, err := w.prepare(first, second); !errors.Is(err, errAway) || got.Hash != "" {
			t.Errorf("%s: prepared %+v, %v", method, got, err)
		}
		if _, err := w.build(w.ChangeAction(), w.challenge(challenge.Starter{}), command); !errors.Is(err, errAway) {
			t.Errorf("%s: changed, %v", method, err)
		}
		if err := w.update(id, second); !errors.Is(err, errAway) {
			t.Errorf("%s: updated, %v", method, err)
		}
	}
	w.Users = awayUsers{stored, "ByPhone"}
	if _, err := w.reset(strings.TrimPrefix(w.user.Phone, "+90")); !errors.Is(err, errAway) {
		t.Errorf("a reset started: %v", err)
	}
	if w.Users = stored; !w.is(first) {
		t.Error("the password changed")
	}
	storetest.Must(t, w.update(id, second))
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
		text, err := w.Hasher.Adopt(t.Context(), h)
		storetest.Must(t, err)
		return text
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
		stored, err := w.Users.Secret(t.Context(), w.user.ID)
		storetest.Must(t, err)
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
	recipe, err := legacy.ParseRecipe("scrypt$ln=14,r=8,p=1")
	storetest.Must(t, err)
	h := legacy.Hash{Recipe: recipe, Salt: []byte("0123456789abcdef"), Size: 32, Tag: make([]byte, 32)}
	foreign, err := w.Hasher.Adopt(t.Context(), h)
	storetest.Must(t, err)
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

// A token under the present key is found while an earlier key is still known.
func TestTokenOfThePresentKey(t *testing.T) {
	w := newWorld(t)
	keyringtest.Replace(t, w.keys)
	w.now = w.now.Add(keyring.Notice)
	w.Ring = w.keys.Ring()
	if former := w.Ring.Former("ot-auth", "x"); len(former) == 0 {
		t.Fatal("no earlier key is known")
	}
	storetest.Must(t, w.update(w.token(), second))
}
