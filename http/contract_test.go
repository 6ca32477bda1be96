package httpapi_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"os"
	"strings"
	"testing"

	httpapi "castellan/http"
	"castellan/http/rest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// served are the sections of the interface that this version serves whole,
// but for what is listed in later.
var served = map[string]bool{
	"4.1 2FA": true, "4.2 TOTP": true, "4.3 Password": true, "4.4 MFA administration": true, "4.5 Firewall rules": true,
	"4.6 Resource registry": true, "4.7 Currency and assets": true, "4.8 Contracts": true,
	"4.10 Admin operations": true, "4.11 Documents": true,
	"4.13 Deploy and VPN requests": true, "4.18 Withdrawal address book": true,
	"4.19 Announcements": true, "4.21 Geographic filter": true,
}

// ahead are endpoints that are served before the rest of their section.
var ahead = map[string]bool{
	"GET /user/user-profile":      true,
	"GET /dropdown/get-parameter": true,
	"GET /admin/levels-info":      true,
	"GET /admin/get-country-list": true,

	"GET /admin/list-users":                       true,
	"GET /admin/get-active-users":                 true,
	"GET /admin/login-history":                    true,
	"GET /admin/login-history-v2":                 true,
	"GET /admin/get-users-by-register-date":       true,
	"GET /admin/get-user-counts-by-register-date": true,
	"GET /user/total-count-by-status":             true,
	"GET /user/last-month-user-count-day-by-day":  true,
}

// later are endpoints of a served section that come with another section.
var later = map[string]string{}

// credentials spells each credential of the table as the interface does.
var credentials = map[string]rest.Credential{
	"none": rest.NoAuth, "x-auth": rest.User, "x-auth-tenant": rest.Tenant, "p-auth": rest.PAuth,
	"p-auth-or-device-signature": rest.PAuthOrDevice,
	"ot-auth":                    rest.OTAuth, "public+device-signature": rest.Device,
	"x-auth-tenant-or-cron": rest.TenantOrCron,
	"x-auth+2fa":            rest.User, "public+2fa": rest.NoAuth,
}

type line struct{ section, credential string }

// table reads the interface's own list of endpoints.
func table(t *testing.T) map[string]line {
	t.Helper()
	b, err := os.ReadFile("testdata/endpoints.tsv")
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]line{}
	for _, row := range rows {
		out[row[0]+" "+row[1]] = line{row[2], row[3]}
	}
	if len(out) != 127 {
		t.Fatalf("the interface lists %d endpoints, want 127", len(out))
	}
	return out
}

func init() { ahead["POST /admin/transaction/adjust-balance"] = true }

// What is served and what the interface lists agree in both directions.
func TestTableEqualsTheInterface(t *testing.T) {
	listed, have := table(t), map[string]rest.Endpoint{}
	for _, e := range httpapi.Endpoints() {
		have[e.Key()] = e
		l, known := listed[e.Key()]
		switch {
		case known == e.Extension:
			t.Errorf("%s: in the interface %v, marked as an extension %v", e.Key(), known, e.Extension)
		case known && credentials[l.credential] != e.Credential:
			t.Errorf("%s: credential %q, the interface says %q", e.Key(), e.Credential, l.credential)
		case known && served[l.section] == ahead[e.Key()]:
			t.Errorf("%s: its section is served: %v, served ahead of it: %v", e.Key(), served[l.section], ahead[e.Key()])
		case known && l.section != e.Section:
			t.Errorf("%s: section %q, the interface says %q", e.Key(), e.Section, l.section)
		case known && strings.HasSuffix(l.credential, "+2fa") != (e.Starts != ""):
			t.Errorf("%s: starts a challenge: %v, the interface says %q", e.Key(), e.Starts != "", l.credential)
		}
	}
	for key, l := range listed {
		if _, ok := have[key]; !ok && served[l.section] && later[key] == "" {
			t.Errorf("%s is not served", key)
		}
	}
	for key := range ahead {
		if _, ok := have[key]; !ok {
			t.Errorf("%s is not served", key)
		}
	}
	for key := range later {
		if _, ok := have[key]; ok {
			t.Errorf("%s is served: take it off the list", key)
		}
	}
}

// Every endpoint says what it answers with and how it may refuse.
func TestEveryEndpointIsDescribed(t *testing.T) {
	for _, e := range httpapi.Endpoints() {
		if e.Summary == "" || e.Section == "" || e.Audience == "" {
			t.Errorf("%s: summary %q, section %q, audience %q", e.Key(), e.Summary, e.Section, e.Audience)
		}
		if e.Credential != rest.NoAuth && e.Audience == rest.Public {
			t.Errorf("%s asks for a credential and is public", e.Key())
		}
		if strings.HasPrefix(e.Path, "/admin/") && e.Audience != rest.Admin {
			t.Errorf("%s is meant for %q", e.Key(), e.Audience)
		}
	}
}

func TestGoldenOpenAPI(t *testing.T) {
	const file = "../docs/openapi.json"
	got, err := httpapi.OpenAPI("1", "")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/openapi.json is not what the table says (make golden writes it anew): %v", err)
	}
}
