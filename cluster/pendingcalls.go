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

// pendingCalls receives the answers of all calls of this node in one registered process. The request id in the sender's
// PID identifies the call, so a call needs neither a registered future nor a timer of its own.
type pendingCalls struct {
	sys      *actor.ActorSystem
	pid      *actor.PID
	next     atomic.Uint32
	waiting  atomic.Int64
	shards   [64]callShard
	channels sync.Pool // of chan any, with capacity 1
	timers   sync.Pool // of stopped *time.Timer
}

type callShard struct {
	mu sync.Mutex
	m  map[uint32]pendingCall
	_  [40]byte // keep neighbours off the cache line
}

// pendingCall is a waiting call; connection is the one it was sent on, nil for a call to this node.
type pendingCall struct {
	answer     chan any
	connection *connection
}

// askName is the name of the process. The runtime names its actors with "$" and a counter in letters. A name of that
// form would collide with one of them.
const askName = "ask"

func newPendingCalls(sys *actor.ActorSystem) *pendingCalls {
	p := &pendingCalls{sys: sys}
	p.channels.New = func() any { return make(chan any, 1) }
	p.timers.New = func() any { t := time.NewTimer(time.Hour); t.Stop(); return t }
	for i := range p.shards {
		p.shards[i].m = map[uint32]pendingCall{}
	}
	pid, ok := sys.ProcessRegistry.Add(p, askName)
	if !ok {
		panic("cluster: pending calls twice on one system")
	}
	p.pid = pid
	return p
}

// askHere sends msg to an actor of this node and returns its answer.
func (p *pendingCalls) askHere(ctx context.Context, within time.Duration, to *actor.PID, along string,
	msg proto.Message) (proto.Message, error) {
	return p.await(ctx, within, nil, func(id uint32) bool {
		p.sys.Root.Send(to, question(msg, p.pid, id, along))
		return true
	})
}

// await sends a request and returns its answer; errElsewhere if it could not be sent.
func (p *pendingCalls) await(ctx context.Context, within time.Duration, by *connection,
	send func(id uint32) bool) (proto.Message, error) {
	if p.waiting.Add(1) > maxCalls {
		p.waiting.Add(-1)
		return nil, ErrBusy
	}
	defer p.waiting.Add(-1)
	answer := p.channels.Get().(chan any)
	id := p.next.Add(1)
	for id == 0 { // 0 is "no request id"
		id = p.next.Add(1)
	}
	s := &p.shards[id&63]
	s.mu.Lock()
	s.m[id] = pendingCall{answer, by}
	s.mu.Unlock()
	if !send(id) {
		p.answer(id, errElsewhere)
	}

	timer := p.timers.Get().(*time.Timer)
	timer.Reset(within)
	var v any
	var err error
	select {
	case v = <-answer:
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
		err = context.DeadlineExceeded
	}
	timer.Stop()
	p.timers.Put(timer)
	if err != nil && p.take(id) == nil {
		v, err = <-answer, nil // the answer came at the same moment: it wins
	}
	p.channels.Put(answer)
	if err != nil {
		return nil, err
	}
	return resultOf(v)
}

// resultOf returns the message or the error of an answer; nil answers a release.
func resultOf(v any) (proto.Message, error) {
	switch m := v.(type) {
	case nil:
		return nil, nil
	case *actor.DeadLetterResponse: // a proto.Message like any other
		return nil, ErrStopped
	case proto.Message:
		return m, nil
	case error:
		return nil, m
	}
	return nil, fmt.Errorf("cluster: answer of type %s", typeName(v))
}

func (p *pendingCalls) take(id uint32) chan any {
	s := &p.shards[id&63]
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.m[id].answer
	delete(s.m, id)
	return answer
}

// answer ends a wait; a wait that has ended already is not changed.
func (p *pendingCalls) answer(id uint32, v any) {
	if answer := p.take(id); answer != nil {
		answer <- v // it has capacity 1, and take gives it to one sender
	}
}

// fail ends every call on a connection that broke. The other node may have acted on it.
func (p *pendingCalls) fail(by *connection) {
	for i := range p.shards {
		s := &p.shards[i]
		var failed []chan any
		s.mu.Lock()
		for id, w := range s.m {
			if w.connection == by {
				delete(s.m, id)
				failed = append(failed, w.answer)
			}
		}
		s.mu.Unlock()
		for _, answer := range failed {
			answer <- ErrLost
		}
	}
}

// reply answers the caller that waits for m. A call of this node is answered without a lookup of its process, which
// would cost an allocation each time.
func (n *Node) reply(to *actor.PID, m any) {
	if to.Id == askName {
		n.pending.answer(to.RequestId, m)
		return
	}
	n.sys.Root.Send(to, m)
}

func (p *pendingCalls) SendUserMessage(pid *actor.PID, msg any) {
	if env, ok := msg.(*actor.MessageEnvelope); ok {
		msg = env.Message
	}
	p.answer(pid.RequestId, msg)
}

func (p *pendingCalls) SendSystemMessage(*actor.PID, any) {}

func (p *pendingCalls) Stop(*actor.PID) {}

func typeName(v any) string { return fmt.Sprintf("%T", v) }
