package shard

import (
	"math"

	"castellan/domain/guard/ratelimit"
)

// Shard is the role of one node for one partition of the keys, and its windows: a state machine without I/O and
// without a clock. The lock of the partition guards both. README.md has the table of its phases.
type Shard struct {
	windows *ratelimit.Partition
	n       int // the number of the partition
	phase   phase
	number  uint64 // of the last admission; see termShift
	recent  recent // the admissions of the last seconds, by name
	// unreplicated are admissions that no other node may have. unlisted: the list is full, and there are more of them.
	unreplicated []*Update
	unlisted     bool

	// For an owner, or a node that becomes one.
	replica    string // the member that may decide in the owner's place
	stateSent  bool   // the whole state was sent to the replica
	pullFrom   string // a replica that has decided, or may have: it has more admissions than this node
	takingOver bool   // takeOver is calling other members
	notBefore  int64  // no takeover before this instant

	// For a replica.
	source      string // the owner whose state this node has
	stateNumber uint64 // the number of the received state
	skipChunks  bool   // ignore the remaining chunks of the current state
	awaited     *awaitedState

	// For a node that gave the partition away.
	handoffs      uint32 // how often
	handoffNumber uint64 // the number at the last time
	givenAt       int64  // when
	// dropAt is when the node forgets a partition that it does not own; 0: never.
	dropAt int64
}

// Init makes an unused Shard that of a partition of a table.
func (s *Shard) Init(n int, windows *ratelimit.Partition) { s.n, s.windows = n, windows }

// phase says what a node may do for a partition, and how complete its state is.
type phase uint8

const (
	// unknown: the node may lack admissions. It decides nothing.
	unknown phase = iota
	// following: the node is a replica and has the owner's whole state.
	following
	// acting: a replica that decides in the owner's place.
	acting
	// acted: it has decided in an owner's place, and may not do so any more.
	acted
	// stopped: it decided last, as the owner, and no node has taken over from it yet.
	stopped
	// owning: it is the owner and decides.
	owning
)

// String returns the name of the phase in README.md.
func (p phase) String() string {
	return [...]string{"unknown", "following", "acting", "acted", "stopped", "owning"}[p]
}

// termShift is the position of the term in a number. Admissions of a partition are numbered. The upper half of a
// number, its term, grows whenever another node begins to decide; it separates the periods of the deciding nodes.
const termShift = 32

func termOf(number uint64) uint64 { return number >> termShift }

// awaitedState is a state that a replica waits for. Admissions that the node receives as the requester may arrive
// before the state and not be part of it.
type awaitedState struct {
	since uint64 // the state must have at least this number
	heard []*Update
}

// Phase returns the name of the phase in README.md.
func (s *Shard) Phase() string { return s.phase.String() }

// Owns reports whether the node decides as the owner.
func (s *Shard) Owns() bool { return s.phase == owning }

// Number returns the number of the last admission; its upper half is the term.
func (s *Shard) Number() uint64 { return s.number }

// Follows reports whether the node has the whole state as the replica; KnowsNothing, whether it may lack admissions.
func (s *Shard) Follows() bool      { return s.phase == following }
func (s *Shard) KnowsNothing() bool { return s.phase == unknown }

// Decides reports whether the node decides, as the owner or in its place.
func (s *Shard) Decides() bool { return s.phase == owning || s.phase == acting }

// HasActed reports whether the node has decided in the place of an owner that does not know it yet.
func (s *Shard) HasActed() bool { return s.phase == acting || s.phase == acted }

// StillCounts reports whether an admission of this owner, or of the replica in its place, counts. The shard may have
// been taken over since.
func (s *Shard) StillCounts(x *Update) bool {
	return (s.phase == owning || s.phase == acting && x.Witness) && x.term() == termOf(s.number)
}

// knowsAll reports whether the node has every admission, or had when it last had contact to the partition's owner.
func (s *Shard) knowsAll() bool { return s.phase != unknown }

// hasDecided reports whether the node may have counted admissions that no owner sent to it.
func (s *Shard) hasDecided() bool { return s.phase >= acting }

// refusesOwner reports whether the node must not follow an owner: it decides, or has decided in the place of one.
func (s *Shard) refusesOwner() bool {
	return s.phase == owning || s.phase == acting || s.phase == acted
}

