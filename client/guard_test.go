package client

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A client that names itself accepts callbacks for its own service alone.
func TestCallbackNamesItsReceiver(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kid":"k1","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	defer s.Close()
	anonymous, err := New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client       *Client
		body, header string
		accepted     bool
	}{
		"its own":                {anonymous.Service("shop.secret"), `{"aud":"shop"}`, "shop", true},
		"sent by an older node":  {anonymous.Service("shop.secret"), `{"aud":"shop"}`, "", true},
		"another service's":      {anonymous.Service("bank.secret"), `{"aud":"shop"}`, "bank", false},
		"another header":         {anonymous.Service("shop.secret"), `{"aud":"shop"}`, "bank", false},
		"without a receiver":     {anonymous.Service("shop.secret"), `{}`, "shop", false},
		"a client without a key": {anonymous, `{}`, "", true},
	} {
		h := http.Header{}
		stamp := fmt.Sprint(time.Now().Unix())
		h.Set("webhook-id", "m1")
		h.Set("webhook-timestamp", stamp)
		h.Set("webhook-key-id", "k1")
		h.Set("webhook-signature", "v1a,"+base64.StdEncoding.EncodeToString(
			ed25519.Sign(private, []byte("m1."+stamp+"."+c.body))))
		if c.header != "" {
			h.Set("webhook-aud", c.header)
		}
		e, err := c.client.Callback(t.Context(), h, []byte(c.body))
		if (err == nil) != c.accepted || err != nil && e.Service != "" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}
