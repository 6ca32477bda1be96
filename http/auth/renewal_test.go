package auth_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
)

// overdue is an issuer of tokens for "late": their time is over. Those for "key" are of a session with a key, and those
// for "ended" of one that has ended.
type overdue struct{}

func (overdue) Verify(class token.Class, raw string) (token.Claims, error) {
	c, err := issuer{}.Verify(class, raw)
	if err == nil && strings.Contains(c.Subject, "late") {
		return token.Claims{}, fault.New(fault.TokenExpired, "over")
	}
	return c, err
}

func (overdue) ended(class token.Class, raw string) (token.Claims, error) {
	c, err := issuer{}.Verify(class, raw)
	if strings.Contains(c.Subject, "key") {
		c.Thumbprint = "t"
	}
	if strings.Contains(c.Subject, "forged") {
		return token.Claims{}, fault.New(fault.Unauthenticated, "forged")
	}
	return c, err
}

// A token without a request is never accepted after its time.
func TestSessionIsNoRenewal(t *testing.T) {
	g := auth.Guards{Tokens: overdue{}, Ended: overdue{}.ended, Feed: &changetest.Feed{},
		Live: func(string, string, int64) bool { return true }}
	_, err := g.Session(t.Context(), "x-auth:late-key")
	storetest.Wants(t, err, fault.TokenExpired)
	c, err := g.Session(t.Context(), "x-auth:u1")
	if err != nil || c.Subject != "u1" {
		t.Errorf("%+v, %v", c, err)
	}
}

// A token whose time is over is accepted for a renewal only, and only if its session has a key and has not ended.
func TestRenewalAcceptsOverdueTokens(t *testing.T) {
	g := auth.Guards{Tokens: overdue{}, Ended: overdue{}.ended, Feed: &changetest.Feed{}, Tenant: "t1",
		Live: func(userID, _ string, _ int64) bool { return !strings.Contains(userID, "ended") }}
	var who rest.Caller
	run := func(_ context.Context, c rest.Caller, _ rest.None) (rest.None, error) {
		who = c
		return rest.None{}, nil
	}
	s, err := edge.New(edge.Options{Guards: g.Table(),
		Authorize: func(context.Context, rest.Caller, *rest.Endpoint) error { return nil }}, []rest.Endpoint{
		rest.Get("/x", "", rest.User, run), rest.Get("/renew", "", rest.User, run).Renews()})
	storetest.Must(t, err)
	for request, want := range map[string]string{
		"/x plain": "", "/x late-key": "TOKEN_EXPIRED", "/x late": "TOKEN_EXPIRED", "/x ended": "TOKEN_REVOKED",
		"/renew plain": "", "/renew late-key": "", "/renew late": "TOKEN_EXPIRED",
		"/renew late-key-ended": "TOKEN_REVOKED", "/renew ended": "TOKEN_REVOKED",
		"/renew late-key-forged": "UNAUTHENTICATED",
	} {
		path, name, _ := strings.Cut(request, " ")
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("x-auth", "x-auth:"+name)
		r.Header.Set("dpop", "a proof")
		who = rest.Caller{}
		a, err := s.App.Test(r)
		storetest.Must(t, err)
		body := make([]byte, 4096)
		n, _ := a.Body.Read(body)
		if text := string(body[:n]); want == "" && a.StatusCode != 200 || want != "" && !strings.Contains(text, want) {
			t.Errorf("%s: %d %s, want %q", request, a.StatusCode, text, want)
			continue
		}
		if renewing := who.Renewing != nil; renewing != (want == "" && path == "/renew") {
			t.Errorf("%s: renewing %t", request, renewing)
		}
		if want == "" && (who.UserID != name || who.Renewing != nil && (who.Renewing.XAuth != "x-auth:"+name ||
			who.Renewing.Claims.Subject != name)) {
			t.Errorf("%s: %+v", request, who)
		}
		if want == "" && (who.KeyToken != "") != (path == "/x") {
			t.Errorf("%s: the token of the proof is %q", request, who.KeyToken)
		}
	}
}