// mayAct reports whether the node may decide in the owner's place.
func (s *Shard) mayAct() bool { return s.phase == following || s.phase == acting }

// act begins to decide in the owner's place, in its own term. False: the node must not, because it may lack admissions.
func (s *Shard) act() bool {
	switch s.phase {
	case following:
		s.phase = acting
		s.number = (termOf(s.number) + 1) << termShift
		return true
	case acting:
		return true
	}
	return false
}

// stop makes an owner stop deciding. Its replica may have decided in the meantime.
func (s *Shard) stop() {
	if s.phase == owning {
		s.phase, s.pullFrom, s.replica = stopped, s.replica, ""
	}
}

// own makes the node decide as the owner, two terms above every term it has seen: one is left for its replica.
func (s *Shard) own(replica string) {
	s.phase, s.pullFrom, s.replica, s.stateSent = owning, "", replica, false
	s.stateArrived()
	s.number = (termOf(s.number) + 2) << termShift
}

// give ends the node's role for the partition: the state goes to another member. isReplica: the node stays a replica of
// the receiver.
func (s *Shard) give(to string, isReplica bool) {
	s.phase = unknown
	if isReplica {
		s.phase = following
	}
	s.source, s.pullFrom = to, ""
	s.replicated()
	s.stateArrived()
	s.handoffs++
	s.handoffNumber = s.number
}

// lapse handles a time in which the node could not confirm its membership: others may have decided.
func (s *Shard) lapse() {
	s.incomplete()
	if s.phase == stopped || s.phase == owning {
		s.phase = unknown
	}
	s.pullFrom, s.replica = "", ""
}

// incomplete records that the owner may have counted admissions that this node lacks.
func (s *Shard) incomplete() {
	switch s.phase {
	case following:
		s.phase = unknown
	case acting:
		s.phase = acted
	}
}

// beginState follows an owner whose state is about to arrive.
func (s *Shard) beginState() {
	s.phase, s.pullFrom = unknown, ""
	s.replicated()
}

// endState completes the state of the owner.
func (s *Shard) endState(owner string, number uint64) {
	if s.phase == unknown {
		s.phase = following
	}
	s.number, s.stateNumber, s.source = max(s.number, number), number, owner
	s.stateArrived()
}

// beginTerm follows an owner of a later term, whose state this node does not have.
func (s *Shard) beginTerm() {
	s.phase = unknown
	s.awaitState()
}

// awaitState begins to wait for a state, and stateArrived ends the wait.
func (s *Shard) awaitState() {
	if s.awaited == nil {
		s.awaited = &awaitedState{since: s.number}
	}
}

func (s *Shard) stateArrived() { s.awaited = nil }

// hear remembers an admission that the awaited state may lack. When there are too many, a later state is awaited
// instead.
func (s *Shard) hear(x *Update) {
	if s.awaited == nil {
		return
	}
	if s.awaited.heard = append(s.awaited.heard, x); len(s.awaited.heard) > maxRemembered {
		s.awaited = nil
		s.awaitState()
	}
}

// heard returns the admissions that the awaited state may lack.
func (s *Shard) heard() []*Update {
	if s.awaited == nil {
		return nil
	}
	return s.awaited.heard
}

// forgetAll empties the windows of the partition before another state replaces them.
func (s *Shard) forgetAll() {
	s.windows.Clear()
	s.recent.clear()
}

// noteUnreplicated records an admission that no other node may have.
func (s *Shard) noteUnreplicated(x *Update) {
	if s.unlisted = s.unlisted || len(s.unreplicated) >= maxRemembered; s.unlisted {
		s.unreplicated = nil
	} else {
		s.unreplicated = append(s.unreplicated, x)
	}
}

// hasUnreplicated reports whether there are such admissions; replicated records that another node has all of them.
func (s *Shard) hasUnreplicated() bool { return s.unlisted || len(s.unreplicated) > 0 }
func (s *Shard) replicated()           { s.unlisted, s.unreplicated = false, nil }

// known returns the number up to which a replica has nothing new for this node, unless the replica has decided itself.
// 0: the replica must send everything.
func (s *Shard) known() uint64 {
	switch {
	case !s.knowsAll():
		return 0
	case s.hasUnreplicated():
		return math.MaxUint64
	}
	return s.number
}
