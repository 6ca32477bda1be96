package httpapi_test

import (
	"go/ast"
	"go/parser"
	source "go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// Each phrase of each table is found again in both languages, whatever its texts are.
func TestPhrases(t *testing.T) {
	shared := storetest.Value(filepath.Glob("*/phrases.tsv"))(t)
	sections := storetest.Value(filepath.Glob("*/*/phrases.tsv"))(t)
	found := 0
	for _, name := range append(shared, sections...) {
		table := storetest.Value(os.ReadFile(name))(t)
		for _, row := range strings.Split(strings.TrimSpace(string(table)), "\n")[1:] {
			found++
			text := strings.Split(strings.ReplaceAll(row, "%s", "«%s»"), "\t")
			for i, language := range []string{"tr", "ar"} {
				if said, ok := rest.Translated(text[0], language); !ok || said != text[i+1] {
					t.Errorf("%s: %q is said as %q", name, text[0], said)
				}
			}
		}
	}
	if found < 120 {
		t.Errorf("%d phrases were found", found)
	}
	if said, ok := rest.Translated(`"a b" is not a user id`, "tr"); !ok || said != `"a b" kullanıcı kimliği değil` {
		t.Errorf("of a value: %q", said)
	}
}

// notForClients are texts that only operators meet, at their own command line.
var notForClients = []string{
	"keys of this purpose are not rotated", "must be 1 to 64 letters, digits, _ or -, and begin with a letter or digit",
	"must be base32 of %s to %s bytes", "must begin with + and the dialling code", "or a phone number is required",
	"must be tr, en or ar", "must be a status of an account", // of an import
}

// Every text of the program about a field is a phrase.
func TestEveryTextIsAPhrase(t *testing.T) {
	verb := regexp.MustCompile(`%[.0-9]*[a-z]`)
	found := 0
	check := func(at source.Position, e ast.Expr) {
		if call, ok := e.(*ast.CallExpr); ok && strings.HasSuffix(name(call.Fun), "Sprintf") {
			e = call.Args[0]
		}
		lit, ok := e.(*ast.BasicLit)
		if !ok {
			return
		}
		text, _ := strconv.Unquote(lit.Value)
		if text = verb.ReplaceAllString(text, "%s"); strings.Trim(text, "%s ") == "" { // all of it is said elsewhere
			return
		}
		found++
		if _, known := rest.Translated(text, "tr"); !known && !slices.Contains(notForClients, text) {
			t.Errorf("%v: %q is no phrase", at, text)
		}
	}
	says := func(fset *source.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if fn := name(n.Fun); len(n.Args) > 1 && slices.Contains(
					[]string{"fault.Invalid", "Invalid", "bad", "p.bad"}, fn) {
					check(fset.Position(n.Pos()), n.Args[1])
				} else if len(n.Args) == 1 && (fn == "b.fail" || fn == "b.refuse") {
					check(fset.Position(n.Pos()), n.Args[0])
				} else if len(n.Args) > 2 && strings.HasSuffix(fn, ".Require") {
					check(fset.Position(n.Pos()), n.Args[2])
				} else if fn == "malformed" && len(n.Args) == 2 {
					check(fset.Position(n.Pos()), n.Args[1])
				}
			case *ast.CompositeLit:
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && name(n.Type) == "fault.Problem" && name(kv.Key) == "Message" {
						check(fset.Position(n.Pos()), kv.Value)
					}
				}
			}
			return true
		})
	}
	for _, root := range []string{"../domain", "."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") ||
				strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
				return err
			}
			fset := source.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err == nil {
				says(fset, file)
			}
			return err
		})
		storetest.Must(t, err)
	}
	if found < 60 {
		t.Errorf("%d texts were found", found)
	}
}

// name is an identifier or a selector as it is written.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return name(e.X) + "." + e.Sel.Name
	}
	return ""
}
