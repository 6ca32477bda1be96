package httpapi

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// tables says which tables of the database a slice of the domain keeps. A new slice or table is added here.
var tables = map[string][]string{
	"money/accounting":      nil, // reads the ledger
	"money/addressbook":     {"withdrawal_address", "withdrawal_book"},
	"people/bootstrap":      {"setup_link"},
	"people/agreement":      {"agreement", "agreement_acceptance"},
	"session/allowedip":     {"allowed_ip"},
	"factor/remembered":     {"remembered"},
	"office/announcement":   {"announcement"},
	"office/staffrequest":   {"deploy_request", "vpn_request"},
	"kit/audit":             {"audit", "audit_checkpoint", "audit_archive", "audit_left"},
	"factor/challenge":      {"attempt_budget", "challenge", "outcome", "push", "evidence"},
	"office/broadcast":      nil, // sends to many
	"kit/change":            {"change"},
	"kit/backup":            {"restore", "restore_withdrawal"},
	"office/contract":       {"contract", "contract_acceptance", "contract_before", "contract_detail"},
	"people/corporate":      {"corporate_application", "corporate_user", "application_search"},
	"permit/cronkey":        {"cron_key"},
	"money/currency":        {"currency", "currency_network", "currency_of_network", "pair_max_deposit"},
	"proof/device":          {"device", "device_proof", "passkey"},
	"people/dropdown":       {"dropdown_option"},
	"guard/firewall":        {"firewall_rule"},
	"office/foureyes":       {"four_eyes"},
	"session/geofilter":     {"geofilter_country"},
	"kit/idempotency":       {"idempotency"},
	"kit/job":               {"job", "job_item"},
	"kit/keyring":           {"keys"},
	"money/ledger":          {"account", "asset", "balance", "day", "hold", "transfer"},
	"money/blockage":        {"blockage"},
	"people/standing":       {"aml_finding", "user_standing"},
	"kit/integration":       {"integration_claim", "integration_event"},
	"money/level":           {"user_level"},
	"money/limit":           nil, // reads what transactions moved
	"factor/mfa":            {"mfa_action", "mfa_method", "mfa_policy"},
	"people/document":       {"document", "document_quota"},
	"people/inbox":          nil, // reads the queues of others
	"people/intake":         {"user_import", "user_import_refusal", "user_import_note"},
	"people/identity":       {"user_identity", "additional_info"},
	"people/kyc":            {"account_decision"},
	"delivery/notification": {"notification"},
	"delivery/outbox":       {"outbox"},
	"kit/parameter":         {"parameter"},
	"account/password":      {"password_guard", "hash_kind", "hash_census", "imported_hash"},
	"session/replace":       {"reset_token"},
	"money/policy":          {"money_rule", "money_rule_hit"},
	"money/provider":        {"provider_account", "provider_balance", "provider_snapshot"},
	"session/profile":       {"email_change"},
	"money/balance":         {"asset_day"},
	"money/rate":            {"exchange_pair", "exchange_rate"},
	"permit/resource":       {"resource", "resource_type", "role", "role_resource_permission", "role_resource_permission_log"},
	"permit/servicekey":     {"service_key"},
	"proof/issuer":          {"user_link"},
	"gate/gateway":          {"guard_grant", "guard_route", "guard_spelled"},
	"proof/evidence":        nil, // reads challenges
	"gate/errand":           {"errand"},
	"factor/intent":         nil, // the form of a document
	"kit/setup":             nil, // judges settings and parameters
	"session/session":       {"login_history", "refused_login", "session", "session_key"},
	"proof/totp":            {"recovery_code", "totp"},
	"money/transaction": {"coin_address", "deposit", "process", "withdrawal", "withdrawal_queue",
		"withdrawal_queue_next", "withdrawal_desk", "withdrawal_approval", "money_gate", "money_flow",
		"money_flow_kept"},
	"account/user": {"user_role", "users", "user_search"},
	"":             {"seed"}, // which parts of the first content were written
	"proof/stepup": nil,      // starts and answers challenges
}

// shared are packages of the domain that every section may use; the map would only get longer by them.
var shared = []string{"kit/admin", "kit/amount", "kit/blob", "kit/client", "kit/commit", "kit/fault", "kit/geo",
	"kit/id", "kit/pack", "kit/page", "kit/picture", "kit/turn", "guard/ratelimit"}

// docsPage is the viewer of the service that make run starts.
const docsPage = "http://localhost:8080/docs"

const mapHead = `# The map of endpoints

Generated from the table of endpoints by ` + "`make golden`" + `; a test compares it. It leads from an endpoint to the
code: find the endpoint below, take its section, and read the section's file, then its domain slice, then its rows. Each
operation links to its description and example in the viewer of ` + "`make run`" + `; [openapi.json](openapi.json) has
both too.

| what | where |
|---|---|
| the table of an endpoint and its handler | the section's file |
| the rules | ` + "`domain/<area>/<slice>`" + ` |
| the rows and queries | ` + "`persistence/<area>`" + `, the file with the slice's name |
| the owner that serves one challenge or user at a time | ` + "`actors`" + `, the file with the slice's name |
| how the slice joins the program | ` + "`cmd/app`" + ` |

`

