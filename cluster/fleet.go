package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/hashicorp/memberlist"
	"google.golang.org/protobuf/proto"
)

// fleet is what a node has of its cluster: who belongs to it, who owns what,
// and the ways to the others.
type fleet struct {
	n    *Node
	o    Options
	log  *slog.Logger
	self Member // ID, Address and Version; they do not change
	tls  *tls.Config

	ring           atomic.Pointer[ring]
	known          atomic.Pointer[map[string]Member] // who belongs, those that leave included
	changed        atomic.Pointer[chan struct{}]     // closed when a caller should look again
	joining        atomic.Bool                       // it does not know yet who belongs
	alone          atomic.Bool                       // nobody else belongs: nobody to confirm anything
	proof          atomic.Int64                      // when the last confirmed ping was sent
	unsettledUntil atomic.Int64
	epoch          atomic.Uint64
	calls          atomic.Int64
	handedOver     atomic.Int64
	takenOver      atomic.Int64
	lapses         atomic.Int64
	drops          atomic.Int64
	peerNames      atomic.Int64
	rebuilds       atomic.Int64
	leaseMu        sync.Mutex

	mu     sync.Mutex
	peers  map[string]Member // by gossip
	links  map[string]*link
	past   []pastRing
	claims map[identity]*claim
	moved  map[identity]time.Time
	conns  map[net.Conn]bool
	seen   map[string]bool // members that were ever on the ring
	onMove []func(moved func(kind, id string) bool)

	lost   map[string]Member // that went without a word; see apart.go
	apart  atomic.Bool
	asking atomic.Bool

	away     atomic.Bool // it has announced that it leaves
	started  time.Time
	listener net.Listener
	gossip   *memberlist.Memberlist
	kick     chan struct{}
	work     sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
}

func (f *fleet) clock() int64 { return int64(time.Since(f.started)) }

// Pauses of a call between two looks for the owner.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 100 * time.Millisecond
	// findTime is how long an owner is looked for. A caller who is told sooner
	// than he loses patience knows that nothing of his call is left behind.
	findTime = 900 * time.Millisecond
)

// call looks for the owner and asks it, and looks again when it is another one
// by now. A message that may have been acted on by an
// owner that was lost is not sent twice: whether to is for the caller to say.
func (f *fleet) call(ctx context.Context, within time.Duration, key identity, along string, msg proto.Message) (proto.Message, error) {
	switch {
	case f.n.kinds[key.kind] == nil:
		return nil, ErrKind
	case f.n.closed.Load():
		return nil, ErrStopped
	}
	f.calls.Add(1)
	defer f.calls.Add(-1)
	looking := time.Now()
	end := looking.Add(within)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		changed, asked := *f.changed.Load(), time.Now()
		m, err := f.once(ctx, time.Until(end), key, along, msg)
		if stopped := errors.Is(err, ErrStopped); !errors.Is(err, errElsewhere) && !stopped || stopped && f.n.closed.Load() {
			return m, err
		}
		now := time.Now()
		if now.Sub(asked) > lastPause { // it had found one, and waited there
			looking = now
		}
		left := end.Sub(now)
		switch {
		case left <= 0:
			return nil, context.DeadlineExceeded
		case now.Sub(looking) > findTime:
			return nil, ErrLost
		}
		select {
		case <-time.After(min(pause, left)):
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-f.ctx.Done():
			return nil, ErrStopped
		}
	}
}

func (f *fleet) once(ctx context.Context, within time.Duration, key identity, along string, msg proto.Message) (proto.Message, error) {
	if within <= 0 {
		return nil, context.DeadlineExceeded
	}
	o := f.owner(key)
	if o == nil {
		return nil, errElsewhere
	}
	if f.n.admit != nil {
		if err := f.n.admit(ctx); err != nil {
			return nil, err
		}
	}
	if o.ID != f.self.ID {
		l := f.linkTo(o.ID)
		if l == nil {
			return nil, errElsewhere
		}
		return l.call(ctx, within, frame{op: opCall, kind: key.kind, id: key.id, trace: along}, msg)
	}
	c, err := f.cell(key)
	if err != nil {
		return nil, err
	}
	entered, err := c.enter()
	if err != nil {
		return nil, err
	}
	if !entered {
		return nil, errElsewhere
	}
	return f.n.ask.ask(ctx, within, c.pid, along, msg)
}

// tell sends what is not answered, to the owner of this moment.
func (f *fleet) tell(op uint64, key identity, msg proto.Message) {
	if f.ctx.Err() != nil {
		return
	}
	o := f.owner(key)
	switch {
	case o == nil:
	case o.ID != f.self.ID:
		if l := f.linkTo(o.ID); l != nil {
			l.send(frame{op: op, kind: key.kind, id: key.id}, msg)
		}
	case op == opTellLive:
		f.n.tellLive(key, msg)
	case f.n.find(key) == nil && f.unsettled(): // it may have to wait for former owners
		f.work.Go(func() { f.tellHere(key, msg) })
	default:
		f.tellHere(key, msg)
	}
}

func (f *fleet) tellHere(key identity, msg proto.Message) {
	c, err := f.cell(key)
	if err != nil {
		return
	}
	if entered, err := c.enter(); entered && err == nil {
		f.n.sys.Root.Send(c.pid, counted{msg})
	}
}

