package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
)

// Options configure a node as a member of a cluster.
type Options struct {
	GossipAddr string   // host:port of the membership protocol
	ActorAddr  string   // host:port at which others reach the actors of this node
	Join       []string // gossip addresses of members, which need not answer yet
	Keys       *Keys    // nil: unencrypted, on loopback only
	Version    string   // of the program, shown to other members
	Log        *slog.Logger
}

// ErrKeys means that a node outside loopback has no keys.
var ErrKeys = errors.New("cluster: beyond loopback a node needs keys")

// New creates a node of a cluster. It opens no connection before Start. Register its kinds before Start.
func New(o Options) (*Node, error) {
	for _, addr := range []string{o.GossipAddr, o.ActorAddr} {
		at, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		if at.IP == nil || at.IP.IsUnspecified() {
			return nil, fmt.Errorf("cluster: other nodes cannot reach this node at %s", addr)
		}
		if o.Keys == nil && !at.IP.IsLoopback() {
			return nil, fmt.Errorf("%w: %s", ErrKeys, addr)
		}
	}
	n := newNode(o.Log)
	now, name := time.Now(), ""
	if o.Keys != nil {
		name = o.Keys.now.Load().name
	}
	ms := &membership{n: n, o: o, log: o.Log, started: now, kick: make(chan struct{}, 1),
		self:  Member{ID: newID(o.ActorAddr, now, name), Address: o.ActorAddr, Version: o.Version},
		peers: map[string]Member{}, links: map[string]*link{}, doubted: map[string]time.Time{},
		activating: map[identity]*pendingActivation{},
		moved:      map[identity]time.Time{}, seen: map[string]bool{}, unreachable: map[string]Member{},
		conns: map[net.Conn]bool{}}
	ms.met.Store(&[]byte{})
	ms.ctx, ms.cancel = context.WithCancel(context.Background())
	changed := make(chan struct{})
	ms.changed.Store(&changed)
	ms.alone.Store(true)
	ms.known.Store(&map[string]Member{ms.self.ID: ms.self})
	ms.ring.Store(newRing([]Member{ms.self}))
	n.membership, n.sys.ID = ms, ms.self.ID
	return n, nil
}

// Start opens the listeners of a node created by New and joins the other members. A node that reaches no other is a
// cluster of one, and retries. A node created by Solo opens nothing.
func (n *Node) Start() error { return n.provider.StartMember(n.library) }

func (ms *membership) start() error {
	l, err := net.Listen("tcp", ms.o.ActorAddr)
	if err != nil {
		return fmt.Errorf("cluster: listen for actors: %w", err)
	}
	ms.listener = l
	c, err := ms.gossipConfig()
	if err == nil {
		ms.gossip, err = memberlist.Create(c)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("cluster: gossip: %w", err), l.Close())
	}
	ms.joining.Store(true)
	ms.background.Go(ms.accept)
	ms.background.Go(ms.loop)
	if ms.o.Keys != nil {
		ms.background.Go(ms.watchKeys)
	}
	ms.enter()
	ms.awaitMembers()
	ms.joined.Store(true)
	ms.rebuildSoon()
	ms.background.Go(ms.keepJoining)
	return nil
}

// enter contacts one seed after the other until one has sent the list of all members. Before that the node owns
// nothing, because it does not have the other owners. The remaining seeds are contacted later.
func (ms *membership) enter() {
	for _, seed := range ms.o.Join {
		if ms.join(seed); ms.others() > 0 {
			return
		}
	}
}

// others returns the number of other nodes in the gossip.
func (ms *membership) others() int {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	return len(ms.peers)
}

// taken returns how many of them are members, and whether each connected one has accepted this node.
func (ms *membership) taken() (count int, mutual bool) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	mutual = true
	for id := range ms.peers {
		if l := ms.links[id]; l != nil && l.taken && !l.dead.Load() && !l.barred.Load() {
			count++
			mutual = mutual && (l.answers.Load() || l.current.Load() == nil)
		}
	}
	return count, mutual
}

