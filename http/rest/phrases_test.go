package rest

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	source "go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"castellan/domain/fault"
)

// What is wrong is said in the client's language, as a whole and of every field;
// detail stays English (D-GEN-09, D-GEN-16).
func TestMessagesAreLocalized(t *testing.T) {
	type request struct {
		Code  string  `json:"code" maxLength:"3"`
		Count int     `json:"count" minimum:"1"`
		Kind  *string `json:"kind" enum:"a,b"`
	}
	s := serve(t, allow(), Post("/x", "", NoAuth, func(context.Context, Caller, request) (None, error) { return None{}, nil }), Post("/fails", "", NoAuth, fails(fault.New(fault.InvalidField, "nothing to change"))),
		Post("/other", "", NoAuth, fails(fault.Invalid("a", "is odd"))))
	for _, c := range []struct{ path, body, language, message, errors string }{
		{"/x", `{}`, "tr", "code: zorunludur", "code: zorunludur; count: zorunludur"},
		{"/x", `{}`, "ar", "code: مطلوب", "code: مطلوب; count: مطلوب"},
		{"/x", `{}`, "en", "code: is required", "code: is required; count: is required"},
		{"/x", `{"code":"long","count":0,"kind":"c"}`, "tr", "code: en fazla 3 karakter olabilir",
			"code: en fazla 3 karakter olabilir; count: en az 1 olmalıdır; kind: şunlardan biri olmalıdır: a, b"},
		{"/x", `{"code":1,"count":"x"}`, "ar", "code: يجب أن يكون نصا", "code: يجب أن يكون نصا; count: يجب أن يكون عددا صحيحا"},
		{"/x", `{"code":`, "tr", "8. baytta hatalı JSON: beklenmeyen son", ""},
		{"/fails", `{}`, "tr", "değiştirilecek bir şey yok", ""},
		{"/other", `{}`, "tr", "Geçersiz istek", "a: is odd"},
	} {
		a := do(t, s, "POST", c.path, c.body, "accept-language: "+c.language)
		var p problem
		if err := json.Unmarshal([]byte(a.body), &p); err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, e := range p.Errors {
			all = append(all, e.Field+": "+e.Message)
		}
		if got := strings.Join(all, "; "); p.Message != c.message || got != c.errors {
			t.Errorf("%s %s in %s: %q, %q", c.path, c.body, c.language, p.Message, got)
		}
		if english := do(t, s, "POST", c.path, c.body); !strings.Contains(english.body, `"detail":`+strconv.Quote(p.Detail)) {
			t.Errorf("%s: the detail is %q in %s", c.path, p.Detail, c.language)
		}
	}
}

// Every phrase exists once and holds the same texts in every language.
func TestPhrases(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range phrases {
		holds := strings.Count(p.en, "%s")
		if seen[p.en] || p.tr == "" || p.ar == "" || strings.Count(p.tr, "%s") != holds || strings.Count(p.ar, "%s") != holds {
			t.Errorf("%+v", p)
		}
		seen[p.en] = true
		if said, ok := inWords(strings.ReplaceAll(p.en, "%s", "«%s»"), "tr"); !ok || said != strings.ReplaceAll(p.tr, "%s", "«%s»") {
			t.Errorf("%q is said as %q", p.en, said)
		}
	}
	if said, ok := inWords(`"a b" is not a user id`, "tr"); !ok || said != `"a b" kullanıcı kimliği değil` {
		t.Errorf("of a value: %q", said)
	}
	for _, text := range []string{"", "is", `"a b"`, `"a b" is odd`, "must be one of ", "must be from 1", "is required!"} {
		if said, ok := inWords(text, "tr"); ok {
			t.Errorf("%q is said as %q", text, said)
		}
	}
}

// notForClients are texts that only operators meet, at their own command line.
var notForClients = []string{
	"keys of this purpose are not rotated", "must be 1 to 64 letters, digits, _ or -, and begin with a letter or digit",
}

// Whatever the program says of a field is a phrase.
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
		if _, known := inWords(text, "tr"); !known && !slices.Contains(notForClients, text) {
			t.Errorf("%v: %q is no phrase", at, text)
		}
	}
	says := func(fset *source.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if fn := name(n.Fun); len(n.Args) > 1 && (fn == "fault.Invalid" || fn == "Invalid" || fn == "bad") {
					check(fset.Position(n.Pos()), n.Args[1])
				} else if len(n.Args) == 1 && (fn == "b.fail" || fn == "b.refuse" || fn == "c.fail") {
					check(fset.Position(n.Pos()), n.Args[0])
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
	for _, root := range []string{"../../domain", ".."} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
				return err
			}
			fset := source.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, 0)
			if err == nil {
				says(fset, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
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
