package ratelimit

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/cluster"
)

// world is a network of nodes in virtual time. Every node has a view of the members, which the test changes. Messages
// have a delay; a node may be dead or frozen.
type world struct {
	t     *testing.T
	mu    sync.Mutex
	nodes map[string]*node
	delay atomic.Int64  // nanoseconds
	pause time.Duration // between two requests of a client
}

type node struct {
	*Limiter
	w       *world
	id      string
	mu      sync.Mutex
	view    []string
	seen    map[string]bool
	born    time.Time
	past    []pastView
	tell    []func(func(kind, id string) bool)
	serve   map[string]cluster.Receiver
	links   map[string]chan func()
	lapsed  bool // it cannot confirm its membership
	drops   int64
	dead    chan struct{} // closed when it is dead
	frozen  chan struct{} // closed when it resumes; nil: it is not frozen
	freezes int
	since   time.Time // when it froze
	ill     bool      // it was frozen or killed once
}

type pastView struct {
	view  []string
	until time.Time
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, nodes: map[string]*node{}, pause: time.Millisecond}
	w.delay.Store(int64(200 * time.Microsecond))
	return w
}

// start adds nodes, each of which is alone at first.
func (w *world) start(ids ...string) {
	for _, id := range ids {
		n := &node{w: w, id: id, view: []string{id}, seen: map[string]bool{}, born: time.Now(),
			serve: map[string]cluster.Receiver{}, links: map[string]chan func(){}, dead: make(chan struct{})}
		w.mu.Lock()
		w.nodes[id] = n
		w.mu.Unlock()
		n.Limiter = New(n, time.Now, slog.New(slog.DiscardHandler))
	}
}

// see sets the members that nodes see, as the ring of package cluster does.
func (w *world) see(view []string, ids ...string) {
	for _, id := range ids {
		n := w.nodes[id]
		n.mu.Lock()
		before := n.view
		n.remember(before)
		if has := slices.Contains(before, id); len(before) == 1 && has || !has {
			n.remember(without(view, id))
		}
		for _, m := range view {
			if m != id && !slices.Contains(before, m) && (n.seen[m] || len(before) > 1 && time.Since(n.born) < 5*time.Second) {
				n.remember([]string{m}) // it may have been alone
			}
			n.seen[m] = true
		}
		n.view = slices.Clone(view)
		tell := n.tell
		n.mu.Unlock()
		for _, f := range tell {
			f(func(_, id string) bool { return place(before, id)[0] != place(view, id)[0] })
		}
	}
}

// remember records a view whose owners must be asked; the caller holds the lock.
func (n *node) remember(view []string) {
	if len(view) > 0 {
		n.past = append(n.past, pastView{slices.Clone(view), time.Now().Add(5 * time.Second)})
	}
}

// lapse makes a node drop its state, like a node that could not confirm its membership for a while.
func (w *world) lapse(id string) {
	n := w.nodes[id]
	n.mu.Lock()
	n.remember(without(n.view, id))
	n.drops++
	tell := n.tell
	n.mu.Unlock()
	for _, f := range tell {
		f(func(string, string) bool { return true })
	}
	n.mu.Lock()
	n.lapsed = false
	n.mu.Unlock()
}

func (w *world) kill(id string) {
	n := w.nodes[id]
	n.ill = true
	close(n.dead)
}

