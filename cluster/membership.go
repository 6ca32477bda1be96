package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"

	"crypto/tls"

	"github.com/hashicorp/memberlist"
)

// Options say how a node takes part in a cluster.
type Options struct {
	GossipAddr string   // host:port of the membership protocol
	ActorAddr  string   // host:port at which others reach the actors of this node
	Join       []string // gossip addresses of members; nobody there yet is no error
	Keys       *Keys    // nil: in the clear, on loopback only
	Version    string   // of the program, shown to the others
	Log        *slog.Logger
}

// ErrKeys means that a node beyond loopback has no keys.
var ErrKeys = errors.New("cluster: beyond loopback a node needs keys")

// New makes a node of a cluster. It reaches nobody, and nobody reaches it,
// before Start. Register its kinds before that.
func New(o Options) (*Node, error) {
	for _, addr := range []string{o.GossipAddr, o.ActorAddr} {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		ip, err := net.ResolveIPAddr("ip", host)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		if host == "" || ip.IP.IsUnspecified() {
			return nil, fmt.Errorf("cluster: %s is no address at which others reach this node", addr)
		}
		if o.Keys == nil && !ip.IP.IsLoopback() {
			return nil, fmt.Errorf("%w: %s", ErrKeys, addr)
		}
	}
	n := newNode(o.Log)
	now := time.Now()
	f := &fleet{n: n, o: o, log: o.Log, started: now, kick: make(chan struct{}, 1),
		self:  Member{ID: fmt.Sprintf("%s~%016x", o.ActorAddr, now.UnixNano()), Address: o.ActorAddr, Version: o.Version},
		peers: map[string]Member{}, links: map[string]*link{}, claims: map[identity]*claim{}, moved: map[identity]time.Time{}, seen: map[string]bool{}, lost: map[string]Member{}, conns: map[net.Conn]bool{}}
	if o.Keys != nil {
		f.tls = o.Keys.config()
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	changed := make(chan struct{})
	f.changed.Store(&changed)
	f.alone.Store(true)
	f.known.Store(&map[string]Member{f.self.ID: f.self})
	f.ring.Store(newRing([]Member{f.self}))
	n.fleet = f
	return n, nil
}

// Start opens the listeners of a node made by New and joins the others. A node
// that reaches nobody is a cluster of one until somebody is reached; it keeps
// trying. On a node that is alone it does nothing.
func (n *Node) Start() error {
	f := n.fleet
	if f == nil {
		return nil
	}
	l, err := net.Listen("tcp", f.o.ActorAddr)
	if err != nil {
		return fmt.Errorf("cluster: listen for actors: %w", err)
	}
	if f.tls != nil {
		l = tls.NewListener(l, f.tls)
	}
	f.listener = l
	c, err := f.gossipConfig()
	if err == nil {
		f.gossip, err = memberlist.Create(c)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cluster: gossip: %w", err), l.Close())
	}
	f.joining.Store(true)
	f.work.Go(f.accept)
	f.work.Go(f.loop)
	f.enter()
	f.joining.Store(false)
	f.rebuildSoon()
	f.work.Go(f.keepJoining)
	return nil
}

// enter asks one seed after the other until one takes this node in, and has told
// it of all others. Before that the node owns nothing: it would not know who else
// does. The other seeds are asked later.
func (f *fleet) enter() {
	for _, seed := range f.o.Join {
		if f.join(seed); f.others() > 0 {
			return
		}
	}
}

// others is how many other members the gossip knows.
func (f *fleet) others() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.peers)
}

// rebuildSoon has what a join has told be in force before anything is asked.
func (f *fleet) rebuildSoon() {
	f.wake()
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if peers := f.others(); len(*f.known.Load()) == peers+1 && (peers == 0 || f.holds()) {
			return
		}
	}
}

func (f *fleet) gossipConfig() (*memberlist.Config, error) {
	host, port, err := net.SplitHostPort(f.o.GossipAddr)
	if err != nil {
		return nil, err
	}
	ip, err := net.ResolveIPAddr("ip", host)
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	c := memberlist.DefaultLANConfig()
	c.Name = f.self.ID // a restarted process is a new member
	c.BindAddr, c.BindPort = ip.String(), number
	c.AdvertiseAddr, c.AdvertisePort = ip.String(), number
	// A member is given up after 1.6 s of suspicion: longer than the lease, so
	// that it does not serve any more, and long enough for a busy one to say
	// that it lives.
	c.ProbeInterval, c.ProbeTimeout = 400*time.Millisecond, 250*time.Millisecond
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 4, 1
	c.GossipInterval = 100 * time.Millisecond
	c.TCPTimeout = 2 * time.Second
	c.PushPullInterval = 10 * time.Second
	if f.o.Keys != nil {
		c.SecretKey = f.o.Keys.gossip
	}
	c.Delegate, c.Events = (*delegate)(f), (*events)(f)
	c.Logger = log.New(gossipLog{f.log}, "", 0)
	return c, nil
}

// gossipLog writes the library's lines at debug level: most of them tell of
// networks that do what networks do.
type gossipLog struct{ log *slog.Logger }

func (g gossipLog) Write(p []byte) (int, error) {
	g.log.Debug("cluster: gossip", "line", strings.TrimSpace(string(p)))
	return len(p), nil
}

