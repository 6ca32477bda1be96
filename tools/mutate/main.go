// Command mutate plants single faults in product code and counts how many of them the tests catch.
//
//	go -C tools run ./mutate -n 40 -seed 1 -reach /tmp/reach.json domain http/auth console
//
// Each path is a folder below the root. -n faults are chosen at random in each path; one seed always chooses the same
// faults in the same sources. The tree is never modified: the compiler reads the changed file from an overlay.
//
// A fault is caught when the tests of its package fail twice in a row, or exceed their time. With -reach the tests of
// other packages that run the line of the fault are tried too (reach.go). A fault that does not
// compile is replaced by another one and not counted. The path console means the modules of the console that have unit
// tests.
//
// Start reading at measure; golang.go and tokens.go find the possible faults.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

// mutant is one fault: the bytes from start to end of a file are replaced by text.
type mutant struct {
	unit       *target
	file       string // relative to the root
	line       int
	rule       string // the change, such as "negate condition"
	from       string // the replaced source in one line, for display
	start, end int
	text       string
}

// applied returns the source with the fault.
func (m mutant) applied(source []byte) []byte {
	out := append([]byte{}, source[:m.start]...)
	out = append(out, m.text...)
	return append(out, source[m.end:]...)
}

// target is compiled and tested together: a Go package, or the console.
type target struct {
	name   string
	run    runner
	tested bool          // whether there are tests
	bound  time.Duration // of one run; set by the baseline
	ready  bool          // whether the baseline is green
}

// outcome is the result of a fault.
type outcome int

const (
	survived outcome = iota
	caught
	timedOut // counts as caught
	broken   // does not compile: not counted
)

func (o outcome) String() string {
	return [...]string{"SURVIVED", "caught", "timeout", "not compiled"}[o]
}

// runner compiles a unit with one file replaced and runs its tests. A fault is caught if they fail twice. An empty file
// means the unchanged sources.
type runner interface {
	try(ctx context.Context, file string, source []byte, bound time.Duration) (outcome, string, error)
}

