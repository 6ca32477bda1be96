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
	m  map[uint32]chan any
	_  [40]byte // keep neighbours off the cache line
}

// crashed answers a call whose actor panicked.
type crashed struct{}

func newAsker(sys *actor.ActorSystem) *asker {
	a := &asker{sys: sys}
	a.slots.New = func() any { return make(chan any, 1) }
	a.timers.New = func() any { t := time.NewTimer(time.Hour); t.Stop(); return t }
	for i := range a.shards {
		a.shards[i].m = map[uint32]chan any{}
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

func (a *asker) ask(ctx context.Context, within time.Duration, to *actor.PID, msg proto.Message) (proto.Message, error) {
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
	s.m[id] = slot
	s.mu.Unlock()
	a.sys.Root.Send(to, &actor.MessageEnvelope{Message: msg, Sender: &actor.PID{Address: a.pid.Address, Id: a.pid.Id, RequestId: id}})

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
	}
	return nil, fmt.Errorf("cluster: answer of type %s", typeName(v))
}

func (a *asker) take(id uint32) chan any {
	s := &a.shards[id&63]
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.m[id]
	delete(s.m, id)
	return slot
}

// SendUserMessage implements actor.Process.
func (a *asker) SendUserMessage(pid *actor.PID, msg any) {
	if env, ok := msg.(*actor.MessageEnvelope); ok {
		msg = env.Message
	}
	if slot := a.take(pid.RequestId); slot != nil {
		slot <- msg // one place, and take gives a slot to one sender
	}
}

// SendSystemMessage implements actor.Process.
func (a *asker) SendSystemMessage(*actor.PID, any) {}

// Stop implements actor.Process.
func (a *asker) Stop(*actor.PID) {}

func typeName(v any) string { return fmt.Sprintf("%T", v) }
