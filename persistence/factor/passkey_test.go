package factor_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

func TestPasskeyStore(t *testing.T) {
	persistencetest.RunBoth(t, func(t *testing.T, open storetest.Open[passkeyStores]) {
		storetest.Run(t, usertest.WithTwo(open), storetest.Cases[passkeyStores]{
			"AddAndRead":        passkeyAddAndRead,
			"OneCredentialOnce": passkeyOneCredentialOnce,
			"UseIsFenced":       passkeyUseIsFenced,
			"UseUnderRace":      passkeyUseUnderRace,
			"Handle":            passkeyHandle,
			"Trust":             passkeyTrust,
		})
	}, func(db *persistence.DB) passkeyStores {
		return passkeyStores{factor.NewPasskeys(db), account.NewUsers(db), db}
	}, "users", "passkey")
}

// A passkey that an older release added has been settling since then; the migration has settled those before it.
func TestPasskeyOfOlderRelease(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		persistencetest.Exec(t, db, "INSERT INTO passkey (device_id, user_id, credential_id, public_key, aaguid, eligible, "+
			"backed_up, sign_count, transports, brand, model, description, platform, created_at, last_used_at) "+
			"VALUES ('p1', 'u1', ?, ?, ?, FALSE, FALSE, 0, '', '', '', '', '', 1700000000000, 0)", []byte("c1"),
			`{"crv":"P-256","kty":"EC","x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",`+
				`"y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}`, []byte(strings.Repeat("\x00", 16)))
		got, err := factor.NewPasskeys(db).List(t.Context(), "u1")
		if storetest.Must(t, err); len(got) != 1 || got[0].Trust != (passkey.Trust{Since: got[0].CreatedAt}) {
			t.Errorf("%+v", got)
		}
	})
}

// passkeyStores are passkeys with their accounts.
type passkeyStores struct {
	passkey.Store
	Users user.Store
	commit.Committer
}

func userID(n int) string { return usertest.Sample(n).ID }

func samplePasskey(t *testing.T, n int, id string) passkey.Credential {
	p, _ := passkey.NewParty("https://x.example", "x", nil)
	a := passkeytest.New(t, "x.example", "https://x.example")
	if id == "p2" {
		a.UseRSA(t)
	}
	c, err := p.Register(a.Create(t, p.Creation("AAAA", passkey.User{}, nil)), func(string) bool { return true })
	storetest.Must(t, err)
	c.DeviceID, c.UserID, c.Count = id, userID(n), 1<<32-2
	c.Brand, c.Model, c.Description, c.Platform = "Brand ?", "Módel 'x'", "d"+id, "web"
	c.CreatedAt = usertest.Now
	return c
}

func passkeyAddAndRead(t *testing.T, s passkeyStores, _ commit.Committer) {
	ctx := t.Context()
	a, b, c := samplePasskey(t, 1, "p1"), samplePasskey(t, 1, "p2"), samplePasskey(t, 2, "p3")
	b = persistencetest.Whole(t, func(c *passkey.Credential) { c.DeviceID, c.UserID, c.Key = "p2", b.UserID, b.Key })
	a.Transports = nil
	storetest.Wants(t, storetest.Err(s.ByCredential(ctx, a.ID)), fault.RecordNotFound, "before")
	storetest.Must(t, s.Commit(ctx, passkey.Add{Credential: a}, passkey.Add{Credential: b}, passkey.Add{Credential: c}))
	storetest.Same(t, storetest.Value(s.List(ctx, userID(1)))(t), []passkey.Credential{b, a})
	storetest.Same(t, storetest.Value(s.ByCredential(ctx, c.ID))(t), c)
	storetest.Must(t, s.Commit(ctx, passkey.Remove{UserID: userID(2), DeviceID: "p1"})) // another's
	storetest.Must(t, s.Commit(ctx, passkey.Remove{UserID: userID(1), DeviceID: "p2"}))
	if got, err := s.List(ctx, userID(1)); err != nil || len(got) != 1 || got[0].DeviceID != "p1" {
		t.Errorf("after the removals: %+v, %v", got, err)
	}
}

