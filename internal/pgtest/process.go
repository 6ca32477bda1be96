package pgtest

import (
	"fmt"
	"io"
	"os/exec"
	"syscall"
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
