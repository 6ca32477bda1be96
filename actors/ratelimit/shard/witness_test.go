package shard

import (
	"testing"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/storetest"
)

// admit requests one admission of a shard.
func (s *Shard) admit(at Place, d ratelimit.Demand, requester string, id uint64, now int64, out *Effects) *Decide {
	m := &Decide{At: []At{{Place: at}}, Hashes: []uint64{d.Key.Hash()}, Demands: []ratelimit.Demand{d}, IDs: []uint64{id},
		Requester: requester, AsReplica: at.Owner != at.Self, Waits: "waits", Standings: make([]ratelimit.Standing, 1),
		Numbers: make([]uint64, 1)}
	s.Step(m, now, out)
	return m
}

// The replica b decides in the place of the stalled owner a, and is lost before a has its state. The admissions of b
// count at a, because c is their witness: as the requester, and for b's own request. The seeds 92020, 112083, 112535,
// 113019, 114584 and 115048 of crowded runs had this order of events.
func TestAdmissionOfLostReplicaCounts(t *testing.T) {
	d, now := demand("a", 10), int64(time.Hour)
	for name, step := range map[string]func(a *Shard, place Place, all []*Update){
		"given up": func(a *Shard, place Place, all []*Update) {
			place.Replica = "c"
			a.Step(&Placed{Place: place}, now, &Effects{})
			begin := &TakeOver{Place: place}
			a.Step(begin, now, &Effects{})
			storetest.Equal(t, begin.Begun.From, "b", "asks")
			a.Step(&TakenOver{Place: place, Takeover: begin.Begun, Witnessed: all, Ready: true}, now, &Effects{})
		},
		"its process ends": func(a *Shard, place Place, all []*Update) {
			lost := &Lost{Replica: "b", Witnessed: all}
			if a.Step(lost, now, &Effects{}); !lost.Stopped || a.Owns() {
				t.Fatalf("the owner goes on without an admission: %s", a.Phase())
			}
			begin := &TakeOver{Place: place}
			a.Step(begin, now, &Effects{})
			a.Step(&TakenOver{Place: place, Takeover: begin.Begun, Witnessed: all, Ready: true}, now, &Effects{})
			if a.Step(lost, now, &Effects{}); !a.Owns() {
				t.Error("it stops for an admission that it has")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, out := partitionOf(d.Key), partitionOf(d.Key), Effects{}
			a.own("b")
			b.endState("a", a.Number())
			var c Witnessed
			ofB := Place{Self: "b", Owner: "a", Replica: "b", Confirmed: true, CaughtUp: true, Witness: "c"}
			m := b.admit(ofB, d, "c", 1, now, &out)
			if m.Verdict != Admitted || m.Witnessed == nil || len(out.Sends) > 0 {
				t.Fatalf("%d, %v, %v", m.Verdict, m.Witnessed, out.Sends)
			}
			c.Note(&Update{Part: a.n, Number: m.Witnessed[0], ID: 1, Demand: d, Count: 1}, now)
			m = b.admit(ofB, d, "b", 2, now, &out)
			if m.Verdict != Admitted || len(out.Sends) != 1 || out.Sends[0].To != "c" || out.Sends[0].Waits == nil ||
				!b.StillCounts(out.Sends[0].Update) {
				t.Fatalf("%d, %+v", m.Verdict, out.Sends)
			}
			c.Note(out.Sends[0].Update, now)
			all := c.Asked([]uint32{uint32(a.n)}, now)
			step(a, Place{Self: "a", Owner: "a", Replica: "b", Confirmed: true}, append(all, all...))
			storetest.Equal(t, a.used(d, now), 2, "count")
		})
	}
}

