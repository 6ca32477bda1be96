package access

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// Settings of the process reach the parts that they are for. A tenant and an issuer refuse the tokens of others, and a
// private address without a known country is blocked. A device shows the time of a login in the configured zone.
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
		n := s.Start("LANGUAGE_TIME_ZONE=Europe/Istanbul")
		demo, own := s.Seeded("user"), blackbox.Admin(t, s, n)
		n.Ok(t, "GET", blackbox.SessionsPath, nil, own)
		for _, who := range foreign {
			n.Do(t, "GET", blackbox.SessionsPath, nil, who).Is(t, 401, "UNAUTHENTICATED")
		}
		at := blackbox.From(t, n, blackbox.Here)
		session := at.Session(demo)
		p := blackbox.Enroll(t, n, demo, session["x-auth"], device.ES256, "")
		n.Login(t, demo)
		var pending []struct {
			Data struct {
				TS     int64
				Params struct{ DateTime string }
			}
		}
		p.Ongoing(t).Is(t, 200, "").Read(t, &pending)
		for _, push := range pending {
			there := time.UnixMilli(push.Data.TS).UTC().Add(3 * time.Hour)
			storetest.Equal(t, push.Data.Params.DateTime, there.Format("02.01.2006 15:04:05"))
		}
		storetest.Equal(t, len(pending), 1)
		f := blackbox.FlowOf(t, at.Ask("POST", "/user/geofilter/countries", `{"countryCode":"TR"}`, session))
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
