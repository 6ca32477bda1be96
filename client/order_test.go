package client

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A signed order is accepted for its withdrawal and its service, unaltered and in time.
func TestVerifyOrder(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text := func(v any) []byte {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	encode := base64.RawURLEncoding.EncodeToString
	set := text(map[string]any{"keys": []map[string]string{{"kid": "k", "x": encode(public)}}})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }))
	defer s.Close()
	c, err := New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c = c.Service("wallet.secret")
	good := Order{Account: "u", Address: "a", Amount: "1", Currency: "XRP", ExternalID: "<x>", Fee: "0", Network: "XRP",
		Tag: "5"}
	digest := sha256.Sum256(text(good))
	sign := func(head map[string]string, edit func(claims map[string]any)) string {
		claims := map[string]any{"iss": "castellan", "aud": "wallet", "jti": "w1", "exp": time.Now().Add(time.Minute).Unix(),
			"order": good, "digest": encode(digest[:])}
		edit(claims)
		signed := encode(text(head)) + "." + encode(text(claims))
		return signed + "." + encode(ed25519.Sign(private, []byte(signed)))
	}
	head := map[string]string{"alg": "EdDSA", "kid": "k", "typ": "withdrawal-order+jwt"}
	as := func(name, value string) map[string]string {
		other := map[string]string{"alg": head["alg"], "kid": head["kid"], "typ": head["typ"]}
		other[name] = value
		return other
	}
	same := func(map[string]any) {}
	order := sign(head, same)
	if o, err := c.VerifyOrder(t.Context(), "w1", order); err != nil || o != good {
		t.Errorf("%+v, %v", o, err)
	}
	for name, refused := range map[string]string{
		"another type":       sign(as("typ", "guard-grant+jwt"), same),
		"another algorithm":  sign(as("alg", "none"), same),
		"an unknown key":     sign(as("kid", "other"), same),
		"another withdrawal": sign(head, func(c map[string]any) { c["jti"] = "w2" }),
		"another service":    sign(head, func(c map[string]any) { c["aud"] = "shop" }),
		"expired":            sign(head, func(c map[string]any) { c["exp"] = time.Now().Add(-2 * time.Minute).Unix() }),
		"another order":      sign(head, func(c map[string]any) { c["order"] = Order{Account: "eve"} }),
		"another signature":  order[:len(order)-8] + "AAAAAAAA",
		"no order":           "",
	} {
		if o, err := c.VerifyOrder(t.Context(), "w1", refused); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
