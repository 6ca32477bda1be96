package archtest

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// notOurs are the folders at the root without sources: the output of builds, runs and version control.
var notOurs = map[string]bool{".git": true, "bin": true, "data": true}

func TestTree(t *testing.T) {
	root, err := os.OpenRoot(moduleRoot(t))
	storetest.Must(t, err)
	defer root.Close()
	files, sources := 0, 0
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (notOurs[name] || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || name == ".git": // the file of a linked working tree
			return nil
		}
		text, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		files++
		checkPaths(t, name, text)
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			sources++
			checkSource(t, name, text)
		}
		return nil
	})
	storetest.Must(t, err)
	// A walk that finds nothing would always pass, so this test checks the walk.
	if files < 10 || sources < 5 {
		t.Fatalf("walked over %d files, %d of them Go: the walk is broken", files, sources)
	}
}

func checkSource(t *testing.T, name string, text []byte) {
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, name, text, parser.ImportsOnly)
	if err != nil {
		t.Errorf("%v", err)
		return
	}
	dir := filepath.ToSlash(filepath.Dir(name))
	if why := badName(dir, file.Name.Name); why != "" {
		t.Errorf("%s: package %s: %s", name, file.Name.Name, why)
	}
	storetest.Equal(t, misplaced(dir), "", name)
	if strings.HasSuffix(name, "_test.go") {
		return
	}
	for _, spec := range file.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: %v", positions.Position(spec.Pos()), err)
			continue
		}
		if why := mayImport(dir, imp); why != "" {
			t.Errorf("%s: imports %s: %s", positions.Position(spec.Pos()), imp, why)
		}
	}
}

func checkPaths(t *testing.T, name string, text []byte) {
	if bytes.IndexByte(text, 0) >= 0 {
		return // an image or another binary
	}
	for n, line := range bytes.Split(text, []byte("\n")) {
		if machinePath.Match(line) {
			t.Errorf("%s:%d: names a path of one machine: %s", name, n+1, bytes.TrimSpace(line))
		}
	}
}

// moduleRoot returns the nearest parent folder with go.mod.
func moduleRoot(t *testing.T) string {
	dir := storetest.Value(os.Getwd())(t)
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}
