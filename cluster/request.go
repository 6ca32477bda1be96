package cluster

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
)

// caller makes the library's requests over our links, with one deadline each.
type caller struct {
	n        *Node
	requests sync.Pool // of *request
}

func newCaller(n *Node) *caller {
	c := &caller{n: n}
	c.requests.New = func() any { return &request{RootContext: n.sys.Root} }
	return c
}

// request holds the options of one request. It is their first SenderContext.
type request struct {
	*actor.RootContext
	ctx    context.Context
	config protoactor.GrainCallConfig
}

// settings are the options in the form that a node needs.
type settings struct {
	ctx    context.Context
	within time.Duration
	looks  int // lookups of the owner; 0: for findTime
}

// Within makes a request end when ctx ends, and adds it to the trace of ctx.
func Within(ctx context.Context) protoactor.GrainCallOption {
	return func(config *protoactor.GrainCallConfig) {
		if r, ok := config.Context.(*request); ok {
			r.ctx = ctx
			return
		}
		config.Context = &request{ctx: ctx}
	}
}

// settings applies options. WithTimeout bounds the wait, and WithRetryCount the number of lookups of an owner.
// WithContext has no effect, because it names a sender, and the caller receives the answer. WithRetryAction has no
// effect, because a change of the members ends the pause between two lookups.
func (c *caller) settings(opts []protoactor.GrainCallOption) settings {
	s := settings{ctx: context.Background(), within: c.n.library.Config.RequestTimeoutTime}
	if len(opts) == 0 {
		return s
	}
	r := c.requests.Get().(*request)
	r.ctx = s.ctx
	r.config = protoactor.GrainCallConfig{Timeout: s.within, Context: r}
	for _, apply := range opts {
		apply(&r.config)
	}
	if last, ok := r.config.Context.(*request); ok {
		s.ctx = last.ctx
	}
	s.within, s.looks = r.config.Timeout, r.config.RetryCount
	r.ctx, r.config = nil, protoactor.GrainCallConfig{}
	c.requests.Put(r)
	return s
}

// Request sends a message to a virtual actor and returns its answer. For an error, NeverSent reports whether the
// message was not sent; otherwise the actor can have acted on it.
func (c *caller) Request(id, kind string, message any, opts ...protoactor.GrainCallOption) (any, error) {
	msg, ok := message.(proto.Message)
	if !ok {
		return nil, errMessage(message)
	}
	answer, err := c.n.request(c.settings(opts), identity{kind, id}, msg)
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// RequestFuture is Request without the wait. A future has two errors of its own: "never sent" is actor.ErrDeadLetter
// and "no answer in time" is actor.ErrTimeout. Any other comes as a *protoactor.GrainErrorResponse, the library's
// answer for errors.
func (c *caller) RequestFuture(id, kind string, message any,
	opts ...protoactor.GrainCallOption) (*actor.Future, error) {
	msg, ok := message.(proto.Message)
	switch {
	case !ok:
		return nil, errMessage(message)
	case c.n.kinds[kind] == nil:
		return nil, ErrKind
	case c.n.closed.Load():
		return nil, ErrStopped
	}
	s := c.settings(opts)
	f := actor.NewFuture(c.n.sys, s.within)
	go c.n.answerTo(f.PID(), identity{kind, id}, msg, s)
	return f, nil
}

func errMessage(m any) error { return fmt.Errorf("cluster: %T is not a protobuf message", m) }
