package shard

import (
	"slices"

	"castellan/actors/pb"
)

// A replica counts the admissions of the owner until it decides itself, and reports that to the owner. The first half
// of this file is the replica's side, the second half the owner's.

// Reply is a replica's answer to an update.
type Reply int

// The answers.
const (
	Accepted    Reply = iota
	Superseding       // it has decided itself, or has another owner
	StateNeeded       // it lacks the earlier updates
)

// maxRemembered is how many single admissions a shard remembers that another node or a state may lack.
const maxRemembered = 1 << 12

// Copy counts an admission of the owner. The node receives it by an update or, AsRequester, by the answer to its own
// request, which it sent at Since. If it has handed a state to the owner since, the owner may have counted before it
// adopted that state. The admission may be lost then, and the request is repeated under its name.
type Copy struct {
	*Update
	AsRequester bool
	Since       int64
	Reply       Reply // the answer
}

func (c *Copy) step(s *Shard, now int64, _ *Effects) {
	x := c.Update
	switch {
	case s.refusesOwner() || termOf(x.Number) < termOf(s.number) || c.AsRequester && s.givenAt >= c.Since:
		c.Reply = Superseding
		return
	case x.Number <= s.stateNumber:
		return // it was part of the state
	case termOf(x.Number) > termOf(s.number):
		s.beginTerm()
		c.Reply = StateNeeded
	}
	s.number = max(s.number, x.Number)
	if c.AsRequester {
		s.hear(x)
	}
	if x.TakenBack {
		s.forgetNamed(x.Demand.Key, x.ID, x.Count, now)
	} else {
		s.addOnce(x, now)
	}
}

// State adopts the owner's state of a shard, or a chunk of it.
type State struct {
	From  string
	State *pb.RateState
	Reply Reply // the answer
}

func (m *State) step(s *Shard, now int64, _ *Effects) {
	x := m.State
	switch {
	case s.refusesOwner() || termOf(x.Number) < termOf(s.number):
		m.Reply = Superseding
		return
	case x.Was != 0 && s.number != x.Was:
		s.incomplete()
		s.awaitState()
		m.Reply = StateNeeded
		return
	case x.Was != 0: // this node has all of it
		s.endState(m.From, x.Number)
		s.replicated()
		return
	case x.Next && s.skipChunks:
		return
	case !x.Next:
		s.skipChunks = s.awaited != nil && s.awaited.since > x.Number || s.awaited == nil && s.number > x.Number
		if s.skipChunks {
			s.awaitState()
			m.Reply = StateNeeded
			return
		}
		s.forgetAll()
		s.beginState()
	}
	s.add([]*pb.RateState{x}, now)
	if !x.More {
		s.addMissing(s.heard(), x.Number, now)
		s.endState(m.From, x.Number)
	}
}

// addMissing counts the admissions that are missing from a state which goes up to a number.
func (s *Shard) addMissing(all []*Update, above uint64, now int64) {
	for _, x := range all {
		if x.Number > above && !x.TakenBack {
			s.addOnce(x, now)
		}
	}
}

// Missed says that the owner has gone on without this node as its replica.
type Missed struct{}

func (Missed) step(s *Shard, _ int64, _ *Effects) {
	if s.phase == following {
		s.incomplete()
	}
}

// Lacks asks whether this node must request the owner's state as its replica. An owner in whose place this node has
// decided learns that, too: its state is refused.
type Lacks struct{ State bool }

func (m *Lacks) step(s *Shard, _ int64, _ *Effects) {
	if s.phase == unknown {
		s.awaitState()
	}
	m.State = s.phase == unknown || s.phase == acting
}

// Resend sends the replica the whole state of a shard, unless it was already sent. Always: also then, and decisions
// wait for it.
type Resend struct {
	Place
	Always bool
	Waits  any
}

func (m *Resend) step(s *Shard, now int64, out *Effects) {
	switch {
	case m.Always && m.ReplicaSilent:
		s.stateSent = false // it gets the state when it answers again
		return
	case m.Replica == "" || !m.Always && (s.phase != owning || s.stateSent):
		return
	}
	s.stateSent = s.stateSent || !m.Always
	for _, x := range s.chunks(nil, now) {
		out.Sends = append(out.Sends, Send{m.Replica, &Update{Part: s.n, State: x, Waits: m.Waits}})
	}
}

// Unsent says that the replica may lack a part of the state, so the next Resend sends the whole.
type Unsent struct{}

func (Unsent) step(s *Shard, _ int64, _ *Effects) { s.stateSent = false }

// Copied says that the replica has confirmed the whole state.
type Copied struct{ Place }

func (m Copied) step(s *Shard, _ int64, _ *Effects) {
	if !m.ReplicaSilent {
		s.replicated()
	}
}

// Unreplicated says that an admission is valid although only this node has it. One of an earlier term is in the state
// with which the present one began, or is void.
type Unreplicated struct{ *Update }

func (m Unreplicated) step(s *Shard, _ int64, _ *Effects) {
	if m.term() == termOf(s.number) {
		s.noteUnreplicated(m.Update)
	}
}

// Superseded is the answer of a replica, to updates of several shards, that it has decided itself or has another owner.
// Waiting decisions are repeated once this node has the replica's state. Admissions whose clients have their answers
// count then. Admissions of a shard that has moved count at its new owner.
type Superseded struct {
	By      string
	Updates []*Update
}

func (m *Superseded) step(s *Shard, _ int64, out *Effects) {
	// An answer to updates of an earlier term says nothing about the replica's present state: this node has taken that
	// over since.
	now := termOf(s.number)
	ofNow := func(x *Update) bool { return x.Part == s.n && x.term() == now }
	if slices.ContainsFunc(m.Updates, ofNow) {
		s.stopFor(m.By)
	}
	for _, x := range m.Updates {
		switch {
		case x.Part != s.n || x.State != nil || x.Number <= s.handoffNumber:
		case x.Waits != nil:
			out.Failed = append(out.Failed, x)
		case !x.TakenBack && x.term() == now && !slices.Contains(s.unreplicated, x):
			s.noteUnreplicated(x)
		}
	}
}

// Replaced says that the replica has decided in this owner's place.
type Replaced struct{ By string }

func (m Replaced) step(s *Shard, _ int64, _ *Effects) { s.stopFor(m.By) }

// stopFor stops an owner whose replica has decided.
func (s *Shard) stopFor(replica string) {
	if s.phase == owning {
		s.stop()
		s.pullFrom = replica
	}
}
