package push

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/kit/webhook"
)

// The example of Standard Webhooks' own libraries.
func TestVectorOfStandardWebhooks(t *testing.T) {
	secrets := storetest.Value(webhook.ParseSecrets(hookSecret))(t)
	h := http.Header{}
	secrets.Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	got := h.Get("webhook-signature")
	storetest.Equal(t, got, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
}

// A receiver can verify the sender, the time, and whether it has seen the message before. A repetition has the same id,
// with its own time and signature.
func TestWebhook(t *testing.T) {
	s := newService(t, true)
	now := clock
	secondSecret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32)))
	sender := s.sender(t, func(c *Config) {
		c.WebhookSecret, c.Now = hookSecret+" "+secondSecret, func() time.Time { return now }
	})
	for range 2 {
		storetest.Must(t, send(t, sender, to(hook(s.URL+"/hook?x=1"))))
		now = now.Add(time.Minute)
	}
	calls := s.received()
	if len(calls) != 2 {
		t.Fatalf("%d calls", len(calls))
	}
	for i, c := range calls {
		h, at := c.header, strconv.FormatInt(clock.Add(time.Duration(i)*time.Minute).Unix(), 10)
		if c.method != http.MethodPost || c.path != "/hook" || string(c.body) != wakeup ||
			h.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %s %s", c.method, c.path, h.Get("Content-Type"), c.body)
		}
		if h.Get("webhook-id") != messageID || h.Get("webhook-timestamp") != at {
			t.Errorf("id %q at %q, want %q at %q", h.Get("webhook-id"), h.Get("webhook-timestamp"), messageID, at)
		}
		signatures := strings.Fields(h.Get("webhook-signature"))
		if len(signatures) != 2 {
			t.Fatalf("%d signatures, want one of each secret", len(signatures))
		}
		for j, secret := range []string{hookSecret, secondSecret} {
			key := storetest.Value(base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")))(t)
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(messageID + "." + at + "." + wakeup))
			if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); signatures[j] != want {
				t.Errorf("signature %d of call %d: %s, want %s", j, i, signatures[j], want)
			}
		}
		storetest.Lacks(t, h.Get("Authorization"), "vapid", "a webhook")
	}
}

// Without a secret no unsigned request is sent.
func TestWebhooksNeedASecret(t *testing.T) {
	s := newService(t, true)
	failure(t, send(t, s.sender(t, func(c *Config) { c.WebhookSecret = "" }), to(hook(s.URL))), true, "webhooks are off")
	storetest.Equal(t, s.connections(), 0, "a webhook was called without a signature")
}
