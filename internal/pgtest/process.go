package pgtest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// janitor is a shell that outlives this process and then stops the server and removes its folder. It waits for the end
// of its standard input, which comes with the end of this process, even by SIGKILL. (The kernel's parent-death signal
// is unsuitable: it follows the thread that started the child, so the server would need a permanent thread and
// goroutine.)
type janitor struct {
	in  io.Closer
	cmd *exec.Cmd
}

// The working folder proves that the process with that number still is the server. It may still write after its signal,
// so the folder is removed until it stays removed.
const sweep = `
read -r _
pid=$(head -n 1 "$2/postmaster.pid") && [ "$(readlink "/proc/$pid/cwd")" = "$2" ] && kill -QUIT "$pid"
until rm -rf "$1"; do sleep 0.1; done`

func newJanitor(dir, data string) (*janitor, error) {
	// It must not share our output: go test waits until every holder has closed it.
	cmd := exec.Command("/bin/sh", "-c", sweep, "pgtest", dir, data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("pgtest: watch over the server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("pgtest: watch over the server: %w", err)
	}
	return &janitor{in, cmd}, nil
}

// close lets the janitor finish and reaps it.
func (j *janitor) close() {
	j.in.Close()
	j.cmd.Wait()
}

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var children []int
	for _, path := range stats {
		fields := statOf(path)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			children = append(children, child)
		}
	}
	return children
}

// alive is false for a process that is gone or only waits to be reaped: it holds no resources.
func alive(pid int) bool {
	fields := statOf(fmt.Sprintf("/proc/%d/stat", pid))
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// Freeze stops a process, like a paused machine, and returns when every thread has stopped: the signal alone does not
// wait for that.
func Freeze(pid int) {
	syscall.Kill(pid, syscall.SIGSTOP)
	stopped := func(thread string) bool {
		fields := statOf(thread)
		return len(fields) == 0 || strings.Contains("TZX", fields[0])
	}
	for deadline := time.Now().Add(stopTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if !slices.ContainsFunc(threads, func(thread string) bool { return !stopped(thread) }) {
			return
		}
	}
}

// Thaw resumes a frozen process.
func Thaw(pid int) { syscall.Kill(pid, syscall.SIGCONT) }

// statOf returns the fields of a /proc stat file from the state on. A program's name may contain spaces and
// parentheses; the fields begin after the last one.
func statOf(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}
