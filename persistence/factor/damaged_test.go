package factor_test

import (
	"context"
	"fmt"
	"testing"

	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// A row that cannot be read is an error, and never an empty record.
func TestDamagedRows(t *testing.T) {
	db := persistencetest.SQLite(t)
	store, c := factor.NewChallenges(db), sampled(0, "u1")
	keeps(t, db, nil, []byte("intent"), c)
	storetest.Must(t, db.Commit(t.Context(), challenge.Spend{Budget: challenge.Budget{Subject: "u1"}}))
	persistencetest.Exec(t, db, "UPDATE challenge SET body = 'x'")
	persistencetest.Exec(t, db, "UPDATE attempt_budget SET body = 'x'")
	for name, read := range map[string]func(context.Context) (any, error){
		"Load": func(ctx context.Context) (any, error) { c, err := store.Load(ctx, c.ID); return c.ID, err },
		"Pending": func(ctx context.Context) (any, error) {
			all, err := store.Pending(ctx, "u1", made)
			return len(all), err
		},
		"Evidence": func(ctx context.Context) (any, error) { e, err := store.Evidence(ctx, c.ID); return e.ID, err },
		"Budget":   func(ctx context.Context) (any, error) { b, err := store.Budget(ctx, "u1", ""); return b.OTPRow, err },
	} {
		if got, err := read(t.Context()); err == nil || fault.CodeOf(err) != fault.Internal || fmt.Sprint(got) != "" &&
			fmt.Sprint(got) != "0" {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// A passkey whose key cannot be read is an error.
func TestDamagedPasskey(t *testing.T) {
	db, ctx := persistencetest.SQLite(t), t.Context()
	party, _ := passkey.NewParty("https://x.example", "x", nil)
	credential, err := party.Register(passkeytest.New(t, "x.example", "https://x.example").Create(t,
		party.Creation("AAAA", passkey.User{}, nil)), func(string) bool { return true })
	storetest.Must(t, err)
	credential.DeviceID, credential.UserID, credential.CreatedAt = "p1", "u1", usertest.Now
	storetest.Must(t, db.Commit(ctx, passkey.Add{Credential: credential}))
	read := func() error {
		c, err := factor.NewPasskeys(db).ByCredential(ctx, credential.ID)
		if err == nil && c.DeviceID != "p1" {
			t.Errorf("%+v", c)
		}
		return err
	}
	storetest.Must(t, read())
	for _, damage := range []string{"aaguid = x'00'",
		"aaguid = x'00000000000000000000000000000000', public_key = 'x'"} {
		persistencetest.Exec(t, db, "UPDATE passkey SET "+damage)
		storetest.Wants(t, read(), fault.Internal, damage)
	}
}
