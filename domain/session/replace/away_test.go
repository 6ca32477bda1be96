package replace_test

import (
	"errors"
	"strings"
	"testing"

	"castellan/domain/account/password"
	"castellan/domain/account/password/legacy"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/persistencetest"
)

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
