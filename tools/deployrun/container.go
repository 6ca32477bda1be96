package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// mount is a folder or a file in a container. From is empty for an empty one in memory.
type mount struct {
	From, To string
	ReadOnly bool
}

// container is a process as an engine starts it.
type container struct {
	Name       string
	Root       string // folder of the image's files
	Mounts     []mount
	Env        []string
	Args       []string
	Dir        string
	UID, GID   int
	ReadOnly   bool
	NoCaps     bool // drop: ALL
	NoNewPrivs bool
	IP         string // "" without a network

	work string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	code int
}

// start runs the container's process as the first one of its namespaces.
func (c *container) start(work string) error {
	c.work = work
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if c.log, err = os.OpenFile(c.logFile(), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{self}
	if c.IP != "" {
		args = append([]string{"nsenter", "--net=/run/netns/" + netns(c.IP)}, args...)
	}
	c.cmd = exec.Command(args[0], args[1:]...)
	c.cmd.Env = append(os.Environ(), roleVar+"="+roleStart, "DEPLOYRUN_CONTAINER="+string(text))
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL,
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS}
	if c.IP == "" {
		c.cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWNET
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.done = make(chan struct{})
	go func() {
		_ = c.cmd.Wait()
		c.code = c.cmd.ProcessState.ExitCode()
		close(c.done)
	}()
	return nil
}

func (c *container) logFile() string { return filepath.Join(c.work, c.Name+".log") }

// stop sends SIGTERM and waits; a process that outlives the grace is an error.
func (c *container) stop(grace time.Duration) error {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.done:
		return nil
	case <-time.After(grace):
		_ = c.cmd.Process.Kill()
		<-c.done
		return fmt.Errorf("%s did not stop within %s", c.Name, grace)
	}
}

func (c *container) lives() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// exec runs another command in the container.
func (c *container) exec(stdin []byte, args ...string) (string, error) {
	in := filepath.Join(c.work, "stdin-"+c.Name)
	if err := os.WriteFile(in, stdin, 0o644); err != nil { // #nosec G306: the user of the container reads it
		return "", err
	}
	f, err := os.Open(in)
	if err != nil {
		return "", err
	}
	defer f.Close()
	all := append([]string{"--target", fmt.Sprint(c.cmd.Process.Pid), "--mount", "--net", "--pid", "--root", "--wd",
		"--setuid", fmt.Sprint(c.UID), "--setgid", fmt.Sprint(c.GID), "--"}, args...)
	cmd := exec.Command("nsenter", all...)
	cmd.Env, cmd.Stdin = c.Env, f
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %q: %w: %s", c.Name, args, err, out)
	}
	return string(out), nil
}

// becomeContainer is the first process of the namespaces: it makes its root and becomes the program.
func becomeContainer(text []byte) error {
	var c container
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	const root = "/run/root"
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil { // #nosec G301: the root of a container
		return err
	}
	if err := unix.Mount(c.Root, root, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	all := append([]mount{{From: "/dev", To: "/dev"}}, c.Mounts...)
	for _, m := range all {
		if err := place(root, m); err != nil {
			return fmt.Errorf("mount %s: %w", m.To, err)
		}
	}
	if err := place(root, mount{From: "proc", To: "/proc"}); err != nil {
		return err
	}
	if c.ReadOnly {
		if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return err
		}
	}
	if err := unix.Chroot(root); err != nil {
		return err
	}
	if err := os.Chdir(c.Dir); err != nil {
		return err
	}
	if c.NoCaps {
		for i := uintptr(0); unix.Prctl(unix.PR_CAPBSET_DROP, i, 0, 0, 0) == nil; i++ {
		}
	}
	if c.NoNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	for _, err := range []error{syscall.Setgroups([]int{c.GID}), syscall.Setgid(c.GID), syscall.Setuid(c.UID)} {
		if err != nil {
			return err
		}
	}
	path, err := lookPath(c.Args[0], c.Env)
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, syscall.Exec(path, c.Args, c.Env)) // #nosec G204: what the files say
}

// place mounts below the new root, and makes the mount point as the engines do.
func place(root string, m mount) error {
	to := filepath.Join(root, m.To)
	if info, err := os.Stat(m.From); err == nil && !info.IsDir() {
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { // #nosec G301: as the engines do
			return err
		}
		f, err := os.OpenFile(to, os.O_CREATE, 0o644) // #nosec G302: as the engines do
		if err != nil {
			return err
		}
		f.Close()
	} else if err := os.MkdirAll(to, 0o755); err != nil { // #nosec G301: as the engines do
		return err
	}
	switch m.From {
	case "":
		return unix.Mount("tmpfs", to, "tmpfs", 0, "mode=755")
	case "proc":
		return unix.Mount("proc", to, "proc", 0, "")
	}
	if err := unix.Mount(m.From, to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil || !m.ReadOnly {
		return err
	}
	return unix.Mount("", to, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	for _, v := range env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			for _, dir := range filepath.SplitList(path) {
				if p := filepath.Join(dir, name); unix.Access(p, unix.X_OK) == nil {
					return p, nil
				}
			}
		}
	}
	return "", fmt.Errorf("%s: not found", name)
}

// netns is the name of the network namespace of an address.
func netns(ip string) string { return "c" + strings.ReplaceAll(ip, ".", "-") }

// network makes a bridge with the addresses of a /24. The first address is that of the machine.
func network(bridge string, gateway string, ips ...string) error {
	if err := sh(fmt.Sprintf("ip link add %[1]s type bridge && ip addr add %[2]s/24 dev %[1]s && ip link set %[1]s up",
		bridge, gateway)); err != nil {
		return err
	}
	for _, ip := range ips {
		ns, last := netns(ip), ip[strings.LastIndex(ip, ".")+1:]
		if err := sh(fmt.Sprintf(`ip netns add %[1]s && ip link add %[2]s%[3]s type veth peer name eth0 netns %[1]s &&
			ip link set %[2]s%[3]s master %[2]s up && ip -n %[1]s addr add %[4]s/24 dev eth0 &&
			ip -n %[1]s link set eth0 up && ip -n %[1]s link set lo up &&
			ip -n %[1]s route add default via %[5]s`, ns, bridge, last, ip, gateway)); err != nil {
			return err
		}
	}
	return nil
}

func sh(script string) error {
	out, err := exec.Command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", script, err, bytes.TrimSpace(out))
	}
	return nil
}