// post sends to a receiver of another member.
func (f *fleet) post(to, name string, msg proto.Message) {
	if l := f.linkTo(to); l != nil {
		l.send(frame{op: opPost, kind: name}, msg)
	}
}

func (f *fleet) linkTo(id string) *link {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.links[id]
}

func (f *fleet) belongs(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.peers[id]
	return ok
}

// stir has waiting callers look for their owners again.
func (f *fleet) stir() {
	next := make(chan struct{})
	close(*f.changed.Swap(&next))
}

// wake has the loop look at who belongs.
func (f *fleet) wake() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// loop is the only goroutine that changes the ring.
func (f *fleet) loop() {
	tick := time.NewTicker(lease / 5)
	defer tick.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case <-f.kick:
		case <-tick.C:
			f.mu.Lock()
			links := slices.Collect(maps.Values(f.links))
			f.mu.Unlock()
			for _, l := range links {
				if s := l.now.Load(); s != nil {
					l.ping(s)
					if l.quiet() {
						f.n.ask.fail(s)
					}
				}
			}
		}
		f.rebuild()
	}
}

// rebuild makes the ring anew from who belongs now.
func (f *fleet) rebuild() {
	if f.joining.Load() {
		return
	}
	now := time.Now()
	self := f.self
	self.Leaving, self.Epoch = f.away.Load(), f.epoch.Load()
	known, seated := map[string]Member{self.ID: self}, []Member{}
	if !self.Leaving {
		seated = append(seated, self)
	}
	var gone []*link
	f.mu.Lock()
	for id, m := range f.peers {
		l := f.links[id]
		if l == nil {
			l = f.newLink(m)
		}
		l.until = time.Time{}
		l.left.Store(m.Leaving)
		if l.dead.Load() {
			continue
		}
		known[id] = m
		if !m.Leaving {
			seated = append(seated, m)
		}
	}
	for id, l := range f.links {
		if _, belongs := f.peers[id]; belongs {
			continue
		}
		if l.until.IsZero() && !l.dead.Load() && !l.left.Load() {
			f.lost[id] = l.to
		}
		switch {
		case l.until.IsZero():
			l.until = now.Add(grace)
			gone = append(gone, l)
		case now.After(l.until):
			delete(f.links, id)
			l.stop()
		}
	}
	f.mu.Unlock()
	if len(seated) == 0 { // everybody leaves: the last ones keep what they have
		seated = slices.Collect(maps.Values(known))
	}
	f.known.Store(&known)
	f.judge(known)
	f.stand(len(known) == 1)
	for _, l := range gone { // its answers do not come any more
		if s := l.now.Load(); s != nil {
			f.n.ask.fail(s)
		}
	}
	f.install(newRing(seated))
	f.rebuilds.Add(1)
}

// stand notes whether anybody else belongs.
func (f *fleet) stand(alone bool) {
	if alone == f.alone.Load() {
		return
	}
	f.leaseMu.Lock()
	defer f.leaseMu.Unlock()
	switch {
	case !alone && f.proof.Load() != never:
		f.proof.Store(f.clock()) // until now it needed nobody's word
	case !f.holds():
		f.drop()
	}
	f.alone.Store(alone)
}

// install puts a ring in force and lets go of what others own by it.
func (f *fleet) install(next *ring) {
	before := f.ring.Load()
	if before.same(next) {
		return
	}
	f.mu.Lock()
	f.recall(before)
	if alone := len(before.seats) == 1 && before.has(f.self.ID); next.has(f.self.ID) && (alone || !before.has(f.self.ID)) {
		f.recall(next.without(f.self.ID)) // the others have been at it without this node
	}
	var back []string
	for _, m := range next.seats {
		if m.ID == f.self.ID {
			continue
		}
		// One that a young node hears of later than of others may be older than it.
		if !before.has(m.ID) && (f.seen[m.ID] || len(before.seats) > 1 && f.clock() < int64(grace)) {
			back = append(back, m.ID)
			f.recall(&ring{[]seat{m}}) // it may have been alone at it
		}
		f.seen[m.ID] = true
	}
	clear(f.moved)
	listeners := slices.Clone(f.onMove)
	f.mu.Unlock()
	f.ring.Store(next)
	f.sweep()
	if len(back) > 0 {
		f.doubt(back)
	}
	f.stir()
	f.log.Info("cluster: members", "count", len(next.seats), "activations", f.n.Live())
	for _, tell := range listeners {
		tell(func(kind, id string) bool { return before.moved(next, identity{kind, id}) })
	}
}

// newLink starts the way to a member; the caller holds the lock.
func (f *fleet) newLink(m Member) *link {
	l := &link{f: f, to: m}
	l.ctx, l.stop = context.WithCancel(f.ctx)
	f.links[m.ID] = l
	f.work.Go(l.run)
	return l
}

func (f *fleet) dial(ctx context.Context, address string) (net.Conn, error) {
	if f.tls != nil {
		return (&tls.Dialer{Config: f.tls}).DialContext(ctx, "tcp", address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// track remembers an open connection of a peer; false when the node stops.
func (f *fleet) track(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return false
	}
	f.conns[c] = true
	return true
}

func (f *fleet) untrack(c net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

var _ actor.Process = (*peer)(nil)
