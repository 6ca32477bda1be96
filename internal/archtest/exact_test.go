package archtest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// money are the slices whose files contain no floating point number (D-GEN-08). The rule also applies to a file of
// domain, persistence or http that imports one of them, because it has their rows or their wire format.
var money = []string{"domain/kit/amount", "domain/money/currency", "domain/money/ledger", "domain/money/rate"}

// exact reports whether the rule for money applies to a file.
func exact(t *testing.T, root, file string) bool {
	t.Helper()
	dir := storetest.Value(filepath.Rel(root, filepath.Dir(file)))(t)
	if within(filepath.ToSlash(dir), money) {
		return true
	}
	parsed := storetest.Value(parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly))(t)
	return slices.ContainsFunc(parsed.Imports, func(i *ast.ImportSpec) bool {
		path, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module+"/")
		return ours && within(path, money)
	})
}

// No expression, variable, field or constant in the files with money has a floating point type. The compiler's types
// decide, so a name, an alias or a library cannot hide one.
func TestMoneyIsExact(t *testing.T) {
	root := moduleRoot(t)
	packages := listed(t, root, "./domain/...", "./persistence/...", "./http/...")
	files := 0
	for _, p := range packages {
		var paths []string
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			if strings.HasPrefix(path, root) && exact(t, root, path) {
				paths = append(paths, path)
			}
		}
		if len(paths) == 0 {
			continue
		}
		files += len(paths)
		for _, fault := range floats(t, p, packages, paths) {
			t.Error(fault)
		}
	}
	if files < 20 {
		t.Errorf("looked at %d files: the search is broken", files)
	}
}

// The search finds a float in each possible place.
func TestFloatsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"type R struct{ A float64 }":                         1,
		"type R struct{ A []map[string]*float32 }":           1,
		"type F = float64; type R struct{ A F }":             1,
		"type F float32":                                     1,
		"const half = 0.5":                                   1,
		"func f() bool { return 1 < 1.5 }":                   1,
		"func f(n int64) int64 { return int64(float64(n)) }": 1,
		"func f() complex128 { return 0 }":                   1,
		"type R struct{ A int64; B string }":                 0,
		"func f(n int64) int64 { return n / 3 }":             0,
	} {
		file := filepath.Join(t.TempDir(), "x.go")
		storetest.Must(t, os.WriteFile(file, []byte("package x\n"+text), 0o600))
		p := listedPackage{ImportPath: "x", Dir: filepath.Dir(file), GoFiles: []string{"x.go"}}
		if found := floats(t, p, nil, []string{file}); (len(found) > 0) != (want > 0) {
			t.Errorf("%s: %q", text, found)
		}
	}
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listed returns packages and all their imports, with the compiler's files of their types.
func listed(t *testing.T, root string, patterns ...string) map[string]listedPackage {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles"}, patterns...)...)
	list.Dir, list.Stderr = root, os.Stderr
	out := storetest.Value(list.StdoutPipe())(t)
	storetest.Must(t, list.Start())
	packages := map[string]listedPackage{}
	for d := json.NewDecoder(out); ; {
		var p listedPackage
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
	storetest.Must(t, list.Wait())
	return packages
}

// floats returns the places where a package's files contain a floating point number.
func floats(t *testing.T, p listedPackage, packages map[string]listedPackage, files []string) (found []string) {
	t.Helper()
	positions := token.NewFileSet()
	var parsed, looked []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		file := storetest.Value(parser.ParseFile(positions, path, nil, parser.SkipObjectResolution))(t)
		parsed = append(parsed, file)
		for _, f := range files {
			if f == path {
				looked = append(looked, file)
			}
		}
	}
	compiled := func(path string) (io.ReadCloser, error) { return os.Open(packages[path].Export) }
	config := types.Config{Importer: importer.ForCompiler(positions, "gc", compiled)}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}}
	if _, err := config.Check(p.ImportPath, positions, parsed, info); err != nil {
		t.Fatal(err)
	}
	seen := func(at token.Pos, of types.Type) {
		if of != nil && isFloat(of) {
			found = append(found, fmt.Sprintf("%s: %s", positions.Position(at), of))
		}
	}
	for _, file := range looked {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.Ident:
				if def := info.Defs[n]; def != nil {
					seen(n.Pos(), def.Type())
				}
			case ast.Expr:
				seen(n.Pos(), info.Types[n].Type)
			}
			return true
		})
	}
	return found
}

// isFloat reports whether a value of the type is, or directly consists of, floating point numbers. The fields of a
// struct are checked at its declaration.
func isFloat(of types.Type) bool {
	switch of := of.Underlying().(type) {
	case *types.Basic:
		return of.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Pointer:
		return isFloat(of.Elem())
	case *types.Slice:
		return isFloat(of.Elem())
	case *types.Array:
		return isFloat(of.Elem())
	case *types.Map:
		return isFloat(of.Key()) || isFloat(of.Elem())
	case *types.Chan:
		return isFloat(of.Elem())
	}
	return false
}
