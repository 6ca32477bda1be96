package cluster

import (
	"log/slog"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// Behaviour is what runs behind an identity. Receive gets one message at a
// time: Activated first, then messages of callers and whatever the behaviour
// sent itself through Context.After or Self.Send. It may block: only this
// identity waits. A panic ends the activation, answers the caller with
// ErrCrashed, and the next call activates afresh.
type Behaviour interface {
	Receive(c *Context, msg any)
}

// Activated is the first message of an activation.
type Activated struct{}

// Context is what a behaviour may do while it handles a message. It must not
// be kept; Self and Sender may.
type Context struct {
	act    *activation
	sender *actor.PID
}

// ID is the identity's id.
func (c *Context) ID() string { return c.act.cell.key.id }

// Sender names who waits for the answer of this message.
func (c *Context) Sender() Sender { return Sender{c.act.node, c.sender} }

// Reply answers the message.
func (c *Context) Reply(m proto.Message) { c.Sender().Reply(m) }

// Self names this activation.
func (c *Context) Self() Self { return Self{c.act.node, c.act.cell} }

// Node is the node it runs on.
func (c *Context) Node() *Node { return c.act.node }

// Passivate ends the activation when nothing is on its way to it, and reports
// whether it did. A message that comes later activates it afresh.
func (c *Context) Passivate() bool {
	a := c.act
	if !a.cell.state.CompareAndSwap(a.counts, gone) {
		return false
	}
	a.node.remove(a.cell)
	a.node.sys.Root.Stop(a.cell.pid)
	return true
}

// Sender is a caller that waits for an answer.
type Sender struct {
	node *Node
	pid  *actor.PID
}

// Waits reports whether somebody waits.
func (s Sender) Waits() bool { return s.pid != nil }

// Reply answers; a second answer is dropped.
func (s Sender) Reply(m proto.Message) {
	if s.pid != nil {
		s.node.sys.Root.Send(s.pid, m)
	}
}

// Self lets other goroutines send a message to an activation. It is dropped
// when that activation has ended.
type Self struct {
	node *Node
	cell *cell
}

// Send puts msg into the activation's mailbox.
func (s Self) Send(msg any) {
	if s.cell.state.Load() >= 0 {
		s.node.sys.Root.Send(s.cell.pid, msg)
	}
}

// After sends msg to the activation once d has passed. Stopping the timer may
// be too late: stamp the message.
func (s Self) After(d time.Duration, msg any) *time.Timer {
	return time.AfterFunc(d, func() { s.Send(msg) })
}

// cell is an identity's place in the table. Its state counts the callers'
// messages on their way, or is gone.
type cell struct {
	key   identity
	pid   *actor.PID
	state atomic.Int32
}

const gone = -1 << 30

// enter counts one message in; false when the activation has ended.
func (c *cell) enter() (bool, error) {
	for {
		s := c.state.Load()
		switch {
		case s < 0:
			return false, nil
		case s >= maxWaiting:
			return false, ErrBusy
		}
		if c.state.CompareAndSwap(s, s+1) {
			return true, nil
		}
	}
}

type (
	born    struct{ *cell }
	counted struct{ msg proto.Message } // a Tell
	lastOne struct{}                    // behind everything that was queued
)

func (c *Context) crash() {
	if c.sender != nil {
		c.act.node.sys.Root.Send(c.sender, &crashed{})
	}
}

// activation is the actor around a Behaviour.
type activation struct {
	node *Node
	make func() Behaviour
	b    Behaviour
	cell *cell
	// counts is 1 while a caller's message is handled: the state that a
	// passivation must find.
	counts int32
	failed bool
}

// Receive implements actor.Actor.
func (a *activation) Receive(ctx actor.Context) {
	msg := ctx.Message()
	switch m := msg.(type) {
	case born:
		a.cell, a.b = m.cell, a.make()
		msg = Activated{}
	case counted:
		a.counts, msg = 1, m.msg
	case proto.Message:
		a.counts = 1
	case lastOne:
		ctx.Stop(ctx.Self())
		return
	case *actor.Started, *actor.Stopping, *actor.Stopped, *actor.Restarting:
		return
	}
	c := Context{act: a, sender: ctx.Sender()}
	if a.failed { // what was queued behind the failure
		c.crash()
		return
	}
	defer func() {
		if p := recover(); p != nil {
			slog.Error("actor failed", "kind", a.cell.key.kind, "message", typeName(msg), "panic", p, "stack", string(debug.Stack()))
			a.failed = true
			a.cell.state.Store(gone)
			a.node.remove(a.cell)
			c.crash()
			a.node.sys.Root.Send(a.cell.pid, lastOne{})
		} else if a.counts == 1 && a.cell.state.Load() > 0 {
			a.cell.state.Add(-1)
		}
		a.counts = 0
	}()
	a.b.Receive(&c, msg)
}

var stopOnFailure = actor.NewOneForOneStrategy(0, 0, func(any) actor.Directive { return actor.StopDirective })
