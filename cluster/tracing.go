package cluster

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// Tracing follows calls from those who make them to the activations that
// answer, on this node and on others. A node without it pays nothing.
type Tracing interface {
	// Call begins the part of a call in the trace that ctx carries, and returns
	// what goes along with the message: a W3C traceparent, or "" where there is
	// nothing to follow. ended is never nil.
	Call(ctx context.Context, kind, message string) (along string, ended func(error))
	// Handle begins the part of a message at its activation; the context carries
	// it. What came along was sent by a member, and need not make sense. ended
	// is never nil; failed says that the activation panicked.
	Handle(along, kind, message string) (ctx context.Context, ended func(failed bool))
}

// Trace has calls followed. It must not be called after the first request, nor
// after Start.
func (n *Node) Trace(t Tracing) { n.traces = t }

// alongKey is the header under which a message carries its trace on a node.
const alongKey = "trace"

// question is msg as an activation gets it, with the process and the number that its
// answer goes to.
func question(msg proto.Message, from *actor.PID, number uint32, along string) *actor.MessageEnvelope {
	q := &struct { // one allocation
		actor.MessageEnvelope
		sender actor.PID
	}{}
	q.sender.Address, q.sender.Id, q.sender.RequestId = from.Address, from.Id, number
	q.Message, q.Sender = msg, &q.sender
	if along != "" {
		q.SetHeader(alongKey, along)
	}
	return &q.MessageEnvelope
}

// messageName is what a message is, without its package: never what it holds.
func messageName(msg any) string {
	if m, ok := msg.(proto.Message); ok {
		return string(m.ProtoReflect().Descriptor().Name())
	}
	return typeName(msg)
}
