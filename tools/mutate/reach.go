package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// reach knows which tests run each statement. A fault that the tests of its own package do not find is judged by the
// tests of other packages that reach its line.
type reach struct {
	root, temp string
	Tests      []reachTest
	Blocks     map[string][]block // by file, relative to the root
}

// reachTest is a test outside the package of the fault.
type reachTest struct {
	Dir, Name string
	Seconds   float64
}

// block is a part of a file and the tests that run it: bit i%8 of byte i/8 stands for test i.
type block struct {
	From, To int // lines
	Tests    []byte
}

// testedAreas are the folders whose tests run in one process. Tests of the whole program (test) are left out: coverage
// does not see what the processes that they start reach.
var testedAreas = []string{"actors", "cluster", "cmd", "config", "domain", "http", "outbound", "persistence"}

// readReach reads the map from a file that an earlier run wrote, or makes it. Then every test of the tested areas runs
// once, alone, with the coverage of all these areas.
func readReach(ctx context.Context, o options, temp string, w io.Writer) (*reach, error) {
	r := &reach{root: o.root, temp: temp, Blocks: map[string][]block{}}
	text, err := os.ReadFile(o.reach)
	if err == nil {
		return r, json.Unmarshal(text, r)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	list := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./...")
	list.Dir = o.root
	out, err := list.Output()
	if err != nil {
		return nil, err
	}
	for _, dir := range strings.Fields(string(out)) {
		rel, err := filepath.Rel(o.root, dir)
		if err != nil {
			return nil, err
		}
		area, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if !slices.Contains(testedAreas, area) {
			continue
		}
		fmt.Fprintln(w, "coverage of the tests of", rel)
		if err := r.add(ctx, rel); err != nil {
			return nil, err
		}
	}
	if text, err = json.Marshal(r); err != nil {
		return nil, err
	}
	return r, os.WriteFile(o.reach, text, 0o600)
}

// add runs the tests of one package.
func (r *reach) add(ctx context.Context, dir string) error {
	binary := filepath.Join(r.temp, "covered")
	covered := "./" + strings.Join(testedAreas, "/...,./") + "/..."
	compile := exec.CommandContext(ctx, "go", "test", "-vet=off", "-c", "-cover", "-coverpkg="+covered, "-o", binary,
		"./"+dir)
	compile.Dir = r.root
	if out, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", dir, err, out)
	}
	defer os.Remove(binary)
	list := exec.CommandContext(ctx, binary, "-test.list", "^Test")
	list.Dir = filepath.Join(r.root, dir)
	out, err := list.Output()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	var failed error
	free := make(chan bool, runtime.NumCPU())
	for _, name := range strings.Fields(string(out)) {
		free <- true
		wait.Go(func() {
			defer func() { <-free }()
			took, profile, err := r.profile(ctx, binary, dir, name)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = r.take(reachTest{dir, name, took.Seconds()}, profile)
			}
			failed = errors.Join(failed, err)
		})
	}
	wait.Wait()
	return failed
}

// profile returns the lines of the coverage profile of a test. A test that fails by chance reaches what it reached.
func (r *reach) profile(ctx context.Context, binary, dir, name string) (time.Duration, []string, error) {
	file := filepath.Join(r.temp, name+".cover")
	defer os.Remove(file)
	began := time.Now()
	_, _, err := runTests(ctx, filepath.Join(r.root, dir), 10*time.Minute, nil, binary, "-test.run", "^"+name+"$",
		"-test.coverprofile", file)
	took := time.Since(began)
	if err != nil {
		return 0, nil, err
	}
	f, err := os.Open(file)
	if err != nil {
		return took, nil, nil // it ended before it could write one
	}
	defer f.Close()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan(); {
		if !strings.HasSuffix(s.Text(), " 0") && !strings.HasPrefix(s.Text(), "mode:") {
			lines = append(lines, s.Text())
		}
	}
	return took, lines, nil
}

// take adds a test and the blocks that it runs, such as "castellan/domain/x/y.go:12.2,14.16 2 1".
func (r *reach) take(t reachTest, profile []string) error {
	i := len(r.Tests)
	r.Tests = append(r.Tests, t)
	for _, line := range profile {
		name, rest, _ := strings.Cut(line, ":")
		_, name, _ = strings.Cut(name, "/") // without the module
		var b block
		var column int
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d", &b.From, &column, &b.To, &column); err != nil {
			return fmt.Errorf("profile of %s: %q: %w", t.Name, line, err)
		}
		at := slices.IndexFunc(r.Blocks[name], func(o block) bool { return o.From == b.From && o.To == b.To })
		if at < 0 {
			at = len(r.Blocks[name])
			r.Blocks[name] = append(r.Blocks[name], b)
		}
		bits := &r.Blocks[name][at].Tests
		for len(*bits) <= i/8 {
			*bits = append(*bits, 0)
		}
		(*bits)[i/8] |= 1 << (i % 8)
	}
	return nil
}

// others returns the tests of other packages that run a line, by package. The quickest package comes first.
func (r *reach) others(file string, line int) [][]reachTest {
	seen := make([]bool, len(r.Tests))
	byDir := map[string][]reachTest{}
	for _, b := range r.Blocks[filepath.ToSlash(file)] {
		if line < b.From || line > b.To {
			continue
		}
		for i, t := range r.Tests {
			if i/8 < len(b.Tests) && b.Tests[i/8]&(1<<(i%8)) != 0 && !seen[i] && t.Dir != filepath.Dir(file) {
				seen[i] = true
				byDir[t.Dir] = append(byDir[t.Dir], t)
			}
		}
	}
	var all [][]reachTest
	for _, tests := range byDir {
		all = append(all, tests)
	}
	slices.SortFunc(all, func(a, b []reachTest) int {
		return cmp.Or(cmp.Compare(seconds(a), seconds(b)), cmp.Compare(a[0].Dir, b[0].Dir))
	})
	return all
}

func seconds(tests []reachTest) (sum float64) {
	for _, t := range tests {
		sum += t.Seconds
	}
	return sum
}

// try returns whether a test of another package finds the fault.
func (r *reach) try(ctx context.Context, m mutant, source []byte, floor time.Duration) (outcome, error) {
	for _, tests := range r.others(m.file, m.line) {
		names := make([]string, len(tests))
		for i, t := range tests {
			names[i] = regexp.QuoteMeta(t.Name)
		}
		run := &goRunner{root: r.root, dir: tests[0].Dir, temp: r.temp, tested: true,
			only: "^(" + strings.Join(names, "|") + ")$"}
		bound := max(floor, time.Duration(10*seconds(tests)*float64(time.Second)))
		if got, _, err := run.try(ctx, m.file, source, bound); err != nil || got != survived {
			return got, err
		}
	}
	return survived, nil
}