func main() {
	n := flag.Int("n", 40, "faults in each path")
	seed := flag.Uint64("seed", 1, "choice of the faults")
	root := flag.String("root", "..", "root of the project")
	floor := flag.Duration("timeout", time.Minute, "least time that a test run may take; it gets ten times its usual time")
	at := flag.String("at", "", "try only faults whose FILE:LINE matches this expression, such as those that survived")
	list := flag.Bool("list", false, "list the faults without running tests")
	reach := flag.String("reach", "", "also judge by tests of other packages that reach a line; this file keeps which\n"+
		"tests reach it, and is made in a quarter of an hour if it does not exist")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	abs, err := filepath.Abs(*root)
	chosen, wrong := regexp.Compile(*at)
	if err = errors.Join(err, wrong); err == nil {
		err = measure(ctx, options{root: abs, paths: flag.Args(), n: *n, seed: *seed, floor: *floor, list: *list,
			at: chosen, reach: *reach}, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

type options struct {
	root  string
	paths []string
	n     int
	seed  uint64
	floor time.Duration
	list  bool
	at    *regexp.Regexp // of FILE:LINE; nil: all
	reach string         // the file of -reach
}

// row is one line of the table.
type row struct {
	path      string
	places    int
	counts    [broken + 1]int
	untested  int // survivors in a package without tests
	survivors []mutant
}

func (r row) total() int  { return r.counts[survived] + r.caught() }
func (r row) caught() int { return r.counts[caught] + r.counts[timedOut] }

// measure plants the faults path by path and prints a table.
func measure(ctx context.Context, o options, w io.Writer) error {
	if len(o.paths) == 0 {
		return fmt.Errorf("no path: name folders below %s", o.root)
	}
	temp, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	var others *reach
	if o.reach != "" && !o.list {
		if others, err = readReach(ctx, o, temp, w); err != nil {
			return err
		}
	}
	var rows []row
	for _, path := range o.paths {
		all, err := find(o.root, path, temp)
		if err != nil {
			return err
		}
		r, err := plant(ctx, o, path, all, others, w)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	if !o.list {
		table(w, o, rows)
	}
	return nil
}

// find returns all possible faults in a path, in the order of the sources.
func find(root, path, temp string) ([]mutant, error) {
	if path == "console" {
		return findConsole(root, temp)
	}
	return findGo(root, path, temp)
}

// plant tries n of the faults in a random order, which depends only on the seed and the path.
func plant(ctx context.Context, o options, path string, all []mutant, others *reach, w io.Writer) (row, error) {
	r := row{path: path, places: len(all)}
	h := fnv.New64a()
	io.WriteString(h, path)
	for _, i := range rand.New(rand.NewPCG(o.seed, h.Sum64())).Perm(len(all)) {
		if r.total() >= o.n {
			break
		}
		m := all[i]
		if o.at != nil && !o.at.MatchString(fmt.Sprintf("%s:%d", m.file, m.line)) {
			continue
		}
		if o.list {
			r.counts[caught]++
			fmt.Fprintf(w, "%s:%d %s: %s → %s\n", m.file, m.line, m.rule, m.from, oneLine(m.text))
			continue
		}
		got, took, err := try(ctx, o, m, others)
		if err != nil {
			return r, err
		}
		r.counts[got]++
		fmt.Fprintf(w, "%-12s %5.1fs %s:%d %s: %s → %s\n", got, took.Seconds(), m.file, m.line, m.rule, m.from,
			oneLine(m.text))
		if got == survived {
			r.survivors = append(r.survivors, m)
		}
		if got == survived && !m.unit.tested {
			r.untested++
		}
	}
	return r, nil
}

// try runs the tests of a fault's unit. The first fault of a unit also runs its baseline.
func try(ctx context.Context, o options, m mutant, others *reach) (outcome, time.Duration, error) {
	if err := baseline(ctx, o, m.unit); err != nil {
		return 0, 0, err
	}
	source, err := os.ReadFile(filepath.Join(o.root, m.file))
	if err != nil {
		return 0, 0, err
	}
	start := time.Now()
	got, _, err := m.unit.run.try(ctx, m.file, m.applied(source), m.unit.bound)
	if err == nil && got == survived && others != nil {
		got, err = others.try(ctx, m, m.applied(source), o.floor)
	}
	return got, time.Since(start), errors.Join(err, ctx.Err())
}

// baseline runs the tests of a unit without a fault: they must pass, and their time sets the bound.
func baseline(ctx context.Context, o options, u *target) error {
	if u.ready || !u.tested {
		return nil
	}
	var out string
	for range 3 { // a test may fail by chance on a busy machine
		start := time.Now()
		got, text, err := u.run.try(ctx, "", nil, 10*o.floor)
		if err != nil {
			return err
		}
		if got == survived {
			u.ready, u.bound = true, max(o.floor, 10*time.Since(start))
			return nil
		}
		out = text
	}
	return fmt.Errorf("%s is red without a fault:\n%s", u.name, out)
}

// table prints the sums and the survivors.
func table(w io.Writer, o options, rows []row) {
	fmt.Fprintf(w, "\nseed %d, %d faults in each path\n\n", o.seed, o.n)
	fmt.Fprintln(w, "| path | places | faults | caught | by timeout | survived | in a package without tests | caught, % |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	sum := row{path: "**sum**"}
	line := func(r row) {
		share := 0.0
		if r.total() > 0 {
			share = 100 * float64(r.caught()) / float64(r.total())
		}
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %.1f |\n", r.path, r.places, r.total(), r.caught(),
			r.counts[timedOut], r.counts[survived], r.untested, share)
	}
	for _, r := range rows {
		line(r)
		sum.places += r.places
		sum.untested += r.untested
		for i := range r.counts {
			sum.counts[i] += r.counts[i]
		}
	}
	line(sum)
	fmt.Fprintf(w, "\n%d faults did not compile and are not counted.\n\nSurvivors:\n", sum.counts[broken])
	for _, r := range rows {
		for _, m := range r.survivors {
			fmt.Fprintf(w, "| %s:%d | %s | `%s` | `%s` |\n", m.file, m.line, m.rule, m.from, oneLine(m.text))
		}
	}
}