// The trust of a passkey is read as it was written, and a restart holds for all passkeys of one user.
func passkeyTrust(t *testing.T, s passkeyStores, _ commit.Committer) {
	at := usertest.Now.Add(time.Hour)
	a, b, c := samplePasskey(t, 1, "p1"), samplePasskey(t, 1, "p2"), samplePasskey(t, 2, "p3")
	a.Since, b.Restarted = usertest.Now, usertest.Now
	storetest.Must(t, s.Commit(t.Context(), passkey.Add{Credential: a}, passkey.Add{Credential: b},
		passkey.Add{Credential: c}))
	wants := func(want ...passkey.Credential) {
		t.Helper()
		for _, one := range want {
			storetest.Equal(t, storetest.Value(s.ByCredential(t.Context(), one.ID))(t).Trust, one.Trust, one.DeviceID)
		}
	}
	wants(a, b, c)
	storetest.Must(t, s.Commit(t.Context(), passkey.Restart{UserID: userID(1), At: at}))
	a.Restarted, b.Restarted = at, at
	wants(a, b, c)
}

// A credential is registered once, whichever account has it.
func passkeyOneCredentialOnce(t *testing.T, s passkeyStores, _ commit.Committer) {
	a, b := samplePasskey(t, 1, "p1"), samplePasskey(t, 2, "p2")
	b.ID = bytes.Clone(a.ID)
	storetest.Must(t, s.Commit(t.Context(), passkey.Add{Credential: a}))
	storetest.Wants(t, s.Commit(t.Context(), passkey.Add{Credential: b}), fault.RecordAlreadyExist)
}

func passkeyUseIsFenced(t *testing.T, s passkeyStores, _ commit.Committer) {
	ctx, at := t.Context(), usertest.Now.Add(time.Hour)
	a := samplePasskey(t, 1, "p1")
	storetest.Must(t, s.Commit(ctx, passkey.Add{Credential: a}))
	use := passkey.Use{UserID: a.UserID, DeviceID: "p1", Seen: a.Count, Count: a.Count + 1, At: at}
	if again, ok := passkey.UseOf(use.Key()); !ok || again.DeviceID != "p1" || again.Seen != use.Seen ||
		again.Count != use.Count || again.BackedUp {
		t.Errorf("%s: %+v", use.Key(), again)
	}
	storetest.Must(t, s.Commit(ctx, use))
	got, err := s.ByCredential(ctx, a.ID)
	if err != nil || got.Count != 1<<32-1 || got.BackedUp || !got.LastUsedAt.Equal(at) {
		t.Errorf("%+v, %v", got, err)
	}
	stranger, gone := use, use
	stranger.UserID, stranger.Seen = userID(2), use.Count
	gone.DeviceID = "p9"
	for _, w := range []passkey.Use{use, stranger, gone} {
		storetest.Is(t, s.Commit(ctx, w), commit.ErrFenced, w)
	}
	for _, bad := range []string{"", "p1", "passkey/p1", "passkey/p1/x/1/true", "passkey/p1/1/4294967296/true"} {
		if w, ok := passkey.UseOf(bad); ok {
			t.Errorf("%q is read as %+v", bad, w)
		}
	}
}

// Of several uses with one counter, one commits. Without a counter all commit.
func passkeyUseUnderRace(t *testing.T, s passkeyStores, _ commit.Committer) {
	a, b := samplePasskey(t, 1, "p1"), samplePasskey(t, 1, "p3")
	b.Count = 0
	storetest.Must(t, s.Commit(t.Context(), passkey.Add{Credential: a}, passkey.Add{Credential: b}))
	for _, c := range []struct {
		of   passkey.Credential
		next uint32
		made int
	}{{a, a.Count + 1, 1}, {b, 0, 10}} {
		made := storetest.Race(t, 10, fault.Unavailable, func(int) error {
			return lost(s.Commit(t.Context(), passkey.Use{UserID: c.of.UserID, DeviceID: c.of.DeviceID, Seen: c.of.Count,
				Count: c.next, At: usertest.Now}))
		})
		storetest.Equal(t, made, c.made, c.of.DeviceID)
	}
}

// lost returns UNAVAILABLE for a unit that was fenced out.
func lost(err error) error {
	if errors.Is(err, commit.ErrFenced) {
		return fault.New(fault.Unavailable, "fenced out")
	}
	return err
}

func passkeyHandle(t *testing.T, s passkeyStores, _ commit.Committer) {
	for i, next := range []string{"aGFuZGxl", ""} {
		storetest.Must(t, s.Commit(t.Context(), user.SetPush{UserID: userID(1), CV: int64(1 + i), Owned: true, Handle: next}))
		u, err := s.Users.Get(t.Context(), userID(1))
		if err != nil || u.PasskeyHandle != next || u.Account().Passkeys != (next != "") || !u.Push {
			t.Errorf("%q: %+v, %v", next, u, err)
		}
	}
}
