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
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

var by = audit.By{UserID: "op"}

// A key is accepted from its creation until its removal, and both are audited.
func TestKey(t *testing.T) {
	db, now := persistencetest.SQLite(t), time.UnixMilli(1_700_000_000_123).UTC()
	ring := keyringtest.Ring(t, time.Now)
	cache := cronkey.NewCache(permit.NewCronKeys(db), ring)
	issuer := cronkey.Issuer{Ring: ring,
		Changes: admin.Changes{Commit: db, Now: func() time.Time { return now }, Follow: cache.Follow}}
	accepts := func(header, want string) {
		t.Helper()
		if name, ok := cache.Client(header); name != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", header, name, ok)
		}
	}

	first, err := issuer.Add(t.Context(), by, "nightly")
	storetest.Must(t, err)
	second, err := issuer.Add(t.Context(), by, "hourly")
	storetest.Must(t, err)
	if !strings.HasPrefix(first, "nightly.") {
		t.Errorf("the header %q", first)
	}
	accepts(first, "nightly")
	accepts(second, "hourly")
	for _, wrong := range []string{"", "nightly", "nightly.", "nightly.x", first + "x", first[:len(first)-1],
		"hourly" + first[len("nightly"):], "other" + first[len("nightly"):]} {
		accepts(wrong, "")
	}
	keys, err := permit.NewCronKeys(db).Keys(t.Context())
	if err != nil || len(keys) != 2 || !keys[1].CreatedAt.Equal(now) {
		t.Errorf("%+v, %v", keys, err)
	}

	storetest.Must(t, issuer.Remove(t.Context(), by, "nightly"))
	accepts(first, "")
	accepts(second, "hourly")
	storetest.Wants(t, issuer.Remove(t.Context(), by, "nightly"), fault.RecordNotFound)
	storetest.Same(t, persistencetest.Acts(t, db), []string{"CRON_KEY_ADD|op||nightly|", "CRON_KEY_ADD|op||hourly|",
		"CRON_KEY_REMOVE|op||nightly|"})
}

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
