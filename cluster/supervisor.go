package cluster

import (
	"runtime/debug"

	"github.com/asynkron/protoactor-go/actor"
)

// supervisor is the strategy of the guardian of all activations. An activation that panics is stopped, and the next
// message activates its identity again, from its rows. It runs where the panic was recovered, so the stack still shows
// the place.
type supervisor struct{ n *Node }

func (s *supervisor) HandleFailure(sys *actor.ActorSystem, over actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	n, key := s.n, identityOf(child)
	_, msg, sender := actor.UnwrapEnvelope(message)
	switch m := msg.(type) {
	case born:
		msg = Activated{}
	case counted:
		msg = m.msg
	}
	n.log.Error("actor failed", "kind", key.kind, "message", typeName(msg), "panic", reason,
		"stack", string(debug.Stack()))
	if k := n.kinds[key.kind]; k != nil {
		k.failed.Add(1)
	}
	if slot := n.find(key); slot != nil && slot.pid.Id == child.Id {
		slot.state.Store(gone)
		n.remove(slot)
	}
	sys.EventStream.Publish(&actor.SupervisorEvent{Child: child, Reason: reason, Directive: actor.StopDirective})
	if sender != nil {
		n.reply(sender, ErrCrashed)
	}
	// A stop would drop the queued messages, and their callers would wait in vain. So the activation refuses them
	// first, and stops after them.
	over.ResumeChildren(child)
	sys.Root.Poison(child)
}
