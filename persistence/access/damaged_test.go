package access_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"castellan/domain/access/allowedip"
	"castellan/domain/access/challenge"
	"castellan/domain/access/device"
	"castellan/domain/access/device/devicetest"
	"castellan/domain/access/passkey"
	"castellan/domain/access/passkey/passkeytest"
	"castellan/domain/access/password"
	"castellan/domain/access/password/legacy"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/access"
	"castellan/persistence/persistencetest"
)

// A row that cannot be read is an error, and never an empty record.
func TestDamagedRows(t *testing.T) {
	db := persistencetest.SQLite(t)
	store, c := access.NewChallenges(db), sampled(0, "u1")
	keeps(t, db, nil, []byte("intent"), c)
	storetest.Must(t, db.Commit(t.Context(), challenge.Spend{Budget: challenge.Budget{Subject: "u1"}}))
	persistencetest.Exec(t, db, "UPDATE challenge SET body = 'x'")
	persistencetest.Exec(t, db, "UPDATE attempt_budget SET body = 'x'")
	storetest.Must(t, db.Commit(t.Context(), password.SaveGuard{Guard: password.Guard{Key: "u1"}}))
	persistencetest.Exec(t, db, "UPDATE password_guard SET body = 'x'")
	if err := db.Commit(t.Context(), password.ClearGuard{Key: "u1"}); fault.CodeOf(err) != fault.Internal {
		t.Errorf("a damaged guard was cleared: %v", err)
	}
	for name, read := range map[string]func(context.Context) (any, error){
		"Load": func(ctx context.Context) (any, error) { c, err := store.Load(ctx, c.ID); return c.ID, err },
		"Pending": func(ctx context.Context) (any, error) {
			all, err := store.Pending(ctx, "u1", made)
			return len(all), err
		},
		"Evidence": func(ctx context.Context) (any, error) { e, err := store.Evidence(ctx, c.ID); return e.ID, err },
		"Budget":   func(ctx context.Context) (any, error) { b, err := store.Budget(ctx, "u1", ""); return b.OTPRow, err },
		"Guard": func(ctx context.Context) (any, error) {
			g, err := access.NewPasswordGuards(db).Guard(ctx, "u1")
			return len(g.Good), err
		},
	} {
		if got, err := read(t.Context()); err == nil || fault.CodeOf(err) != fault.Internal || fmt.Sprint(got) != "" &&
			fmt.Sprint(got) != "0" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A device or a passkey whose key cannot be read is an error. So is a list of addresses, which would otherwise permit
// every address, and a recipe of imported hashes.
func TestDamagedCredentials(t *testing.T) {
	db, ctx := persistencetest.SQLite(t), t.Context()
	u := usertest.Sample(1)
	_, key := devicetest.Signer(t, device.ES256)
	party, _ := passkey.NewParty("https://x.example", "x", nil)
	credential, err := party.Register(passkeytest.New(t, "x.example", "https://x.example").Create(t,
		party.Creation("AAAA", passkey.User{}, nil)), func(string) bool { return true })
	storetest.Must(t, err)
	credential.DeviceID, credential.UserID, credential.CreatedAt = "p1", u.ID, usertest.Now
	storetest.Must(t, db.Commit(ctx, u, device.Add{Device: device.Device{ID: "d1", UserID: u.ID, Key: key,
		Status: device.Active, CreatedAt: usertest.Now}}, passkey.Add{Credential: credential},
		password.UseRecipe{Recipe: legacy.Recipe{Alg: legacy.Bcrypt, Cost: 10}, At: usertest.Now}))
	for _, network := range []string{"9.0.0.0/8", "10.0.0.0/8", "2001:db8::/32"} {
		storetest.Must(t, db.Commit(ctx, allowedip.Allow{UserID: u.ID, Network: netip.MustParsePrefix(network),
			At: usertest.Now}))
	}
	devices, passkeys, addresses := access.NewDevices(db), access.NewPasskeys(db), access.NewAllowedIPs(db)
	reads := map[string]func() error{
		"device": func() error { _, err := devices.Get(ctx, "d1"); return err },
		"passkey": func() error {
			c, err := passkeys.ByCredential(ctx, credential.ID)
			if err == nil && c.DeviceID != "p1" {
				t.Errorf("%+v", c)
			}
			return err
		},
		"networks": func() error {
			got, err := addresses.Networks(ctx, u.ID)
			if want := "[9.0.0.0/8 10.0.0.0/8 2001:db8::/32]"; err == nil && fmt.Sprint(got) != want {
				t.Errorf("%v, want %s", got, want)
			}
			return err
		},
		"recipes": func() error { _, err := access.NewImportedHashes(db).Recipes(ctx); return err },
	}
	for name, read := range reads {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for statement, name := range map[string]string{"UPDATE device SET public_key = 'x'": "device",
		"UPDATE passkey SET aaguid = x'00'":                               "passkey",
		"UPDATE allowed_ip SET network = 'x' WHERE network = '9.0.0.0/8'": "networks",
		"UPDATE imported_hash SET recipe = 'x'":                           "recipes"} {
		persistencetest.Exec(t, db, statement)
		if err := reads[name](); fault.CodeOf(err) != fault.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	persistencetest.Exec(t, db, "UPDATE passkey SET aaguid = x'00000000000000000000000000000000', public_key = 'x'")
	if err := reads["passkey"](); fault.CodeOf(err) != fault.Internal {
		t.Errorf("a key that cannot be read: %v", err)
	}
}

// Without its tables a guard is not cleared, and no remembered client is forgotten.
func TestWritesWithoutTables(t *testing.T) {
	db := persistencetest.SQLite(t)
	u := usertest.Sample(1)
	storetest.Must(t, db.Commit(t.Context(), u, password.SaveGuard{Guard: password.Guard{Key: "u1"}}))
	persistencetest.Fails(t, db, "password_guard", func(ctx context.Context) error {
		return db.Commit(ctx, password.ClearGuard{Key: "u1"})
	})
	persistencetest.Fails(t, db, "users remembered", func(ctx context.Context) error {
		_, err := access.NewRemembered(db).RemoveAll(ctx, u.ID, usertest.Now)
		return err
	})
}
