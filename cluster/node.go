// Package cluster runs virtual actors: a call of (kind, id) reaches the single activation of that identity, on
// whichever node it is, and creates it if there is none. The package is independent of the actors' logic.
//
// The one idea: callers and actors see the same small contract on a single node and on many. It is protoactor's Cluster
// on one side, and actor.Actor and ContextOf on the other. Solo is the runtime of one node: the same table of
// activations without a transport; nothing listens and nothing gossips. New is a member of a cluster. Membership is by
// gossip (gossip.go), and a ring assigns identities to members (ring.go, membership.go). Links connect the members
// (link.go, peer.go), and handover.go has the rules by which an activation moves.
//
// Ownership: a member activates only identities that the ring assigns to it, after the recent owners have released
// them, and while it holds a membership lease. A lease means that another member has confirmed this membership within
// the last second. A network split can break that for moments (networksplit.go), so state in rows is fenced.
//
// Virtual actors are reached by protoactor's own Cluster (library.go): its Request, RequestFuture and Get, over its
// actor system, processes, mailboxes and supervision. The provider of members, the identity lookup and the requests are
// ours, and the library's remote is never started. docs/decisions/0010-the-library-s-cluster-over-our-links.md explains
// why. Start reading at library.go, then Node and activation.go.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
)

// Errors of a request. NeverSent identifies those of a message that no actor has received.
var (
	ErrBusy    = errors.New("cluster: too many messages are waiting")
	ErrStopped = errors.New("cluster: the node is stopping")
	ErrCrashed = errors.New("cluster: the actor failed on this message")
	ErrKind    = errors.New("cluster: no such kind")
	ErrID      = errors.New("cluster: the kind has no such id")
	ErrNotSent = errors.New("cluster: no owner was found; the message was not sent")
	ErrLost    = errors.New("cluster: no answer; the owner was lost before it came")
)

// NeverSent reports whether a request failed before an actor got its message. After any other error the actor may have
// acted on it.
func NeverSent(err error) bool {
	return errors.Is(err, ErrNotSent) || errors.Is(err, ErrBusy) || errors.Is(err, ErrStopped) ||
		errors.Is(err, ErrKind) || errors.Is(err, ErrID)
}

// These errors never reach callers: the owner is looked up again. After errElsewhere no actor had the message; after
// errMoved an actor had it, and it is safe to send again.
var (
	errElsewhere = errors.New("cluster: not here")
	errMoved     = fmt.Errorf("%w any more", errElsewhere)
)

// Limits of admission. The runtime's mailboxes are unbounded, so messages are counted before they enter one.
const (
	maxWaiting = 1024 // messages per activation
	maxCalls   = 1 << 17
)

// DefaultTimeout bounds a request without a timeout of its own.
const DefaultTimeout = 15 * time.Second

// Kind describes a kind of virtual actors. New creates the actor of an activation; see ContextOf.
type Kind struct {
	Name string
	New  func() actor.Actor
	// Rows: the state of its actors is in fenced rows. When the two components of a network split meet again, both may
	// have acted: such actors are activated again, and lose nothing.
	Rows bool
	// Host, instead of New, keeps the activations itself. The ring places them by their shards, under the name Shards.
	Host   Host
	Shards string
}

// Node is one process of the cluster.
type Node struct {
	sys             *actor.ActorSystem
	library         *protoactor.Cluster
	provider        *provider
	kinds           map[string]*kind
	pending         *pendingCalls
	work            *workers
	shards          [256]shard
	seed            maphash.Seed
	live            atomic.Int64
	closed          atomic.Bool
	membership      *membership // nil on a node without a cluster
	traces          Tracing
	admit           func(ctx context.Context) error
	witness         func(ctx context.Context, component Component) (bool, error)
	log             *slog.Logger
	logsActivations bool // each activation is logged

	// Counts of a member of a cluster.
	handedOver, takenOver, lapses, drops, turnedAway atomic.Int64
	unmet                                            atomic.Int64 // members only in the gossip
	pauses                                           pauses

	mu        sync.RWMutex
	named     map[string]func(proto.Message)
	receivers map[string]Receiver
}