// An owner goes on without its silent replica b, and is lost. Its admissions since then count at b, which takes over.
// If b has got the state in between, nothing counts twice, even when the names are forgotten.
func TestAdmissionWithoutReplicaCounts(t *testing.T) {
	d, now := demand("a", 10), int64(time.Hour)
	for _, returns := range []bool{false, true} {
		a, b, out := partitionOf(d.Key), partitionOf(d.Key), Effects{}
		a.own("b")
		b.endState("a", a.Number())
		ofA := Place{Self: "a", Owner: "a", Replica: "b", Confirmed: true, ReplicaSilent: true, Witness: "c"}
		var c Witnessed
		for id := range uint64(2) {
			a.admit(ofA, d, "a", id+1, now, &out)
		}
		for _, x := range out.Sends {
			storetest.Equal(t, x.Waits != nil, x.Witness, "only the witness is waited for")
			if x.Witness {
				c.Note(x.Update, now)
			}
		}
		if returns {
			for _, x := range a.chunks(nil, now) {
				b.Step(&State{From: "a", State: x}, now, &out)
			}
		}
		now += recentTime + 1
		place := Place{Self: "b", Owner: "b", Replica: "c", Confirmed: true}
		b.Step(&Placed{Place: place}, now, &out)
		begin := &TakeOver{Place: place}
		b.Step(begin, now, &out)
		b.Step(&TakenOver{Place: place, Takeover: begin.Begun, Witnessed: c.Asked([]uint32{uint32(b.n)}, now), Ready: true},
			now, &out)
		storetest.Equal(t, b.used(d, now), 2, "returns:", returns, "count")
	}
}

// A witness forgets what was taken back, what is old and what is too much. An answer that crosses a question is void.
func TestWitnessed(t *testing.T) {
	var w Witnessed
	d, now := demand("a", 10), int64(time.Hour)
	note := func(id uint64, count int64) {
		w.Note(&Update{Part: 7, Number: id, ID: id, Demand: d, Count: count, Ahead: 100}, now)
	}
	note(1, 1)
	note(2, 5)
	w.Forget([]uint64{1}, 1)
	w.Forget([]uint64{2}, 2)
	if all := w.Asked([]uint32{3, 7}, now+50); len(all) != 1 || all[0].Count != 3 || all[0].Ahead != 50 || !all[0].Again {
		t.Errorf("%+v", all)
	}
	if len(w.Asked([]uint32{3, 8}, now)) > 0 || !w.Void(now) || w.Void(now+1) {
		t.Error("asked about other partitions, or the question is forgotten")
	}
	for id := range uint64(maxWitnessed + 3) {
		note(id, 1)
	}
	storetest.Equal(t, len(w.Asked([]uint32{7}, now)), maxWitnessed, "are remembered")
	if w.Empty(now) || !w.Empty(now+witnessTime+1) || len(w.all) > 0 {
		t.Error("admissions are not forgotten in time")
	}
}

// Two members have admitted more than the limit together. A repetition is refused, because its requester has no answer.
func TestRepetitionOverTheLimitIsRefused(t *testing.T) {
	d, now := demand("a", 2), int64(time.Hour)
	for name, add := range map[string]func(*Shard, []*Update){
		"witnessed": func(s *Shard, all []*Update) { s.addWitnessed(all, now) },
		"missing":   func(s *Shard, all []*Update) { s.addMissing(all, 0, now) },
	} {
		s, place := partitionOf(d.Key), Place{Self: "a", Owner: "a", Confirmed: true}
		s.own("")
		s.recent.mergedUntil = now + recentTime
		for id, want := range []Verdict{Admitted, Admitted, Refused} {
			add(s, []*Update{{Part: s.n, Number: 1, ID: uint64(id + 1), Demand: d, Count: 1}})
			m := s.admit(place, d, "b", uint64(id+1), now, &Effects{})
			if m.Verdict != want || (m.Standings[0].Retry > 0) != (want == Refused) {
				t.Errorf("%s, repetition %d: %d, %+v", name, id+1, m.Verdict, m.Standings)
			}
		}
	}
}
