package office

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

func kidOf(t *testing.T, token string) string {
	t.Helper()
	head, _, _ := strings.Cut(token, ".")
	text := storetest.Value(blackbox.B64.DecodeString(head))(t)
	var h struct{ Kid string }
	storetest.Must(t, json.Unmarshal(text, &h))
	return h.Kid
}

func kids(t *testing.T, n *blackbox.Node) (all []string) {
	t.Helper()
	for _, k := range jwks(t, n) {
		all = append(all, k.Kid)
	}
	return all
}

type jwk struct{ Kty, Crv, Kid, X, Alg, Use, D string }

func jwks(t *testing.T, n *blackbox.Node) []jwk {
	t.Helper()
	var set struct{ Keys []jwk }
	// Clients keep the keys for less time than a new key is published before it signs.
	n.Ok(t, "GET", "/.well-known/jwks.json", nil, nil).
		With(t, "Content-Type", "application/jwk-set+json").
		With(t, "Cache-Control", "public, max-age=10").
		Read(t, &set)
	for _, k := range set.Keys {
		if k.Kty != "OKP" || k.Crv != "Ed25519" || k.Kid == "" || k.D != "" {
			t.Errorf("a published key: %+v", k)
		}
	}
	return set.Keys
}

// The signing key is rotated under a running service. The new key is published at once and signs ten seconds
// later. Tokens of the old one stay valid (D-AUTH-01).
func TestSigningKeyRotationKeepsTokensValid(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		before, _ := n.Session(t, demo)
		old := kidOf(t, before)
		storetest.Same(t, kids(t, n), []string{old}, "published")
		open := n.Login(t, demo)
		code := n.Code(t, demo, "SMS")

		began := time.Now()
		got := s.Says(0, "keys rotate", old+" verifies until ")
		blackbox.Until(t, blackbox.Within(1), "published", func() bool { return len(kids(t, n)) == 2 })
		fresh := kids(t, n)[slices.IndexFunc(kids(t, n), func(k string) bool { return k != old })]
		storetest.Contains(t, got.Out, fresh, "key named by the command")
		if soon, _ := n.Session(t, demo); kidOf(t, soon) != old && time.Since(began) < blackbox.Within(9) {
			t.Error("the new key signs before its time")
		}
		s.Says(1, "keys rotate", "--force")
		time.Sleep(time.Until(began.Add(11 * time.Second)))
		var after string
		blackbox.Until(t, blackbox.Within(1), "signed by the new key", func() bool {
			if after, _ = n.Session(t, demo); kidOf(t, after) != fresh {
				time.Sleep(time.Second) // a burst of logins would close the open one
			}
			return kidOf(t, after) == fresh
		})
		n.Complete(t, open, open.Method(t, "SMS"), code).Is(t, 200, "") // a code from before
		for _, token := range []string{before, after} {
			n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token})
		}
		n.Kill()
		n = s.Start()
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": before})

		// With --force, the older key and its tokens end at once.
		s.Says(0, "keys rotate --force", old+" and its tokens have expired")
		blackbox.Until(t, blackbox.Within(1), "refused", func() bool {
			return n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": before}).Code() == "UNAUTHENTICATED"
		})
		n.Ok(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": after})
		if slices.Contains(kids(t, n), old) {
			t.Error("a key that has ended is still published")
		}
	})
}

// Sealing, hashing and master keys are rotated while challenges are open, without an effect on them, and on the key
// that devices subscribe with.
func TestKeyRotationKeepsOpenChallenges(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		done := n.Login(t, demo)
		final := n.Complete(t, done, done.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		open := n.Login(t, demo)
		code := n.Code(t, demo, "SMS")
		subscription := string(n.Ok(t, "GET", "/.well-known/vapid.json", nil, nil).Keys(t, "publicKey").Body)
		master := storetest.Value(os.ReadFile(filepath.Join(s.Dir, "master.key")))(t)
		for _, purpose := range []string{"sealing", "hashing", "master"} {
			s.Succeeds("", "keys", "rotate", purpose)
		}
		if now, err := os.ReadFile(filepath.Join(s.Dir, "master.key")); err != nil || string(now) == string(master) {
			t.Errorf("the master file is as it was: %v", err)
		}
		blackbox.AttemptsLeft(t, n.Complete(t, open, open.Method(t, "SMS"), blackbox.WrongFor(code)))
		blackbox.SameOutcome(t, final, n.Result(t, done))
		n.Session(t, demo)
		n.Kill()
		n = s.Start()
		storetest.Equal(t, string(n.Ok(t, "GET", "/.well-known/vapid.json", nil, nil).Body), subscription,
			"key of subscriptions")
		blackbox.SameOutcome(t, final, n.Result(t, done))
		n.Complete(t, open, open.Method(t, "SMS"), code).Is(t, 200, "")
		s.Says(2, "keys rotate audit")
	})
}