// freeze may be called several times, and needs as many calls of thaw.
func (w *world) freeze(id string) {
	n := w.node(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ill = true
	if n.freezes++; n.freezes == 1 {
		n.frozen, n.since = make(chan struct{}), time.Now()
	}
}

// thaw resumes a node; lapsed: it cannot confirm its membership.
func (w *world) thaw(id string, lapsed bool) {
	n := w.node(id)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lapsed = n.lapsed || lapsed
	if n.freezes--; n.freezes == 0 {
		if time.Since(n.since) > leastStandstill { // a process that resumes detects the stall
			n.still.until.Store(n.table.Instant())
			defer n.settleAll()
		}
		close(n.frozen)
		n.frozen = nil
	}
}

func (w *world) close() {
	for _, n := range w.nodes {
		n.mu.Lock()
		if n.frozen != nil {
			close(n.frozen)
			n.frozen = nil
		}
		n.mu.Unlock()
		n.Limiter.stop()
	}
	for _, n := range w.nodes {
		n.Limiter.Close()
	}
	time.Sleep(5 * time.Second)
	for _, n := range w.nodes {
		n.mu.Lock()
		for _, l := range n.links {
			close(l)
		}
		n.mu.Unlock()
	}
}

// place ranks the members for an identity.
func place(view []string, id string) []string {
	score := func(m string) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, m, "/", id)
		x := h.Sum64()
		x ^= x >> 33
		x *= 0xff51afd7ed558ccd
		return x ^ x>>33
	}
	ranked := slices.Clone(view)
	slices.SortFunc(ranked, func(a, b string) int { return cmp.Compare(score(b), score(a)) })
	return append(ranked, "", "")
}

// awake waits while the node is frozen; false: it is dead.
func (n *node) awake() bool {
	n.mu.Lock()
	f := n.frozen
	n.mu.Unlock()
	if f != nil {
		select {
		case <-f:
		case <-n.dead:
		}
	}
	select {
	case <-n.dead:
		return false
	default:
		return true
	}
}

// link delivers messages in order.
func (n *node) link(to string) chan func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.links[to]
	if l == nil {
		l = make(chan func(), 1<<16)
		n.links[to] = l
		go func() {
			for do := range l {
				do()
			}
		}()
	}
	return l
}

func (n *node) send(to *node, do func()) {
	at := time.Now().Add(time.Duration(n.w.delay.Load()))
	n.link(to.id) <- func() {
		time.Sleep(time.Until(at))
		if n.awake() && to.awake() {
			do()
		}
	}
}

func (n *node) Address() string { return n.id }
func (n *node) Belongs() bool   { n.mu.Lock(); defer n.mu.Unlock(); return !n.lapsed }
func (n *node) Place(_, id string) (owner, next string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := place(n.view, id)
	return r[0], r[1]
}
func (n *node) Former(_, id string) (all []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.past {
		if o := place(p.view, id)[0]; o != "" && o != n.id && time.Now().Before(p.until) && !slices.Contains(all, o) {
			all = append(all, o)
		}
	}
	return all
}
func (n *node) Lost(id string) bool {
	to := n.w.node(id)
	select {
	case <-to.dead:
		return true
	default:
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !slices.Contains(n.view, id) && to.isFrozen() && time.Since(to.since) > time.Second
}
func (n *node) Drops() int64 { n.mu.Lock(); defer n.mu.Unlock(); return n.drops }
func (n *node) isFrozen() bool {
	if !n.mu.TryLock() {
		return false
	}
	defer n.mu.Unlock()
	return n.frozen != nil
}
func (n *node) OnMove(tell func(func(kind, id string) bool)) { n.tell = append(n.tell, tell) }

func (n *node) Serve(name string, r cluster.Receiver) {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.serve[name] = r
}

func (n *node) receiver(name string) cluster.Receiver {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return n.serve[name]
}

func (w *world) node(id string) *node {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.nodes[id]
}

func (n *node) Ask(ctx context.Context, within time.Duration, to, name string,
	question proto.Message) (proto.Message, error) {
	there := n.w.node(to)
	if there == nil {
		return nil, cluster.ErrLost
	}
	question = proto.Clone(question)
	got := make(chan proto.Message, 1)
	n.send(there, func() {
		there.receiver(name)(n.id, question, func(m proto.Message) {
			m = proto.Clone(m)
			there.send(n, func() { got <- m })
		})
	})
	var err error
	select {
	case m := <-got:
		got <- m
	case <-there.dead:
		err = cluster.ErrLost
	case <-time.After(within):
		err = context.DeadlineExceeded
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.awake() // a stalled process does not see that its time is over
	select {
	case m := <-got:
		return m, nil
	default:
		return nil, err
	}
}
