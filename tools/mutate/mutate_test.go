package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each rule finds its places, and only those.
func TestFaultsInGo(t *testing.T) {
	const source = `package p

import "fmt"

const name = "a" + "b"

func limit(n int, ok bool) (int, error) {
	if n > 10 {
		return 0, fmt.Errorf("more than %d", 10)
	}
	list := make([]int, 1, 64)
	list = append(list, n)
	defer fmt.Println(true)
	return n, nil
}
`
	found, err := faultsInGo("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, fmt.Sprintf("%d %s: %s → %s", m.line, m.rule, m.from, oneLine(m.text)))
		if !strings.Contains(string(m.applied([]byte(source))), m.text) {
			t.Errorf("%s is not applied", m.rule)
		}
	}
	want := []string{
		"8 negate condition: n > 10 → !(n > 10)",
		"8 swap operator: > → >=",
		"8 constant + 1: 10 → 11",
		"8 constant - 1: 10 → 9",
		`8 remove early return: { return 0, fmt.Errorf("more than %d", 10) } → {}`,
		"9 constant + 1: 0 → 1",
		`9 remove error: fmt.Errorf("more than %d", 10) → nil`,
		"9 constant + 1: 10 → 11",
		"9 constant - 1: 10 → 9",
		"11 constant + 1: 1 → 2",
		"11 constant - 1: 1 → 0",
		"12 remove statement: list = append(list, n) → (nothing)",
		"13 remove statement: defer fmt.Println(true) → (nothing)",
		"13 flip boolean: true → false",
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// Faults are possible in a script outside its texts, comments and types.
func TestFaultsInScript(t *testing.T) {
	const source = "// a < b\nexport const f = (a: number) => (a < 3 && 'a < b') || true;\n"
	var got []string
	for _, m := range faultsInScript("f.ts", []byte(source)) {
		got = append(got, fmt.Sprintf("%s: %s → %s", m.rule, m.from, oneLine(m.text)))
	}
	for _, want := range []string{"swap operator: < → <=", "swap operator: && → ¦¦", "flip boolean: true → false"} {
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	for _, m := range got {
		if strings.Contains(m, "number") || strings.Contains(m, "'") {
			t.Errorf("%s is a fault in a type or a text", m)
		}
	}
}

// A separate module is measured: a fault survives, is caught, does not compile or exceeds its time.
func TestMeasure(t *testing.T) {
	out := measured(t, options{paths: []string{"p"}, n: 100}, map[string]string{
		"p/p.go": "package p\n\nimport \"time\"\n\n// F counts.\nfunc F(n int) int {\n\tfor n < 5 {\n\t\tn++\n\t}\n" +
			"\ttime.Sleep(0)\n\treturn n\n}\n",
		"p/p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n" +
			"\tif F(0) != 5 {\n\t\tt.Error(F(0))\n\t}\n}\n",
	})
	for _, want := range []string{
		"caught", "timeout", // n++ removed: the loop does not end
		"not compiled",  // Sleep removed: the import is unused
		"| p | 7 | 6 |", // places, counted faults
		"| p/p.go:10 | constant + 1 | `0` | `1` |",
		"1 faults did not compile",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

// The tests of another package find a fault in a line that they reach; the second run reads which ones these are.
func TestTestsOfOtherPackagesFindFaults(t *testing.T) {
	o := options{paths: []string{"domain/p"}, n: 100, reach: filepath.Join(t.TempDir(), "reach.json")}
	for range 2 {
		out := measured(t, o, map[string]string{
			"domain/p/p.go": "package p\n\nfunc F(n int) int {\n\treturn n + 1\n}\n\nfunc G() bool {\n\treturn true\n}\n",
			"http/q/q_test.go": "package q\n\nimport (\n\t\"testing\"\n\n\t\"example/domain/p\"\n)\n\n" +
				"func TestF(t *testing.T) {\n\tif p.F(1) != 2 {\n\t\tt.Fatal()\n\t}\n}\n\nfunc TestNothing(*testing.T) {}\n",
		})
		for _, want := range []string{
			"caught", "| domain/p | 4 | 4 | 3 |", "| domain/p/p.go:8 | flip boolean | `true` | `false` |",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing in\n%s", want, out)
			}
		}
	}
}

// measured returns what measure prints for a module with these files.
func measured(t *testing.T, o options, files map[string]string) string {
	t.Helper()
	o.root, o.seed, o.floor = t.TempDir(), 1, 2*time.Second
	files["go.mod"] = "module example\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(o.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := measure(t.Context(), o, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
