// Package blackbox drives a started castellan from outside, as operators and
// clients do: processes with their environment and their signals, HTTP, the
// socket, what came out of the outbox, and what is found on the disk.
//
// The one idea: the program under test is a process of its own, so that it can
// be killed at any moment, started again on what it left, and run twice on one
// database. Tests of Drive start castellan, which is built once for all packages
// (build.go). For a package with Main the test binary is the program: Main starts
// the tests, or, in a process that a Site started, the program in their place.
//
// Start reading at Site in site.go, then client.go and flow.go. Nothing here
// looks into the service; what a scenario cannot see from outside it asks of
// the database itself, with Count.
package blackbox

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childEnv is set in processes that a Site started.
const childEnv = "BLACKBOX_PROGRAM"

// itself is set if the program under test is the test binary.
var itself bool

// side is how many tests run side by side by default: they wait for processes
// and for time more than they compute.
const side = 6

// Main is the TestMain of a package whose test binary is the program under test:
// main is the program's own.
func Main(m *testing.M, main func()) {
	itself = true
	begin(m, main)
}

// Drive is the TestMain of a package whose tests start castellan. The roles are
// programs that tests run beside it by Site.RunRole, each by its name.
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
	go endWithOwner()
	program()
}

// endWithOwner ends this process with the one that started it, however that
// ends: the other end of the pipe is held by it alone.
func endWithOwner() {
	io.Copy(io.Discard, os.NewFile(3, "owner"))
	syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// patience is how long a test waits for what must come: no promise of the
// service, but the time after which a slow machine is no excuse.
const patience = 60 * time.Second

// Until waits for something to become true and fails the test when it does not
// within d.
func Until(t testing.TB, d time.Duration, what string, holds func() bool) {
	t.Helper()
	if !Within(d, holds) {
		t.Fatalf("after %v: not %s", d, what)
	}
}

// Within reports whether something becomes true within d.
func Within(d time.Duration, holds func() bool) bool {
	for deadline := time.Now().Add(d); ; time.Sleep(5 * time.Millisecond) {
		if holds() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
