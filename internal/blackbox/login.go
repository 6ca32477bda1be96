package blackbox

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

func ClaimsOf(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("no token: %q", token)
	}
	text := storetest.Value(base64.RawURLEncoding.DecodeString(parts[1]))(t)
	var claims map[string]any
	storetest.Must(t, json.Unmarshal(text, &claims))
	return claims
}

// CheckFinal checks the last answer of a login and returns its token.
func CheckFinal(t *testing.T, f Flow, a Answer) string {
	t.Helper()
	got := ReadFinal(t, a)
	token := a.Header.Get("x-auth")
	if got.Action != "LOGIN" || got.ChallengeID != f.ChallengeID || !got.ExecResult.Success ||
		got.ExecResult.Data["sessionKey"] == "" || token == "" {
		t.Fatalf("the last answer: %s, x-auth %q", a, token)
	}
	claims := ClaimsOf(t, token)
	storetest.Same(t, slices.Sorted(maps.Keys(claims)),
		[]string{"amr", "aud", "auth_time", "exp", "iat", "iss", "jti", "roles", "sid", "sub", "sv", "tid"})
	if claims["sid"] != got.ExecResult.Data["sessionKey"] || claims["exp"].(float64)-claims["iat"].(float64) != 1800 {
		t.Errorf("x-auth claims %v", claims)
	}
	return token
}

// SameOutcome compares two answers with the outcome, from whichever endpoint.
func SameOutcome(t *testing.T, want, got Answer) {
	t.Helper()
	var a, b map[string]any
	want.Read(t, &a)
	got.Is(t, 200, "").Read(t, &b)
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	if string(x) != string(y) || want.Header.Get("x-auth") != got.Header.Get("x-auth") {
		t.Fatalf("two outcomes of one challenge:\n%s\n%s", want, got)
	}
}

// Polled is an outcome, with the time when it came.
type Polled struct {
	Answer
	Err error
	At  time.Time
}

// LongPoll requests the outcome and waits for it (D-2FA-19).
func LongPoll(n *Node, f Flow) <-chan Polled {
	got := make(chan Polled, 1)
	c := n.Client
	go func() {
		a, err := c.Try("GET", ResultPath, nil, Headers{"p-auth": f.PAuth, "Prefer": "wait=30"})
		got <- Polled{a, err, time.Now()}
	}()
	return got
}

var B64 = base64.RawURLEncoding
