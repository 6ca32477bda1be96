package cluster

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
)

// Some state is too small and too busy for an actor with a mailbox: the windows of rate limits. The same ring places
// it, a named receiver of each node serves it, and its keeper hands it over. This file has the cluster functions for
// such a keeper.

// Receiver handles a request of another member. It runs on the goroutine that reads from that member and must not
// block. It may answer later, and once.
type Receiver func(from string, question proto.Message, answer func(proto.Message))

// Serve registers a receiver of this node for Ask. It must not be called after Start.
func (n *Node) Serve(name string, r Receiver) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.receivers[name] = r
}

// Ask sends a request to the named receiver of another member. ErrLost: the member is unreachable, or was lost before
// it answered; it may have acted.
func (n *Node) Ask(ctx context.Context, within time.Duration, to, name string,
	question proto.Message) (proto.Message, error) {
	if n.membership == nil {
		return nil, ErrLost
	}
	l := n.membership.linkTo(to)
	if l == nil {
		return nil, ErrLost
	}
	m, err := l.call(ctx, within, frame{op: opAsk, kind: name}, question)
	if err == nil && m == nil || errors.Is(err, errElsewhere) || errors.Is(err, ErrStopped) {
		return nil, ErrLost
	}
	return m, err
}

// Place returns the members that keep an identity: its owner, and the next owner if that one is gone. Empty: there is
// none.
func (n *Node) Place(kind, id string) (owner, next string) {
	if n.membership == nil {
		return n.Address(), ""
	}
	key, r := identity{kind, id}, n.membership.ring.Load()
	first := r.owner(key)
	if first == nil {
		return "", ""
	}
	if second := r.without(first.ID).owner(key); second != nil {
		next = second.ID
	}
	return first.ID, next
}

// Former returns the other members that may still keep an identity which this node owns now.
func (n *Node) Former(kind, id string) []string {
	if n.membership == nil {
		return nil
	}
	return n.membership.formerOwners(identity{kind, id})
}

// Lost reports whether a member can no longer serve anything. Its process has ended, or it was given up and has been
// unreachable for longer than its lease.
func (n *Node) Lost(id string) bool { return n.membership == nil || n.membership.ended(id) }

// Drops counts how often this node dropped everything because it held no lease for a while: it may have missed
// messages.
func (n *Node) Drops() int64 { return n.drops.Load() }

func (ms *membership) ended(id string) bool {
	l := ms.linkTo(id)
	if l == nil || l.dead.Load() {
		return true
	}
	return (l.barred.Load() || !ms.belongs(id)) && ms.clock()-l.answeredAt.Load() > int64(membershipLease)
}

// receiveAsk answers a request of a member.
func (p *peer) receiveAsk(fr *frame) {
	n := p.membership.n
	n.mu.RLock()
	r := n.receivers[fr.kind]
	n.mu.RUnlock()
	msg, err := fr.message()
	if r == nil || err != nil {
		p.answer(fr.req, codeKind)
		return
	}
	req := fr.req
	r(p.from, msg, func(m proto.Message) { p.send(req, m) })
}
