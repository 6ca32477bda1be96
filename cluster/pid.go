package cluster

import (
	"context"
	"errors"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	protoactor "github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
)

// aloneAddress is the address of a node without a cluster, in PIDs and in the list of members.
const aloneAddress = "alone:0"

// virtual is the process behind a PID of Get: it sends to the activation of an identity at its current location, over
// the links if that is another node.
type virtual struct {
	n   *Node
	key identity
}

// resolve finds the process of a PID with an address. The processes of this node have no address. So a message to a PID
// of Get is counted before the mailbox here as well.
func (n *Node) resolve(pid *actor.PID) (actor.Process, bool) {
	kind, id, ok := strings.Cut(pid.Id, "/")
	if !ok || n.kinds[kind] == nil {
		return nil, false
	}
	return &virtual{n, identity{kind, id}}, true
}

// SendUserMessage never blocks.
func (v *virtual) SendUserMessage(pid *actor.PID, message any) {
	_, msg, sender := actor.UnwrapEnvelope(message)
	m, ok := msg.(proto.Message)
	if _, poison := msg.(*actor.PoisonPill); !ok || poison { // a caller cannot end an activation
		v.n.sys.DeadLetter.SendUserMessage(pid, message)
		return
	}
	if sender == nil {
		v.n.sendTo(v.key, m)
		return
	}
	go v.n.answerTo(sender, v.key, m, settings{ctx: context.Background(), within: DefaultTimeout})
}

// SendSystemMessage drops most messages: system messages do not leave a node.
func (v *virtual) SendSystemMessage(pid *actor.PID, message any) {
	v.n.sys.DeadLetter.SendSystemMessage(pid, message)
}

// Stop does not stop the activation, which ends itself.
func (v *virtual) Stop(pid *actor.PID) { v.n.sys.DeadLetter.Stop(pid) }

// answerTo makes a request and sends its answer to a process, such as a future.
func (n *Node) answerTo(to *actor.PID, key identity, msg proto.Message, s settings) {
	answer, err := n.request(s, key, msg)
	switch {
	case err == nil:
		n.sys.Root.Send(to, answer)
	case errors.Is(err, context.DeadlineExceeded): // the future ends itself, with actor.ErrTimeout
	case NeverSent(err):
		n.sys.Root.Send(to, &actor.DeadLetterResponse{}) // actor.ErrDeadLetter
	default:
		n.sys.Root.Send(to, protoactor.NewGrainErrorResponse(reasonOf(err), err.Error()))
	}
}

// reasonOf returns the library's text for an error of a request that may have been acted on.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, ErrCrashed):
		return protoactor.ErrorReason_INTERNAL
	case errors.Is(err, ErrLost):
		return protoactor.ErrorReason_UNAVAILABLE
	case errors.Is(err, context.Canceled):
		return protoactor.ErrorReason_CANCELLED
	}
	return protoactor.ErrorReason_UNKNOWN
}
