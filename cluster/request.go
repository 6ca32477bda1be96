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

// caller makes the library's requests over our links, with one deadline each. It
// implements protoactor.Context.
type caller struct {
	n        *Node
	requests sync.Pool // of *request
}

func newCaller(n *Node) *caller {
	c := &caller{n: n}
	c.requests.New = func() any { return &request{RootContext: n.sys.Root} }
	return c
}

// request is what the options of one request say. It is their first SenderContext.
type request struct {
	*actor.RootContext
	ctx    context.Context
	config protoactor.GrainCallConfig
}

// settings are the options as a node needs them.
type settings struct {
	ctx    context.Context
	within time.Duration
	looks  int // for the owner; 0: for findTime
}

// Within has a request end when ctx ends, and follows it in the trace of ctx.
func Within(ctx context.Context) protoactor.GrainCallOption {
	return func(config *protoactor.GrainCallConfig) {
		if r, ok := config.Context.(*request); ok {
			r.ctx = ctx
			return
		}
		config.Context = &request{ctx: ctx}
	}
}

// settings applies options. WithTimeout bounds the wait, and WithRetryCount how often
// an owner is looked for. A WithContext names a sender, and the answer is the
// caller's, so it changes nothing; nor does WithRetryAction, for a change of the
// members ends the pause between two looks.
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

// Request sends a message to a virtual actor and returns its answer. Of an error,
// NeverSent reports whether the actor can have acted on the message.
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

// RequestFuture is Request without the wait. A future knows two errors, so "never
// sent" is actor.ErrDeadLetter and "no answer in time" is actor.ErrTimeout; any other
// comes as a *protoactor.GrainErrorResponse, the library's answer for errors.
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
