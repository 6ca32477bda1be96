package httpapi_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/rest"
)

var update = flag.Bool("update", false, "write the golden files")

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
	b := storetest.Value(os.ReadFile("testdata/endpoints.tsv"))(t)
	r := csv.NewReader(bytes.NewReader(b))
	r.Comma, r.LazyQuotes = '\t', true
	rows := storetest.Value(r.ReadAll())(t)
	out := map[string]line{}
	for _, row := range rows {
		out[row[0]+" "+row[1]] = line{row[2], row[3]}
	}
	storetest.Equal(t, len(out), 127, "endpoints in the interface")
	return out
}

// The served endpoints and the interface agree in both directions.
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
		case known && l.section != e.Section:
			t.Errorf("%s: section %q, the interface says %q", e.Key(), e.Section, l.section)
		case known && strings.HasSuffix(l.credential, "+2fa") != (e.Starts != ""):
			t.Errorf("%s: starts a challenge: %v, the interface says %q", e.Key(), e.Starts != "", l.credential)
		}
	}
	for key := range listed {
		if _, ok := have[key]; !ok {
			t.Errorf("%s is not served", key)
		}
	}
}

// The map of endpoints lists each endpoint once, under the section that it has in the interface or as an extension.
func TestMapListsEndpointsUnderTheirSection(t *testing.T) {
	text := storetest.Value(os.ReadFile("../docs/endpoints.md"))(t)
	want := map[string]string{}
	for key, l := range table(t) {
		want[key] = l.section
	}
	for _, e := range httpapi.Endpoints() {
		if e.Extension {
			want[e.Key()] = e.Section
		}
	}
	have := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if row, ok := strings.CutPrefix(line, "| `"); ok {
			key, _, _ := strings.Cut(row, "`")
			storetest.Equal(t, have[key], "", key, "is listed twice")
			cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(row), " |"), " | ")
			have[key] = cells[len(cells)-1]
		}
	}
	for key, section := range want {
		storetest.Equal(t, have[key], section, key, "is listed under")
	}
	storetest.Equal(t, len(have), len(want), "the map lists", "endpoints")
}

// D-GEN-12 and the page for operators name the three body limits of the code, and no endpoint has another limit.
func TestDocumentsNameTheBodyLimits(t *testing.T) {
	limits := map[int]string{rest.DefaultBodyLimit: "", rest.LargeBody: "", rest.FileBody: ""}
	for bytes := range limits {
		limits[bytes] = fmt.Sprintf("%d KiB", bytes>>10)
		if bytes >= 1<<20 {
			limits[bytes] = fmt.Sprintf("%d MiB", bytes>>20)
		}
	}
	for _, place := range [][3]string{
		{"../docs/decisions/gen.md", "## D-GEN-12:", "\n## "},
		{"../docs/operations/size.md", "**Memory of requests.**", "\n\n"},
	} {
		file, start, end := place[0], place[1], place[2]
		text := storetest.Value(os.ReadFile(file))(t)
		_, part, _ := strings.Cut(string(text), start)
		part, _, _ = strings.Cut(part, end)
		for _, limit := range limits {
			storetest.Contains(t, part, limit, file, start)
		}
	}
	for _, e := range httpapi.Endpoints() {
		if _, known := limits[e.BodyLimit]; !known && e.BodyLimit != 0 {
			t.Errorf("%s has a body limit of %d bytes, which the documents do not name", e.Key(), e.BodyLimit)
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
