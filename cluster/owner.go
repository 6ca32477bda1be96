package cluster

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
)

// This file sends messages to the owner of an identity, as a member of a cluster.

// Pauses of a call between two lookups of the owner.
const (
	firstPause = 2 * time.Millisecond
	lastPause  = 100 * time.Millisecond
	// findTime is how long the owner is looked up. It is shorter than the patience of callers, so a caller learns that
	// nothing of the call is left behind.
	findTime = 900 * time.Millisecond
)

// call looks up the owner and calls it, and looks it up again if the owner has changed. A message that a lost owner may
// have acted on is not sent twice: the caller decides about that.
func (ms *membership) call(s settings, key identity, along string, msg proto.Message) (m proto.Message, err error) {
	switch {
	case ms.n.kinds[key.kind] == nil:
		return nil, ErrKind
	case ms.n.closed.Load():
		return nil, ErrStopped
	}
	if _, ok := ms.n.placed(key); !ok {
		return nil, ErrID
	}
	ms.calls.Add(1)
	moved := false
	defer func() {
		ms.calls.Add(-1)
		if moved && NeverSent(err) { // an actor had it, and has not answered
			err = ErrLost
		}
	}()
	looking := time.Now()
	end := looking.Add(s.within)
	for pause, looks := firstPause, 1; ; pause, looks = min(2*pause, lastPause), looks+1 {
		changed, asked := *ms.changed.Load(), time.Now()
		m, err := ms.once(s.ctx, time.Until(end), key, along, msg)
		if stopped := errors.Is(err, ErrStopped); !errors.Is(err, errElsewhere) && !stopped || stopped && ms.n.closed.Load() {
			return m, err
		}
		moved = moved || errors.Is(err, errMoved)
		now := time.Now()
		if now.Sub(asked) > lastPause { // an owner was found, and the call waited there
			looking = now
		}
		left := end.Sub(now)
		switch {
		case left <= 0:
			return nil, context.DeadlineExceeded
		case now.Sub(looking) > findTime || looks == s.looks:
			return nil, ErrNotSent
		}
		select {
		case <-time.After(min(pause, left)):
		case <-changed:
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		case <-ms.ctx.Done():
			return nil, ErrStopped
		}
	}
}

// once calls the current owner.
func (ms *membership) once(ctx context.Context, within time.Duration, key identity, along string,
	msg proto.Message) (proto.Message, error) {
	if within <= 0 {
		return nil, context.DeadlineExceeded
	}
	o := ms.owner(key)
	if o == nil {
		return nil, errElsewhere
	}
	if ms.n.admit != nil {
		if err := ms.n.admit(ctx); err != nil {
			return nil, err
		}
	}
	if o.ID != ms.self.ID {
		l := ms.linkTo(o.ID)
		if l == nil {
			return nil, errElsewhere
		}
		return l.call(ctx, within, frame{op: opCall, kind: key.kind, id: key.id, trace: along}, msg)
	}
	if k := ms.n.hosted(key.kind); k != nil {
		if !ms.holdsLease() {
			return nil, errElsewhere
		}
		return ms.n.turnHere(ctx, within, k, key, along, msg)
	}
	slot, err := ms.entered(key)
	if err != nil {
		return nil, err
	}
	return ms.n.pending.askHere(ctx, within, slot.pid, along, msg)
}

// entered counts one message into the activation of an identity that this node owns.
func (ms *membership) entered(key identity) (*activationSlot, error) {
	slot, err := ms.slot(key)
	if err == nil {
		err = slot.enter()
	}
	return slot, err
}

// sendToOwner sends a message without an answer to the current owner.
func (ms *membership) sendToOwner(op uint64, key identity, msg proto.Message) {
	if ms.ctx.Err() != nil {
		return
	}
	o := ms.owner(key)
	switch {
	case o == nil:
	case o.ID != ms.self.ID:
		if l := ms.linkTo(o.ID); l != nil {
			l.send(frame{op: op, kind: key.kind, id: key.id}, msg)
		}
	case op == opTellLive:
		ms.n.sendToActive(key, msg)
	case ms.n.find(key) == nil && ms.unsettled(): // sendHere may have to wait for former owners
		ms.background.Go(func() { ms.sendHere(key, msg) })
	default:
		ms.sendHere(key, msg)
	}
}

func (ms *membership) sendHere(key identity, msg proto.Message) {
	if ms.n.hosted(key.kind) != nil {
		if ms.holdsLease() && ms.owns(key) {
			ms.n.sendHere(key, msg)
		}
		return
	}
	slot, err := ms.entered(key)
	if err == nil {
		ms.n.sys.Root.Send(slot.pid, counted{msg})
		return
	}
	ms.log.Debug("cluster: a message without an answer was dropped", "kind", key.kind, "id", key.id, "err", err)
}

// post sends a message to a receiver of another member.
func (ms *membership) post(to, name string, msg proto.Message) {
	if l := ms.linkTo(to); l != nil {
		l.send(frame{op: opPost, kind: name}, msg)
	}
}
