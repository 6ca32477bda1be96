package webhook_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/kit/webhook"
)

func secretOf(bytes int) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("k", bytes)))
}

// A secret has its prefix and 24 to 64 bytes; one invalid secret rejects all.
func TestParseSecrets(t *testing.T) {
	for _, c := range []struct {
		text string
		want int // secrets; -1: rejected
	}{{"", 0}, {secretOf(24), 1}, {secretOf(64), 1}, {secretOf(23), -1}, {secretOf(65), -1},
		{strings.TrimRight(secretOf(25), "="), 1},
		{secretOf(32) + "  " + secretOf(40), 2}, {secretOf(32) + " " + secretOf(5), -1},
		{strings.TrimPrefix(secretOf(32), "whsec_"), -1}, {"whsec_" + strings.Repeat("*", 40), -1}, {"whsec_", -1}} {
		secrets, err := webhook.ParseSecrets(c.text)
		if c.want < 0 {
			if err == nil || secrets != nil || len(c.text) > len("whsec_") && strings.Contains(err.Error(), c.text) {
				t.Errorf("%q: %d secrets, %v", c.text, len(secrets), err)
			}
		} else if err != nil || len(secrets) != c.want {
			t.Errorf("%q: %d secrets, %v", c.text, len(secrets), err)
		}
	}
}

// The example of Standard Webhooks.
func TestSign(t *testing.T) {
	secrets := storetest.Value(webhook.ParseSecrets("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw " + secretOf(24)))(t)
	h := http.Header{}
	secrets.Sign(h, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	first, second, _ := strings.Cut(h.Get("webhook-signature"), " ")
	if first != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" || second == first ||
		!strings.HasPrefix(second, "v1,") ||
		h.Get("webhook-id") != "msg_p5jXN8AQM9LWM0D4loKWxJek" || h.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("%v", h)
	}
}

// A public signature covers id, time and body, and verifies with the public key alone.
func TestSignPublic(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	storetest.Must(t, err)
	h := http.Header{}
	webhook.SignPublic(h, "k1", private, "m1", time.Unix(1614265330, 0), []byte(`{"a":1}`))
	signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h.Get("webhook-signature"), "v1a,"))
	if err != nil || h.Get("webhook-key-id") != "k1" || h.Get("webhook-id") != "m1" ||
		h.Get("webhook-timestamp") != "1614265330" ||
		!ed25519.Verify(public, []byte(`m1.1614265330.{"a":1}`), signature) {
		t.Errorf("%v, %v", h, err)
	}
}
