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
	ended   chan struct{} // closed after the process was reaped
	endedAt time.Time     // set before that
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
			s.t.Errorf("process %d logged an internal error: %s", n.cmd.Process.Pid, sign)
		}
		if s.t.Failed() {
			s.t.Logf("log of process %d:\n%s", n.cmd.Process.Pid, tail(n.Log(), 60))
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
	case <-n.ended:
		n.t.Fatalf("the service ended with %d:\n%s", n.cmd.ProcessState.ExitCode(), n.Log())
	case <-time.After(patience):
		n.t.Fatalf("the service does not serve after %v:\n%s", patience, n.Log())
	}
}

// PeakMemory returns the peak resident memory of the process, in bytes.
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

// Kill ends the process with SIGKILL, as a crash would, and returns when it is gone. Killing an ended process does
// nothing.
func (n *Node) Kill() {
	n.cmd.Process.Kill()
	<-n.ended
}

// Freeze stops the process, like a paused machine, and returns when every thread has stopped; Thaw resumes it.
func (n *Node) Freeze() { pgtest.Freeze(n.cmd.Process.Pid) }

// Thaw ends a Freeze.
func (n *Node) Thaw() { pgtest.Thaw(n.cmd.Process.Pid) }

// Terminate asks the process to end and returns at once; Wait returns its exit status.
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
	case <-n.ended:
		return true
	default:
		return false
	}
}

// lived returns when the process ended, or now if it has not.
func (n *Node) lived() time.Time {
	if n.Ended() {
		return n.endedAt
	}
	return time.Now()
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
