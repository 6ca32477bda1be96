// Package blackbox drives a started castellan from outside, as operators and
// clients do: processes with their environment and their signals, HTTP, the
// socket, what came out of the outbox, and what is found on the disk.
//
// The one idea: the program under test is a process of its own, so that it can
// be killed at any moment, started again on what it left, and run twice on one
// database. The test binary is that program: Main starts the tests, or, in a
// process that a Site started, the program in their place.
//
// Start reading at Site in site.go, then client.go and flow.go. Nothing here
// looks into the service; what a scenario cannot see from outside it asks of
// the database itself, with Count.
package blackbox

import (
	"flag"
	"io"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// childEnv is set in processes that are to be the program.
const childEnv = "BLACKBOX_PROGRAM"

// side is how many tests run side by side by default: they wait for processes
// and for time more than they compute.
const side = 6

// Main is the TestMain of a package whose tests start the program: main is the
// program's own.
func Main(m *testing.M, main func()) {
	if os.Getenv(childEnv) == "" {
		flag.Parse()
		if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
			flag.Set("test.parallel", strconv.Itoa(side))
		}
		os.Exit(m.Run())
	}
	go endWithOwner()
	main()
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

// Within tells whether something becomes true within d.
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
