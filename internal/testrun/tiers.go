package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

//go:embed tiers.tsv
var tiersText string

// module is the prefix of our packages.
const module = "castellan/"

// row is a line of tiers.tsv.
type row struct {
	kind   string // a part of make test-all, or red: a failure is never run again
	pkg    string // below the module; ... and a trailing /... include the packages below
	test   string // a name, with /subtest if only that one is meant; * for all; a regular expression for red
	reason string
}

type tiers []row

func readTiers() (all tiers, err error) {
	for i, line := range strings.Split(strings.TrimSpace(tiersText), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 4 || slices.Contains(cells, "") {
			return nil, fmt.Errorf("tiers.tsv:%d: want kind, package, test and reason, separated by tabs", i+1)
		}
		r := row{cells[0], cells[1], cells[2], cells[3]}
		if _, err := regexp.Compile(r.test); r.kind == "red" && err != nil {
			return nil, fmt.Errorf("tiers.tsv:%d: %w", i+1, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// part reports whether the row moves tests to make test-all.
func (r row) part() bool { return r.kind != "red" }

func (r row) covers(pkg string) bool {
	pkg = strings.TrimPrefix(pkg, module)
	below, deep := strings.CutSuffix(r.pkg, "/...")
	return r.pkg == "..." || pkg == below || deep && strings.HasPrefix(pkg, below+"/")
}

// choose returns the packages to test and the flags that select their tests. Without a part these are all tests that no
// part has. Names of tests in tiers.tsv are unique in the module, because one -run or -skip serves all packages.
func (t tiers) choose(part string, packages []goPackage) (picked []goPackage, flags []string) {
	var names []string
	for _, p := range packages {
		whole, some := false, false
		for _, r := range t {
			if !r.part() || !r.covers(p.ImportPath) || part != "" && r.kind != part {
				continue
			}
			whole = whole || r.test == "*"
			some = some || r.test != "*"
			if r.test != "*" {
				names = append(names, pattern(r.test))
			}
		}
		if p.tests() && (part == "" && !whole || part != "" && (whole || some)) {
			picked = append(picked, p)
		}
	}
	if len(names) > 0 {
		flags = []string{map[bool]string{true: "-skip", false: "-run"}[part == ""], strings.Join(names, "|")}
	}
	return picked, flags
}

// pattern matches exactly a test or a subtest.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// left says what a run without a part leaves out.
func (t tiers) left(part string, packages []goPackage) string {
	if part != "" {
		return "Part " + part + " of make test-all."
	}
	n := 0
	for _, r := range t {
		if r.part() && slices.ContainsFunc(packages, func(p goPackage) bool { return r.covers(p.ImportPath) }) {
			n++
		}
	}
	if n == 0 {
		return "All their tests."
	}
	return fmt.Sprintf("make test-all adds %d tests and groups of tests (internal/testrun/tiers.tsv).", n)
}

// red reports whether a failure is never excused by a second run.
func (t tiers) red(f failure) bool {
	return f.test == "" || // a package that does not build, or ended without the result of a test
		slices.ContainsFunc(t, func(r row) bool {
			return r.kind == "red" && r.covers(f.pkg) && regexp.MustCompile(r.test).MatchString(f.test)
		})
}

// goPackage is what go list says of a package. Deps are those of its tests too.
type goPackage struct {
	ImportPath                string
	TestGoFiles, XTestGoFiles []string
}

func (p goPackage) tests() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

func paths(all []goPackage) (names []string) {
	for _, p := range all {
		names = append(names, p.ImportPath)
	}
	return names
}

// clientModule is the module of the Go client, which ./... leaves out.
const clientModule = "castellan/client"

// list expands patterns in their order, each package once. The whole is both modules.
func list(ctx context.Context, patterns []string) (all []goPackage, err error) {
	seen := map[string]bool{}
	if slices.Contains(patterns, "./...") {
		patterns = append(slices.Clip(patterns), clientModule+"/...")
	}
	for _, pattern := range patterns {
		err := goList(ctx, []string{"-json=ImportPath,TestGoFiles,XTestGoFiles", pattern}, func(d *json.Decoder) error {
			var p goPackage
			err := d.Decode(&p)
			if err == nil && !seen[p.ImportPath] {
				seen[p.ImportPath] = true
				all = append(all, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func goList(ctx context.Context, args []string, each func(*json.Decoder) error) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		if err := each(d); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
	}
}

// requirements are the programs that tests of a package start, by the import that shows it. Gateways and poolers are
// no import: their packages are named.
var requirements = []struct{ dependency, debian string }{
	{module + "internal/pgtest", "postgresql"},
	{"github.com/chromedp/chromedp", "chromium"},
	{module + "test/access", "nginx haproxy caddy"},
	{module + "persistence/engine", "pgbouncer"},
	{module + "test/faults", "pgbouncer"},
}

// prepared installs what the packages need and returns the command that go test runs under: pgserve if they use
// PostgreSQL.
func prepared(ctx context.Context, out io.Writer, picked []goPackage) (command []string, err error) {
	var need []string
	args := append([]string{"-test", "-json=ImportPath,Deps"}, paths(picked)...)
	err = goList(ctx, args, func(d *json.Decoder) error {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := d.Decode(&p); err != nil {
			return err
		}
		for _, r := range requirements {
			if p.ImportPath == r.dependency || slices.Contains(p.Deps, r.dependency) {
				need = append(need, strings.Fields(r.debian)...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(need)
	need = slices.Compact(need)
	if len(need) > 0 && os.Getenv("CASTELLAN_TEST_DATABASES") == "" {
		install := exec.CommandContext(ctx, "scripts/ensure-test-deps.sh", need...)
		install.Stdout, install.Stderr = out, os.Stderr
		if err := install.Run(); err != nil {
			return nil, fmt.Errorf("install %s: %w", strings.Join(need, " "), err)
		}
	}
	if slices.Contains(need, "postgresql") && os.Getenv("CASTELLAN_TEST_DATABASES") == "" {
		return []string{"go", "run", "./internal/pgtest/cmd/pgserve"}, nil
	}
	return nil, nil
}