// If keys exist, a missing or wrong master file stops the start, and the file is never overwritten (D-EXT-04).
func TestMissingMasterFileStopsStart(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Start().Stop()
		file := filepath.Join(s.Dir, "master.key")
		right := storetest.Value(os.ReadFile(file))(t)
		refused := func(want string) {
			t.Helper()
			n := s.Begin()
			if code := n.Wait(); code != 1 || !regexp.MustCompile(want).MatchString(n.Log()) {
				t.Errorf("exit %d, want 1 and a line like %q:\n%s", code, want, n.Log())
			}
			storetest.Equal(t, n.Out(), "", "it said hello first")
		}
		storetest.Must(t, os.Remove(file))
		refused(`key \S+ \(\S+\) is wrapped by master key \S+, and the file \S+master.key is missing`)
		if _, err := os.Stat(file); err == nil {
			t.Fatal("a new master key was made beside existing keys")
		}
		s.MakeMaster(file)
		refused(`key \S+ \(\S+\) is wrapped by master key \S+, but \S+master.key holds master key \S+`)
		storetest.Must(t, os.WriteFile(file, []byte("not a key\n"), 0o600))
		refused(`key \S+ \(\S+\) is wrapped by master key \S+`)
		storetest.Must(t, os.WriteFile(file, right, 0o600))
		s.Start().Session(t, s.Seeded("user"))
	})

	t.Run("production", func(t *testing.T) {
		s := blackbox.NewSite(t, "postgres").Set("DEV=")
		n := s.Begin()
		if code := n.Wait(); code != 1 || !strings.Contains(n.Log(), "there is no master key") {
			t.Errorf("exit %d, want 1 and a word about the master key:\n%s", code, n.Log())
		}
		if _, err := os.Stat(filepath.Join(s.Dir, "master.key")); err == nil {
			t.Error("a master key was made in production: other nodes would not have it")
		}
	})
}

// A leaked hashing key is replaced under a running service. The key of Web Push and identity numbers use the
// new one. Codes and client keys that were made before stay valid, and the command prints until when
// (D-EXT-04).
func TestHashingKeyReplacementKeepsCodesValid(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		vapid := func() string {
			return n.Ok(t, "GET", "/.well-known/vapid.json", nil, nil).At(t, "publicKey")
		}
		list := func() string { t.Helper(); return s.Says(0, "keys list").Out }
		s.Says(0, "cron-key add robot")
		line := regexp.MustCompile(`(?m)^hashing +(\S+) +from \S+ +no expiry +` +
			`hashes codes; steady; 1 keys of scheduled clients$`)
		found := line.FindStringSubmatch(list())
		if found == nil {
			t.Fatalf("keys list:\n%s", list())
		}
		before, open := vapid(), n.Login(t, demo)
		code := n.Code(t, demo, "SMS")
		for _, bad := range []string{"sealing --compromised", "master --compromised", "hashing --compromised --grace 24h"} {
			s.Says(1, "keys rotate "+bad)
		}
		s.Exec("UPDATE users SET identity_hash = 'of the known key' WHERE id IN (SELECT MIN(id) FROM users)")
		s.Says(0, "keys rotate hashing --compromised", found[1]+" expires at ",
			"recovery codes of 0 accounts and 1 keys of scheduled clients",
			"0 identity numbers hashed again; 1 accounts have no stored number")
		blackbox.Until(t, blackbox.Within(3), "the new key of Web Push", func() bool { return vapid() != before })
		now := list()
		if !strings.Contains(now, "replaced; counts and verifies older values; 1 keys of scheduled clients") ||
			strings.Count(now, "steady") != 1 {
			t.Errorf("keys list:\n%s", now)
		}
		n.Complete(t, open, open.Method(t, "SMS"), code).Is(t, 200, "") // a code from before
		s.Exec("UPDATE keys SET retired_at = $1 WHERE id = $2", time.Now().Add(-time.Second).UnixMilli(), found[1])
		n.Kill()
		n = s.Start()
		n.Session(t, demo)
		if vapid() == before || !strings.Contains(list(), "expired; 1 keys of scheduled clients") {
			t.Errorf("keys list:\n%s", list())
		}
		s.Says(0, "keys rehash", "0 identity numbers")
	})
}