// join asks seeds to take this node in.
func (f *fleet) join(seeds ...string) {
	if len(seeds) == 0 {
		return
	}
	if _, err := f.gossip.Join(seeds); err != nil {
		f.log.Debug("cluster: not every node to join was reached", "err", err)
	}
}

// keepJoining looks for seeds that were not there before, and for the others
// after a split.
func (f *fleet) keepJoining() {
	for i := 0; ; i++ {
		select {
		case <-time.After(time.Second):
		case <-f.ctx.Done():
			return
		}
		if !f.away.Load() && (f.others() < len(f.o.Join) || i%10 == 0) {
			f.join(f.o.Join...)
		}
	}
}

// meta travels with the gossip, in 512 bytes at most.
type meta struct {
	Actor   string `json:"a"`
	Version string `json:"v,omitempty"`
	Leaving bool   `json:"l,omitempty"`
	Epoch   uint64 `json:"e,omitempty"`
}

// delegate and events are what the gossip calls. It holds locks of its own
// meanwhile: they only note.
type (
	delegate fleet
	events   fleet
)

func (d *delegate) NodeMeta(limit int) []byte {
	b, err := json.Marshal(meta{d.self.Address, d.self.Version[:min(len(d.self.Version), 64)], d.away.Load(), d.epoch.Load()})
	if err != nil || len(b) > limit {
		return nil
	}
	return b
}
func (d *delegate) NotifyMsg([]byte)                {}
func (d *delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (d *delegate) LocalState(bool) []byte          { return nil }
func (d *delegate) MergeRemoteState([]byte, bool)   {}

func (e *events) NotifyJoin(n *memberlist.Node)   { e.note(n) }
func (e *events) NotifyUpdate(n *memberlist.Node) { e.note(n) }
func (e *events) NotifyLeave(n *memberlist.Node) {
	e.mu.Lock()
	delete(e.peers, n.Name)
	e.mu.Unlock()
	(*fleet)(e).wake()
}

func (e *events) note(n *memberlist.Node) {
	var m meta
	if n.Name == e.self.ID || json.Unmarshal(n.Meta, &m) != nil {
		return
	}
	if host, port, err := net.SplitHostPort(m.Actor); err != nil || host == "" || port == "" {
		return // nobody could reach it
	}
	e.mu.Lock()
	e.peers[n.Name] = Member{ID: n.Name, Address: m.Actor, Version: m.Version, Leaving: m.Leaving, Epoch: m.Epoch}
	e.mu.Unlock()
	(*fleet)(e).wake()
}

// announce tells the others what has changed of this node.
func (f *fleet) announce() {
	f.wake()
	f.work.Go(func() {
		if err := f.gossip.UpdateNode(time.Second); err != nil {
			f.log.Debug("cluster: an announcement was not confirmed", "err", err)
		}
	})
}

// Leave announces that this node goes and lets go of its activations. Calls
// from here and what others still wait for are carried on. It returns when
// nothing lives here any more, or when ctx ends.
func (n *Node) Leave(ctx context.Context) {
	f := n.fleet
	if f == nil || f.gossip == nil || f.away.Swap(true) {
		return
	}
	f.announce()
	for seen := f.rebuilds.Load(); f.rebuilds.Load() < seen+2; {
		select {
		case <-time.After(2 * time.Millisecond):
			f.wake()
		case <-f.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
	}
	for _, w := range f.sweep() {
		select {
		case <-w:
		case <-ctx.Done():
			return
		}
	}
	f.part(ctx)
}

// partTime is how long a node that leaves waits for the others to know it, and
// partGrace how long for what they had sent before.
const (
	partTime  = 2 * time.Second
	partGrace = 50 * time.Millisecond
)

// part waits until no member that answers asks this node for anything.
func (f *fleet) part(ctx context.Context) {
	for end := time.Now().Add(partTime); time.Now().Before(end); {
		waits := false
		f.mu.Lock()
		for id, l := range f.links {
			_, belongs := f.peers[id]
			waits = waits || belongs && l.now.Load() != nil && !l.quiet() && !l.parted.Load()
		}
		f.mu.Unlock()
		pause := 10 * time.Millisecond
		if !waits {
			pause = partGrace
		}
		select {
		case <-time.After(pause):
		case <-f.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
		if !waits {
			return
		}
	}
}

// stop says goodbye and ends.
func (f *fleet) stop() {
	if f.gossip != nil && f.ctx.Err() == nil {
		if err := f.gossip.Leave(time.Second); err != nil {
			f.log.Debug("cluster: the goodbye was not heard", "err", err)
		}
	}
	f.end()
}

// end breaks off the membership and the links, as a crash does.
func (f *fleet) end() {
	f.cancel()
	if f.gossip != nil {
		if err := f.gossip.Shutdown(); err != nil {
			f.log.Debug("cluster: the gossip did not stop", "err", err)
		}
	}
	if f.listener != nil {
		f.listener.Close()
	}
	f.mu.Lock()
	for c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.work.Wait()
}

// OnMove has tell called after each change of who owns what; moved reports
// whether the activation of an identity is another one since. It must not block.
func (n *Node) OnMove(tell func(moved func(kind, id string) bool)) {
	if f := n.fleet; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.onMove = append(f.onMove, tell)
	}
}
