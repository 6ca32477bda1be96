package office

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

// A leaked hashing key is replaced under a running service. The key of Web Push and identity numbers use the
// new one. Codes and client keys that were made before stay valid, and the command prints until when
// (D-EXT-04).
func TestHashingKeyReplacementKeepsCodesValid(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		vapid := func() string {
			var key struct{ PublicKey string }
			n.Do(t, "GET", "/.well-known/vapid.json", nil, nil).Is(t, 200, "").Read(t, &key)
			return key.PublicKey
		}
		list := func() string {
			t.Helper()
			got := s.Command("", "keys", "list")
			if got.Code != 0 {
				t.Fatalf("keys list: exit %d, %s", got.Code, got.ErrOut)
			}
			return got.Out
		}
		if got := s.Command("", "cron-key", "add", "robot"); got.Code != 0 {
			t.Fatal(got.ErrOut)
		}
		line := regexp.MustCompile(`(?m)^hashing +(\S+) +from \S+ +no expiry +` +
			`hashes codes; steady; 1 keys of scheduled clients$`)
		found := line.FindStringSubmatch(list())
		if found == nil {
			t.Fatalf("keys list:\n%s", list())
		}
		before, open := vapid(), n.Login(t, demo)
		code := n.Code(t, demo, "SMS")
		for _, bad := range [][]string{{"sealing", "--compromised"}, {"master", "--compromised"},
			{"hashing", "--compromised", "--grace", "24h"}} {
			if got := s.Command("", append([]string{"keys", "rotate"}, bad...)...); got.Code != 1 {
				t.Errorf("%v: exit %d, %s", bad, got.Code, got.Out)
			}
		}
		s.Exec("UPDATE users SET identity_hash = 'of the known key' WHERE id IN (SELECT MIN(id) FROM users)")
		got := s.Command("", "keys", "rotate", "hashing", "--compromised")
		if got.Code != 0 || !strings.Contains(got.Out, found[1]+" expires at ") ||
			!strings.Contains(got.Out, "recovery codes of 0 accounts and 1 keys of scheduled clients") ||
			!strings.Contains(got.Out, "0 identity numbers hashed again; 1 accounts have no stored number") {
			t.Fatalf("exit %d\n%s%s", got.Code, got.Out, got.ErrOut)
		}
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
		if got := s.Command("", "keys", "rehash"); got.Code != 0 || !strings.HasPrefix(got.Out, "0 identity numbers") {
			t.Errorf("keys rehash: exit %d, %s%s", got.Code, got.Out, got.ErrOut)
		}
	})
}
