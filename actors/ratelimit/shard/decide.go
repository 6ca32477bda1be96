package shard

import (
	"slices"

	"castellan/domain/guard/ratelimit"
)

// Verdict is the result of a request under some keys. The numbers are on the wire.
type Verdict uint32

// The verdicts of a node that was reached.
const (
	Retry    Verdict = iota // not decided: look up the owner again
	Admitted                // and counted
	Refused                 // and not counted
)

// At is the shard of a demand.
type At struct {
	*Shard
	Place
}

// Decide counts a request under every demand or, if one is at its limit, under none. It is made only if this node may
// decide, and the replicas receive it before the client does. Step decides in one shard, Together in several.
type Decide struct {
	At        []At // of each demand
	Hashes    []uint64
	Demands   []ratelimit.Demand
	IDs       []uint64 // the name of each demand's admission; 0: none
	Requester string   // the member that sent the request
	AsReplica bool     // the owner is unreachable
	Again     bool     // this may be a retry
	Ahead     int64    // nanoseconds from now to the instant of the admissions
	Waits     any      // of the copies that the replica must confirm

	// The answer. Only the owner of Numbers makes it long enough.
	Verdict   Verdict
	Standings []ratelimit.Standing
	Numbers   []uint64 // the number of each admission that the requester learns as the replica; else 0
	Witnessed []uint64 // the number of each that it must keep as the witness; else 0; nil: none
	NotOwned  []int    // partitions that must first be taken over

	now    int64
	out    *Effects
	order  []int // if only some demands are decided: their indexes
	looked int   // demands for which MayDecide was called
	known  []int // demands whose admissions this node already has
}

var _ ratelimit.Gate = (*Decide)(nil)

// Reset prepares the decision for another request. It keeps memory for the answer.
func (d *Decide) Reset() {
	d.Verdict, d.NotOwned, d.Ahead, d.Again = Retry, d.NotOwned[:0], 0, false
	d.order, d.looked, d.known, d.Witnessed = nil, 0, d.known[:0], nil
}

func (d *Decide) step(s *Shard, now int64, out *Effects) {
	for i := range d.At {
		d.At[i].Shard = s
	}
	d.Together(now, out)
}

// Together is Step for demands of several shards, which the caller has locked.
func (d *Decide) Together(now int64, out *Effects) {
	d.now, d.out = now, out
	admits, open := d.among(d.Demands, d.Standings)
	if len(d.known) > 0 {
		admits, open = d.decideRest()
	}
	switch {
	case !open:
		d.Verdict = Retry
	case !admits:
		d.Verdict = Refused
	default:
		d.Verdict = Admitted
	}
}

// among decides about all demands or, after an order, about some.
func (d *Decide) among(demands []ratelimit.Demand, standings []ratelimit.Standing) (admits, open bool) {
	var room [8]*ratelimit.Partition
	parts, hashes := room[:0], d.Hashes
	if d.order != nil {
		hashes = nil
	}
	for n := range demands {
		i := d.demandAt(n)
		if parts = append(parts, d.At[i].windows); d.order != nil {
			hashes = append(hashes, d.Hashes[i])
		}
	}
	return ratelimit.Decide(parts, hashes, demands, standings, d.now, d)
}

// decideRest decides about the demands that this node has not yet admitted. Two members may have admitted more than a
// limit together before their states were merged. The requester has no answer then, so it may be refused.
func (d *Decide) decideRest() (admits, open bool) {
	known := slices.Clone(d.known)
	d.known, d.looked, d.order = d.known[:0], 0, []int{}
	var rest []ratelimit.Demand
	over := false
	for i := range d.Demands {
		if !slices.Contains(known, i) {
			d.order, rest = append(d.order, i), append(rest, d.Demands[i])
		}
		d.Standings[i] = d.At[i].windows.Look(&d.Demands[i], d.Hashes[i], d.now)
		if d.Standings[i].Used > d.Demands[i].Limit && slices.Contains(known, i) {
			over = true
			continue
		}
		d.Standings[i].Retry, d.Standings[i].Sharing = 0, ratelimit.Alone // it is admitted
	}
	if over || len(rest) == 0 {
		return !over, true
	}
	some := make([]ratelimit.Standing, len(rest))
	admits, open = d.among(rest, some)
	for n, i := range d.order {
		d.Standings[i] = some[n]
	}
	return admits, open
}

// MayDecide is called for each demand in turn. A demand whose admission this node already has is not counted again: the
// result is false after the last one.
func (d *Decide) MayDecide(n int) bool {
	i := d.demandAt(n)
	at := &d.At[i]
	d.looked++
	owns := at.Owner == at.Self
	switch {
	case !at.Confirmed:
		return false
	case owns && at.phase != owning:
		d.NotOwned = append(d.NotOwned, at.n)
		return false
	case !owns && (!d.AsReplica || at.Replica != at.Self || !at.mayAct() || !at.CaughtUp):
		return false
	}
	if d.IDs[i] != 0 && (d.Again || d.now < at.recent.mergedUntil) {
		if x := at.recent.find(d.IDs[i], d.now); x != nil {
			d.known = append(d.known, i)
			d.repeat(i, int64(x.count))
		}
	}
	if len(d.known) > 0 {
		return !d.isLast()
	}
	return owns || at.act()
}

