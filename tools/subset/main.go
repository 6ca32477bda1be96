// Subset writes the packages below client/internal: the declarations of domain that the Go client uses, and those that
// they use themselves. The client is a module of its own, so it cannot import domain.
//
// The one idea: the imports of the client are the list. Its files name client/internal/device, and each selector on
// that import, such as device.Sign, brings a declaration of domain/proof/device. A method comes along if its name is
// called on a value. Start reading at subset.add.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: subset ROOT, such as: subset ..")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "subset:", err)
		os.Exit(1)
	}
}

const module = "castellan/"

var moduleLine = regexp.MustCompile(`(?m)^module (\S+)$`)

// sources are the packages of domain that the client may have a part of, by name.
var sources = map[string]string{"device": "domain/proof/device", "dpop": "domain/proof/dpop",
	"fault": "domain/kit/fault", "intent": "domain/factor/intent", "jose": "domain/kit/jose"}

// subset is what was found so far.
type subset struct {
	root, internal string // the folder of the repository; the import path of client/internal
	packages       map[string]*source
	called         map[string]bool // names of methods
}

// source is one package of domain with the declarations that are needed.
type source struct {
	files []*ast.File
	texts [][]byte
	at    *token.FileSet
	doc   string
	need  map[string]bool // top-level names
}

func run(root string) error {
	mod, err := os.ReadFile(filepath.Join(root, "client", "go.mod"))
	if err != nil {
		return err
	}
	name := moduleLine.FindSubmatch(mod)
	if name == nil {
		return errors.New("client/go.mod names no module")
	}
	s := &subset{root: root, internal: string(name[1]) + "/internal/", packages: map[string]*source{},
		called: map[string]bool{"MarshalJSON": true}} // the library calls it
	files, err := filepath.Glob(filepath.Join(root, "client", "*.go"))
	if err != nil {
		return err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return err
		}
		if err := s.uses(parsed, parsed, s.internal); err != nil {
			return err
		}
	}
	for again := true; again; {
		if again, err = s.grow(); err != nil {
			return err
		}
	}
	return s.write()
}

// grow adds what the needed declarations use, and reports whether anything was new.
func (s *subset) grow() (bool, error) {
	before := s.size()
	for _, p := range slices.Collect(maps.Values(s.packages)) {
		for _, file := range p.files {
			for _, part := range s.parts(p, file) {
				for _, name := range within(file, part) {
					if p.declares(name) {
						p.need[name] = true
					}
				}
				if err := s.uses(file, part, module); err != nil {
					return false, err
				}
			}
		}
	}
	return s.size() > before, nil
}

func (s *subset) size() int {
	n := len(s.called)
	for _, p := range s.packages {
		n += len(p.need)
	}
	return n
}

// uses adds the selectors of a node: those on imports below prefix, and the names of methods.
func (s *subset) uses(file *ast.File, node ast.Node, prefix string) (err error) {
	names := imports(file)
	ast.Inspect(node, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && err == nil {
			on, _ := sel.X.(*ast.Ident)
			switch {
			case on == nil || names[on.Name] == "":
				s.called[sel.Sel.Name] = true
			case strings.HasPrefix(names[on.Name], prefix):
				err = s.add(on.Name, sel.Sel.Name)
			}
		}
		return err == nil
	})
	return err
}

// add makes a declaration needed.
func (s *subset) add(pkg, name string) error {
	p := s.packages[pkg]
	if p == nil {
		if sources[pkg] == "" {
			return fmt.Errorf("%s.%s: the client may have nothing of package %s", pkg, name, pkg)
		}
		p = &source{at: token.NewFileSet(), need: map[string]bool{}}
		files, err := filepath.Glob(filepath.Join(s.root, sources[pkg], "*.go"))
		if err != nil {
			return err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			parsed, err := parser.ParseFile(p.at, file, text, parser.ParseComments)
			if err != nil {
				return err
			}
			p.files, p.texts = append(p.files, parsed), append(p.texts, text)
		}
		s.packages[pkg] = p
	}
	if !p.declares(name) {
		return fmt.Errorf("%s declares no %s", sources[pkg], name)
	}
	p.need[name] = true
	return nil
}

func (p *source) declares(name string) bool {
	return slices.ContainsFunc(p.files, func(f *ast.File) bool { return f.Scope.Lookup(name) != nil })
}

