package push

import "testing"

// FuzzAddress checks that a called address is http or https with a host, without a user and a fragment. The
// permitted networks are checked on connecting (SEC-37).
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"https://example.com/a", "https://a@b/", "https:///a", "https://[::1%25x]/",
		"gopher://a", "https://a#", "HTTPS://A:0/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parseAddress(raw)
		if err == nil && (u.Hostname() == "" || u.User != nil || u.Fragment != "" ||
			u.Scheme != "https" && u.Scheme != "http") {
			t.Fatalf("%q is called as %v", raw, u)
		}
		_, _ = parseTarget(raw)
		if w, err := parseWakeup(raw); err == nil {
			if again, err := parseWakeup(string(w.json())); err != nil || string(again.json()) != string(w.json()) {
				t.Fatalf("%q: %s and %s, %v", raw, w.json(), again.json(), err)
			}
		}
	})
}
