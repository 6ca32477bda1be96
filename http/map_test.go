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

	"castellan/http/rest"
)

// tables says which tables of the database a slice of the domain keeps. A new slice or table is added here.
var tables = map[string][]string{
	"accounting":       nil, // reads the ledger
	"addressbook":      {"withdrawal_address", "withdrawal_book"},
	"agreement":        {"agreement", "agreement_acceptance"},
	"allowedip":        {"allowed_ip"},
	"announcement":     {"announcement"},
	"approval":         {"deploy_request", "vpn_request"},
	"audit":            {"audit", "audit_checkpoint", "audit_archive", "audit_left"},
	"challenge":        {"attempt_budget", "challenge", "outcome", "push"},
	"broadcast":        nil, // sends to many
	"change":           {"change"},
	"contract":         {"contract", "contract_acceptance", "contract_detail"},
	"corporate":        {"corporate_application", "corporate_user"},
	"cronkey":          {"cron_key"},
	"currency":         {"currency", "currency_network", "currency_of_network"},
	"device":           {"device", "device_proof"},
	"dropdown":         {"dropdown_option"},
	"firewall":         {"firewall_rule"},
	"foureyes":         {"four_eyes"},
	"geofilter":        {"geofilter_country"},
	"idempotency":      {"idempotency"},
	"job":              {"job", "job_item"},
	"keyring":          {"keys"},
	"ledger":           {"account", "asset", "balance", "day", "hold", "transfer"},
	"blockage":         {"blockage"},
	"standing":         {"aml_finding", "user_standing"},
	"integration":      {"integration_claim", "integration_event"},
	"level":            {"user_level"},
	"limit":            nil, // reads what transactions moved
	"mfa":              {"mfa_action", "mfa_method", "mfa_policy"},
	"document":         {"document", "document_quota"},
	"identity":         {"user_identity", "additional_info"},
	"kyc":              {"account_decision"},
	"notification":     {"notification"},
	"outbox":           {"outbox"},
	"parameter":        {"parameter"},
	"password":         {"password_guard"},
	"password/replace": {"reset_token"},
	"provider":         {"provider_account", "provider_balance", "provider_snapshot"},
	"profile":          {"email_change"},
	"balance":          {"asset_day"},
	"rate":             {"exchange_pair", "exchange_rate"},
	"resource":         {"resource", "resource_type", "role", "role_resource_permission", "role_resource_permission_log"},
	"servicekey":       {"service_key"},
	"setup":            nil, // judges settings and parameters
	"session":          {"login_history", "refused_login", "session"},
	"totp":             {"recovery_code", "totp"},
	"transaction": {"coin_address", "deposit", "process", "withdrawal", "withdrawal_queue",
		"withdrawal_queue_next", "withdrawal_desk"},
	"user":             {"user_role", "users"},
	"":                 {"seed"}, // which parts of the first content were written
	"challenge/stepup": nil,      // starts and answers challenges
}

// shared are packages of the domain that every section may use; the map would only get longer by them.
var shared = []string{"admin", "amount", "blob", "client", "commit", "fault", "geo", "id", "pack", "page", "picture",
	"ratelimit", "turn", "window"}

const mapHead = `# The map of endpoints

Generated from the table of endpoints by ` + "`make golden`" + `; a test compares it. It leads from an endpoint to the
code: find the endpoint below, take its section, and read the section's file, then its domain slice, then its rows.

| what | where |
|---|---|
| the table of an endpoint and its handler | the section's file |
| the rules | ` + "`domain/<slice>`" + ` |
| the rows and queries | ` + "`persistence`" + `, the file or folder with the slice's name |
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
				fmt.Sprintf("| `%s %s` | %s | %s |\n", e.Method, e.Path, e.Summary, e.Audience))
		}
		fmt.Fprintf(&out, "| %s | [%s](../http/%s) | %s | %s |\n", strings.Join(names, "; "), file, file,
			code(slicesOf), code(rows))
	}
	for _, section := range order {
		fmt.Fprintf(&out, "\n## %s\n\n| endpoint | what it does | for |\n|---|---|---|\n%s",
			section, strings.Join(listed[section], ""))
	}

	const golden = "../docs/endpoints.md"
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have, err := os.ReadFile(golden); err != nil || !bytes.Equal(have, out.Bytes()) {
		t.Errorf("%s is not what the table of endpoints says (%v): run make golden", golden, err)
	}
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
	files, err := filepath.Glob("../persistence/migrations/sqlite/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	made := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
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
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(name)] = file
	}
	return files
}