// parts returns the needed declarations of a file: functions, methods, and single specs of types, constants and
// variables.
func (s *subset) parts(p *source, file *ast.File) (all []ast.Node) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && p.need[d.Name.Name] || d.Recv != nil && p.need[receiver(d)] && s.called[d.Name.Name] {
				all = append(all, d)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if p.need[spec.Name.Name] {
						all = append(all, spec)
					}
				case *ast.ValueSpec:
					if slices.ContainsFunc(spec.Names, func(n *ast.Ident) bool { return p.need[n.Name] }) {
						all = append(all, spec)
					}
				}
			}
		}
	}
	return all
}

func receiver(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	name, _ := of.(*ast.Ident)
	return name.Name
}

// within returns the names in a node that a file of its package may declare at the top level.
func within(file *ast.File, node ast.Node) (names []string) {
	ast.Inspect(node, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		switch {
		case !ok:
		case id.Obj == nil && slices.Contains(file.Unresolved, id),
			id.Obj != nil && id.Obj == file.Scope.Lookup(id.Name):
			names = append(names, id.Name)
		}
		return true
	})
	return names
}

// majorVersion is the last part of the path of a module such as github.com/golang-jwt/jwt/v5.
var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// imports returns the paths of a file by name.
func imports(file *ast.File) map[string]string {
	found := map[string]string{}
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		name := filepath.Base(path)
		if majorVersion.MatchString(name) {
			name = filepath.Base(filepath.Dir(path))
		}
		if i.Name != nil {
			name = i.Name.Name
		}
		found[name] = path
	}
	return found
}

// write replaces the folder client/internal.
func (s *subset) write() error {
	folder := filepath.Join(s.root, "client", "internal")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	for name, p := range s.packages {
		text, err := format.Source([]byte(s.text(name, p)))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name, name+".go"), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *subset) text(name string, p *source) string {
	var body strings.Builder
	used := map[string]bool{}
	for i, file := range p.files {
		paths := imports(file)
		for _, part := range s.parts(p, file) {
			ast.Inspect(part, func(n ast.Node) bool {
				if sel, ok := n.(*ast.SelectorExpr); ok {
					if on, ok := sel.X.(*ast.Ident); ok && paths[on.Name] != "" {
						used[paths[on.Name]] = true
					}
				}
				return true
			})
			from, to, word := part.Pos(), part.End(), ""
			var doc, after *ast.CommentGroup
			switch part := part.(type) {
			case *ast.FuncDecl:
				doc = part.Doc
			case *ast.TypeSpec:
				doc, after, word = part.Doc, part.Comment, "type "
			case *ast.ValueSpec:
				doc, after, word = part.Doc, part.Comment, part.Names[0].Obj.Kind.String()+" "
			}
			whole := enclosing(file, part)
			if doc == nil && whole != nil && !whole.Lparen.IsValid() {
				doc = whole.Doc
			}
			if after != nil {
				to = after.End()
			}
			cut := func(a, b token.Pos) string {
				return string(p.texts[i][p.at.Position(a).Offset:p.at.Position(b).Offset])
			}
			if doc != nil {
				body.WriteString(cut(doc.Pos(), doc.End()) + "\n")
			}
			if f, ok := part.(*ast.FuncDecl); ok {
				from = f.Type.Pos()
			}
			body.WriteString(word + cut(from, to) + "\n\n")
		}
	}
	var head strings.Builder
	fmt.Fprintf(&head, "// Code generated from %[1]s by tools/subset. DO NOT EDIT.\n\n"+
		"// Package %[2]s has what the client needs of %[1]s.\npackage %[2]s\n\n", sources[name], name)
	head.WriteString("import (\n")
	var others []string
	for _, path := range slices.Sorted(maps.Keys(used)) { // the standard library first
		first, _, _ := strings.Cut(path, "/")
		switch {
		case strings.HasPrefix(path, module):
			others = append(others, s.internal+filepath.Base(path))
		case strings.Contains(first, "."):
			others = append(others, path)
		default:
			fmt.Fprintf(&head, "%q\n", path)
		}
	}
	head.WriteString("\n")
	for _, path := range slices.Sorted(slices.Values(others)) {
		fmt.Fprintf(&head, "%q\n", path)
	}
	head.WriteString(")\n\n")
	return strings.ReplaceAll(head.String(), "import (\n)\n\n", "") + body.String()
}

// enclosing returns the declaration that a spec is part of.
func enclosing(file *ast.File, part ast.Node) *ast.GenDecl {
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Pos() <= part.Pos() && part.End() <= g.End() {
			return g
		}
	}
	return nil
}