// demandAt returns the n-th demand to be decided.
func (d *Decide) demandAt(n int) int {
	if d.order != nil {
		return d.order[n]
	}
	return n
}

// isLast reports whether MayDecide was called for the last demand.
func (d *Decide) isLast() bool {
	if d.order != nil {
		return d.looked == len(d.order)
	}
	return d.looked == len(d.Demands)
}

// repeat sends an existing admission to the replica, or to the witness, again. The requester may have no answer because
// that node did not confirm it.
func (d *Decide) repeat(i int, count int64) {
	switch at := &d.At[i]; {
	case at.Owner == at.Self:
		at.number++
		d.copy(i, count, true)
	case at.phase == acting:
		d.witness(i, count, true)
	}
}

// Counted numbers, names and copies an admission.
func (d *Decide) Counted(n int, instant, count int64) {
	i := d.demandAt(n)
	at := &d.At[i]
	at.number++
	if d.IDs[i] != 0 {
		at.recent.note(named{d.IDs[i], d.Demands[i].Key.Fingerprint(), instant, int32(count)}, instant)
	}
	if at.Owner != at.Self { // a replica that decides has no replica
		d.out.AsReplica++
		d.witness(i, count, d.Again)
		return
	}
	d.copy(i, count, d.Again)
}

// copy sends an admission to the replica.
func (d *Decide) copy(i int, count int64, again bool) {
	at := &d.At[i]
	switch at.Replica {
	case "":
	case d.Requester: // the answer carries it
		d.Numbers[i] = at.number
	default:
		x := d.update(i, count, again)
		if at.ReplicaSilent {
			at.noteUnreplicated(x)
			d.witness(i, count, again)
		} else {
			x.Waits = d.Waits
		}
		d.out.Sends = append(d.out.Sends, Send{at.Replica, x})
	}
}

func (d *Decide) update(i int, count int64, again bool) *Update {
	at := &d.At[i]
	return &Update{Part: at.n, Number: at.number, ID: d.IDs[i], Again: again, Demand: d.Demands[i], Count: count,
		Ahead: d.Ahead}
}

// witness makes a third member know an admission which no replica confirms: the requester, by the answer, or another.
func (d *Decide) witness(i int, count int64, again bool) {
	switch at := &d.At[i]; {
	case d.Requester != "" && d.Requester != at.Self:
		if d.Witnessed == nil {
			d.Witnessed = make([]uint64, len(d.Demands))
		}
		d.Witnessed[i] = at.number
	case at.Witness != "":
		x := d.update(i, count, again)
		x.Witness, x.Waits = true, d.Waits
		d.out.Sends = append(d.out.Sends, Send{at.Witness, x})
	}
}

// Reserve counts admissions under the only demand of a decision in advance.
type Reserve struct {
	*Decide
	Most, Share int64 // at most so many, and at most the room of the key divided by Share
	Given       int64 // the answer
}

func (r *Reserve) step(s *Shard, now int64, out *Effects) {
	d := r.Decide
	d.now, d.out, d.At[0].Shard = now, out, s
	r.Given, _ = s.windows.Reserve(&d.Demands[0], r.Most, r.Share, d.Ahead, &d.Standings[0], now, d)
}

// Forget takes back admissions that were counted here, also on the replica. A node that has not decided forgets
// nothing: the node that decided notifies it.
type Forget struct {
	Place
	Demand ratelimit.Demand
	ID     uint64
	Count  int64
}

func (f *Forget) step(s *Shard, now int64, out *Effects) {
	if !s.hasDecided() {
		return
	}
	forgotten := s.forgetNamed(f.Demand.Key, f.ID, f.Count, now)
	if forgotten == 0 {
		return
	}
	s.number++
	tell := func(to string, witness bool) {
		out.Sends = append(out.Sends, Send{to, &Update{Part: s.n, Number: s.number, ID: f.ID, Demand: f.Demand,
			TakenBack: true, Witness: witness, Count: forgotten}})
	}
	if f.Owner == f.Self && f.Replica != "" {
		tell(f.Replica, false)
	}
	if f.Witness != "" {
		tell(f.Witness, true)
	}
}

// Clear removes the admissions of a key up to now. Those that lie ahead are reserved, and stay. The replica needs the
// state of the shard afterwards (Resend).
type Clear struct{ Key ratelimit.Key }

func (c *Clear) step(s *Shard, now int64, _ *Effects) {
	if w := s.windows.Get(c.Key); w != nil {
		w.ForgetUntil(now)
	}
	s.recent.forgetKey(c.Key.Fingerprint(), now)
	s.number++
}
