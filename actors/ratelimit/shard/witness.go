package shard

import "slices"

// An admission must survive the loss of the member that counted it, so a second member has it before its client does:
// the replica. While the replica is silent, or decides in the silent owner's place, this is a third member, the
// witness. The member that sent the request is the witness if it is another one: it has the answer. A node that takes
// over from a lost member asks all others what they have witnessed of it, and counts what its own state lacks.

const (
	// witnessTime is how long an admission is remembered as a witness, in nanoseconds. By then the member that counted
	// it answers again, or it is given up and another one has taken over.
	witnessTime = recentTime + 5e9
	// maxWitnessed bounds the admissions of one member that a node remembers as a witness, so that one message has room
	// for them. When there are more, the oldest may be lost with that member.
	maxWitnessed = 1 << 14
)

// Witnessed holds the admissions of one other member that this node remembers as a witness, oldest first.
type Witnessed struct {
	all     []witnessed
	askedAt int64 // when another member last asked for them
}

type witnessed struct {
	*Update
	at int64 // when this node learned of it
}

// Void reports whether the answer to a request that was sent at an instant comes too late: another member has asked
// since, and may have taken over without the admission.
func (w *Witnessed) Void(sent int64) bool { return w.askedAt != 0 && sent <= w.askedAt }

// Note remembers an admission.
func (w *Witnessed) Note(x *Update, now int64) {
	w.trim(now)
	w.all = append(w.all, witnessed{x, now})
}

// trim forgets admissions that are too old or too many.
func (w *Witnessed) trim(now int64) {
	n := max(0, len(w.all)-maxWitnessed)
	for n < len(w.all) && w.all[n].at+witnessTime < now {
		n++
	}
	clear(w.all[:n])
	if w.all = w.all[n:]; len(w.all) == 0 {
		w.all = nil
	}
}

// Empty reports whether there is nothing to remember.
func (w *Witnessed) Empty(now int64) bool {
	w.trim(now)
	return len(w.all) == 0 && w.askedAt+witnessTime < now
}

// Forget removes at most count admissions of each name, which were taken back.
func (w *Witnessed) Forget(ids []uint64, count int64) {
	w.all = slices.DeleteFunc(w.all, func(x witnessed) bool {
		if slices.Contains(ids, x.ID) {
			x.Count -= count
		}
		return x.Count <= 0
	})
}

// Asked returns the admissions in some partitions, in order, for a member that takes over. Their instants are relative
// to now.
func (w *Witnessed) Asked(parts []uint32, now int64) (all []*Update) {
	w.askedAt = now
	w.trim(now)
	for _, x := range w.all {
		if _, is := slices.BinarySearch(parts, uint32(x.Part)); is {
			y := *x.Update
			y.Ahead, y.Again = x.Ahead+x.at-now, true
			all = append(all, &y)
		}
	}
	return all
}

// Lost says that the replica of this owner is lost, and what others have witnessed of it. The owner stops if it lacks a
// part of that: it takes over as from every replica that has decided.
type Lost struct {
	Replica   string
	Witnessed []*Update
	Stopped   bool // the answer
}

func (m *Lost) step(s *Shard, now int64, _ *Effects) {
	lacks := func(x *Update) bool { return x.ID == 0 || s.recent.find(x.ID, now) == nil }
	if s.phase == owning && s.replica == m.Replica && slices.ContainsFunc(s.notAdopted(m.Witnessed), lacks) {
		s.stopFor(m.Replica)
		m.Stopped = true
	}
}

// notAdopted returns the witnessed admissions that may be missing from the states that this node has adopted. An owner
// is two terms above the member whose state it took over, and a replica has all up to the number of a state.
func (s *Shard) notAdopted(all []*Update) (some []*Update) {
	for _, x := range all {
		if t := x.term(); x.Part == s.n && t+1 >= termOf(s.number) &&
			(t != termOf(s.stateNumber) || x.Number > s.stateNumber) {
			some = append(some, x)
		}
	}
	return some
}

// addWitnessed counts witnessed admissions, each once by its name, and reports whether there are any.
func (s *Shard) addWitnessed(all []*Update, now int64) bool {
	for _, x := range all {
		s.addOnce(x, now)
		s.number = max(s.number, x.Number)
	}
	return len(all) > 0
}