type kind struct {
	*protoactor.Kind
	rows              bool
	host              Host // nil: its actors have mailboxes
	shards            string
	activated, failed atomic.Int64
}

type identity struct{ kind, id string }

type shard struct {
	mu sync.RWMutex
	m  map[identity]*activationSlot
}

// Solo starts a node without a cluster. Register its kinds before the first request.
func Solo(log *slog.Logger) *Node { return newNode(log) }

func newNode(log *slog.Logger) *Node {
	quiet := slog.New(errorsOnly{log.Handler()})
	sys := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return quiet }),
		actor.WithDeadLetterRequestLogging(false),
	)
	n := &Node{sys: sys, work: newWorkers(), kinds: map[string]*kind{}, seed: maphash.MakeSeed(),
		named: map[string]func(proto.Message){}, receivers: map[string]Receiver{},
		log: log, pauses: pauses{log: log}, logsActivations: log.Enabled(context.Background(), slog.LevelDebug)}
	for i := range n.shards {
		n.shards[i].m = map[identity]*activationSlot{}
	}
	n.pending = newPendingCalls(sys)
	n.library = newLibrary(n)
	return n
}

// Register registers kinds. It must not be called after the first request, nor after Start.
func (n *Node) Register(ks ...Kind) {
	for _, k := range ks {
		n.kinds[k.Name] = n.newKind(k)
	}
}

// Admit sets a check that runs before a request is sent to an owner. A refused request fails with the error of the
// check and is not sent. It is called before Start.
func (n *Node) Admit(check func(ctx context.Context) error) { n.admit = check }

// Address returns this node's address. An identity that has a node's address as its id belongs to that node.
func (n *Node) Address() string {
	if n.membership != nil {
		return n.membership.self.ID
	}
	return n.sys.Address()
}

// Owns reports whether this node owns (kind, id). A node without a cluster owns every identity.
func (n *Node) Owns(kind, id string) bool {
	return n.membership == nil || n.membership.owns(identity{kind, id})
}

// Live returns the number of activations on this node.
func (n *Node) Live() int64 { return n.live.Load() }

// Calls returns the number of calls that wait for an answer.
func (n *Node) Calls() int64 {
	if n.membership != nil {
		return n.membership.calls.Load()
	}
	return n.pending.waiting.Load()
}

// request sends msg to the activation of key and returns its answer. Commands are safe to repeat, also after an error.
func (n *Node) request(s settings, key identity, msg proto.Message) (proto.Message, error) {
	if n.traces == nil {
		return n.call(s, key, "", msg)
	}
	along, ended := n.traces.Call(s.ctx, key.kind, messageName(msg))
	answer, err := n.call(s, key, along, msg)
	ended(err)
	return answer, err
}

func (n *Node) call(s settings, key identity, along string, msg proto.Message) (proto.Message, error) {
	if n.membership != nil {
		return n.membership.call(s, key, along, msg)
	}
	if k := n.hosted(key.kind); k != nil {
		if _, ok := n.placed(key); !ok {
			return nil, ErrID
		}
		return n.turnHere(s.ctx, s.within, k, key, along, msg)
	}
	slot, err := n.entered(key)
	if err != nil {
		return nil, err
	}
	return n.pending.askHere(s.ctx, s.within, slot.pid, along, msg)
}

// entered counts one message into the activation of key.
func (n *Node) entered(key identity) (*activationSlot, error) {
	for {
		slot, err := n.activate(key)
		if err != nil {
			return nil, err
		}
		if err := slot.enter(); !errors.Is(err, errElsewhere) {
			return slot, err
		}
		// The activation has ended and is about to leave the table. Remove it here:
		// retrying callers would starve its removal of the shard lock.
		n.remove(slot)
	}
}

// sendTo sends msg to the activation of key and does not wait. The message may be lost.
func (n *Node) sendTo(key identity, msg proto.Message) {
	if n.membership != nil {
		n.membership.sendToOwner(opTell, key, msg)
		return
	}
	n.sendHere(key, msg)
}

func (n *Node) sendHere(key identity, msg proto.Message) {
	if k := n.hosted(key.kind); k != nil {
		if _, ok := n.placed(key); ok {
			n.runTurn(k, key, "", "", msg, nil)
		}
	} else if slot, err := n.entered(key); err == nil {
		n.sys.Root.Send(slot.pid, counted{msg})
	}
}

