package cluster

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// asker receives the answers of all calls of this node in one registered
// process. The request id in the sender's PID tells the calls apart, so that a
// call costs neither a registered future nor a timer of its own.
type asker struct {
	sys     *actor.ActorSystem
	pid     *actor.PID
	next    atomic.Uint32
	pending atomic.Int64
	shards  [64]askShard
	slots   sync.Pool // of chan any, one place each
	timers  sync.Pool // of stopped *time.Timer
}

type askShard struct {
	mu sync.Mutex
	m  map[uint32]asked
	_  [40]byte // keep neighbours off the cache line
}

// asked is a call that waits; session is the link that it went by, nil for one
// of this node.
type asked struct {
	slot    chan any
	session *session
}

// What answers a call in the place of a message.
type (
	crashed   struct{} // its actor panicked
	elsewhere struct{} // its activation has ended; look for the owner again
	released  struct{} // of a question to another node: nothing is active there
)

func newAsker(sys *actor.ActorSystem) *asker {
	a := &asker{sys: sys}
	a.slots.New = func() any { return make(chan any, 1) }
	a.timers.New = func() any { t := time.NewTimer(time.Hour); t.Stop(); return t }
	for i := range a.shards {
		a.shards[i].m = map[uint32]asked{}
	}
	// The runtime counts its own names up in letters behind a "$": a name like
	// theirs would be met by the actor whose turn it is.
	pid, ok := sys.ProcessRegistry.Add(a, "ask")
	if !ok {
		panic("cluster: two askers on one system")
	}
	a.pid = pid
	return a
}

// ask puts msg to an actor of this node.
func (a *asker) ask(ctx context.Context, within time.Duration, to *actor.PID, along string, msg proto.Message) (proto.Message, error) {
	return a.wait(ctx, within, nil, func(id uint32) bool {
		a.sys.Root.Send(to, question(msg, &actor.PID{Address: a.pid.Address, Id: a.pid.Id, RequestId: id}, along))
		return true
	})
}

// wait sends a question and returns its answer; errElsewhere when it could not
// be sent.
func (a *asker) wait(ctx context.Context, within time.Duration, by *session, send func(id uint32) bool) (proto.Message, error) {
	if a.pending.Add(1) > maxCalls {
		a.pending.Add(-1)
		return nil, ErrBusy
	}
	defer a.pending.Add(-1)
	slot := a.slots.Get().(chan any)
	id := a.next.Add(1)
	for id == 0 { // 0 is "no request id"
		id = a.next.Add(1)
	}
	s := &a.shards[id&63]
	s.mu.Lock()
	s.m[id] = asked{slot, by}
	s.mu.Unlock()
	if !send(id) {
		a.answer(id, errElsewhere)
	}

	timer := a.timers.Get().(*time.Timer)
	timer.Reset(within)
	var v any
	var err error
	select {
	case v = <-slot:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = context.DeadlineExceeded
	}
	timer.Stop()
	a.timers.Put(timer)
	if err != nil && a.take(id) == nil {
		v, err = <-slot, nil // the answer was on its way to the slot: it wins
	}
	a.slots.Put(slot)
	if err != nil {
		return nil, err
	}
	switch m := v.(type) {
	case *actor.DeadLetterResponse: // a proto.Message like any other
		return nil, ErrStopped
	case proto.Message:
		return m, nil
	case *crashed:
		return nil, ErrCrashed
	case *elsewhere:
		return nil, errElsewhere
	case *released:
		return nil, nil
	case error:
		return nil, m
	}
	return nil, fmt.Errorf("cluster: answer of type %s", typeName(v))
}

func (a *asker) take(id uint32) chan any {
	s := &a.shards[id&63]
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.m[id].slot
	delete(s.m, id)
	return slot
}

// answer ends a wait; one that has ended already stays as it is.
func (a *asker) answer(id uint32, v any) {
	if slot := a.take(id); slot != nil {
		slot <- v // one place, and take gives a slot to one sender
	}
}

// fail ends every wait for an answer by a link that broke. What was sent may
// have been acted on.
func (a *asker) fail(by *session) {
	for i := range a.shards {
		s := &a.shards[i]
		var lost []chan any
		s.mu.Lock()
		for id, w := range s.m {
			if w.session == by {
				delete(s.m, id)
				lost = append(lost, w.slot)
			}
		}
		s.mu.Unlock()
		for _, slot := range lost {
			slot <- ErrLost
		}
	}
}

// SendUserMessage implements actor.Process.
func (a *asker) SendUserMessage(pid *actor.PID, msg any) {
	if env, ok := msg.(*actor.MessageEnvelope); ok {
		msg = env.Message
	}
	a.answer(pid.RequestId, msg)
}

// SendSystemMessage implements actor.Process.
func (a *asker) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (a *asker) Stop(*actor.PID) {}

func typeName(v any) string { return fmt.Sprintf("%T", v) }
