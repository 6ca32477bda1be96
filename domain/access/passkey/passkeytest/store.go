package passkeytest

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"castellan/domain/access/passkey"
	"castellan/domain/access/user"
	"castellan/domain/access/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Stores holds an empty store and the account store beside it.
type Stores struct {
	passkey.Store
	Users user.Store
}

type stores struct {
	Stores
	commit.Committer
}

// Run checks an implementation of passkey.Store, the writes of the package, and the handle of user.SetPush.
func Run(t *testing.T, open storetest.Open[Stores]) {
	with := func(t *testing.T) (stores, commit.Committer) {
		s, c := open(t)
		storetest.Must(t, c.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
		return stores{s, c}, c
	}
	storetest.Run(t, with, storetest.Cases[stores]{
		"AddAndRead":        addAndRead,
		"OneCredentialOnce": oneCredentialOnce,
		"UseIsFenced":       useIsFenced,
		"UseUnderRace":      useUnderRace,
		"Handle":            handle,
	})
}

func userID(n int) string { return usertest.Sample(n).ID }

func sample(t *testing.T, n int, id string) passkey.Credential {
	p, _ := passkey.NewParty("https://x.example", "x", nil)
	a := New(t, "x.example", "https://x.example")
	if id == "p2" {
		a.UseRSA(t)
	}
	c, err := p.Register(a.Create(t, p.Creation("AAAA", passkey.User{}, nil)), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	c.DeviceID, c.UserID, c.Count = id, userID(n), 1<<32-2
	c.Brand, c.Model, c.Description, c.Platform = "Brand ?", "Módel 'x'", "d"+id, "web"
	c.CreatedAt = usertest.Now
	return c
}

func addAndRead(t *testing.T, s stores, _ commit.Committer) {
	ctx := t.Context()
	a, b, c := sample(t, 1, "p1"), sample(t, 1, "p2"), sample(t, 2, "p3")
	b.CreatedAt, b.Transports = b.CreatedAt.Add(time.Second), nil
	b.LastUsedAt = b.CreatedAt.Add(time.Minute)
	if _, err := s.ByCredential(ctx, a.ID); fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("before: %v", err)
	}
	storetest.Must(t, s.Commit(ctx, passkey.Add{Credential: a}, passkey.Add{Credential: b}, passkey.Add{Credential: c}))
	if got, err := s.List(ctx, userID(1)); err != nil || !reflect.DeepEqual(got, []passkey.Credential{b, a}) {
		t.Errorf("listed %+v, %v", got, err)
	}
	if got, err := s.ByCredential(ctx, c.ID); err != nil || !reflect.DeepEqual(got, c) {
		t.Errorf("got %+v, %v", got, err)
	}
	storetest.Must(t, s.Commit(ctx, passkey.Remove{UserID: userID(2), DeviceID: "p1"})) // another's
	storetest.Must(t, s.Commit(ctx, passkey.Remove{UserID: userID(1), DeviceID: "p2"}))
	if got, err := s.List(ctx, userID(1)); err != nil || len(got) != 1 || got[0].DeviceID != "p1" {
		t.Errorf("after the removals: %+v, %v", got, err)
	}
}

// A credential is registered once, whichever account has it.
func oneCredentialOnce(t *testing.T, s stores, _ commit.Committer) {
	a, b := sample(t, 1, "p1"), sample(t, 2, "p2")
	b.ID = bytes.Clone(a.ID)
	storetest.Must(t, s.Commit(t.Context(), passkey.Add{Credential: a}))
	if err := s.Commit(t.Context(), passkey.Add{Credential: b}); fault.CodeOf(err) != fault.RecordAlreadyExist {
		t.Errorf("one credential twice: %v", err)
	}
}

func useIsFenced(t *testing.T, s stores, _ commit.Committer) {
	ctx, at := t.Context(), usertest.Now.Add(time.Hour)
	a := sample(t, 1, "p1")
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
		if err := s.Commit(ctx, w); !errors.Is(err, commit.ErrFenced) {
			t.Errorf("%+v: %v", w, err)
		}
	}
	for _, bad := range []string{"", "p1", "passkey/p1", "passkey/p1/x/1/true", "passkey/p1/1/4294967296/true"} {
		if w, ok := passkey.UseOf(bad); ok {
			t.Errorf("%q is read as %+v", bad, w)
		}
	}
}

// Of several uses with one counter, one commits. Without a counter all commit.
func useUnderRace(t *testing.T, s stores, _ commit.Committer) {
	a, b := sample(t, 1, "p1"), sample(t, 1, "p3")
	b.Count = 0
	storetest.Must(t, s.Commit(t.Context(), passkey.Add{Credential: a}, passkey.Add{Credential: b}))
	for _, c := range []struct {
		of   passkey.Credential
		next uint32
		made int
	}{{a, a.Count + 1, 1}, {b, 0, 10}} {
		results := make(chan error, 10)
		for range 10 {
			go func() {
				results <- s.Commit(t.Context(), passkey.Use{UserID: c.of.UserID, DeviceID: c.of.DeviceID, Seen: c.of.Count,
					Count: c.next, At: usertest.Now})
			}()
		}
		made := 0
		for range 10 {
			if err := <-results; err == nil {
				made++
			} else if !errors.Is(err, commit.ErrFenced) {
				t.Error(err)
			}
		}
		if made != c.made {
			t.Errorf("%s: %d uses, want %d", c.of.DeviceID, made, c.made)
		}
	}
}

func handle(t *testing.T, s stores, _ commit.Committer) {
	for i, next := range []string{"aGFuZGxl", ""} {
		storetest.Must(t, s.Commit(t.Context(), user.SetPush{UserID: userID(1), CV: int64(1 + i), Owned: true, Handle: next}))
		u, err := s.Users.Get(t.Context(), userID(1))
		if err != nil || u.PasskeyHandle != next || u.Account().Passkeys != (next != "") || !u.Push {
			t.Errorf("%q: %+v, %v", next, u, err)
		}
	}
}
