package blackbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Net is a private network on this machine: a bridge, and a namespace behind it for each node. It needs root and
// iproute2; a machine without them fails the test.
type Net struct {
	t      testing.TB
	name   string
	prefix string
	made   int
}

// NewNet creates a network, which is removed when the test ends.
func NewNet(t testing.TB) *Net {
	t.Helper()
	n := &Net{
		t:      t,
		name:   fmt.Sprintf("cst%04x", rand.IntN(1<<16)),
		prefix: fmt.Sprintf("10.%d.%d.", 128+rand.IntN(100), rand.IntN(256)),
	}
	n.ip("link", "add", n.name, "type", "bridge")
	t.Cleanup(func() { n.undo("link", "del", n.name) })
	n.ip("addr", "add", n.prefix+"1/24", "dev", n.name)
	n.ip("link", "set", n.name, "up")
	return n
}

// Addr returns this machine's own address on the network.
func (n *Net) Addr() string { return n.prefix + "1" }

func (n *Net) ip(args ...string) {
	n.t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Fatalf("ip %s: %v: %s (a network of its own needs root and the Debian package iproute2)",
			strings.Join(args, " "), err, out)
	}
}

func (n *Net) undo(args ...string) {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		n.t.Errorf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Namespace is a network namespace of a Net with one address.
type Namespace struct {
	net  *Net
	name string
	port string // of the bridge
	Addr string
}

// Place creates a place.
func (n *Net) Place() *Namespace {
	n.t.Helper()
	n.made++
	p := &Namespace{
		net:  n,
		name: fmt.Sprint(n.name, "-", n.made),
		port: fmt.Sprint(n.name, "p", n.made),
		Addr: fmt.Sprint(n.prefix, 1+n.made),
	}
	n.ip("netns", "add", p.name)
	n.t.Cleanup(func() { n.undo("netns", "del", p.name) }) // after its last socket is closed
	n.t.Cleanup(func() { n.undo("link", "del", p.port) })
	n.ip("link", "add", p.port, "type", "veth", "peer", "name", "eth0", "netns", p.name)
	n.ip("-n", p.name, "addr", "add", p.Addr+"/24", "dev", "eth0")
	n.ip("-n", p.name, "link", "set", "lo", "up")
	n.ip("-n", p.name, "link", "set", "eth0", "up")
	n.ip("link", "set", p.port, "up")
	p.Heal()
	return p
}

// Cut drops every packet to and from the place, without an error to either side.
func (p *Namespace) Cut() { p.net.t.Helper(); p.net.ip("link", "set", p.port, "nomaster") }

// Heal ends a Cut.
func (p *Namespace) Heal() { p.net.t.Helper(); p.net.ip("link", "set", p.port, "master", p.net.name) }

// command runs a program there.
func (p *Namespace) command(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", p.name, name}, args...)...)
}

// dial connects from within the place, whether it is cut or not.
func (p *Namespace) dial(ctx context.Context, network, address string) (net.Conn, error) {
	type dialled struct {
		net.Conn
		error
	}
	back := make(chan dialled, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		f, err := os.Open(filepath.Join("/run/netns", p.name))
		if err == nil {
			defer f.Close()
			if err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
				err = fmt.Errorf("enter %s: %w", p.name, err)
			}
		}
		var c net.Conn
		if err == nil {
			c, err = new(net.Dialer).DialContext(ctx, network, address)
		}
		back <- dialled{c, err}
	}()
	d := <-back
	return d.Conn, d.error
}
