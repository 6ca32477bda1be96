package access

import (
	"path/filepath"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// The header of a trusted proxy gives the country of a client, and the table gives it if the header is absent.
// Outside of development mode an unknown private address is blocked (D-GEO-01, D-WAF-11). The field
// countryName of a session is the country's name.
func TestCountryHeaderOfTrustedProxy(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Set("HTTP_TRUSTED_PROXIES=127.0.0.1", "HTTP_COUNTRY_HEADER=cf-ipcountry", "LIMITS_ENABLED=false",
			"GEO_ALLOW_PRIVATE=false").
			Start()
		demo := s.Seeded("user")
		at := blackbox.From(t, n, blackbox.Here)
		me := at.Session(demo)
		at.Changed("POST", "TR", demo, me)
		at.Login(demo).Is(t, 401, "INVALID_CREDENTIALS")
		login := func(headers blackbox.Headers) blackbox.Answer {
			t.Helper()
			return n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo), headers)
		}
		for _, value := range []string{"DE", "tr", "XX", "T1", "", "TR, DE"} {
			login(blackbox.Headers{"CF-IPCountry": value, "X-Forwarded-For": "10.0.0.9"}).Is(t, 401, "INVALID_CREDENTIALS")
		}
		login(blackbox.Headers{"CF-IPCountry": "US", "X-Forwarded-For": blackbox.Turkey}).Is(t, 401, "INVALID_CREDENTIALS")
		login(blackbox.Headers{"X-Forwarded-For": blackbox.Turkey}).Is(t, 200, "")
		f := blackbox.FlowOf(t, login(blackbox.Headers{"CF-IPCountry": "TR", "X-Forwarded-For": blackbox.States}))
		headers := blackbox.Headers{"CF-IPCountry": "TR", "p-auth": f.PAuth}
		done := n.Do(t, "POST", blackbox.CompletePath, blackbox.CompleteBody(f.Method(t, "SMS"), n.Code(t, demo, "SMS")),
			headers).
			Is(t, 200, "")
		var sessions []struct{ CountryName *string }
		n.Ok(t, "GET", blackbox.SessionsPath, nil,
			blackbox.Headers{"CF-IPCountry": "TR", "x-auth": done.Header.Get("x-auth"), "Accept-Language": "tr"}).
			Read(t, &sessions)
		if len(sessions) != 1 || sessions[0].CountryName == nil || *sessions[0].CountryName != "Türkiye" {
			t.Errorf("sessions %+v", sessions)
		}
		n.Stop()

		// The header of a peer that is no proxy is ignored.
		n = s.Start("HTTP_TRUSTED_PROXIES=192.0.2.1")
		n.Do(t, "POST", "/auth/login", blackbox.LoginBody(demo),
			blackbox.Headers{"CF-IPCountry": "TR", "X-Forwarded-For": blackbox.Turkey}).
			Is(t, 401, "INVALID_CREDENTIALS")
		n.Stop()

		// A configured file that does not exist stops the start.
		n = s.Begin("GEO_MMDB_FILE=" + filepath.Join(t.TempDir(), "none.mmdb"))
		if code := n.Wait(); code != 2 || !strings.Contains(n.Log(), "geo.mmdb_file") {
			t.Errorf("exit %d:\n%s", code, n.Log())
		}
	})
}

// Networks are added to and removed from a list, and the list is cleared. Each network has one spelling.
func TestAllowIPCommand(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		demo := s.Seeded("user")
		run := func(code int, want string, args ...string) {
			t.Helper()
			got := s.Command("", append([]string{"user", "allow-ip"}, args...)...)
			if got.Code != code || code == 0 && got.Out != want || code != 0 && !strings.Contains(got.ErrOut, want) {
				t.Errorf("%v: exit %d, %s%s, want %q", args, got.Code, got.Out, got.ErrOut, want)
			}
		}
		const everywhere = "no networks: all addresses are allowed\n"
		run(0, everywhere, demo.Mail)
		run(0, "192.0.2.0/24\n2001:db8::/32\n", demo.Mail, "192.0.2.99/24", "2001:DB8::/32")
		run(0, "192.0.2.0/24\n198.51.100.7/32\n2001:db8::/32\n", demo.Number(), "::ffff:198.51.100.7", "192.0.2.0/24")
		run(0, "192.0.2.0/24\n198.51.100.7/32\n2001:db8::/32\n", demo.Number())
		run(0, "198.51.100.7/32\n2001:db8::/32\n", demo.Number(), "192.0.2.1/24", "203.0.113.1", "--remove")
		run(0, "203.0.113.0/24\n", demo.Number(), "203.0.113.0/24", "--clear")
		run(0, everywhere, demo.Number(), "--clear")
		run(1, "neither an address nor a network", demo.Mail, "192.0.2.0/24", "somewhere")
		run(1, "--remove requires networks", demo.Mail, "--remove")
		run(1, "no account", "nobody", "192.0.2.1")
		if got := s.Count("audit WHERE action = 'USER_ALLOW_IP' AND actor_id = 'operator'"); got != 5 {
			t.Errorf("%d audit rows for 5 changes", got)
		}
		n.Stop()
	})
}