// rebuildSoon waits until the members of a join are in the ring, and this node is in theirs. So after the start of a
// node, another one can be stopped: all members have both in their rings.
func (ms *membership) rebuildSoon() {
	for i, end := 0, time.Now().Add(time.Second); time.Now().Before(end); i++ {
		ms.wake()
		count, mutual := ms.taken()
		if !ms.joining.Load() && mutual && len(*ms.known.Load()) == count+1 && (ms.alone.Load() || ms.holdsLease()) {
			return
		}
		if i%5 == 4 { // a member that had not met this node yet may have done so by now
			ms.ping()
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (ms *membership) gossipConfig() (*memberlist.Config, error) {
	at, err := net.ResolveTCPAddr("tcp", ms.o.GossipAddr)
	if err != nil {
		return nil, err
	}
	c := memberlist.DefaultLANConfig()
	c.Name = ms.self.ID // a restarted process is a new member
	c.BindAddr, c.BindPort = at.IP.String(), at.Port
	c.AdvertiseAddr, c.AdvertisePort = c.BindAddr, c.BindPort
	// A member is given up after 1.6 s of suspicion. That is longer than the lease, so the member no longer serves, and
	// long enough for a busy member to answer.
	c.ProbeInterval, c.ProbeTimeout = 400*time.Millisecond, 250*time.Millisecond
	c.SuspicionMult, c.SuspicionMaxTimeoutMult = 4, 1
	c.GossipInterval = 100 * time.Millisecond
	c.TCPTimeout = 2 * time.Second
	c.PushPullInterval = 10 * time.Second
	if ms.o.Keys != nil {
		c.SecretKey = ms.o.Keys.now.Load().gossip
	}
	c.Delegate, c.Events = (*delegate)(ms), (*events)(ms)
	c.Logger = log.New(gossipLog{ms.log}, "", 0)
	return c, nil
}

// gossipLog writes the library's log lines at debug level: most of them report ordinary network errors.
type gossipLog struct{ log *slog.Logger }

func (g gossipLog) Write(p []byte) (int, error) {
	g.log.Debug("cluster: gossip", "line", strings.TrimSpace(string(p)))
	return len(p), nil
}

// join asks seeds to accept this node.
func (ms *membership) join(seeds ...string) {
	if len(seeds) == 0 {
		return
	}
	if _, err := ms.gossip.Join(seeds); err != nil {
		ms.log.Debug("cluster: some nodes to join were not reached", "err", err)
	}
}

// keepJoining contacts seeds that were down before, and the other component after a network split.
func (ms *membership) keepJoining() {
	for i := 0; ; i++ {
		select {
		case <-time.After(time.Second):
		case <-ms.ctx.Done():
			return
		}
		if !ms.announcedLeave.Load() && (ms.others() < len(ms.o.Join) || i%10 == 0) {
			ms.join(ms.o.Join...)
		}
	}
}

// meta is the node's information in the gossip, at most 512 bytes.
type meta struct {
	Actor   string `json:"a"`
	Version string `json:"v,omitempty"`
	Leaving bool   `json:"l,omitempty"`
	Epoch   uint64 `json:"e,omitempty"`
}

// delegate and events are called by the gossip library while it holds its own locks. So they only record the event.
type (
	delegate membership
	events   membership
)

func (d *delegate) NodeMeta(limit int) []byte {
	version := d.self.Version[:min(len(d.self.Version), 64)]
	b, err := json.Marshal(meta{d.self.Address, version, d.announcedLeave.Load(), d.epoch.Load()})
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
	(*membership)(e).giveUp(n.Name)
}

func (e *events) note(n *memberlist.Node) {
	var m meta
	if n.Name == e.self.ID || json.Unmarshal(n.Meta, &m) != nil {
		return
	}
	if host, port, err := net.SplitHostPort(m.Actor); err != nil || host == "" || port == "" {
		return // such a member cannot be reached
	}
	if at, _, _ := splitID(n.Name); at != m.Actor {
		return // a member never moves: its links would lead to another address than its place on the ring
	}
	ip, _ := netip.AddrFromSlice(n.Addr)
	e.mu.Lock()
	delete(e.doubted, n.Name)
	e.peers[n.Name] = Member{ID: n.Name, Address: m.Actor, Version: m.Version, Leaving: m.Leaving, Epoch: m.Epoch,
		gossipsAt: network(ip)}
	e.mu.Unlock()
	(*membership)(e).wake()
}

// announce notifies the other members that this node has changed.
func (ms *membership) announce() {
	ms.wake()
	ms.background.Go(func() {
		if err := ms.gossip.UpdateNode(time.Second); err != nil {
			ms.log.Debug("cluster: an announcement was not confirmed", "err", err)
		}
	})
}

// Leave announces that this node leaves, and releases its activations. Calls that are under way, from here and from
// other nodes, continue. It returns when no activation is left here, or when ctx ends.
func (n *Node) Leave(ctx context.Context) {
	ms := n.membership
	if ms == nil || ms.gossip == nil || ms.announcedLeave.Swap(true) {
		return
	}
	ms.announce()
	for seen := ms.rebuilds.Load(); ms.rebuilds.Load() < seen+2; {
		select {
		case <-time.After(2 * time.Millisecond):
			ms.wake()
		case <-ms.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
	}
	for _, w := range ms.retireForeign() {
		select {
		case <-w:
		case <-ctx.Done():
			return
		}
	}
	ms.awaitParting(ctx)
}

// partTime is how long a leaving node waits for the others to learn that it leaves. partGrace is how long it waits for
// messages that they sent before.
const (
	partTime  = 2 * time.Second
	partGrace = 50 * time.Millisecond
)

// awaitParting waits until no reachable member sends requests to this node.
func (ms *membership) awaitParting(ctx context.Context) {
	for end := time.Now().Add(partTime); time.Now().Before(end); {
		waits := false
		ms.mu.Lock()
		for id, l := range ms.links {
			_, belongs := ms.peers[id]
			waits = waits || belongs && l.current.Load() != nil && !l.unreachable() && !l.knowsLeave.Load()
		}
		ms.mu.Unlock()
		pause := 10 * time.Millisecond
		if !waits {
			pause = partGrace
		}
		select {
		case <-time.After(pause):
		case <-ms.ctx.Done():
			return
		case <-ctx.Done():
			return
		}
		if !waits {
			return
		}
	}
}

// stop sends a goodbye and ends.
func (ms *membership) stop() {
	if ms.gossip != nil && ms.ctx.Err() == nil {
		if err := ms.gossip.Leave(time.Second); err != nil {
			ms.log.Debug("cluster: the leave message was not delivered", "err", err)
		}
	}
	ms.end()
}

// end closes the membership and the links, as a crash does.
func (ms *membership) end() {
	ms.cancel()
	if ms.gossip != nil {
		if err := ms.gossip.Shutdown(); err != nil {
			ms.log.Debug("cluster: the gossip did not stop", "err", err)
		}
	}
	if ms.listener != nil {
		ms.listener.Close()
	}
	ms.mu.Lock()
	for c := range ms.conns {
		c.Close()
	}
	ms.mu.Unlock()
	ms.background.Wait()
}

// OnMove calls tell after each change of the ring; moved reports whether the activation of an identity is another one
// since. tell must not block.
func (n *Node) OnMove(tell func(moved func(kind, id string) bool)) {
	if ms := n.membership; ms != nil {
		ms.mu.Lock()
		defer ms.mu.Unlock()
		ms.onMove = append(ms.onMove, tell)
	}
}
