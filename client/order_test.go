package client

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/token"
)

// A signed order is accepted for its withdrawal and its service, unaltered and in time.
func TestVerifyOrder(t *testing.T) {
	ring := keyringtest.Ring(t, time.Now)
	issuer := token.NewIssuer(ring, "castellan", "t", time.Now, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(ring.JWKS()) }))
	defer s.Close()
	c, err := New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c = c.Service("wallet.secret")
	type claims struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		ID       string `json:"jti"`
		Expires  int64  `json:"exp"`
		Order    Order  `json:"order"`
		Digest   string `json:"digest"`
	}
	good := func() claims {
		return claims{"castellan", "wallet", "w1", time.Now().Add(time.Minute).Unix(), Order{Account: "u", Address: "a",
			Amount: "1", Currency: "XRP", ExternalID: "<x>", Fee: "0", Network: "XRP", Tag: "5"},
			"zA86pJC9vusyhdcNZs2udHW3rJbT3SWlJhVtmwbd8J4"}
	}
	sign := func(typ string, edit func(*claims)) string {
		t.Helper()
		one := good()
		edit(&one)
		text, err := issuer.SignStatement(typ, one)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const typ = "withdrawal-order+jwt"
	text := sign(typ, func(*claims) {})
	if o, err := c.VerifyOrder(t.Context(), "w1", text); err != nil || o != good().Order {
		t.Errorf("%+v, %v", o, err)
	}
	for name, refused := range map[string]string{
		"another type":       sign("guard-grant+jwt", func(*claims) {}),
		"another withdrawal": sign(typ, func(c *claims) { c.ID = "w2" }),
		"another service":    sign(typ, func(c *claims) { c.Audience = "shop" }),
		"expired":            sign(typ, func(c *claims) { c.Expires = time.Now().Add(-2 * time.Minute).Unix() }),
		"another digest":     sign(typ, func(c *claims) { c.Order.Tag = "6" }),
		"another signature":  text[:len(text)-8] + "AAAAAAAA",
		"no order":           "",
	} {
		if o, err := c.VerifyOrder(t.Context(), "w1", refused); err == nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
