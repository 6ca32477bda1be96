package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"castellan/internal/child"
)

// tick is the kernel's unit for the time of other processes (USER_HZ, 100 on every Linux that runs here).
const tick = 10 * time.Millisecond

// cpu returns the processor time that a process has used so far, including its threads and, on request, its children.
func cpu(pid int, children bool) (time.Duration, error) {
	own, reaped, err := times(pid)
	if err != nil || !children {
		return own, err
	}
	total := own + reaped
	for _, one := range child.Children(pid) {
		if own, _, err := times(one); err == nil { // if it has ended, its time is counted in its parent by now
			total += own
		}
	}
	return total, nil
}

// times returns the time of a process itself, and that of its ended children.
func times(pid int) (own, reaped time.Duration, err error) {
	f := child.Stat(pid)
	if len(f) < 15 {
		return 0, 0, fmt.Errorf("invalid /proc stat line of process %d", pid)
	}
	var n [4]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(f[11+i], 10, 64); err != nil {
			return 0, 0, err
		}
	}
	return time.Duration(n[0]+n[1]) * tick, time.Duration(n[2]+n[3]) * tick, nil
}

// own returns the processor time of this process.
func own() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// busy returns the working time of all processors, for all processes.
func busy() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	first, _, _ := bytes.Cut(stat, []byte("\n"))
	var sum int64
	for i, f := range strings.Fields(string(first)) {
		if n, err := strconv.ParseInt(f, 10, 64); err == nil && i != 4 && i != 5 &&
			i < 9 { // neither idle, nor waiting for a disk, nor guests (counted already)
			sum += n
		}
	}
	return time.Duration(sum) * tick
}

// processors returns how many processors this process, and so the service, may use.
func processors() int { return runtime.GOMAXPROCS(0) }

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); err == nil && len(f) > 2 {
		return strings.Join(f[:3], " ")
	}
	return "unknown"
}
