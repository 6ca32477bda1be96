package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// quiet is how long nothing may be printed before a line says what is running.
const quiet = 30 * time.Second

// event is a line of go test -json (go doc test2json), or of a build (go help buildjson).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// failure names a test, or a package that failed without one.
type failure struct{ pkg, test string }

func (f failure) String() string {
	if f.test == "" {
		return strings.TrimPrefix(f.pkg, module)
	}
	return strings.TrimPrefix(f.pkg, module) + "." + f.test
}

// report prints the results of packages as they end. Its methods are safe for concurrent use.
type report struct {
	mu       sync.Mutex
	out      io.Writer
	printed  time.Time
	running  map[string]time.Time
	output   map[failure]*bytes.Buffer // of tests that have not ended, and of packages
	failed   map[string][]failure      // by package
	took     map[string]float64        // s, by package
	longest  map[string]event          // the slowest test of each package
	passed   int                       // tests, without subtests
	packages int
}

func newReport(out io.Writer) *report {
	return &report{out: out, printed: time.Now(), running: map[string]time.Time{}, output: map[failure]*bytes.Buffer{},
		failed: map[string][]failure{}, took: map[string]float64{}, longest: map[string]event{}}
}

func (r *report) read(from io.Reader) error {
	for lines := bufio.NewReader(from); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				e = event{Action: "output", Output: string(line)} // of what starts go test
			}
			r.take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) take(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	top, _, _ := strings.Cut(e.Test, "/")
	of := failure{e.Package, top}
	switch e.Action {
	case "start":
		r.running[e.Package] = time.Now()
	case "output", "build-output":
		if e.Package == "" { // of the compiler or of go test itself
			r.print(e.Output)
			return
		}
		if strings.HasPrefix(e.Output, "=== ") { // a test runs, pauses or continues
			return
		}
		if r.output[of] == nil {
			r.output[of] = &bytes.Buffer{}
		}
		r.output[of].WriteString(e.Output)
	case "pass", "skip", "fail":
		if e.Test != top {
			return // a subtest: its test prints it
		}
		if e.Test == "" {
			r.end(e)
			return
		}
		if e.Elapsed > r.longest[e.Package].Elapsed {
			r.longest[e.Package] = e
		}
		if e.Action == "fail" {
			r.failed[e.Package] = append(r.failed[e.Package], of)
			if r.output[of] != nil {
				r.print(r.output[of].String())
			}
		} else if e.Action == "pass" {
			r.passed++
			r.unchecked(of)
		}
		delete(r.output, of)
	}
}

// unchecked prints what a passed test could not check on this machine.
func (r *report) unchecked(of failure) {
	if r.output[of] == nil {
		return
	}
	for line := range strings.Lines(r.output[of].String()) {
		if strings.Contains(line, "NOT CHECKED") {
			r.print(of.String() + ": " + line)
		}
	}
}

// end prints the line of a package.
func (r *report) end(e event) {
	delete(r.running, e.Package)
	if e.Action == "skip" { // it has no tests
		return
	}
	r.packages++
	r.took[e.Package] = e.Elapsed
	if e.Action == "pass" {
		r.print(fmt.Sprintf("ok  \t%s\t%.1fs\n", e.Package, e.Elapsed))
		return
	}
	// A crash leaves the output in the tests that were running, and no result of them. The package's own output ends
	// with its line.
	if len(r.failed[e.Package]) == 0 {
		r.failed[e.Package] = []failure{{e.Package, ""}}
		byName := func(a, b failure) int { return cmp.Compare(a.test, b.test) }
		for _, of := range slices.SortedFunc(maps.Keys(r.output), byName) {
			if of.pkg == e.Package {
				r.print(r.output[of].String())
			}
		}
	} else if own := r.output[failure{e.Package, ""}]; own != nil {
		r.print(own.String())
	}
}

func (r *report) print(text string) {
	r.printed = time.Now()
	io.WriteString(r.out, text)
}

// tick says what is running if nothing else was printed for a while.
func (r *report) tick(done <-chan struct{}) {
	for every := time.NewTicker(time.Second); ; {
		select {
		case <-done:
			every.Stop()
			return
		case <-every.C:
		}
		r.mu.Lock()
		if time.Since(r.printed) >= quiet {
			r.print(r.now(time.Now()))
		}
		r.mu.Unlock()
	}
}

func (r *report) now(at time.Time) string {
	if len(r.running) == 0 {
		return "... compiling and linking\n"
	}
	var names []string
	for _, pkg := range slices.Sorted(maps.Keys(r.running)) {
		since := at.Sub(r.running[pkg]).Round(time.Second)
		names = append(names, fmt.Sprintf("%s (%s)", strings.TrimPrefix(pkg, module), since))
	}
	return "... running: " + strings.Join(names, ", ") + "\n"
}

func (r *report) failures() (all []failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, pkg := range slices.Sorted(maps.Keys(r.failed)) {
		all = append(all, r.failed[pkg]...)
	}
	return all
}

// slowest prints the packages that took the longest, each with its slowest test.
func (r *report) slowest(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.SortedFunc(maps.Keys(r.took), func(a, b string) int { return cmp.Compare(r.took[b], r.took[a]) })
	if len(names) < 2 {
		return
	}
	fmt.Fprintln(r.out, "slowest packages:")
	for _, name := range names[:min(n, len(names))] {
		e := r.longest[name]
		fmt.Fprintf(r.out, "  %6.1f s  %s (%s %.1f s)\n", r.took[name], strings.TrimPrefix(name, module), e.Test, e.Elapsed)
	}
}
