// Command testrun runs go test for the Makefile and prints what it does. Each package has a line as it ends, and a
// failed test its whole output. The ten slowest packages and the number of tests come last.
//
//	go run ./internal/testrun [-part NAME] [-again] PACKAGE...
//
// The one idea: a tier is data. tiers.tsv lists the tests that make test leaves to make test-all, each with the part
// that runs it and the reason. Everything else always runs. With -again (.ci/run) a test that failed is run once more,
// alone. If it passes then, its name is printed as UNSTABLE. At most three may be unstable, and none that judges
// exactness, double execution, lost acknowledgements or access.
//
// Before the tests start, testrun installs what the chosen packages need and starts PostgreSQL if one of them uses it.
// Start reading at run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// unstableLimit is how many tests may fail once and pass alone.
const unstableLimit = 3

// againTimeout is how long the second run of a failed test may take.
const againTimeout = 10 * time.Minute

type options struct {
	part     string
	again    bool
	flags    []string // of go test
	patterns []string
}

func main() {
	o := options{}
	var race bool
	var parallel int
	var timeout time.Duration
	var tags string
	flag.StringVar(&o.part, "part", "", "run this part of make test-all (tiers.tsv) instead of what make test runs")
	flag.BoolVar(&o.again, "again", false, "run failed tests once more, alone; what passes then is UNSTABLE")
	flag.BoolVar(&race, "race", false, "run under the race detector (needs a C compiler)")
	flag.StringVar(&tags, "tags", "", "build tags")
	// One more than processors, because tests of processes mostly wait.
	flag.IntVar(&parallel, "p", runtime.NumCPU()+1, "packages tested at a time")
	flag.DurationVar(&timeout, "timeout", 30*time.Minute, "of each package")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: go run ./internal/testrun [flags] [package ...]")
		flag.PrintDefaults()
	}
	flag.Parse()
	o.patterns = flag.Args()
	if len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}
	// -count=1: the cache of tests knows no databases, browsers and other processes, and would repeat an old answer.
	// -vet=off: lint and quick vet every package, with more checks than go test has.
	o.flags = []string{"-vet=off", "-count=1", "-timeout", timeout.String(), "-p", strconv.Itoa(parallel)}
	// Compilers, linkers and tests live for seconds, and a larger heap saves a sixth of their processor time. A large
	// process keeps to the limit. Benchmarks have the usual heap.
	if os.Getenv("GOGC") == "" && o.part == "" && !race {
		os.Setenv("GOGC", "400")
		os.Setenv("GOMEMLIMIT", "1GiB")
	}
	if race {
		o.flags = append(o.flags, "-race")
	}
	if tags != "" {
		o.flags = append(o.flags, "-tags", tags)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) error {
	t, err := readTiers()
	if err != nil {
		return err
	}
	began := time.Now()
	packages, err := list(ctx, o.patterns)
	if err != nil {
		return err
	}
	picked, selection := t.choose(o.part, packages)
	if len(picked) == 0 {
		return fmt.Errorf("no tests: %s", strings.Join(o.patterns, " "))
	}
	command, err := prepared(ctx, out, picked)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d packages; the ones with the most work start first. %s\n", len(picked), t.left(o.part, packages))
	args := slices.Concat(command, []string{"go", "test", "-json"}, o.flags, selection, paths(picked))
	r := newReport(out)
	if err := stream(ctx, args, r); err != nil && len(r.failures()) == 0 {
		return fmt.Errorf("go test: %w", err)
	}
	r.slowest(10)
	failed := r.failures()
	unstable, verdict := judge(ctx, out, t, o, command, failed)
	for _, f := range unstable {
		fmt.Fprintf(out, "UNSTABLE %s\n", f)
	}
	fmt.Fprintf(out, "%d packages in %s, %d CPU seconds\n", r.packages, time.Since(began).Round(time.Second), used())
	// The plain form that CI systems count.
	fmt.Fprintf(out, "%d passed, %d failed\n", r.passed+len(unstable), len(failed)-len(unstable))
	return verdict
}

// used returns the seconds of processors that all ended processes below this one have used.
func used() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return int64(u.Utime.Sec + u.Stime.Sec)
}

// judge returns the failed tests that pass when they are run once more, alone. The error names the others. None is run
// again if one of them may not be, or if they are too many.
func judge(
	ctx context.Context, out io.Writer, t tiers, o options, command []string, failed []failure,
) (unstable []failure, err error) {
	red := failed
	if o.again && len(failed) <= unstableLimit && !slices.ContainsFunc(failed, t.red) {
		red = nil
		flags := slices.Clone(o.flags)
		flags[slices.Index(flags, "-timeout")+1] = againTimeout.String()
		for _, f := range failed {
			fmt.Fprintf(out, "again, alone: %s\n", f)
			r := newReport(out)
			err := stream(ctx, slices.Concat(command, []string{"go", "test", "-json"}, flags,
				[]string{"-run", "^" + regexp.QuoteMeta(f.test) + "$", f.pkg}), r)
			if err == nil && r.passed == 1 {
				unstable = append(unstable, f)
			} else {
				red = append(red, f)
			}
		}
	}
	if len(red) == 0 {
		return unstable, nil
	}
	names := make([]string, len(red))
	for i, f := range red {
		names[i] = f.String()
	}
	return unstable, fmt.Errorf("%d failed: %s", len(red), strings.Join(names, ", "))
}

// stream runs go test and passes each event to the report.
func stream(ctx context.Context, args []string, r *report) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go r.tick(done)
	return errors.Join(r.read(pipe), cmd.Wait())
}
