package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// freezeTimeout is how long Freeze waits for the threads of a process.
const freezeTimeout = 10 * time.Second

// Children lists the processes whose parent is pid.
func Children(pid int) []int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var children []int
	for _, path := range stats {
		fields := statFields(path)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			children = append(children, child)
		}
	}
	return children
}

// Alive is false for a process that is gone or only waits to be reaped: it holds no resources.
func Alive(pid int) bool {
	fields := Stat(pid)
	return len(fields) > 0 && fields[0] != "Z" && fields[0] != "X"
}

// Freeze stops a process, like a paused machine, and returns when every thread has stopped: the signal alone does not
// wait for that.
func Freeze(pid int) {
	syscall.Kill(pid, syscall.SIGSTOP)
	running := func(thread string) bool {
		fields := statFields(thread)
		return len(fields) > 0 && !strings.Contains("TZX", fields[0])
	}
	for deadline := time.Now().Add(freezeTimeout); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if !slices.ContainsFunc(threads, running) {
			return
		}
	}
}

// Thaw resumes a frozen process.
func Thaw(pid int) { syscall.Kill(pid, syscall.SIGCONT) }

// Resident returns the resident memory of a process, in bytes.
func Resident(pid int) (uint64, error) { return memory(pid, "VmRSS") }

// PeakResident returns the highest resident memory of a process so far, in bytes.
func PeakResident(pid int) (uint64, error) { return memory(pid, "VmHWM") }

func memory(pid int, name string) (kib uint64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\n"+name+":")
	if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
		return 0, fmt.Errorf("%s of process %d: %w", name, pid, err)
	}
	return kib << 10, nil
}

// Stat returns the fields of the kernel's stat file of a process from the state on; none if the process is gone.
func Stat(pid int) []string { return statFields(fmt.Sprintf("/proc/%d/stat", pid)) }

// statFields leaves out the number and the name. A name may contain spaces and parentheses; the fields begin after the
// last one.
func statFields(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}
