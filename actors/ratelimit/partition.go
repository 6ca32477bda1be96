package ratelimit

import (
	"math"

	"castellan/domain/guard/ratelimit"
)

// partition is the role of this node for one partition of the keys: a state machine without I/O and without a clock.
// Its windows are in the table, whose lock of the partition guards both. README.md has the table of its phases.
type partition struct {
	phase  phase
	number uint64 // of the last admission; see termShift
	recent recent // the admissions of the last seconds, by name
	// unreplicated are admissions that no other node may have. unlisted: the list is full, and there are more of them.
	unreplicated []*update
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
	// dropAt is when the node forgets a partition that it does not own; 0: never.
	dropAt int64
}

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
	heard []*update
}

// knowsAll reports whether the node has every admission, or had when it last had contact to the partition's owner.
func (p *partition) knowsAll() bool { return p.phase != unknown }

// hasDecided reports whether the node may have counted admissions that no owner sent to it.
func (p *partition) hasDecided() bool { return p.phase >= acting }

// refusesOwner reports whether the node must not follow an owner: it decides, or has decided in the place of one.
func (p *partition) refusesOwner() bool {
	return p.phase == owning || p.phase == acting || p.phase == acted
}

// mayAct reports whether the node may decide in the owner's place.
func (p *partition) mayAct() bool { return p.phase == following || p.phase == acting }

// act begins to decide in the owner's place, in its own term. False: the node must not, because it may lack admissions.
func (p *partition) act() bool {
	switch p.phase {
	case following:
		p.phase = acting
		p.number = (termOf(p.number) + 1) << termShift
		return true
	case acting:
		return true
	}
	return false
}

// stop makes an owner stop deciding. Its replica may have decided in the meantime.
func (p *partition) stop() {
	if p.phase == owning {
		p.phase, p.pullFrom, p.replica = stopped, p.replica, ""
	}
}

// own makes the node decide as the owner, two terms above every term it has seen: one is left for its replica.
func (p *partition) own(replica string) {
	p.phase, p.pullFrom, p.replica, p.stateSent = owning, "", replica, false
	p.stateArrived()
	p.number = (termOf(p.number) + 2) << termShift
}

// give ends the node's role for the partition: the state goes to another member. isReplica: the node stays a replica of
// the receiver.
func (p *partition) give(to string, isReplica bool) {
	p.phase = unknown
	if isReplica {
		p.phase = following
	}
	p.source, p.pullFrom = to, ""
	p.replicated()
	p.stateArrived()
	p.handoffs++
	p.handoffNumber = p.number
}

// lapse handles a time in which the node could not confirm its membership: others may have decided.
func (p *partition) lapse() {
	p.incomplete()
	if p.phase == stopped || p.phase == owning {
		p.phase = unknown
	}
	p.pullFrom, p.replica = "", ""
}

// incomplete records that the owner may have counted admissions that this node lacks.
func (p *partition) incomplete() {
	switch p.phase {
	case following:
		p.phase = unknown
	case acting:
		p.phase = acted
	}
}

// beginState follows an owner whose state is about to arrive.
func (p *partition) beginState() {
	p.phase, p.pullFrom = unknown, ""
	p.replicated()
}

// endState completes the state of the owner.
func (p *partition) endState(owner string, number uint64) {
	if p.phase == unknown {
		p.phase = following
	}
	p.number, p.stateNumber, p.source = max(p.number, number), number, owner
	p.stateArrived()
}

// beginTerm follows an owner of a later term, whose state this node does not have.
func (p *partition) beginTerm() {
	p.phase = unknown
	p.awaitState()
}

// awaitState begins to wait for a state, and stateArrived ends the wait.
func (p *partition) awaitState() {
	if p.awaited == nil {
		p.awaited = &awaitedState{since: p.number}
	}
}

func (p *partition) stateArrived() { p.awaited = nil }

// hear remembers an admission that the awaited state may lack. When there are too many, a later state is awaited
// instead.
func (p *partition) hear(x *update) {
	if p.awaited == nil {
		return
	}
	if p.awaited.heard = append(p.awaited.heard, x); len(p.awaited.heard) > maxRemembered {
		p.awaited = nil
		p.awaitState()
	}
}

// heard returns the admissions that the awaited state may lack.
func (p *partition) heard() []*update {
	if p.awaited == nil {
		return nil
	}
	return p.awaited.heard
}

// forgetAll empties the windows of the partition before another state replaces them.
func (p *partition) forgetAll(windows *ratelimit.Partition) {
	windows.Clear()
	p.recent.clear()
}

// noteUnreplicated records an admission that no other node may have.
func (p *partition) noteUnreplicated(x *update) {
	if p.unlisted = p.unlisted || len(p.unreplicated) >= maxRemembered; p.unlisted {
		p.unreplicated = nil
	} else {
		p.unreplicated = append(p.unreplicated, x)
	}
}

// hasUnreplicated reports whether there are such admissions; replicated records that another node has all of them.
func (p *partition) hasUnreplicated() bool { return p.unlisted || len(p.unreplicated) > 0 }
func (p *partition) replicated()           { p.unlisted, p.unreplicated = false, nil }

// known returns the number up to which a replica has nothing new for this node, unless the replica has decided itself.
// 0: the replica must send everything.
func (p *partition) known() uint64 {
	switch {
	case !p.knowsAll():
		return 0
	case p.hasUnreplicated():
		return math.MaxUint64
	}
	return p.number
}
