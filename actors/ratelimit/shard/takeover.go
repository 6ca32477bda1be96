package shard

import (
	"castellan/actors/pb"
)

const (
	// handedOverTime is how long a node does not take back a shard that it has handed over, in nanoseconds: its view of
	// the owner may be out of date.
	handedOverTime = 2e9
	// retryTakeOver is the pause after a takeover that another owner refused.
	retryTakeOver = 100e6
)

// TakeOver begins to make this node, the owner by the ring, the one that decides. The state comes from the replica that
// has decided in its place, or from the members that had the shard lately. When those are gone, it comes from this
// node's own copy as their replica. TakenOver follows, after other members were called.
type TakeOver struct {
	Place
	Begun *Takeover // the answer; nil: there is nothing to take over now
}

// Takeover names the states to collect.
type Takeover struct {
	From         string // the replica that may have decided
	KnowsNothing bool   // this node has nothing of its own
	Pull         *pb.RatePull

	handoffs uint32
}

func (m *TakeOver) step(s *Shard, now int64, _ *Effects) {
	if m.Owner != m.Self || s.phase == owning || s.takingOver || now < s.notBefore || !m.Confirmed {
		return
	}
	s.takingOver = true
	from := s.pullFrom
	m.Begun = &Takeover{From: from, handoffs: s.handoffs,
		KnowsNothing: s.windows.Len() == 0 && !s.knowsAll() && !s.hasUnreplicated(),
		Pull: &pb.RatePull{Part: uint32(s.n), Number: s.known(), Back: from != "",
			Close: from != "" && from != m.Replica}}
}

// Transfer is the state that another member handed over.
type Transfer struct {
	States  []*pb.RateState // its chunks
	By      string
	Replica bool // By may have decided as a replica
}

// TakenOver merges the collected states and becomes the owner, unless the shard was handed over, or another replica has
// decided, since the takeover began.
type TakenOver struct {
	Place
	*Takeover
	Found []*Transfer
	// Witnessed are admissions of those of these members that are lost, of which others are the witnesses.
	Witnessed []*Update

	Ready bool // false: another member already owns it, and its message to this node will follow
	Alone bool // this node is the only member
	Done  bool // the answer
}

func (m *TakenOver) step(s *Shard, now int64, out *Effects) {
	s.takingOver = false
	if !m.Ready {
		s.notBefore = now + retryTakeOver
		return
	}
	if s.handoffs != m.handoffs || s.pullFrom != m.From || m.Owner != m.Self || !m.Confirmed {
		return
	}
	m.Done = true
	lost := s.notAdopted(m.Witnessed)
	var same *Transfer // its sender has the same state as this node
	for _, g := range m.Found {
		switch s.merge(g, now, out) {
		case replaced:
			same = g
		case merged:
			same = nil
		}
	}
	if s.addWitnessed(lost, now) {
		same = nil
	}
	s.own(m.Replica)
	if same != nil && m.Replica == same.By && !s.hasUnreplicated() {
		out.Sends = append(out.Sends, Send{m.Replica, &Update{Part: s.n,
			State: &pb.RateState{Part: uint32(s.n), Number: s.number, Was: same.States[0].Number}}})
		s.stateSent = true
	}
	s.unlisted, s.unreplicated = m.Alone, nil
}

// mergeResult is the result of merging a received state.
type mergeResult int

const (
	keptOwn  mergeResult = iota // this node has the newer state
	replaced                    // this node has adopted the other state
	merged                      // each had admissions that the other lacked: both count
)

// merge adopts another member's state if that member has decided in this node's place or has more admissions. If each
// may have admissions that the other lacks, both count. A recent admission in both states has a name and counts once;
// an older one may count twice. None is lost.
func (s *Shard) merge(g *Transfer, now int64, out *Effects) (what mergeResult) {
	x := g.States[0]
	more := g.Replica || x.Number >= s.number
	both := s.unlisted || // this node has more than its list
		x.Partial && more && x.Number != s.number || // the other may lack admissions
		x.Held && !g.Replica && s.phase == stopped // both have decided
	switch {
	case both && len(x.Keys) == 0: // there is nothing to add
	case both && s.windows.Len() > 0:
		own := s.chunks(nil, now)
		s.forgetAll()
		s.add(append(own, g.States...), now)
		out.Merged++
		what = merged
	case both || more && !(x.Partial && s.knowsAll()):
		s.forgetAll()
		for i := range g.States {
			s.add(g.States[i:i+1], now)
		}
		s.addMissing(s.unreplicated, 0, now)
		what = replaced
		if x.Partial {
			what = merged
		}
	}
	s.number = max(s.number, x.Number)
	return what
}

