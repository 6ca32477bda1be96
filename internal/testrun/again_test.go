package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shaky = `package shaky

import (
	"os"
	"testing"
)

func TestGood(t *testing.T) {}

func TestShaky(t *testing.T) {
	if os.Mkdir("seen", 0o700) == nil {
		t.Error("the first time")
	}
}
`

// A test that fails and then passes alone is named and excused. A test that judges double execution is not run again,
// and no other failure of that run is excused.
func TestFailuresRunOnceMore(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module castellan\n\ngo 1.26\n")
	write("shaky_test.go", shaky)
	t.Chdir(dir)
	o := options{again: true, patterns: []string{"./..."}, flags: []string{"-timeout", "1m", "-count=1"}}
	for _, c := range []struct {
		more   string
		fails  bool
		prints []string
	}{
		{"", false, []string{"UNSTABLE ", ".TestShaky", "2 passed, 0 failed"}},
		{"\nfunc TestPaidOnce(t *testing.T) { t.Error(2) }\n", true, []string{"1 passed, 2 failed"}},
	} {
		os.Remove("seen")
		write("shaky_test.go", shaky+c.more)
		var out bytes.Buffer
		err := run(t.Context(), &out, o)
		if (err != nil) != c.fails {
			t.Errorf("%v, and printed\n%s", err, out.String())
		}
		for _, want := range c.prints {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q is missing:\n%s", want, out.String())
			}
		}
		if c.fails && strings.Contains(out.String(), "again, alone") {
			t.Errorf("a failure beside a red one ran again:\n%s", out.String())
		}
	}
}
