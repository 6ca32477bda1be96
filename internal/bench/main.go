// Command bench measures the promises of the service and prints one table of medians of several rounds. The same rounds
// measure a bare request and a bare insert, because a number means nothing without the speed of the machine in that
// minute.
//
// Everything is real. The service runs in a separate process (this program, started again: see child.go) with its HTTP
// stack over loopback, SQLite with synchronous FULL, PostgreSQL with fsync, and audit on. Only the channels end in the
// process: messages are passed to the driver through a pipe, one write a message. The driver shares the processors with
// the service.
//
//	go run ./internal/bench [-rounds N] [-only NAME,…] [-on DATABASE] [-hash real] [-quick] [-calm 1m] [-profile DIR]
//
// With -program it compares versions of the service, round by round in turns (compare.go):
//
//	go run ./internal/bench -program old=/path/of/castellan -program new=bin/castellan [-only flow,firewall]
//
// On more than two processors start it under "taskset -c 0,1": the promises are made for two. Start reading at
// measurements.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"castellan/internal/pgtest"
)

// measurement is one table. run ends at the first failure of must, as a test ends at t.Fatal.
type measurement struct {
	name, about string
	run         func(*bench)
}

func (m measurement) measure(b *bench) error { return attempt(func() { m.run(b) }) }

// failure is the panic of must.
type failure struct{ error }

// must ends the measurement if there is an error. It is for the goroutine of the measurement.
func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// need returns the result of a call, which must succeed.
func need[T any](v T, err error) T {
	must(err)
	return v
}

// attempt runs a part of a measurement and returns the error that ended it.
func attempt(run func()) (err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	run()
	return nil
}

// within says in which part of a measurement an error occurred.
func within(part string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", part, err)
	}
	return nil
}

// measurements in the order in which they run.
var measurements = []measurement{
	{"flow", "whole logins under load, on both databases", flow},
	{"nodes", "whole logins on one node and on three of a cluster, on PostgreSQL", nodes},
	{"renewal", "renewals of sessions by their keys, on both databases", renewals},
	{"alone", "latency of the two steps without load", alone},
	{"password", "logins with the real hash: its neighbours, a crowd, a flood", passwords},
	{"storm", "right logins from known addresses beside a storm of wrong passwords", storm},
	{"begin", "size, start and idle memory of the program", begin},
	{"limits", "requests under a rate limit, on one node and on three that count together", limits},
	{"services", "limits of other services, by HTTP and by Envoy's gRPC, on both databases", serviceLimits},
	{"sockets", "memory of idle sockets on one node and on three, and the latency of an event", sockets},
	{"guard", "questions of gateways: without a route, without a session, and whole guarded requests", guarded},
	{"mailing", "logins with and without a mailing to all accounts", mailing},
	{"ledger", "movements of money: the committer, over HTTP, and two nodes on one PostgreSQL", movements},
	{"pages", "pages of a list of a million accounts", pages},
	{"console", "the operators' console in Chromium: time until its login works, and its size", operators},
	{"console-million", "pages of a list of a million accounts in Chromium", million},
	{"decoy", "known and unknown phones at the reset of a password", decoy},
}

// bench is the shared state of the measurements.
type bench struct {
	quick   bool
	smoke   bool // the minimum that shows that a measurement runs
	rounds  int
	clients int
	profile string // folder for CPU profiles; "" for none
	hash    string // of whole logins: cheap or real
	on      string // the only database to measure on; "" for both
	calm    time.Duration
	dir     string
	report  report

	programs programs // to be compared
	binary   string   // castellan, after it is built

	pg *pgtest.Server
}

// long returns a duration that -quick shortens.
func (b *bench) long(d time.Duration) time.Duration {
	return time.Duration(b.many(int(d), int(d/4), int(d/60)))
}

// many returns a number that depends on the thoroughness of the measurement.
func (b *bench) many(whole, quick, smoke int) int {
	switch {
	case b.smoke:
		return smoke
	case b.quick:
		return quick
	}
	return whole
}

// people returns how many accounts log in for the first time in a round.
func (b *bench) people() int { return b.many(people, people/4, 64) }

// await waits for a moment in which no other process works, if -calm is set: the work of other processes on a shared
// core affects every number.
func (b *bench) await() {
	const look, quiet = 200 * time.Millisecond, 0.1
	for began := time.Now(); time.Since(began) < b.calm; {
		from := busy() - own()
		time.Sleep(look)
		if (busy() - own() - from).Seconds() < quiet*look.Seconds() {
			return
		}
	}
}

// postgres returns the durable server of this run, started on first use.
func (b *bench) postgres() *pgtest.Server {
	if b.pg == nil {
		s := need(pgtest.Start(pgtest.Durable(), pgtest.Settings("shared_buffers=256MB")))
		b.pg = s
	}
	return b.pg
}

func main() {
	if role := os.Getenv(childRole); role != "" {
		os.Exit(runRole(role))
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	b := &bench{}
	only := flag.String("only", "", "measure these only, separated by commas")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds of which the median is taken")
	flag.IntVar(&b.clients, "clients", 128, "connections of the load")
	flag.BoolVar(&b.quick, "quick", false, "shorter rounds: a look, not a measurement")
	flag.BoolVar(&b.smoke, "smoke", false, "the shortest run that shows that a bench works")
	flag.Var(&b.programs, "program", "compare builds of castellan or of this bench: `NAME=PATH`, repeated")
	flag.StringVar(&b.on, "on", "", "measure on this database only: sqlite or postgresql")
	flag.StringVar(&b.hash, "hash", "cheap", "hash of whole logins: cheap, or real for that of the default parameters")
	flag.StringVar(&b.profile, "profile", "", "folder to write CPU profiles of the service under load to")
	flag.DurationVar(&b.calm, "calm", 0,
		"wait this long, at most, for others to leave the processors before each stretch of load")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: bench [flags]")
		flag.PrintDefaults()
		for _, m := range measurements {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-15s %s\n", m.name, m.about)
		}
		fmt.Fprintln(flag.CommandLine.Output(), "with -program:")
		for _, m := range comparisons {
			fmt.Fprintf(flag.CommandLine.Output(), "  %-15s %s\n", m.name, m.about)
		}
	}
	flag.Parse()
	if b.smoke {
		people = smokePeople
	}
	if b.hash != "cheap" && b.hash != "real" {
		return fmt.Errorf("-hash is cheap or real, not %q", b.hash)
	}
	all := measurements
	if len(b.programs) > 0 {
		all = comparisons
	}
	names := strings.FieldsFunc(*only, func(r rune) bool { return r == ',' })
	for _, n := range names {
		if !slices.ContainsFunc(all, func(m measurement) bool { return m.name == n }) {
			return fmt.Errorf("there is no measurement %q", n)
		}
	}
	if b.dir, err = os.MkdirTemp("", "bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	defer func() {
		if b.pg != nil {
			b.pg.Stop()
		}
	}()
	fmt.Printf("%d processors, %s, %d rounds, %d clients; load before: %s\n", runtime.NumCPU(), runtime.Version(),
		b.rounds, b.clients, loadAverage())
	for _, m := range all {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		if err := within(m.name, m.measure(b)); err != nil {
			return err
		}
		b.report.print(os.Stdout)
	}
	fmt.Printf("\nload after: %s\n", loadAverage())
	return nil
}
