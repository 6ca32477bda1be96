package shard

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/storetest"
)

// partitionOf returns the shard of a key in a new table.
func partitionOf(k ratelimit.Key) *Shard {
	s := &Shard{}
	s.Init(k.Partition(), ratelimit.NewTable(nil).At(k.Partition()))
	return s
}

func demand(name string, limit int64) ratelimit.Demand {
	return ratelimit.Demand{Key: ratelimit.Key{Rule: "r", Name: name}, Limit: limit, Period: time.Minute}
}

// used returns how many admissions of a demand count.
func (s *Shard) used(d ratelimit.Demand, now int64) int64 {
	return s.windows.Look(&d, d.Key.Hash(), now).Used
}

func FuzzKey(f *testing.F) {
	for _, k := range []ratelimit.Key{{Rule: "login-ip", IP: netip.MustParseAddr("192.0.2.1")},
		{Rule: "r", IP: netip.MustParseAddr("2001:db8::")}, {Rule: "u", Name: "9f1c"}, {Name: "TR"}} {
		f.Add(AppendKey(nil, k))
	}
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, ok := ParseKey(b)
		if !ok {
			return
		}
		again, ok := ParseKey(AppendKey(nil, k))
		if !ok || again != k || again.Partition() != k.Partition() {
			t.Errorf("%+v became %+v", k, again)
		}
	})
}

// The state of a shard is transferred in chunks and arrives unchanged.
func TestPartitionIsTransferredInPieces(t *testing.T) {
	var keys []ratelimit.Key
	for i := 0; len(keys) < 900; i++ {
		if k := (ratelimit.Key{Rule: "r", Name: string(rune('a'+i%26)) + time.Duration(i).String()}); k.Partition() == 7 {
			keys = append(keys, k)
		}
	}
	a, b := partitionOf(keys[0]), partitionOf(keys[0])
	now, quota := int64(time.Hour), ratelimit.Quota{Limit: 200, Period: int64(time.Hour)}
	for _, k := range keys {
		for range 100 {
			a.windows.GetOrCreate(k).Admit(now, quota)
		}
		if k == keys[5] || k == keys[800] {
			a.windows.Get(k).ShareFor(now, time.Hour)
		}
	}
	var after []byte
	pieces := 0
	for {
		s := a.chunks(after, now)[0]
		if !StateFits(s) || bytes.Compare(s.Keys[0], after) <= 0 {
			t.Fatal("a piece that does not fit")
		}
		pieces++
		b.add([]*pb.RateState{s}, now)
		if after = s.Keys[len(s.Keys)-1]; !s.More {
			break
		}
	}
	if pieces < 3 {
		t.Errorf("%d pieces", pieces)
	}
	for _, k := range keys {
		if w := b.windows.Get(k); w == nil || w.Look(now, quota).Used != 100 {
			t.Fatalf("%v did not arrive", k)
		} else if w.SharedAt(now) != (k == keys[5] || k == keys[800]) {
			t.Errorf("%v: it is not said which keys are shared", k)
		}
	}
}

// A copy that may be a repetition is looked up by its name, and so is every copy in the time after a merge.
func TestCopiedTwiceCountsOnce(t *testing.T) {
	d, now := demand("a", 10), int64(time.Hour)
	s := partitionOf(d.Key)
	copied := func(id uint64, again bool, want int64) {
		t.Helper()
		s.addOnce(&Update{Part: s.n, ID: id, Again: again, Demand: d, Count: 1}, now)
		storetest.Equal(t, s.used(d, now), want, "count after copy", id)
	}
	copied(1, false, 1)
	copied(1, true, 1)
	copied(2, true, 2)
	s.recent.mergedUntil = now + recentTime
	copied(2, false, 2)
	copied(3, false, 3)
}

// When two states are merged, an admission that both have under its name counts once. An admission that only one of
// them has counts, too.
func TestMergeDropsDuplicates(t *testing.T) {
	for _, limit := range []int64{100, ratelimit.MaxExact + 100} {
		d, now := demand(fmt.Sprint("k", limit), limit), int64(time.Hour)
		count := func(ids ...uint64) *pb.RateState {
			s, now := partitionOf(d.Key), now
			for _, id := range ids {
				s.addOnce(&Update{Part: s.n, ID: id, Demand: d, Count: 1}, now)
				now += int64(time.Millisecond)
			}
			return s.chunks(nil, now)[0]
		}
		one, two := count(1, 2, 3), count(2, 3, 4, 5)
		s := partitionOf(d.Key)
		s.add([]*pb.RateState{one, two}, now)
		storetest.Equal(t, s.used(d, now), 5, "limit", limit, "5 admissions count as")
		for id := range uint64(5) { // each has a name
			if n := s.forgetNamed(d.Key, id+1, 1, now); n != 1 {
				t.Errorf("limit %d: name %d: %d taken back", limit, id+1, n)
			}
		}
		storetest.Equal(t, s.used(d, now), 0, "limit", limit, "are left")
	}
}

// Names are forgotten in the order of their admissions, and their number is bounded.
func TestRecentNamesAreBounded(t *testing.T) {
	var r recent
	for i := range int64(3 * maxRecent) {
		r.note(named{id: uint64(i + 1), instant: i, count: 1}, i)
	}
	const now = 3 * maxRecent
	if r.at != nil || r.find(2*maxRecent-64, now) != nil || r.find(2*maxRecent+64, now) == nil ||
		r.find(now, now).instant != now-1 || r.at == nil {
		t.Errorf("%d names", len(r.queue)-r.head)
	}
	r.trim(now + recentTime)
	if len(r.queue) != 0 || r.find(now, now) != nil {
		t.Errorf("%d names after their time", len(r.at))
	}
	r.note(named{id: 7, instant: 0, count: 1}, 0)
	if x := r.find(7, 0); x == nil || x.id != 7 {
		t.Errorf("%+v", x)
	}
}

// A requester that is the replica learns an admission by the owner's answer. The admission is void if the requester has
// handed its state to the owner since it asked: the owner may have counted before it adopted that state.
func TestAnswerThatCrossesAHandOverIsVoid(t *testing.T) {
	d, asked := demand("a", 10), int64(time.Hour)
	s, out := partitionOf(d.Key), Effects{}
	s.endState("owner", 2<<termShift)
	s.Step(&Pull{To: "owner", Pull: &pb.RatePull{Part: uint32(s.n), Back: true}}, asked+1, &out)
	for since, want := range map[int64]Reply{asked: Superseding, asked + 2: Accepted} {
		m := &Copy{AsRequester: true, Since: since, Update: &Update{Part: s.n, Number: 2<<termShift + 1, ID: 1, Demand: d,
			Count: 1}}
		if s.Step(m, asked+3, &out); m.Reply != want {
			t.Errorf("asked at %d: %d, want %d", since-asked, m.Reply, want)
		}
	}
}
