package identity_test

import (
	"context"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/identity"
	"castellan/persistence/persistencetest"
)

// Confirmed data are compared with the current account.
func TestChecks(t *testing.T) {
	d := newDesk(t)
	none, err := d.Checks(t.Context(), d.user("u1"))
	storetest.Must(t, err)
	storetest.Same(t, none, identity.Checks{})
	d.Registry = d
	_, err = d.confirm("u1", func(r *identity.Request) { r.Register = true })
	storetest.Must(t, err)
	_, err = d.confirm("u2", as)
	storetest.Must(t, err)
	for id, want := range map[string]identity.Checks{
		"u1": {Number: new(true), Register: new(true), Name: new(true), BirthDate: new(true), Same: 1},
		"u2": {Number: new(true), Name: new(true), BirthDate: new(true), Same: 1},
	} {
		got, err := d.Checks(t.Context(), d.user(id))
		storetest.Must(t, err)
		storetest.Same(t, got, want)
	}
	d.change("u1", "surname = 'Kaya', birth_date = '1990-05-02'")
	got, err := d.Checks(t.Context(), d.user("u1"))
	if err != nil || *got.Name || *got.BirthDate {
		t.Errorf("%+v, %v", got, err)
	}
	for sealed, want := range map[string]bool{"10000000147": false, "1": false, other: true} {
		storetest.Must(t, d.Store.Keep(t.Context(), "u3", identity.Person{},
			d.Ring.Seal([]byte(sealed), []byte("identity/u3"))))
		got, err := d.Checks(t.Context(), d.user("u3"))
		if err != nil || *got.Number != want || got.Name != nil || got.BirthDate != nil || got.Same != 0 {
			t.Errorf("%s: %+v, %v", sealed, got, err)
		}
	}
	storetest.Must(t, d.Store.Keep(t.Context(), "u4", identity.Person{}, []byte("not sealed")))
	if _, err := d.Checks(t.Context(), d.user("u4")); err == nil {
		t.Error("no error of a number that cannot be opened")
	}
	persistencetest.Fails(t, d.db, "user_identity users", func(ctx context.Context) error {
		u := user.New("u1", d.now)
		_, err := d.Checks(ctx, u)
		return err
	})
	persistencetest.Fails(t, d.db, "user_identity", func(ctx context.Context) error {
		_, err := d.NumberOf(ctx, "u1")
		return err
	})
}
