package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

var function = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testsOf returns the names of all tests of the module, by folder.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		for _, name := range function.FindAllStringSubmatch(string(text), -1) {
			all[filepath.ToSlash(dir)] = append(all[filepath.ToSlash(dir)], name[1])
		}
		return err
	})
	storetest.Must(t, err)
	return all
}

// A row that moves a test to make test-all names one that exists, and no test of another package by the way.
func TestRowsNameTests(t *testing.T) {
	rows := storetest.Value(readTiers())(t)
	all := testsOf(t)
	listed := func(pkg, name string) bool {
		return slices.ContainsFunc(rows, func(r row) bool { return r.part() && r.pkg == pkg && r.test == name })
	}
	for _, r := range rows {
		name, _, sub := strings.Cut(r.test, "/")
		if !r.part() || r.test == "*" {
			continue
		}
		if !slices.Contains(all[r.pkg], name) {
			t.Errorf("%s has no %s", r.pkg, name)
		}
		for pkg, names := range all {
			if pkg != r.pkg && !strings.HasPrefix(pkg, "tools/") && slices.Contains(names, name) && (sub || !listed(pkg, name)) {
				t.Errorf("%s.%s is left out of make test with %s.%s", pkg, name, r.pkg, name)
			}
		}
	}
}

func TestChoice(t *testing.T) {
	rows := tiers{
		{"slow", "test/a", "TestLong", "-"}, {"slow", "test/b", "*", "-"}, {"looks", "test/a", "TestView/dark", "-"},
		{"red", "test/...", "Once", "-"},
	}
	packages := []goPackage{
		{ImportPath: "castellan/test/a", TestGoFiles: []string{"a_test.go"}},
		{ImportPath: "castellan/test/b", TestGoFiles: []string{"b_test.go"}},
		{ImportPath: "castellan/test/c"},
	}
	for part, want := range map[string]string{
		"":      "castellan/test/a -skip ^TestLong$|^TestView$/^dark$",
		"slow":  "castellan/test/a castellan/test/b -run ^TestLong$",
		"looks": "castellan/test/a -run ^TestView$/^dark$",
		"none":  "",
	} {
		picked, flags := rows.choose(part, packages)
		storetest.Equal(t, strings.Join(append(paths(picked), flags...), " "), want, "part", part)
	}
	for f, want := range map[failure]bool{
		{"castellan/test/a", "TestLong"}: false, {"castellan/test/a", "TestPaidOnce"}: true, {"castellan/test/a", ""}: true,
		{"castellan/domain", "TestPaidOnce"}: false,
	} {
		storetest.Equal(t, rows.red(f), want, f, "is red")
	}
}

const events = `server started
{"Action":"start","Package":"castellan/a"}
{"Action":"run","Package":"castellan/a","Test":"TestGood"}
{"Action":"output","Package":"castellan/a","Test":"TestGood","Output":"NOT CHECKED: no camel\nhidden\n"}
{"Action":"pass","Package":"castellan/a","Test":"TestGood","Elapsed":1}
{"Action":"run","Package":"castellan/a","Test":"TestBad"}
{"Action":"output","Package":"castellan/a","Test":"TestBad/x","Output":"    want 1\n"}
{"Action":"fail","Package":"castellan/a","Test":"TestBad/x","Elapsed":1}
{"Action":"output","Package":"castellan/a","Test":"TestBad","Output":"--- FAIL: TestBad\n"}
{"Action":"fail","Package":"castellan/a","Test":"TestBad","Elapsed":1}
{"Action":"output","Package":"castellan/a","Output":"FAIL\tcastellan/a\t2.000s\n"}
{"Action":"fail","Package":"castellan/a","Elapsed":2}
{"Action":"start","Package":"castellan/b"}
{"Action":"run","Package":"castellan/b","Test":"TestEnds"}
{"Action":"output","Package":"castellan/b","Test":"TestEnds","Output":"panic: here\n"}
{"Action":"pass","Package":"castellan/b","Test":"TestWorks","Elapsed":2}
{"Action":"fail","Package":"castellan/b","Elapsed":3}
{"Action":"start","Package":"castellan/c"}
{"Action":"pass","Package":"castellan/c","Elapsed":0.25}
{"Action":"start","Package":"castellan/d"}
{"Action":"skip","Package":"castellan/d"}
`

// A package is one line, a failed test has its whole output, and a crash shows the tests that were running.
func TestReportOfPackages(t *testing.T) {
	var out bytes.Buffer
	r := newReport(&out)
	storetest.Must(t, r.read(strings.NewReader(events)))
	r.slowest(2)
	want := "server started\na.TestGood: NOT CHECKED: no camel\n" +
		"    want 1\n--- FAIL: TestBad\nFAIL\tcastellan/a\t2.000s\n" +
		"panic: here\n" +
		"ok  \tcastellan/c\t0.2s\nslowest packages:\n     3.0 s  b (TestWorks 2.0 s)\n     2.0 s  a (TestGood 1.0 s)\n"
	storetest.Equal(t, out.String(), want, "printed")
	failed := []failure{{"castellan/a", "TestBad"}, {"castellan/b", ""}}
	if got := r.failures(); !slices.Equal(got, failed) || r.passed != 2 || r.packages != 3 {
		t.Errorf("failures %v, %d passed, %d packages", got, r.passed, r.packages)
	}
}

func TestReportOfLongWork(t *testing.T) {
	r, start := newReport(&bytes.Buffer{}), time.Unix(100, 0)
	if got := r.now(start); got != "... compiling and linking\n" {
		t.Error(got)
	}
	r.running["castellan/web"], r.running["castellan/http"] = start, start.Add(time.Minute)
	if got := r.now(start.Add(90 * time.Second)); got != "... running: http (30s), web (1m30s)\n" {
		t.Error(got)
	}
}

// The whole is both modules: ./... alone leaves out the client.
func TestWholeHasTheClient(t *testing.T) {
	all := storetest.Value(list(t.Context(), []string{"./...", "./..."}))(t)
	names := paths(all)
	if !slices.Contains(names, clientModule) || !slices.Contains(names, module+"internal/testrun") {
		t.Errorf("the packages are %v", names)
	}
}
