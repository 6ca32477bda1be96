package cluster

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
)

// Activated is the first message of an activation.
type Activated struct{}

// A kind of virtual actors is an actor.Actor. Its Receive gets one message at a time: Activated first, then the
// messages of callers and those that the actor sent itself through Self. Receive may block, which delays only its own
// identity. The supervisor handles a panic: the activation ends, its callers get ErrCrashed, and the next request
// starts a new activation. ContextOf gives Receive the functions of the cluster: passivation and delayed answers.

// Context is the cluster's part of an actor.Context. It must not be kept; Self and Sender may be.
type Context struct {
	act    *activation
	sender *actor.PID
	kept   *keptSender
	trace  context.Context
}

// delivery is the actor.Context of one message of a virtual actor. It wraps the library's context, unwraps the message,
// and redirects callers when the activation moves.
type delivery struct {
	actor.Context
	own Context
	msg any
}

// Message returns the message of the caller, or Activated.
func (d *delivery) Message() any { return d.msg }

// Respond answers the message.
func (d *delivery) Respond(response any) {
	if m, ok := response.(proto.Message); ok {
		d.own.Reply(m)
	}
}

// ContextOf returns the cluster's part of the context that Receive of a virtual actor was called with. It panics for
// the context of any other actor.
func ContextOf(c actor.Context) *Context { return &c.(*delivery).own }

// Background returns a context without a deadline that carries the caller's trace, for work that this message causes.
// It may be kept until the work ends.
func (c *Context) Background() context.Context {
	if c.trace == nil {
		return context.Background()
	}
	return c.trace
}

// ID returns the id of the identity.
func (c *Context) ID() string { return c.act.slot.key.id }

// Sender returns the caller that waits for the answer to this message. It may be kept and answered later. When the
// activation moves to another node, kept callers are redirected there.
func (c *Context) Sender() Sender {
	if c.act.node.membership != nil && c.sender != nil && c.kept == nil {
		c.kept = &keptSender{pid: c.sender}
	}
	return Sender{c.act.node, c.sender, c.kept}
}

// Reply answers the message.
func (c *Context) Reply(m proto.Message) { Sender{c.act.node, c.sender, c.kept}.Reply(m) }

// Self returns a reference to this activation.
func (c *Context) Self() Self { return Self{c.act.node, c.act.slot} }

// Node returns the node that it runs on.
func (c *Context) Node() *Node { return c.act.node }

// Passivate ends the activation if no message is on its way to it, and reports whether it did. A later message
// activates the identity again.
func (c *Context) Passivate() bool {
	a := c.act
	if !a.slot.state.CompareAndSwap(a.counts, gone) {
		return false
	}
	a.node.remove(a.slot)
	a.node.sys.Root.Stop(a.slot.pid)
	return true
}

// Sender is a caller that waits for an answer.
type Sender struct {
	node *Node
	pid  *actor.PID
	kept *keptSender
}

// keptSender is a sender that an actor of a cluster may have kept.
type keptSender struct {
	pid      *actor.PID
	answered atomic.Bool
}

// Waits reports whether a caller waits.
func (s Sender) Waits() bool { return s.pid != nil }

// Reply answers the caller; a second answer is dropped.
func (s Sender) Reply(m proto.Message) {
	if s.pid == nil || s.kept != nil && s.kept.answered.Swap(true) {
		return
	}
	s.node.reply(s.pid, m)
}

// Self lets other goroutines send messages to an activation. A message to an activation that has ended is dropped.
type Self struct {
	node *Node
	slot *activationSlot
}

// Send puts msg into the activation's mailbox.
func (s Self) Send(msg any) {
	if s.slot.state.Load() >= 0 {
		s.node.sys.Root.Send(s.slot.pid, msg)
	}
}

// After sends msg to the activation after d. Stopping the timer may be too late, so put a stamp into the message.
func (s Self) After(d time.Duration, msg any) *time.Timer {
	return time.AfterFunc(d, func() { s.Send(msg) })
}

// activationSlot is the table entry of an identity. Its state counts the callers' messages that are on their way, or
// marks the activation as ended.
type activationSlot struct {
	key   identity
	pid   *actor.PID
	state atomic.Int32
	// stale: another node may have owned the identity for a while. Even queued messages are not handled.
	stale atomic.Bool
	// lastActed is when it began to handle its last message, in Unix nanoseconds. It is set only if activations are
	// logged.
	lastActed atomic.Int64
	done      chan struct{} // closed when a leaving activation has left; guarded by the shard's lock
}

