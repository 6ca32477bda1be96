package blackbox

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"castellan/internal/pgtest"
)

// Node is one running process of a site.
type Node struct {
	Client        // of its address
	Actors string // its address in a cluster

	t       testing.TB
	cmd     *exec.Cmd
	log     *record
	out     *record
	release func()
	ended   chan struct{} // closed once the process was reaped
	endedAt time.Time     // set before that
}

// For is the node for a subtest, which what goes wrong is told to.
func (n *Node) For(t testing.TB) *Node {
	of := *n
	of.t = t
	return &of
}

// Start starts the service with further settings (NAME=value, the name without
// its prefix) and returns when it serves.
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

// Run starts the program with other arguments and returns at once. It is ready when
// it writes where it serves.
func (s *Site) Run(args ...string) *Node {
	s.t.Helper()
	return s.begin(exec.Command(s.program(), args...), nil)
}

// RunRole is Run for a program of the test binary: one of the roles that Drive was given.
func (s *Site) RunRole(role string) *Node {
	s.t.Helper()
	return s.begin(exec.Command(os.Args[0], role), nil)
}

func (s *Site) begin(cmd *exec.Cmd, settings []string) *Node {
	s.t.Helper()
	n := &Node{t: s.t, cmd: cmd, log: newRecord(), out: newRecord(), ended: make(chan struct{})}
	n.cmd.Stdout, n.cmd.Stderr = n.out, n.log
	n.release = s.own(n.cmd, settings)
	if err := n.cmd.Start(); err != nil {
		n.release()
		s.t.Fatal(err)
	}
	go func() {
		n.cmd.Wait()
		n.endedAt = time.Now()
		n.release()
		close(n.ended)
	}()
	s.t.Cleanup(func() {
		n.Kill()
		if sign := alarm.FindString(n.Log()); sign != "" {
			s.t.Errorf("process %d met an error of its own: %s", n.cmd.Process.Pid, sign)
		}
		if s.t.Failed() {
			s.t.Logf("log of process %d:\n%s", n.cmd.Process.Pid, tail(n.Log(), 60))
		}
	})
	return n
}

// alarm is what no scenario may bring a process to write: errors of the
// service's own making, whatever caused them, and the words of Go's runtime.
var alarm = regexp.MustCompile(
	`(?m)^.*(level=ERROR|WARNING: DATA RACE|^panic: |^fatal error: |goroutine \d+ \[running).*$`,
)

// Ready waits until a process that was begun serves.
func (n *Node) Ready() {
	n.t.Helper()
	select {
	case addr := <-n.log.serving:
		n.Client = NewClient("http://" + addr)
	case <-n.ended:
		n.t.Fatalf("the service ended with %d:\n%s", n.cmd.ProcessState.ExitCode(), n.Log())
	case <-time.After(patience):
		n.t.Fatalf("the service does not serve after %v:\n%s", patience, n.Log())
	}
}

// PeakMemory is the most that the process ever had resident, in bytes.
func (n *Node) PeakMemory() int {
	n.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", n.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
	var kib int
	if err == nil {
		_, err = fmt.Sscanf(rest, "%d kB", &kib)
	}
	if err != nil {
		n.t.Fatalf("the peak memory of process %d: %v", n.cmd.Process.Pid, err)
	}
	return kib << 10
}

// Kill ends the process with SIGKILL, as a crash would, and returns when it is
// gone. Killing what has ended does nothing.
func (n *Node) Kill() {
	n.cmd.Process.Kill()
	<-n.ended
}

// Freeze stops the process where it is, as a paused machine does, and returns
// when it stands still; Thaw lets it go on.
func (n *Node) Freeze() { pgtest.Freeze(n.cmd.Process.Pid) }

// Thaw ends a Freeze.
func (n *Node) Thaw() { pgtest.Thaw(n.cmd.Process.Pid) }

// Terminate asks the process to end and returns at once; Wait tells how it did.
func (n *Node) Terminate() { n.cmd.Process.Signal(syscall.SIGTERM) }

// Wait waits for the process to end by itself and returns its exit status.
func (n *Node) Wait() int {
	n.t.Helper()
	select {
	case <-n.ended:
	case <-time.After(patience):
		n.t.Fatalf("the service does not end:\n%s", tail(n.Log(), 40))
	}
	return n.cmd.ProcessState.ExitCode()
}

// Stop ends the process in good order and fails the test when it does not
// exit with 0.
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
	case <-n.ended:
		return true
	default:
		return false
	}
}

// lived is when the process ended, now when it has not.
func (n *Node) lived() time.Time {
	if n.Ended() {
		return n.endedAt
	}
	return time.Now()
}

// Log is what the process has written to standard error so far.
func (n *Node) Log() string { return n.log.String() }

// Out is what the process has written to standard output so far.
func (n *Node) Out() string { return n.out.String() }

// record keeps what a process writes and notices the line that says where it
// serves.
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