// Stop stops this node as the owner of a shard, because another member asks for it.
type Stop struct {
	// The answer: the replica that may have decided, and the number up to which its state is known.
	From  string
	Known uint64
}

func (m *Stop) step(s *Shard, _ int64, _ *Effects) {
	s.stop()
	m.From, m.Known = s.pullFrom, s.known()
}

// Stopped follows Stop when its replica was stopped, too, or could not be.
type Stopped struct {
	From      string
	Found     *Transfer // nil: none
	Witnessed []*Update // of that replica, if it is lost
}

func (m *Stopped) step(s *Shard, now int64, out *Effects) {
	if s.phase != stopped || s.pullFrom != m.From {
		return
	}
	s.pullFrom = ""
	if m.Found != nil {
		s.merge(m.Found, now, out)
	}
	s.addWitnessed(s.notAdopted(m.Witnessed), now)
}

// Pull hands one chunk of a shard's state over to the member that decides from now on.
type Pull struct {
	To    string
	Pull  *pb.RatePull
	State *pb.RateState // the answer
}

func (m *Pull) step(s *Shard, now int64, _ *Effects) {
	q := m.Pull
	switch {
	case len(q.After) > 0:
		m.State = s.chunks(q.After, now)[0]
		return
	case q.Back && s.phase == owning:
		m.State = &pb.RateState{Part: q.Part, Refused: true}
		return
	case q.Back && !s.hasDecided() && q.Number != 0 && q.Number >= s.number:
		m.State = &pb.RateState{Part: q.Part, Was: q.Number} // the other member has all of it
	default:
		m.State = s.chunks(nil, now)[0]
		m.State.Partial, m.State.Held = !s.knowsAll(), s.hasDecided()
	}
	s.givenAt = now
	s.give(m.To, !q.Close && s.knowsAll() && s.number >= q.Number)
	if !q.Back {
		s.notBefore = now + handedOverTime
	}
}

// retention is how long a node keeps a shard of which it is neither owner nor replica, in nanoseconds: until its new
// members have requested it.
const retention = 10e9

// Placed tells a shard of a change of the members. A node that is no longer the owner stops deciding at once. The new
// owner requests the state from it.
type Placed struct {
	Place
	Joined  bool // this node was the only member
	Lapsed  bool // it could not confirm its membership for a while, and may have missed messages
	Decided bool // a member that joined may have decided until it learned of the change
	Same    bool // the replica is the same
}

func (m *Placed) step(s *Shard, now int64, _ *Effects) {
	s.notBefore = 0
	if m.Joined && s.windows.Len() > 0 {
		s.unlisted, s.unreplicated = true, nil // no other node has it
	}
	switch {
	case m.Lapsed:
		s.lapse()
	case s.phase == owning && (m.Owner != m.Self || m.Joined || s.replica != "" && s.replica != m.Replica || m.Decided):
		s.stop()
	case s.phase == owning:
		s.replica = m.Replica
	case s.source != m.Owner:
		s.incomplete() // the new owner will send its state, or has sent it
	}
	if m.Owner == m.Self || m.Replica == m.Self {
		s.dropAt = 0
	} else if s.dropAt == 0 {
		s.dropAt = now + retention
	}
	s.stateSent = s.stateSent && m.Same && !(m.Replica != "" && m.ReplicaSilent)
}

// Tick forgets a shard that this node has kept long enough for its new members.
type Tick struct{}

func (Tick) step(s *Shard, now int64, _ *Effects) {
	if s.dropAt != 0 && now > s.dropAt && s.phase != owning {
		s.windows.Clear()
		*s = Shard{n: s.n, windows: s.windows, dropAt: s.dropAt, handoffs: s.handoffs, takingOver: s.takingOver}
	}
}
