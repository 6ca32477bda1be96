// Deployrun plays Docker Compose and Kubernetes as far as the files in deploy/ need them, and follows the commands in
// their headers. It needs root, PostgreSQL, nginx and iproute2, and no container engine.
//
// The one idea: a container is a process in namespaces of its own, under the user, environment, arguments and mounts
// that the files say. Its root is the last stage of the Dockerfile; the images postgres, nginx and busybox are played
// by the programs of this machine. Each volume has the owner and the mode that the real engine would give. A field that
// deployrun does not know is an error, so that no setting is silently without effect. It runs in its own network and
// process namespaces: nothing of it can be reached from the machine, or outlives it.
//
//	deployrun ROOT        follow deploy/ of a working copy
//
// Start reading at stories in story.go, then compose.go, kubernetes.go and container.go.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

const (
	roleVar    = "DEPLOYRUN_ROLE"   // what a process that deployrun starts from its own file is
	socketVar  = "DEPLOYRUN_SOCKET" // where the commands docker and kubectl are answered
	roleInside = "inside"
	roleStart  = "start"
)

func main() {
	var err error
	switch name := filepath.Base(os.Args[0]); {
	case name == "docker" || name == "kubectl":
		os.Exit(ask(name, os.Args[1:]))
	case os.Getenv(roleVar) == roleStart:
		err = becomeContainer([]byte(os.Getenv("DEPLOYRUN_CONTAINER")))
	case len(os.Args) != 2:
		err = errors.New("usage: deployrun ROOT")
	case os.Getenv(roleVar) == roleInside:
		err = inside(os.Args[1])
	default:
		err = enter(os.Args[1])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "deployrun:", err)
		os.Exit(1)
	}
}

// enter starts this program again in its own namespaces.
func enter(root string) error {
	if os.Geteuid() != 0 {
		return errors.New("it needs root for namespaces, users and mounts")
	}
	c := exec.Command("/proc/self/exe", root)
	c.Env = append(os.Environ(), roleVar+"="+roleInside)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET}
	return c.Run()
}

func inside(root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		from, to, kind string
		flags          uintptr
	}{{"", "/", "", syscall.MS_REC | syscall.MS_PRIVATE}, {"proc", "/proc", "proc", 0}, {"tmpfs", "/run", "tmpfs", 0}} {
		if err := syscall.Mount(m.from, m.to, m.kind, m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.to, err)
		}
	}
	work, err := os.MkdirTemp("", "deployrun-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o711); err != nil {
		return err
	}
	if err := run("ip", "link", "set", "lo", "up"); err != nil {
		return err
	}
	return stories(root, work)
}

func run(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// command is a call of docker or kubectl in the words of a header.
type command struct {
	Name  string
	Args  []string
	Dir   string
	Stdin []byte
}

type result struct {
	Out  string
	Code int
}

// ask has the runner answer a call of docker or kubectl.
func ask(name string, args []string) int {
	c := command{Name: name, Args: args}
	c.Dir, _ = os.Getwd()
	for _, arg := range args {
		if arg == "exec" { // the commands that read their input
			c.Stdin, _ = io.ReadAll(os.Stdin)
		}
	}
	var r result
	conn, err := net.Dial("unix", os.Getenv(socketVar))
	if err == nil {
		defer conn.Close()
		if err = json.NewEncoder(conn).Encode(c); err == nil {
			err = json.NewDecoder(conn).Decode(&r)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if r.Code != 0 {
		fmt.Fprint(os.Stderr, r.Out)
	} else {
		fmt.Print(r.Out)
	}
	return r.Code
}

// answer serves docker and kubectl to the words of a header; the returned path is their socket.
func answer(work string, do func(command) (string, error)) (string, error) {
	path := filepath.Join(work, "commands.sock")
	_ = os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return "", err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			var c command
			var r result
			if err := json.NewDecoder(conn).Decode(&c); err != nil {
				r = result{err.Error() + "\n", 1}
			} else if r.Out, err = do(c); err != nil {
				r = result{r.Out + err.Error() + "\n", 1}
			}
			_ = json.NewEncoder(conn).Encode(r)
			conn.Close()
		}
	}()
	return path, os.Chmod(path, 0o666) // #nosec G302: the operator of the story is another user
}
