package access

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Settings of the process reach the parts that they are for. A tenant and an issuer refuse the tokens of others, and a
// private address without a known country is blocked.
func TestSettingsReachTheirParts(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		var foreign []blackbox.Headers
		for _, setting := range []string{"TENANT_ID=other", "TOKENS_ISSUER=elsewhere"} {
			n := s.Start(setting)
			who := blackbox.Admin(t, s, n)
			n.Ok(t, "GET", blackbox.SessionsPath, nil, who)
			foreign = append(foreign, who)
			n.Stop()
		}
		n := s.Start()
		demo, own := s.Seeded("user"), blackbox.Admin(t, s, n)
		n.Ok(t, "GET", blackbox.SessionsPath, nil, own)
		for _, who := range foreign {
			n.Do(t, "GET", blackbox.SessionsPath, nil, who).Is(t, 401, "UNAUTHENTICATED")
		}
		at := blackbox.From(t, n, blackbox.Here)
		f := blackbox.FlowOf(t, at.Ask("POST", "/user/geofilter/countries", `{"countryCode":"TR"}`, at.Session(demo)))
		at.Complete(f, f.Method(t, "SMS"), n.Code(t, demo, "SMS")).Is(t, 200, "")
		at.Login(demo).Is(t, 200, "")
		n.Stop()
		n = s.Start("GEO_ALLOW_PRIVATE=false")
		blackbox.From(t, n, blackbox.Here).Login(demo).Is(t, 401, "INVALID_CREDENTIALS")
	})
}

// A counter that does not rise is reported, and refused unless the settings say otherwise.
func TestPasskeyCounter(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		who := blackbox.Admin(t, s, n)
		blackbox.Policy(t, n, who, "LOGIN", 1, `[["PUSH"],["SMS"]]`, `,"force":true,"passkeyAlone":true`)
		p := blackbox.EnrollPasskey(t, n, demo, x)
		p.Count = 5
		p.LogIn(t).Is(t, 200, "")
		p.LogIn(t).Is(t, 200, "")
		p.Count = 3
		p.LogIn(t).Is(t, 401, "INVALID_CREDENTIALS")
		rows := string(n.Ok(t, "GET", "/admin/audit?action=PASSKEY_COUNTER", nil, who).Body)
		if !strings.Contains(rows, p.ID) || !strings.Contains(rows, "the counter is 4 after 7") {
			t.Errorf("audit: %s", rows)
		}
		n.Stop()
		n = s.Start("WEBAUTHN_COUNTER=report")
		p.N, p.Origin = n, n.URL
		p.LogIn(t).Is(t, 200, "")
		p.Count = 20
		p.LogIn(t).Is(t, 200, "")
	})
}
