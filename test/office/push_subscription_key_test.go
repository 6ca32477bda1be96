package office

import (
	"encoding/base64"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Devices subscribe with a key that never changes: it is the same on every process, after a restart and after
// a rotation of keys.
func TestSubscriptionKeyNeverChanges(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		key := func(n *blackbox.Node) string {
			var in struct{ PublicKey string }
			n.Ok(t, "GET", "/.well-known/vapid.json", nil, nil).
				Keys(t, "publicKey").
				With(t, "Cache-Control", "public, max-age=300").
				Read(t, &in)
			return in.PublicKey
		}
		n := s.Start()
		first := key(n)
		if point, err := base64.RawURLEncoding.DecodeString(first); err != nil || len(point) != 65 || point[0] != 4 {
			t.Fatalf("%q is no uncompressed point: %v", first, err)
		}
		for _, purpose := range []string{"hashing", "sealing", "master"} {
			if got := s.Command("", "keys", "rotate", purpose); got.Code != 0 {
				t.Fatalf("keys rotate %s: exit %d, %s", purpose, got.Code, got.ErrOut)
			}
		}
		n.Stop()
		if again := key(s.Start()); again != first {
			t.Errorf("the key was %s and is %s", first, again)
		}
		got := s.CommandWith([]string{"PUSH_WEBHOOK_SECRET=whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMg=="}, "", "config")
		if got.Code != 0 || !strings.Contains(got.Out, "webhook_secret: (hidden)") ||
			strings.Contains(got.Out+got.ErrOut, "aHVudGVy") {
			t.Errorf("config: exit %d, %s", got.Code, got.Out)
		}
	})
}
