package doctor

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// Every state, effect and remedy of a finding has a Turkish and an Arabic text, whatever its values are. States of live
// checks are left out: they quote other programs.
func TestFindingsHaveThreeLanguages(t *testing.T) {
	files := storetest.Value(filepath.Glob("*.go"))(t)
	texts := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := storetest.Value(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, text := range findingTexts(file) {
			texts[text] = true
		}
	}
	if len(texts) < 150 {
		t.Errorf("only %d texts were found", len(texts))
	}
	value := regexp.MustCompile(`^(%s|\d+s?|true|false|)$`)
	for text := range texts {
		if value.MatchString(text) {
			continue
		}
		filled := strings.ReplaceAll(text, "%s", "«7»")
		for _, language := range []string{"tr", "ar"} {
			said, ok := rest.Translated(filled, language)
			if !ok || strings.Count(said, "«7»") != strings.Count(filled, "«7»") {
				t.Errorf("%s: %q is said as %q", language, text, said)
			}
		}
	}
}

// findingTexts returns the texts of the findings that a file makes, with %s for each value.
func findingTexts(file *ast.File) (texts []string) {
	consts := map[string]ast.Expr{}
	var text func(e ast.Expr) string
	text = func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.BasicLit:
			s, _ := strconv.Unquote(e.Value)
			return s
		case *ast.BinaryExpr:
			return text(e.X) + text(e.Y)
		case *ast.Ident:
			if of := consts[e.Name]; of != nil {
				return text(of)
			}
		case *ast.CallExpr:
			if sel, ok := e.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Sprintf" {
				return regexp.MustCompile(`%[a-z]`).ReplaceAllString(text(e.Args[0]), "%s")
			}
		}
		return "%s"
	}
	add := func(all ...ast.Expr) {
		for _, e := range all {
			texts = append(texts, text(e))
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for i, name := range n.Names {
				if i < len(n.Values) {
					consts[name.Name] = n.Values[i]
				}
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if sel, ok := to.(*ast.SelectorExpr); ok && sel.Sel.Name == "mend" && len(n.Rhs) == len(n.Lhs) {
					add(n.Rhs[i])
				}
				if id, ok := to.(*ast.Ident); ok && len(n.Rhs) == len(n.Lhs) && id.Name == "state" {
					consts[id.Name] = n.Rhs[i]
				}
			}
		case *ast.CallExpr:
			if sel, ok := n.Fun.(*ast.SelectorExpr); ok && len(n.Args) == 5 &&
				(sel.Sel.Name == "control" || sel.Sel.Name == "feature") {
				add(n.Args[2:]...)
			}
		case *ast.CompositeLit:
			kind, ok := n.Type.(*ast.Ident)
			if len(n.Elts) == 4 && (n.Type == nil || ok && kind.Name == "probe") { // also within []probe{…}
				add(n.Elts[1:3]...)
			}
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					if key, ok := pair.Key.(*ast.Ident); ok && (key.Name == "Effect" || key.Name == "Mend") {
						add(pair.Value)
					}
				}
			}
		}
		return true
	})
	return texts
}
