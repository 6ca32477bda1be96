package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	weightFile = "testdata/weight.tsv"
	weightHead = "# The most that each area may weigh, in steps: lines in hundreds, names in twenties. To raise a\n" +
		"# limit on purpose:\n" +
		"#   go test -count=1 -run Golden ./internal/archtest -update\n" +
		"# and say in the commit what the weight is for. CONTRIBUTING.md has the rules.\n"
	// maxTests is the most lines of tests and kits for each line of product. A tree that has more may not rise.
	maxTests = 1.15
)

// The columns count these things of an area.
const (
	product   = iota // lines of Go and TypeScript, without what is generated
	tests            // lines of tests
	kits             // lines of packages made for tests
	documents        // lines of Markdown
	packages         // folders with Go
	binaries         // folders with tests of Go
	names            // exported declarations and methods outside of tests
	columns
)

var (
	columnNames = [columns]string{"product", "tests", "kits", "documents", "packages", "test-binaries", "exported"}
	columnSteps = [columns]int{100, 100, 100, 100, 1, 1, 20}
	// development is not part of the product, so its lines permit no tests. Those of test are of the product.
	development = []string{"examples", "internal", "test", "tools"}
)

// weights holds the counts of each area. The areas of domain, http and persistence are counted together.
type weights map[string]*[columns]int

// TestGoldenWeight fails if an area weighs more than its limit. A fall passes; with -update it lowers the limit as
// soon as a whole step is free, so make verify asks for the lower file.
func TestGoldenWeight(t *testing.T) {
	now, limits := weigh(texts(t)), readWeights(t)
	now["build"] = &[columns]int{packages: buildPackages(t)}
	if *update {
		if err := os.WriteFile(weightFile, []byte(now.text(limits)), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for area, counts := range now {
		for c, n := range counts {
			if limit := limits.of(area)[c]; n > limit {
				t.Errorf("%s: %s of %s are %d, at most %d are allowed.\n\tRemove some, or raise the limit on purpose: %s",
					weightFile, columnNames[c], area, n, limit, "go test -count=1 -run Golden ./internal/archtest -update")
			}
		}
	}
	if have, limit := now.ratio(), max(maxTests, limits.ratio()); have > limit {
		t.Errorf("%.3f lines of tests and kits for each line of product, at most %.3f are allowed", have, limit)
	}
	if now.of("money")[product] < 1000 || now.of("docs")[documents] < 1000 || now.of("build")[packages] < 100 {
		t.Errorf("the count is broken: %v", now.text(nil))
	}
}

// weigh counts the files of the tree by their paths.
func weigh(all map[string]string) weights {
	w := weights{}
	folders, tested := map[string]bool{}, map[string]bool{}
	for name, text := range all {
		dir, kind := path.Dir(name), path.Ext(name)
		if strings.Contains("/"+name, "/testdata/") || generated.MatchString(text) ||
			!slices.Contains([]string{".go", ".ts", ".tsx", ".md"}, kind) {
			continue
		}
		counts, lines := w.of(weighedArea(dir)), strings.Count(text, "\n")
		test := strings.HasSuffix(name, "_test.go") || strings.Contains(path.Base(name), ".test.ts")
		switch {
		case kind == ".md":
			counts[documents] += lines
			continue
		case test:
			counts[tests] += lines
		case slices.ContainsFunc(strings.Split(dir, "/"), testSupport):
			counts[kits] += lines
		default:
			counts[product] += lines
			counts[names] += exported(text)
		}
		if kind == ".go" && !folders[dir] {
			folders[dir] = true
			counts[packages]++
		}
		if kind == ".go" && test && !tested[dir] {
			tested[dir] = true
			counts[binaries]++
		}
	}
	return w
}

// weighedArea returns the area of a folder, and of a folder of no area the first part of its path.
func weighedArea(dir string) string {
	if n := areaOf(dir); n >= 0 {
		return areas[n]
	}
	first, _, _ := strings.Cut(dir, "/")
	return first
}

// exported counts the exported declarations of a file of Go.
func exported(text string) (n int) {
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		return 0
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				n++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() {
						n++
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						if name.IsExported() {
							n++
						}
					}
				}
			}
		}
	}
	return n
}

// of returns the counts of an area.
func (w weights) of(area string) *[columns]int {
	if w[area] == nil {
		w[area] = new([columns]int)
	}
	return w[area]
}

// ratio returns the lines of tests and kits for each line of product.
func (w weights) ratio() float64 {
	var made, tested int
	for area, c := range w {
		if !slices.Contains(development, area) {
			made += c[product]
			tested += c[tests] + c[kits]
		}
	}
	tested += w.of("test")[tests] + w.of("test")[kits]
	return float64(tested) / float64(max(made, 1))
}

// text returns the limits of the counts. A limit stays while less than a step above it is free.
func (w weights) text(before weights) string {
	var b strings.Builder
	b.WriteString(weightHead + "area\t" + strings.Join(columnNames[:], "\t") + "\n")
	var all []string
	for area := range w {
		all = append(all, area)
	}
	slices.Sort(all)
	for _, area := range all {
		b.WriteString(area)
		for c, n := range w[area] {
			limit := (n + columnSteps[c] - 1) / columnSteps[c] * columnSteps[c]
			if had := before[area]; had != nil && columnSteps[c] > 1 && had[c] == limit+columnSteps[c] {
				limit = had[c]
			}
			fmt.Fprintf(&b, "\t%d", limit)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// readWeights reads the limits. A missing file has none.
func readWeights(t *testing.T) weights {
	t.Helper()
	w := weights{}
	text, err := os.ReadFile(weightFile)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || fields[0] == "area" {
			continue
		}
		for c := range columns {
			n, err := strconv.Atoi(fields[1:][c])
			if err != nil {
				t.Fatalf("%s: %v", weightFile, err)
			}
			w.of(fields[0])[c] = n
		}
	}
	return w
}

// buildPackages counts the packages outside of the standard library that the program is built from.
func buildPackages(t *testing.T) int {
	t.Helper()
	// As make build, whatever the tags of the test are.
	cmd := exec.Command("go", "list", "-tags=grpcnotrace,nopgxregisterdefaulttypes", "-deps", "-f",
		"{{if not .Standard}}{{.ImportPath}}{{end}}", "./cmd/castellan")
	cmd.Dir, cmd.Env = moduleRoot(t), append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return len(strings.Fields(string(out)))
}