// SendToActive sends msg to the activation of an identity and does not wait. The message may be lost, and is dropped if
// there is no activation.
func (n *Node) SendToActive(kind, id string, msg proto.Message) {
	if n.membership != nil {
		n.membership.sendToOwner(opTellLive, identity{kind, id}, msg)
		return
	}
	n.sendToActive(identity{kind, id}, msg)
}

// Post sends msg to the receiver that Listen registered on the node with an address, and does not wait. The message may
// be lost. Use Ask for a request with an answer.
func (n *Node) Post(address, name string, msg proto.Message) {
	if address == n.Address() {
		n.receive(name, msg)
	} else if n.membership != nil {
		n.membership.post(address, name, msg)
	}
}

func (n *Node) sendToActive(key identity, msg proto.Message) {
	slot := n.find(key)
	if slot == nil {
		return
	}
	if slot.enter() == nil {
		n.sys.Root.Send(slot.pid, counted{msg})
	}
}

// Listen registers a receiver of this node for Post. The function runs on the sender's goroutine and must not block.
func (n *Node) Listen(name string, receive func(proto.Message)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.named[name] = receive
}

func (n *Node) receive(name string, msg proto.Message) {
	n.mu.RLock()
	receive := n.named[name]
	n.mu.RUnlock()
	if receive != nil {
		receive(msg)
	}
}

// Stop refuses new calls, lets waiting calls finish until ctx ends, and stops every actor.
func (n *Node) Stop(ctx context.Context) {
	if n.closed.Swap(true) {
		return
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n.Calls() > 0 && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	if n.membership != nil {
		n.membership.stop()
	}
	for i := range n.shards {
		s := &n.shards[i]
		s.mu.Lock()
		for key, slot := range s.m {
			delete(s.m, key)
			slot.state.Store(gone)
			n.sys.Root.Stop(slot.pid)
		}
		s.mu.Unlock()
	}
	n.sys.Shutdown()
	n.work.close()
}

func (n *Node) shard(key identity) *shard {
	return &n.shards[maphash.String(n.seed, key.id)&255]
}

func (n *Node) find(key identity) *activationSlot {
	s := n.shard(key)
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[key]
}

// activate returns the activation of key and creates it if needed.
func (n *Node) activate(key identity) (*activationSlot, error) {
	if slot := n.find(key); slot != nil {
		return slot, nil
	}
	s := n.shard(key)
	if n.closed.Load() {
		return nil, ErrStopped
	}
	k := n.kinds[key.kind]
	if k == nil || k.host != nil {
		return nil, ErrKind
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot := s.m[key]; slot != nil {
		return slot, nil
	}
	slot := &activationSlot{key: key}
	if n.logsActivations {
		slot.lastActed.Store(time.Now().UnixNano())
		n.log.Debug("cluster: an activation began", "kind", key.kind, "id", key.id, "at", slot.lastActed.Load())
	}
	pid, err := n.sys.Root.SpawnNamed(k.Props, n.nameOf(key))
	if err != nil {
		return nil, fmt.Errorf("cluster: activate %s: %w", key.kind, err)
	}
	slot.pid = pid
	s.m[key] = slot
	n.live.Add(1)
	k.activated.Add(1)
	n.sys.Root.Send(slot.pid, born{slot})
	return slot, nil
}

// remove removes c from the table; false if it is not in it.
func (n *Node) remove(slot *activationSlot) bool {
	s := n.shard(slot.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[slot.key] != slot {
		return false
	}
	delete(s.m, slot.key)
	n.live.Add(-1)
	if n.logsActivations { // tests use lastActed to check that no two activations of one identity acted at once
		n.log.Debug("cluster: an activation ended", "kind", slot.key.kind, "id", slot.key.id, "acted", slot.lastActed.Load())
	}
	if slot.done != nil {
		close(slot.done)
	}
	return true
}

// errorsOnly drops everything below Error: the runtime logs whole messages.
type errorsOnly struct{ slog.Handler }

func (h errorsOnly) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && h.Handler.Enabled(ctx, l)
}
