package cluster

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
)

// Tracing follows calls from their callers to the activations that answer, on this node and on others. A node without
// tracing has no cost.
type Tracing interface {
	// Call begins the span of a call in the trace of ctx. It returns the W3C traceparent to send with the message, or
	// "" if the call is not traced. ended is never nil.
	Call(ctx context.Context, kind, message string) (along string, ended func(error))
	// Handle begins the span of a message at its activation; the returned context carries it. along was sent by a
	// member and may be invalid. ended is never nil; failed reports that the activation panicked.
	Handle(along, kind, message string) (ctx context.Context, ended func(failed bool))
}

// Trace enables tracing. It must not be called after the first request, nor after Start.
func (n *Node) Trace(t Tracing) { n.traces = t }

// alongKey is the header of a message's trace within a node.
const alongKey = "trace"

// question wraps msg for an activation, with the process and the number for its answer.
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

// messageName returns the type of a message, without its package and without its content.
func messageName(msg any) string {
	if m, ok := msg.(proto.Message); ok {
		return string(m.ProtoReflect().Descriptor().Name())
	}
	return typeName(msg)
}
