// Package blackbox drives a started castellan from outside, as operators and clients do. It covers processes with their
// environment and their signals, HTTP, the socket, the contents of the outbox, and the files on the disk.
//
// The one idea: the program under test is a separate process. So it can be killed at any moment, restarted on its
// remaining data, and run twice on one database. Tests of Drive start castellan, which is built once for all packages
// (build.go). For a package with Main the test binary is the program: Main starts the tests or, in a process that a
// Site started, the program instead.
//
// Start reading at Site in site.go, then client.go and flow.go. Steps that several packages of tests share begin at
// Admin in admin.go; a step of one package stays there. Nothing here reads the internals of the service; a scenario
// queries the database itself, with Count, for data that is invisible outside.
package blackbox

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/internal/load"
	"castellan/internal/pgtest"
)

// childEnv is set in processes that a Site started.
const childEnv = "BLACKBOX_PROGRAM"

// itself is set if the program under test is the test binary.
var itself bool

// side is how many tests run in parallel by default: they wait for processes and for time more than they compute.
const side = 6

// Main is the TestMain of a package whose test binary is the program under test: main is the program's own.
func Main(m *testing.M, main func()) {
	itself = true
	begin(m, main)
}

// Drive is the TestMain of a package whose tests start castellan. The roles are programs, by name, that tests run
// beside it with Site.RunRole.
func Drive(m *testing.M, roles map[string]func()) {
	begin(m, func() {
		role := roles[strings.Join(os.Args[1:], " ")]
		if role == nil {
			fmt.Fprintf(os.Stderr, "%s: no role %q\n", os.Args[0], os.Args[1:])
			os.Exit(2)
		}
		role()
	})
}

func begin(m *testing.M, program func()) {
	if os.Getenv(childEnv) == "" {
		flag.Parse()
		if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
			flag.Set("test.parallel", strconv.Itoa(side))
		}
		code := m.Run()
		removeProgram()
		os.Exit(code)
	}
	program()
}

// Databases are the two that the service supports.
var Databases = []string{"sqlite", "postgres"}

// OnBoth runs a scenario on SQLite and on PostgreSQL in parallel, each with a separate site in development mode.
func OnBoth(t *testing.T, scenario func(t *testing.T, s *Site)) {
	t.Helper()
	t.Parallel()
	for _, kind := range Databases {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			scenario(t, NewSite(t, kind))
		})
	}
}

// EnvStories names the variable by which make test-all runs stories on both databases: with the value both, Story is
// OnBoth.
const EnvStories = "CASTELLAN_TEST_STORIES"

// Story is OnBoth for a scenario whose subject is no restart, kill, race or command beside the service. Tests of http
// and persistence try its reads and writes on both databases, so make test runs it on one. The name of the test decides
// which, so that each database has half of the stories. make quick, which has no PostgreSQL, runs all on SQLite.
func Story(t *testing.T, scenario func(t *testing.T, s *Site)) {
	t.Helper()
	t.Parallel()
	for _, kind := range StoryKinds(t.Name()) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			scenario(t, NewSite(t, kind))
		})
	}
}

// StoryKinds returns the databases of a story with this name.
func StoryKinds(name string) []string {
	switch {
	case os.Getenv(pgtest.EnvDatabases) == "sqlite":
		return []string{"sqlite"}
	case os.Getenv(EnvStories) == "both":
		return Databases
	}
	sum := sha256.Sum256([]byte(name))
	return []string{Databases[int(sum[0])%len(Databases)]}
}

// OnOne is OnBoth on one kind of database: for a scenario whose subject is the same on both, such as the browser. Its
// reads and writes have tests on both databases elsewhere.
func OnOne(t *testing.T, kind string, scenario func(t *testing.T, s *Site)) {
	t.Helper()
	t.Parallel()
	scenario(t, NewSite(t, kind))
}

// patience is how long a test waits for an expected event. It is no promise of the service, but a limit that even a
// slow machine keeps.
const patience = 60 * time.Second

// Until waits for a condition and fails the test if it does not become true within d. The failure says how busy the
// machine is.
func Until(t testing.TB, d time.Duration, what string, holds func() bool) {
	t.Helper()
	if !Becomes(d, holds) {
		t.Fatalf("after %v: not %s (%s)", d, what, load.Now())
	}
}

// Becomes reports whether a condition becomes true within d. It waits longer between the checks the longer one takes,
// because a check that starts a program would occupy a processor all the time, and the longer it has waited.
func Becomes(d time.Duration, holds func() bool) bool {
	for start := time.Now(); ; {
		began := time.Now()
		if holds() {
			return true
		}
		waited := time.Since(start)
		if waited > d {
			return false
		}
		time.Sleep(min(max(5*time.Millisecond, 2*time.Since(began), waited/10), 250*time.Millisecond))
	}
}