// States of a slot that accepts no message: gone, and leaving+n while n messages are still to be handled.
const (
	gone    = -1 << 30
	leaving = -1 << 29
)

// waiting returns the number of callers' messages that are on their way or being handled.
func (s *activationSlot) waiting() int64 {
	switch n := int64(s.state.Load()); {
	case n >= 0:
		return n
	case n >= leaving:
		return n - leaving
	}
	return 0
}

// enter counts one message in. It returns errElsewhere if the activation has ended.
func (s *activationSlot) enter() error {
	for {
		n := s.state.Load()
		switch {
		case n < 0:
			return errElsewhere
		case n >= maxWaiting:
			return ErrBusy
		case s.state.CompareAndSwap(n, n+1):
			return nil
		}
	}
}

type (
	born    struct{ *activationSlot }
	counted struct{ msg proto.Message } // no caller waits for its answer
	depart  struct{}                    // ends a leaving activation with an empty queue
)

func (c *Context) crash() {
	if c.sender != nil {
		c.act.node.reply(c.sender, ErrCrashed)
	}
}

// activation is the actor that wraps a virtual actor.
type activation struct {
	node *Node
	make func() actor.Actor
	b    actor.Actor
	slot *activationSlot
	// counts is 1 while a caller's message is handled: a passivation must find exactly this state.
	counts int32
	kept   []*keptSender
}

// redirect sends the waiting callers to the next owner.
func (a *activation) redirect() {
	for _, t := range a.kept {
		if !t.answered.Swap(true) {
			a.node.reply(t.pid, errMoved)
		}
	}
	a.kept = nil
}

// keep stores a caller that waits beyond this message.
func (a *activation) keep(t *keptSender) {
	if t == nil || t.answered.Load() {
		return
	}
	if len(a.kept) == cap(a.kept) {
		a.kept = slices.DeleteFunc(a.kept, func(t *keptSender) bool { return t.answered.Load() })
	}
	a.kept = append(a.kept, t)
}

// finishLeaving ends a leaving activation whose messages are all handled.
func (a *activation) finishLeaving() {
	a.slot.state.Store(gone)
	a.redirect() // before others learn that it has left: the links may close next
	a.node.remove(a.slot)
	a.node.sys.Root.Stop(a.slot.pid)
}

// handleStopping ends an activation. The library's Stop lets any code stop it.
func (a *activation) handleStopping() {
	if a.slot != nil && a.slot.state.Swap(gone) != gone {
		a.node.remove(a.slot)
	}
	a.redirect()
}

func (a *activation) Receive(ctx actor.Context) {
	msg := ctx.Message()
	switch m := msg.(type) {
	case born:
		a.slot, a.b = m.activationSlot, a.make()
		msg = Activated{}
	case counted:
		a.counts, msg = 1, m.msg
	case proto.Message:
		a.counts = 1
	case depart:
		if a.slot.state.Load() == leaving {
			a.finishLeaving()
		}
		return
	case *actor.Stopping:
		a.handleStopping()
		return
	case *actor.Started, *protoactor.ClusterInit, *actor.Stopped, *actor.Restarting:
		return
	}
	d := &delivery{Context: ctx, own: Context{act: a, sender: ctx.Sender()}, msg: msg}
	c := &d.own
	if a.slot.state.Load() == gone { // this message was queued behind a failure
		c.crash()
		return
	}
	failed := true
	if a.node.traces != nil && c.sender != nil {
		if along := ctx.MessageHeader().Get(alongKey); along != "" {
			var ended func(failed bool)
			c.trace, ended = a.node.traces.Handle(along, a.slot.key.kind, messageName(msg))
			defer func() { ended(failed) }()
		}
	}
	if ms := a.node.membership; ms != nil && (a.slot.stale.Load() || !ms.holdsLease()) {
		if c.sender != nil {
			a.node.reply(c.sender, errMoved)
		}
		a.handled()
		failed = false
		return
	}
	if a.node.logsActivations {
		a.slot.lastActed.Store(time.Now().UnixNano())
	}
	a.b.Receive(d) // supervisor.go describes what follows a panic
	a.keep(c.kept)
	a.handled()
	failed = false
}

// handled counts the message out.
func (a *activation) handled() {
	if s := a.slot.state.Load(); a.counts == 1 && s != 0 && s > gone && a.slot.state.Add(-1) == leaving {
		a.finishLeaving()
	}
	a.counts = 0
}
