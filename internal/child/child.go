// Package child starts programs as child processes of benchmarks and tests.
//
// The one idea: on Linux a child never outlives the process that started it, because the kernel kills it with its
// parent. The kernel ties a child to the thread that started it, so each child has a goroutine that keeps its thread
// until the child ends. Start reading at Process.
package child

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Process is a started program. Its methods are safe for concurrent use, apart from Ask and ReadLine.
type Process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser // nil without Interact
	out   *bufio.Reader
	ended chan struct{}
	at    time.Time // set before ended is closed, like err
	err   error
}

// Self returns a command that starts this program again, with further environment variables.
func Self(variables ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variables...)
	return cmd, nil
}

// Build builds a package of this module. The folder of the caller is in the module.
func Build(file, pkg string, flags ...string) error {
	args := append(append([]string{"build", "-o", file}, flags...), pkg)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w: %s", pkg, err, out)
	}
	return nil
}

// Start starts a command.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	dieWithParent(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			p.at = time.Now()
			close(p.ended)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Interact starts a command that ends with its standard input and may answer each line of it with a line. Its standard
// error is that of this process.
func Interact(cmd *exec.Cmd) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe() // a pipe of the command would be closed with unread lines when the command ends
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd.Stdout, cmd.Stderr = w, os.Stderr
	p, err := Start(cmd)
	if err != nil {
		r.Close()
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(r)
	return p, nil
}

// Run runs a command to its end.
func Run(cmd *exec.Cmd) error {
	p, err := Start(cmd)
	if err != nil {
		return err
	}
	<-p.ended
	return p.err
}

// CombinedOutput runs a command to its end and returns its standard output and standard error.
func CombinedOutput(cmd *exec.Cmd) (string, error) {
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	err := Run(cmd)
	return out.String(), err
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Send writes a line to the input.
func (p *Process) Send(line string) error {
	_, err := io.WriteString(p.in, line+"\n")
	return err
}

// ReadLine returns the next line of the output, without its end.
func (p *Process) ReadLine() (string, error) {
	line, err := p.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// Ask sends a line and returns the answer.
func (p *Process) Ask(line string) (string, error) {
	if err := p.Send(line); err != nil {
		return "", err
	}
	return p.ReadLine()
}

// CloseInput asks a program of Interact to end and returns at once.
func (p *Process) CloseInput() { p.in.Close() }

// End asks a program of Interact to end and kills it after the limit. The error contains the rest of its output if the
// program failed.
func (p *Process) End(limit time.Duration) error {
	p.CloseInput()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.Kill()
		return fmt.Errorf("the child did not end within %s", limit)
	}
	if p.err == nil {
		return nil
	}
	rest, _ := io.ReadAll(p.out)
	return errors.Join(p.err, errors.New(strings.TrimSpace(string(rest))))
}

// Terminate asks the process to end and returns at once. An ended process is no error.
func (p *Process) Terminate() { p.cmd.Process.Signal(syscall.SIGTERM) }

// Kill ends the process with SIGKILL, as a crash would, and returns when it is gone.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.ended
}

// Ended is closed after the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// EndedAt returns when the process ended, or now if it has not.
func (p *Process) EndedAt() time.Time {
	select {
	case <-p.ended:
		return p.at
	default:
		return time.Now()
	}
}

// ExitCode returns the exit status of an ended process; -1 if a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// AwaitListener waits until an address accepts connections.
func AwaitListener(ctx context.Context, addr string) error {
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s accepts no connections: %w", addr, context.Cause(ctx))
		case <-time.After(10 * time.Millisecond):
		}
	}
}
