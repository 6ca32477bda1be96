package httpapi_test

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

var jwt = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+`)

// Only a login and the renewal by a key give an x-auth that ends later than the one that was sent (D-AUTH-15). All
// endpoints are called, and every token in their answers is read.
func TestOnlyLoginAndRenewalExtendSessions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := start(t, dir, databases["sqlite"](t))
	refreshes := func(e rest.Endpoint) bool {
		return e.Credential.TakesSession() && !e.Renewal && slices.Contains(e.Tokens, "x-auth")
	}
	all := l.tell(func(e rest.Endpoint, request string) string {
		if refreshes(e) { // a new token would end a second later
			time.Sleep(1100 * time.Millisecond)
		}
		return request
	})
	gave := map[string]bool{}
	for _, x := range all {
		texts := []string{string(x.answer.Body)}
		for _, values := range x.answer.Header {
			texts = append(texts, values...)
		}
		for _, text := range texts {
			for _, raw := range jwt.FindAllString(text, -1) {
				got := claims(t, raw)
				if got["aud"] != "x-auth" {
					continue
				}
				if gave[x.Key()] = true; x.Renewal || !x.Credential.TakesSession() {
					continue // the completed challenge was a login
				}
				sent := claims(t, x.headers["x-auth"])
				if !slices.Contains(x.Tokens, "x-auth") || got["exp"].(float64) > sent["exp"].(float64) ||
					got["sid"] != sent["sid"] || got["auth_time"] != sent["auth_time"] {
					t.Errorf("%s gave %v for %v", x.Key(), got, sent)
				}
			}
		}
	}
	for _, want := range []string{"POST /auth/2fa/challenge/complete", "GET /auth/2fa/challenge/result",
		"POST /auth/sessions/renew", "POST /user/confirm-user-identity"} {
		if !gave[want] {
			t.Errorf("%s gave no token", want)
		}
	}
}

// claims are those of a token.
func claims(t testing.TB, raw string) (c map[string]any) {
	t.Helper()
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		t.Fatalf("not a token: %q", raw)
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	storetest.Must(t, err)
	storetest.Must(t, json.Unmarshal(b, &c))
	return c
}
