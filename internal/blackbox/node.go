package blackbox

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/child"
	"castellan/internal/load"
)

// Node is one running process of a site.
type Node struct {
	Client        // of its address
	Actors string // its address in a cluster

	*child.Process
	t   testing.TB
	log *record
	out *record
}

// For returns the node for a subtest, which receives its failures.
func (n *Node) For(t testing.TB) *Node {
	of := *n
	of.t = t
	return &of
}

// Start starts the service with further settings (NAME=value, the name without its prefix) and returns when it serves.
func (s *Site) Start(settings ...string) *Node {
	s.t.Helper()
	n := s.Begin(settings...)
	n.Ready()
	return n
}

// Begin starts the service and returns at once.
func (s *Site) Begin(settings ...string) *Node {
	s.t.Helper()
	s.fill()
	return s.begin(exec.Command(s.program(), "serve"), settings)
}

// Run starts the program with other arguments and returns at once. It is ready when it writes its address.
func (s *Site) Run(args ...string) *Node {
	s.t.Helper()
	return s.begin(exec.Command(s.program(), args...), nil)
}

// RunRole is Run for a program of the test binary: one of the roles of Drive.
func (s *Site) RunRole(role string) *Node {
	s.t.Helper()
	return s.begin(exec.Command(os.Args[0], role), nil)
}

func (s *Site) begin(cmd *exec.Cmd, settings []string) *Node {
	s.t.Helper()
	n := &Node{t: s.t, log: newRecord(), out: newRecord()}
	cmd.Env, cmd.Stdout, cmd.Stderr = s.environ(settings), n.out, n.log
	var err error
	if n.Process, err = child.Start(cmd); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		n.Kill()
		if sign := alarm.FindString(n.Log()); sign != "" {
			s.t.Errorf("process %d logged an internal error: %s", n.PID(), sign)
		}
		if s.t.Failed() {
			s.t.Logf("log of process %d:\n%s", n.PID(), tail(n.Log(), 60))
		}
	})
	return n
}

// alarm matches log lines that no scenario may cause: internal errors of the service, and the messages of Go's runtime.
var alarm = regexp.MustCompile(
	`(?m)^.*(level=ERROR|WARNING: DATA RACE|^panic: |^fatal error: |goroutine \d+ \[running).*$`,
)

// Ready waits until a started process serves.
func (n *Node) Ready() {
	n.t.Helper()
	select {
	case addr := <-n.log.serving:
		n.Client = NewClient("http://" + addr)
	case <-n.Process.Ended():
		n.t.Fatalf("the service ended with %d:\n%s", n.ExitCode(), n.Log())
	case <-time.After(patience):
		n.t.Fatalf("the service does not serve after %v (%s):\n%s", patience, load.Now(), n.Log())
	}
}

// PeakMemory returns the peak resident memory of the process, in bytes.
func (n *Node) PeakMemory() int {
	n.t.Helper()
	return int(storetest.Value(child.PeakResident(n.PID()))(n.t))
}

// Freeze stops the process, like a paused machine, and returns when every thread has stopped; Thaw resumes it.
func (n *Node) Freeze() { child.Freeze(n.PID()) }

// Thaw ends a Freeze.
func (n *Node) Thaw() { child.Thaw(n.PID()) }

// Wait waits for the process to end by itself and returns its exit status.
func (n *Node) Wait() int {
	n.t.Helper()
	select {
	case <-n.Process.Ended():
	case <-time.After(patience):
		n.t.Fatalf("the service does not end (%s):\n%s", load.Now(), tail(n.Log(), 40))
	}
	return n.ExitCode()
}

// Stop stops the process gracefully and fails the test if it does not exit with 0.
func (n *Node) Stop() {
	n.t.Helper()
	n.Terminate()
	if code := n.Wait(); code != 0 {
		n.t.Fatalf("the service ended with %d:\n%s", code, tail(n.Log(), 40))
	}
}

// Ended reports whether the process is gone.
func (n *Node) Ended() bool {
	select {
	case <-n.Process.Ended():
		return true
	default:
		return false
	}
}

// Log returns the standard error of the process so far.
func (n *Node) Log() string { return n.log.String() }

// Out returns the standard output of the process so far.
func (n *Node) Out() string { return n.out.String() }

// record keeps the output of a process and detects the line with its address.
type record struct {
	mu      sync.Mutex
	text    bytes.Buffer
	told    bool
	serving chan string
}

func newRecord() *record { return &record{serving: make(chan string, 1)} }

var servingLine = regexp.MustCompile(`(?m)^.*serving.*addr"?[=:]"?([0-9.]+:[0-9]+)`)

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.Write(p)
	if !r.told {
		if m := servingLine.FindSubmatch(r.text.Bytes()); m != nil {
			r.told = true
			r.serving <- string(m[1])
		}
	}
	return len(p), nil
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, "\n")
}
