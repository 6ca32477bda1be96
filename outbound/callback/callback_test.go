package callback_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
	"castellan/outbound/callback"
)

// A message is posted once for each attempt and signed with the key of the attempt. Only 410 ends the attempts, and no
// redirect is followed.
func TestCallback(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	storetest.Must(t, err)
	status, calls, aud := 200, 0, "shop"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		body, _ := io.ReadAll(r.Body)
		signature, found := strings.CutPrefix(r.Header.Get("webhook-signature"), "v1a,")
		raw, err := base64.StdEncoding.DecodeString(signature)
		if !found || err != nil || r.Method != "POST" || r.Header.Get("webhook-key-id") != "kid" ||
			r.Header.Get("webhook-aud") != aud || r.Header.Get("content-type") != "application/json" ||
			!ed25519.Verify(public, []byte("m1.1700000000."+string(body)), raw) {
			t.Errorf("%s %v %s", r.Method, r.Header, body)
		}
		w.Header().Set("location", "/elsewhere")
		w.WriteHeader(status)
	}))
	defer s.Close()
	sender := callback.New(func(time.Time) (string, ed25519.PrivateKey) { return "kid", private },
		func() time.Time { return time.Unix(1_700_000_000, 0) })
	send := func(m message.Rendered) error { return sender.Send(context.Background(), "m1", m) }
	m := message.Rendered{Channel: message.Callback, To: s.URL + "/in",
		Text: `{"aud":"shop","type":"challenge.completed"}`}
	for _, c := range []struct {
		status           int
		fails, permanent bool
	}{{200, false, false}, {204, false, false}, {302, true, false}, {400, true, false}, {410, true, true},
		{503, true, false}} {
		status = c.status
		if err := send(m); (err != nil) != c.fails || message.IsPermanent(err) != c.permanent {
			t.Errorf("%d: %v", c.status, err)
		}
	}
	status, aud, m.Text = 200, "", `{"type":"challenge.completed"}` // of an earlier version
	storetest.Is(t, send(m), nil)
	unspecified := m
	unspecified.To = strings.Replace(m.To, "127.0.0.1", "0.0.0.0", 1)
	if err := send(unspecified); err == nil { // the test of fetch.Guard has further addresses
		t.Errorf("%s was called", unspecified.To)
	}
	storetest.Equal(t, calls, 7, "calls for 7 attempts")
	s.Close()
	if err := send(m); err == nil || message.IsPermanent(err) || strings.Contains(err.Error(), s.URL) {
		t.Errorf("a service that is away: %v", err)
	}
	for _, bad := range []message.Rendered{{Channel: message.Push, To: s.URL}, {Channel: message.Callback, To: "\n"}} {
		storetest.Equal(t, message.IsPermanent(send(bad)), true, bad)
	}
	for to, want := range map[string]string{"https://Shop.example:8443/in": "shop.example:8443", "\n": ""} {
		storetest.Equal(t, callback.Host(to), want, to, "is at")
	}
}