// TestGoldenMap keeps docs/endpoints.md as it follows from the table of endpoints.
func TestGoldenMap(t *testing.T) {
	var out bytes.Buffer
	out.WriteString(mapHead + "## Sections\n\n| section | file | domain | tables |\n|---|---|---|---|\n")
	var order []string              // sections by their first endpoint
	listed := map[string][]string{} // the lines of a section, which several groups may share
	for _, group := range sections {
		file := tableFile(t, group)
		slicesOf := domainOf(t, path.Dir(file))
		var rows []string
		for _, slice := range slicesOf {
			rows = append(rows, tables[slice]...)
		}
		var names []string
		for _, e := range group.Endpoints() {
			if !slices.Contains(names, e.Section) {
				names = append(names, e.Section)
			}
			if listed[e.Section] == nil {
				order = append(order, e.Section)
			}
			listed[e.Section] = append(listed[e.Section],
				fmt.Sprintf("| `%s %s` | [%s](%s#%s) | %s | %s | %s |\n", e.Method, e.Path, e.ID, docsPage, e.ID, e.Summary,
					e.Audience, e.Section))
		}
		fmt.Fprintf(&out, "| %s | [%s](../http/%s) | %s | %s |\n", strings.Join(names, "; "), file, file,
			code(slicesOf), code(rows))
	}
	for _, name := range areaNames() {
		fmt.Fprintf(&out, "\n## Area: %s\n\n", name)
		out.WriteString("| endpoint | operation | what it does | for | section |\n|---|---|---|---|---|\n")
		for _, section := range order {
			if areaOf(section) == name {
				out.WriteString(strings.Join(listed[section], ""))
			}
		}
	}

	const golden = "../docs/endpoints.md"
	if flag.Lookup("update").Value.String() == "true" {
		storetest.Must(t, os.WriteFile(golden, out.Bytes(), 0o644))
		return
	}
	if have, err := os.ReadFile(golden); err != nil || !bytes.Equal(have, out.Bytes()) {
		t.Errorf("%s is not what the table of endpoints says (%v): run make golden", golden, err)
	}
}

// areaNames are the areas, in their order.
func areaNames() (names []string) {
	for _, t := range tags {
		if !slices.Contains(names, t.Area) {
			names = append(names, t.Area)
		}
	}
	return names
}

// areaOf is the area of a section.
func areaOf(section string) string {
	for _, t := range tags {
		if slices.Contains(t.Sections, section) {
			return t.Area
		}
	}
	return ""
}

// Every table of the migrations belongs to one slice that is there.
func TestTablesHaveSlices(t *testing.T) {
	owner := map[string]string{}
	for slice, names := range tables {
		if info, err := os.Stat(filepath.Join("../domain", slice)); err != nil || !info.IsDir() {
			t.Errorf("tables names the slice %q: %v", slice, err)
		}
		for _, name := range names {
			if other, twice := owner[name]; twice {
				t.Errorf("the table %s belongs to %s and to %s", name, other, slice)
			}
			owner[name] = slice
		}
	}
	create := regexp.MustCompile(`(?i)create table (?:if not exists )?(\w+)`)
	files, err := filepath.Glob("../persistence/migrations/[sb]*/*.sql") // of SQLite, and of both
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	made := map[string]bool{}
	for _, file := range files {
		text := storetest.Value(os.ReadFile(file))(t)
		for _, found := range create.FindAllStringSubmatch(string(text), -1) {
			made[found[1]] = true
			if _, known := owner[found[1]]; !known {
				t.Errorf("%s makes the table %s, which no slice has: add it to tables", file, found[1])
			}
		}
	}
	for name := range owner {
		if !made[name] {
			t.Errorf("no migration makes the table %s", name)
		}
	}
}

// code sets names as code, in their order.
func code(names []string) string {
	if len(names) == 0 {
		return "–"
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

// tableFile is the file in which a group lists its endpoints, below this folder.
func tableFile(t *testing.T, group rest.Group) string {
	t.Helper()
	kind := reflect.TypeOf(group)
	folder := strings.TrimPrefix(kind.PkgPath(), "castellan/http/")
	for name, file := range parse(t, folder) {
		for _, one := range file.Decls {
			f, ok := one.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Endpoints" {
				continue
			}
			if of, ok := f.Recv.List[0].Type.(*ast.Ident); ok && of.Name == kind.Name() {
				return path.Join(folder, name)
			}
		}
	}
	t.Fatalf("no file of http/%s lists the endpoints of %s", folder, kind)
	return ""
}

// domainOf is the slices of the domain that a section's package uses.
func domainOf(t *testing.T, folder string) []string {
	t.Helper()
	found := map[string]bool{}
	for _, file := range parse(t, folder) {
		for _, one := range file.Imports {
			slice, ok := strings.CutPrefix(strings.Trim(one.Path.Value, `"`), "castellan/domain/")
			if ok && !slices.Contains(shared, slice) {
				found[slice] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// parse reads the Go files of a folder that are no tests, by their bare names.
func parse(t *testing.T, folder string) map[string]*ast.File {
	t.Helper()
	names := storetest.Value(filepath.Glob(filepath.Join(folder, "*.go")))(t)
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := storetest.Value(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		files[filepath.Base(name)] = file
	}
	return files
}
