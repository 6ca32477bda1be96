package office

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// A device that was enrolled with a target is woken when a challenge waits for it: by a signed webhook, and by
// Web Push under the key that clients get.
func TestDevicesAreWokenByWebhookAndWebPush(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		type call struct {
			path   string
			header http.Header
			body   []byte
		}
		calls := make(chan call, 16)
		var gone atomic.Bool // every outside address is gone
		outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			calls <- call{r.URL.Path, r.Header, body}
			if gone.Load() {
				w.WriteHeader(http.StatusGone)
				return
			}
			w.WriteHeader(http.StatusCreated)
		}))
		defer outside.Close()
		secret := []byte("a secret of thirty-two letters..")
		n := s.Start("PUSH_WEBHOOK_SECRET=whsec_" + base64.StdEncoding.EncodeToString(secret))
		demo := s.Seeded("user")
		token, _ := n.Session(t, demo)
		enroll := func(target string) { blackbox.Enroll(t, n, demo, token, device.ES256, `,"pushTarget":`+target) }
		enroll(`{"type":"webhook","url":"` + outside.URL + `/hook"}`)
		const ( // of RFC 8291
			public = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
			auth   = "BTBZMqHH6r4Tts7J_aSIgg"
		)
		enroll(`{"type":"webpush","endpoint":"` + outside.URL + `/push","keys":{"p256dh":"` + public + `","auth":"` + auth +
			`"}}`)
		for len(calls) > 0 { // the second enrolment may have woken the first device
			<-calls
		}
		f := n.Login(t, demo)
		seen := map[string]bool{}
		for len(seen) < 2 {
			var c call
			select {
			case c = <-calls:
			case <-time.After(blackbox.Within(10)):
				t.Fatalf("woken by %v alone", seen)
			}
			switch c.path {
			case "/hook":
				mac := hmac.New(sha256.New, secret)
				mac.Write([]byte(c.header.Get("webhook-id") + "." + c.header.Get("webhook-timestamp") + "." + string(c.body)))
				want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
				storetest.Equal(t, c.header.Get("webhook-signature"), want, "signature")
				var told struct {
					ChallengeID, Action string
					Expire              int
				}
				storetest.Must(t, json.Unmarshal(c.body, &told))
				if told.ChallengeID != f.ChallengeID { // of the enrolment before
					continue
				}
				if told.Action != "LOGIN" || told.Expire <= 0 || !strings.HasPrefix(c.header.Get("webhook-id"), f.ChallengeID) {
					t.Errorf("sent %s as %s", c.body, c.header.Get("webhook-id"))
				}
			case "/push":
				var shown struct{ PublicKey string }
				n.Ok(t, "GET", "/.well-known/vapid.json", nil, nil).Read(t, &shown)
				h := c.header
				if h.Get("TTL") == "" || h.Get("Urgency") != "high" || h.Get("Content-Encoding") != "aes128gcm" ||
					!strings.HasSuffix(h.Get("Authorization"), ", k="+shown.PublicKey) || len(c.body) < 100 {
					t.Errorf("%v, %d bytes", h, len(c.body))
				}
			}
			seen[c.path] = true
		}
		// A target that is gone gets one more message, and then none.
		gone.Store(true)
		n.Login(t, demo)
		for deadline := time.Now().Add(blackbox.Within(10)); s.Count("device WHERE target IS NOT "+
			"NULL") > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the targets are still there")
			}
		}
		before := s.Count("outbox WHERE channel = 'push'")
		n.Login(t, demo)
		storetest.Equal(t, s.Count("outbox WHERE channel = 'push'"), before, "messages to targets that are gone")
		if strings.Contains(n.Log(), outside.URL) {
			t.Error("a target is in the log")
		}
	})
}
