package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// findGo returns the possible faults in the Go packages below a path. Tests, packages made for tests (named so) and
// generated files are excluded.
func findGo(root, path, temp string) ([]mutant, error) {
	var all []mutant
	err := filepath.WalkDir(filepath.Join(root, path), func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasSuffix(d.Name(), "test"):
			return fs.SkipDir
		}
		found, err := findPackage(root, dir, temp)
		all = append(all, found...)
		return err
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no Go code", path)
	}
	return all, err
}

// findPackage returns the possible faults in the package of one folder.
func findPackage(root, dir, temp string) ([]mutant, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return nil, err
	}
	run := &goRunner{root: root, dir: rel, temp: temp}
	u := &target{name: rel, run: run}
	var all []mutant
	for _, name := range names {
		base := filepath.Base(name)
		used, err := build.Default.MatchFile(dir, base)
		if err != nil {
			return nil, err
		}
		source, err := os.ReadFile(name)
		switch {
		case err != nil:
			return nil, err
		case !used:
			continue
		case strings.HasSuffix(base, "_test.go"):
			u.tested, run.tested = true, true
			run.databases = run.databases || bytes.Contains(source, []byte(`/persistence`)) ||
				bytes.Contains(source, []byte(`/pgtest"`))
			continue
		}
		found, err := faultsInGo(filepath.Join(rel, base), source)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].unit = u
		}
		all = append(all, found...)
	}
	return all, nil
}

// finder collects the possible faults in one file.
type finder struct {
	file   string
	source []byte
	set    *token.FileSet
	all    []mutant
}

// faultsInGo returns the possible faults in a Go file.
func faultsInGo(file string, source []byte) ([]mutant, error) {
	f := finder{file: file, source: source, set: token.NewFileSet()}
	parsed, err := parser.ParseFile(f.set, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(parsed) {
		return nil, err
	}
	for _, d := range parsed.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			continue
		}
		f.walk(d)
	}
	slices.SortStableFunc(f.all, func(a, b mutant) int { return a.start - b.start })
	return f.all, nil
}

// add records that the source of a node may be replaced.
func (f *finder) add(rule string, from, to token.Pos, text string) {
	start, end := f.set.Position(from), f.set.Position(to)
	f.all = append(f.all, mutant{file: f.file, line: start.Line, rule: rule, start: start.Offset, end: end.Offset,
		from: oneLine(string(f.source[start.Offset:end.Offset])), text: text})
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

// swaps are the operators that replace each other.
var swaps = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.EQL: "!=",
	token.NEQ: "==", token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+", token.MUL: "/", token.QUO: "*"}

func (f *finder) walk(root ast.Node) {
	negated := map[ast.Expr]bool{} // conditions, whose == and != are negated once
	var results []*ast.FieldList   // of the functions around a node
	var stack []ast.Node
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			if t := funcType(stack[len(stack)-1]); t != nil {
				results = results[:len(results)-1]
			}
			stack = stack[:len(stack)-1]
			return true
		}
		stack = append(stack, n)
		if t := funcType(n); t != nil {
			results = append(results, t.Results)
		}
		switch n := n.(type) {
		case *ast.IfStmt:
			f.condition(n.Cond, negated)
			f.earlyReturn(n)
		case *ast.ForStmt:
			if n.Cond != nil {
				f.condition(n.Cond, negated)
			}
		case *ast.BinaryExpr:
			if to, ok := swaps[n.Op]; ok && !negated[n] && !isText(n) {
				f.add("swap operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), to)
			}
		case *ast.BasicLit:
			f.constant(n, stack)
		case *ast.Ident:
			if flip := map[string]string{"true": "false", "false": "true"}[n.Name]; flip != "" {
				f.add("flip boolean", n.Pos(), n.End(), flip)
			}
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.CommClause:
			f.statements(n.Body)
		case *ast.ReturnStmt:
			f.errorReturn(n, results[len(results)-1])
		}
		return true
	})
}

func funcType(n ast.Node) *ast.FuncType {
	switch n := n.(type) {
	case *ast.FuncDecl:
		return n.Type
	case *ast.FuncLit:
		return n.Type
	}
	return nil
}

// isText reports whether a + joins texts.
func isText(n *ast.BinaryExpr) bool {
	text := func(e ast.Expr) bool {
		l, ok := e.(*ast.BasicLit)
		return ok && l.Kind == token.STRING
	}
	if left, ok := n.X.(*ast.BinaryExpr); ok && n.Op == token.ADD && isText(left) {
		return true
	}
	return n.Op == token.ADD && (text(n.X) || text(n.Y))
}

func (f *finder) condition(e ast.Expr, negated map[ast.Expr]bool) {
	f.add("negate condition", e.Pos(), e.End(), "!("+f.text(e)+")")
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.EQL || b.Op == token.NEQ) {
		negated[e] = true
	}
}

// earlyReturn empties the body of a guard: an if without else that leaves.
func (f *finder) earlyReturn(n *ast.IfStmt) {
	if n.Else != nil || len(n.Body.List) == 0 {
		return
	}
	switch n.Body.List[len(n.Body.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		f.add("remove early return", n.Body.Pos(), n.Body.End(), "{}")
	}
}

// statements removes statements that are executed only for their effect.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch n := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
			f.add("remove statement", s.Pos(), s.End(), "")
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				f.add("remove statement", s.Pos(), s.End(), "")
			}
		}
	}
}

// errorReturn turns the error that a function returns into nil.
func (f *finder) errorReturn(n *ast.ReturnStmt, results *ast.FieldList) {
	if results == nil || len(n.Results) != results.NumFields() {
		return
	}
	last, ok := results.List[len(results.List)-1].Type.(*ast.Ident)
	value := n.Results[len(n.Results)-1]
	if ok && last.Name == "error" && f.text(value) != "nil" {
		f.add("remove error", value.Pos(), value.End(), "nil")
	}
}

// constant moves a whole number by one: up and down where it is not 0.
func (f *finder) constant(n *ast.BasicLit, stack []ast.Node) {
	v, err := strconv.ParseInt(n.Value, 0, 64)
	if n.Kind != token.INT || err != nil || isCapacity(n, stack) {
		return
	}
	f.add("constant + 1", n.Pos(), n.End(), strconv.FormatInt(v+1, 10))
	if v != 0 {
		f.add("constant - 1", n.Pos(), n.End(), strconv.FormatInt(v-1, 10))
	}
}

// isCapacity reports whether a number is the third argument of make, which changes no behaviour.
func isCapacity(n *ast.BasicLit, stack []ast.Node) bool {
	for i := len(stack) - 2; i >= 0; i-- {
		call, ok := stack[i].(*ast.CallExpr)
		if !ok {
			continue
		}
		name, ok := call.Fun.(*ast.Ident)
		return ok && name.Name == "make" && len(call.Args) == 3 && n.Pos() >= call.Args[2].Pos()
	}
	return false
}

// oneLine shortens source for a table: one line of limited length.
func oneLine(text string) string {
	text = strings.ReplaceAll(string(bytes.Join(bytes.Fields([]byte(text)), []byte(" "))), "|", "¦")
	if text == "" {
		return "(nothing)"
	}
	if r := []rune(text); len(r) > 90 {
		return string(r[:90]) + "…"
	}
	return text
}
