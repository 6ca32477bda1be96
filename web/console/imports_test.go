//go:build !noconsole

package console_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// No module of the console imports itself through others. Imports of types count; dynamic imports do not.
func TestImportsHaveNoCircle(t *testing.T) {
	imports := map[string][]string{}
	all := 0
	for _, name := range scripts(t) {
		text := storetest.Value(os.ReadFile(name))(t)
		imports[name] = resolved(name, string(text))
		all += len(imports[name])
	}
	if all < 300 {
		t.Fatalf("found %d imports: the search is broken", all)
	}
	if path := circle(imports); path != nil {
		t.Errorf("the imports form a circle: %s", strings.Join(path, " → "))
	}
}

// The search finds imports of values, of types and for side effects, on one line or several, and re-exports.
func TestImportCircleIsFound(t *testing.T) {
	got := imported("import { a } from './a';\nimport type { B } from '../b/b';\nimport './c';\n" +
		"import {\n  d,\n  type E,\n} from './d';\nexport * from './e';\nimport { x } from 'react';\n" +
		"const late = () => import('./late');\n")
	if want := []string{"./a", "../b/b", "./c", "./d", "./e"}; !slices.Equal(got, want) {
		t.Errorf("found the imports %q, want %q", got, want)
	}
	straight := map[string][]string{"a": {"b", "c"}, "b": {"c"}, "c": nil}
	if path := circle(straight); path != nil {
		t.Errorf("found the circle %q among %v", path, straight)
	}
	round := map[string][]string{"a": {"b"}, "b": {"c"}, "c": {"d", "b"}, "d": nil}
	if path := circle(round); !slices.Equal(path, []string{"b", "c", "b"}) {
		t.Errorf("found the circle %q among %v", path, round)
	}
}

var importStatement = regexp.MustCompile(`(?m)^(?:import|export)\b[^;'"()]*'(\.[^']+)'`)

// imported returns the relative paths that a script imports statically.
func imported(text string) []string {
	var paths []string
	for _, m := range importStatement.FindAllStringSubmatch(text, -1) {
		paths = append(paths, m[1])
	}
	return paths
}

// resolved returns the scripts that a script imports, by their file names.
func resolved(name, text string) []string {
	var files []string
	for _, path := range imported(text) {
		for _, extension := range []string{".ts", ".tsx"} {
			file := filepath.Join(filepath.Dir(name), path) + extension
			if _, err := os.Stat(file); err == nil {
				files = append(files, file)
			}
		}
	}
	return files
}

// circle returns a path that ends where it begins, or nil.
func circle(imports map[string][]string) []string {
	done := map[string]bool{}
	var path []string
	var visit func(name string) []string
	visit = func(name string) []string {
		if at := slices.Index(path, name); at >= 0 {
			return append(slices.Clone(path[at:]), name)
		}
		if done[name] {
			return nil
		}
		path = append(path, name)
		for _, next := range imports[name] {
			if found := visit(next); found != nil {
				return found
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		if found := visit(name); found != nil {
			return found
		}
	}
	return nil
}

// The order of the areas (docs/architecture.md). Every area may import app and kit.
var areas = []string{"delivery", "guard", "access", "money", "office", "people"}

// An area of the console imports only areas before it. The list of screens in app imports all of them.
func TestAreasImportInOrder(t *testing.T) {
	areaOf := func(name string) int {
		rest, _ := filepath.Rel(filepath.Join(sources, "src"), name)
		first, _, _ := strings.Cut(filepath.ToSlash(rest), "/")
		return slices.Index(areas, first)
	}
	found := map[int]bool{}
	for _, name := range scripts(t) {
		text := storetest.Value(os.ReadFile(name))(t)
		found[areaOf(name)] = true
		for _, used := range resolved(name, string(text)) {
			list := filepath.Base(name) == "screens.ts" && filepath.Base(used) == "screens.ts"
			if areaOf(used) > areaOf(name) && !list {
				t.Errorf("%s imports %s of a later area", name, used)
			}
		}
	}
	if len(found) != len(areas)+1 {
		t.Errorf("found %d areas, want %d", len(found)-1, len(areas))
	}
}

// A folder of the console has at most 30 files.
func TestConsoleFoldersAreSmall(t *testing.T) {
	files := map[string]int{}
	err := filepath.WalkDir(filepath.Join(sources, "src"), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[filepath.Dir(name)]++
		}
		return err
	})
	storetest.Must(t, err)
	for folder, n := range files {
		if n > 30 {
			t.Errorf("%s has %d files, want at most 30: split it", folder, n)
		}
	}
}
