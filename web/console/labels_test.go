//go:build !noconsole

package console_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"castellan/domain/kit/geo"
	"castellan/domain/kit/storetest"
)

// Every action that the code writes to the audit has a name in three languages. TestTexts compares the languages.
func TestAuditActionsHaveNames(t *testing.T) {
	names := englishTexts(t)
	found := auditActions(t)
	for _, known := range []string{"LOGIN", "CALL", "DENIALS_LOST", "FOUR_EYES_APPROVE", "LEDGER_TRANSFER",
		"SERVICE_KEY_ADD", "USER_ADD_BULK", "DEVICE_ADD", "REGISTER", "USER_UNLOCK", "NOTIFICATION_SEND", "WITHDRAWAL_CANCEL",
		"WITHDRAWAL_REQUEST", "ADJUST_BALANCE", "USER_LEVEL", "FIREWALL_RULE_ADD", "TRANSACTION_STATUS"} {
		if !slices.Contains(found, known) {
			t.Errorf("%s was not found: the search is broken", known)
		}
	}
	for _, action := range found {
		if names["act."+action] == "" {
			t.Errorf("the audit action %s has no text act.%s", action, action)
		}
	}
}

// Every parameter that the service reads describes the shape of its object.
func TestParametersHaveShapes(t *testing.T) {
	shapes := storetest.Value(os.ReadFile(filepath.Join(sources, "src/app/shape.ts")))(t)
	kinds := storetest.Value(os.ReadFile("../../domain/kit/parameter/kinds.go"))(t)
	codes := regexp.MustCompile(`= Kind\[\w+\]\{"([A-Z_]+)"`).FindAllSubmatch(kinds, -1)
	if len(codes) < 10 {
		t.Fatalf("found %d parameters: the search is broken", len(codes))
	}
	for _, m := range codes {
		if !strings.Contains(string(shapes), "\n  "+string(m[1])+": '") {
			t.Errorf("shape.ts has no words for the parameter %s", m[1])
		}
	}
}

// Every state with a tone has a name, and so has every status of the queue of withdrawals.
func TestStatesHaveNames(t *testing.T) {
	names := englishTexts(t)
	text := storetest.Value(os.ReadFile(filepath.Join(sources, "src/kit/show.tsx")))(t)
	_, table, _ := strings.Cut(string(text), "const colours")
	table, _, _ = strings.Cut(table, "};")
	queue := storetest.Value(os.ReadFile("../../domain/money/transaction/queue.go"))(t)
	_, statuses, _ := strings.Cut(string(queue), "queueNames = map[QueueStatus]string{")
	statuses, _, _ = strings.Cut(statuses, "}")
	found := append(regexp.MustCompile(`\n  (\w+): '`).FindAllStringSubmatch(table, -1),
		regexp.MustCompile(`: "(\w+)"`).FindAllStringSubmatch(statuses, -1)...)
	if len(found) < 40 {
		t.Fatalf("found %d states: the search is broken", len(found))
	}
	for _, m := range found {
		if names["state."+m[1]] == "" {
			t.Errorf("the state %s has no text state.%s", m[1], m[1])
		}
	}
}

// The console offers the countries of the service.
func TestCountriesAreThoseOfTheService(t *testing.T) {
	text := storetest.Value(os.ReadFile(filepath.Join(sources, "src/access/countrycodes.ts")))(t)
	offered := regexp.MustCompile(`\b[A-Z]{2}\b`).FindAllString(string(text), -1)
	if slices.Sort(offered); !slices.Equal(offered, geo.Codes()) {
		t.Errorf("the console offers %v, the service knows %v", offered, geo.Codes())
	}
}

func englishTexts(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sources, "src/text/en/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no texts (%v)", err)
	}
	all := map[string]string{}
	for _, file := range files {
		read(t, file, &all)
	}
	return all
}

var actionForm = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)*$`)

// auditActions returns the texts in the form of an action that the code gives to an audit row. They are a constant or a
// table whose name begins with "act", an action of a challenge, a member Action, and an argument beside the actor.
func auditActions(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	take := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && len(text) > 3 && actionForm.MatchString(text) {
					found[text] = true
				}
			}
			_, function := n.(*ast.FuncLit)
			return !function
		})
	}
	visit := func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl: // the actions of challenges (domain/factor/mfa)
			if first, ok := n.Specs[0].(*ast.ValueSpec); ok && first.Names[0].Name == "Login" {
				take(n)
			}
		case *ast.ValueSpec:
			for i, name := range n.Names {
				act := strings.HasPrefix(strings.ToLower(name.Name), "act") && name.Name != "Active"
				if act && i < len(n.Values) {
					take(n.Values[i])
				}
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Action" || key.Name == "missing") {
				take(n.Value)
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if f, ok := left.(*ast.SelectorExpr); ok && f.Sel.Name == "Action" && i < len(n.Rhs) {
					take(n.Rhs[i])
				}
			}
		case *ast.CallExpr: // of an actor: Changes.Do(ctx, by, "LEVEL_ADD", …)
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !(ok && f.Sel.Name == "Do") && !slices.ContainsFunc(n.Args, func(arg ast.Expr) bool {
				name, ok := arg.(*ast.Ident)
				return ok && (name.Name == "by" || name.Name == "who")
			}) {
				break
			}
			for _, arg := range n.Args {
				if lit, ok := arg.(*ast.BasicLit); ok {
					take(lit)
				}
			}
		}
		return true
	}
	for _, folder := range []string{"domain", "actors", "http", "cmd/app", "cmd/castellan"} {
		err := filepath.WalkDir(filepath.Join("../..", folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			if strings.HasSuffix(filepath.Dir(name), "test") { // a suite of a store
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err == nil {
				ast.Inspect(file, visit)
			}
			return err
		})
		storetest.Must(t, err)
	}
	return slices.Sorted(maps.Keys(found))
}
