package cronkey_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/cronkey"
	"castellan/persistence/persistencetest"
)

var by = audit.By{UserID: "op"}

// A key needs a name of 1 to 64 letters, digits, _ and -, which is free. A refused key has no header.
func TestKeyIsRefused(t *testing.T) {
	db := persistencetest.SQLite(t)
	issuer := cronkey.Issuer{Ring: keyringtest.Ring(t, time.Now), Changes: admin.Changes{Commit: db, Now: time.Now}}
	for _, c := range []struct {
		name string
		want fault.Code
	}{{"", fault.InvalidField}, {"a b", fault.InvalidField}, {"a.b", fault.InvalidField},
		{strings.Repeat("x", 65), fault.InvalidField}, {strings.Repeat("x", 64), ""}, {"A_b-9", ""},
		{"A_b-9", fault.RecordAlreadyExist}} {
		header, err := issuer.Add(t.Context(), by, c.name)
		storetest.Wants(t, err, c.want)
		if (header == "") != (c.want != "") {
			t.Errorf("%q: the header %q", c.name, header)
		}
	}
	persistencetest.Fails(t, db, "cron_key audit", func(ctx context.Context) error {
		return issuer.Remove(ctx, by, "A_b-9")
	})
}

var errDown = errors.New("the database is down")

type unread struct{}

func (unread) Keys(context.Context) ([]cronkey.Key, error) { return nil, errDown }

// A snapshot that cannot be read is an error, and accepts no key.
func TestKeysCannotBeRead(t *testing.T) {
	cache := cronkey.NewCache(unread{}, keyringtest.Ring(t, time.Now))
	if err := cache.Reload(t.Context()); !errors.Is(err, errDown) {
		t.Error(err)
	}
	if name, ok := cache.Client("nightly.x"); ok || name != "" {
		t.Errorf("accepted %q", name)
	}
}
