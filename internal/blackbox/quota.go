package blackbox

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"castellan/internal/child"
)

// Quota limits some nodes together to that much processor time in every period, like a container with a limit. At worst
// it takes all of their processors away for the rest of a period. How names the method. Without writable control groups
// the nodes are stopped and resumed in turn.
type Quota struct {
	How  string
	lift func()
	done atomic.Bool
}

var quotas atomic.Int64

// Limit begins a Quota. It ends with Lift, at the latest with the test.
func Limit(t testing.TB, share, period time.Duration, nodes ...*Node) *Quota {
	t.Helper()
	name := fmt.Sprintf("castellan-%d-%d", os.Getpid(), quotas.Add(1))
	q := &Quota{}
	v1 := filepath.Join("/sys/fs/cgroup/cpu", name)
	v2 := filepath.Join("/sys/fs/cgroup", name)
	switch {
	case q.group(v1, nodes, map[string]string{"cpu.cfs_period_us": fmt.Sprint(period.Microseconds()),
		"cpu.cfs_quota_us": fmt.Sprint(share.Microseconds())}):
		q.How = "cpu.cfs_quota_us"
	case q.group(v2, nodes, map[string]string{
		"cpu.max": fmt.Sprint(share.Microseconds(), " ", period.Microseconds())}):
		q.How = "cpu.max"
	default:
		q.How = "SIGSTOP and SIGCONT"
		q.alternate(share, period, nodes)
	}
	t.Cleanup(q.Lift)
	return q
}

// Lift removes the limit.
func (q *Quota) Lift() {
	if !q.done.Swap(true) {
		q.lift()
	}
}

// group creates a control group of the nodes; false: it cannot be created.
func (q *Quota) group(dir string, nodes []*Node, limits map[string]string) bool {
	if os.Mkdir(dir, 0o755) != nil {
		return false
	}
	q.lift = func() {
		for _, n := range nodes { // back to the group above
			write(filepath.Join(filepath.Dir(dir), "cgroup.procs"), fmt.Sprint(n.PID()))
		}
		os.Remove(dir)
	}
	for file, text := range limits {
		if !write(filepath.Join(dir, file), text) {
			os.Remove(dir)
			return false
		}
	}
	for _, n := range nodes {
		if !write(filepath.Join(dir, "cgroup.procs"), fmt.Sprint(n.PID())) {
			q.lift()
			return false
		}
	}
	return true
}

// write writes a file that exists.
func write(path, text string) bool {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	_, err = f.WriteString(text)
	return f.Close() == nil && err == nil
}

// alternate lets the nodes run for their share of each period.
func (q *Quota) alternate(share, period time.Duration, nodes []*Node) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	q.lift = func() {
		close(stop)
		<-stopped
	}
	go func() {
		defer close(stopped)
		for {
			for _, n := range nodes {
				child.Freeze(n.PID())
			}
			wait(stop, period-share)
			for _, n := range nodes {
				child.Thaw(n.PID())
			}
			if wait(stop, share) {
				return
			}
		}
	}()
}

func wait(stop chan struct{}, d time.Duration) (stopped bool) {
	select {
	case <-stop:
		return true
	case <-time.After(d):
		return false
	}
}
