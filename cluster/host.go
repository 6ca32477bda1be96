package cluster

import (
	"context"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"
)

// Some actors are too small and too busy for a mailbox: the keys of rate limits. A Host keeps the activations of such a
// kind and runs their turns inline, on the goroutine of the caller or of the connection. A request costs what the turn
// costs, and requests, placement and leases are those of all virtual actors.

// Host holds the activations of a kind. It is responsible for one turn at a time for each activation, and for moving
// its shards when the ring changes.
type Host interface {
	// Shard returns the shard of an identity; false if the id is invalid. The ring places shards by the name
	// Kind.Shards and this number, as Place does.
	Shard(id string) (n int, ok bool)
	// Turn handles one message. It must not wait; it may answer later. A turn without an answer lets the caller wait
	// until its timeout.
	Turn(t *Turn)
	// Active returns the number of activations on this node.
	Active() int
	// Figures returns further numbers for operators, by name (Status.Figures).
	Figures() map[string]int64
}

// Turn is one message for an activation of a Host.
type Turn struct {
	ID      string
	Message proto.Message // it is only read
	From    string        // the member that sent it; "" is this node

	end      func(v any)
	answered atomic.Bool
}

// Reply answers the caller. It may be called from any goroutine; a second answer is dropped.
func (t *Turn) Reply(m proto.Message) { t.answer(m) }

// Elsewhere makes the caller look up the owner again and send the message again: nothing was done here.
func (t *Turn) Elsewhere() { t.answer(errElsewhere) }

func (t *Turn) answer(v any) {
	if !t.answered.Swap(true) && t.end != nil {
		t.end(v)
	}
}

// placed returns the identity by which the ring places key: that of its shard if the kind has a Host. False: the id is
// invalid.
func (n *Node) placed(key identity) (identity, bool) {
	k := n.kinds[key.kind]
	if k == nil || k.host == nil {
		return key, true
	}
	shard, ok := k.host.Shard(key.id)
	return identity{k.shards, strconv.Itoa(shard)}, ok
}

// hosted returns the kind if it has a Host.
func (n *Node) hosted(kind string) *kind {
	if k := n.kinds[kind]; k != nil && k.host != nil {
		return k
	}
	return nil
}

// runTurn runs a turn. end receives the answer; nil: no caller waits.
func (n *Node) runTurn(k *kind, key identity, from, along string, msg proto.Message, end func(v any)) {
	t := &Turn{ID: key.id, Message: msg, From: from, end: end}
	failed := true
	if n.traces != nil && along != "" {
		_, ended := n.traces.Handle(along, key.kind, messageName(msg))
		defer func() { ended(failed) }()
	}
	defer func() {
		if p := recover(); p != nil {
			n.log.Error("actor failed", "kind", key.kind, "message", typeName(msg), "panic", p,
				"stack", string(debug.Stack()))
			k.failed.Add(1)
			t.answer(ErrCrashed)
		}
	}()
	k.host.Turn(t)
	failed = false
}

// turnHere runs a turn for a caller on this node and returns its answer.
func (n *Node) turnHere(ctx context.Context, within time.Duration, k *kind, key identity, along string,
	msg proto.Message) (proto.Message, error) {
	if n.closed.Load() {
		return nil, ErrStopped
	}
	answer := make(chan any, 1)
	n.runTurn(k, key, "", along, msg, func(v any) { answer <- v })
	var v any
	select {
	case v = <-answer:
	default: // it is answered later
		timer := time.NewTimer(within)
		defer timer.Stop()
		select {
		case v = <-answer:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, context.DeadlineExceeded
		}
	}
	return resultOf(v)
}

// turn runs a turn for a member.
func (p *peer) turn(k *kind, key identity, req uint64, along string, msg proto.Message) {
	ms := p.membership
	switch o := ms.owner(key); {
	case o == nil || o.ID != ms.self.ID || !ms.holdsLease() || ms.n.closed.Load():
		p.answer(req, codeElsewhere)
	default:
		ms.n.runTurn(k, key, p.from, along, msg, func(v any) { p.send(req, v) })
	}
}
