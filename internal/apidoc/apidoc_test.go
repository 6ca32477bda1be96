package apidoc

import (
	"net/http"
	"testing"
)

// Every answer that differs from the document is found, whatever the error.
func TestCheck(t *testing.T) {
	with := func(kind string, more ...string) http.Header {
		h := http.Header{"Content-Type": {kind}}
		for _, name := range more {
			h.Set(name, "1")
		}
		return h
	}
	of := func(code string) string {
		return `{"type":"urn:x","title":"x","status":401,"code":"` + code + `","detail":"x","message":"x","requestId":"1"}`
	}
	for name, c := range map[string]struct {
		method, path string
		status       int
		header       http.Header
		body         string
		fits         bool
	}{
		"a list":               {"GET", "/auth/sessions?x=1", 200, with("application/json"), `[]`, true},
		"another type":         {"GET", "/auth/sessions", 200, with("application/json"), `{}`, false},
		"a missing field":      {"GET", "/auth/sessions", 200, with("application/json"), `[{"sessionId":"x"}]`, false},
		"another media type":   {"GET", "/auth/sessions", 200, with("text/plain"), `[]`, false},
		"an undeclared header": {"GET", "/auth/sessions", 200, with("application/json", "x-total-count"), `[]`, false},
		"a refusal":            {"GET", "/auth/sessions", 401, with("application/problem+json"), of("TOKEN_REVOKED"), true},
		"an undeclared code": {"GET", "/auth/sessions", 401, with("application/problem+json"), of("INVALID_CREDENTIALS"),
			false},
		"an undeclared status": {"GET", "/auth/sessions", 404, with("application/problem+json"), of("RECORD_NOT_FOUND"),
			false},
		"a refusal of HTTP": {"GET", "/auth/sessions", 431, with("application/problem+json"), of("HEADERS_TOO_LARGE"),
			true},
		"a head":         {"HEAD", "/auth/sessions", 200, with("application/json"), ``, true},
		"a path outside": {"GET", "/health/live", 200, with("application/json"), `{}`, true},
		"a configured guard": {"GET", "/auth/sessions", 200, with("application/json", "p-auth"), `{"challenge":{}}`,
			true},
		"no answer of a starter": {"POST", "/auth/login", 200, with("application/json", "p-auth"), `{"challenge":{}}`, false},
	} {
		if err := Published().Check(c.method, c.path, c.status, c.header, []byte(c.body)); (err == nil) != c.fits {
			t.Errorf("%s: %v", name, err)
		}
	}
}
