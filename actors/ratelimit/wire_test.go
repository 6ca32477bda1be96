package ratelimit

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
)

func FuzzKey(f *testing.F) {
	for _, k := range []ratelimit.Key{{Rule: "login-ip", IP: netip.MustParseAddr("192.0.2.1")},
		{Rule: "r", IP: netip.MustParseAddr("2001:db8::")}, {Rule: "u", Name: "9f1c"}, {Name: "TR"}} {
		f.Add(appendKey(nil, k))
	}
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, ok := parseKey(b)
		if !ok {
			return
		}
		again, ok := parseKey(appendKey(nil, k))
		if !ok || again != k || again.Partition() != k.Partition() {
			t.Errorf("%+v became %+v", k, again)
		}
	})
}

// Every message of a member is answered, and no message makes a window admit more.
func FuzzPeer(f *testing.F) {
	key := ratelimit.Key{Rule: "r", Name: "kept"}
	text := appendKey(nil, key)
	part := uint32(key.Partition())
	seed := func(kind byte, m proto.Message) {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append([]byte{kind}, b...))
	}
	seed('a', &pb.RateAsk{Keys: [][]byte{text, text}, Limits: []int64{3, 5}, Periods: []int64{1e9, 1e9},
		Instants: []int64{0, 7}, Sizes: []uint32{1, 1}, Modes: []uint32{0, 3}})
	seed('a', &pb.RateAsk{Keys: [][]byte{text}, Limits: []int64{-1}, Periods: []int64{0}, Instants: []int64{0},
		Sizes: []uint32{1}, Modes: []uint32{2}})
	seed('a', &pb.RateAsk{Sizes: []uint32{1 << 31, 1 << 31}, Modes: []uint32{0, 0}})
	seed('c', &pb.RateCopy{Parts: []uint32{part}, Numbers: []uint64{1}, Keys: [][]byte{text}, Limits: []int64{3},
		Periods: []int64{1e9}, Taken: []bool{true}})
	seed('c', &pb.RateCopy{States: []*pb.RateState{{Part: part, Number: 9, Keys: [][]byte{text},
		Periods: []int64{1e12}, Coarse: []bool{false}, Runs: []uint32{1}, Ages: []uint64{1 << 63},
		Counts: []uint64{1 << 62}}}})
	seed('c', &pb.RateCopy{States: []*pb.RateState{{Part: 1 << 30, Was: 1}, {Part: part, Runs: []uint32{1 << 31}}}})
	seed('p', &pb.RatePull{Part: part, After: text, Back: true})
	seed('p', &pb.RatePull{Part: 1 << 20})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		w := newWorld(t)
		w.start("a", "b")
		n := w.nodes["a"]
		defer n.Close()
		defer w.nodes["b"].Close()
		w.kill("b")
		w.see([]string{"a", "b"}, "a")
		name, m := updateName, proto.Message(&pb.RateCopy{})
		switch b[0] {
		case 'a':
			name, m = queryName, &pb.RateAsk{}
		case 'p':
			name, m = pullName, &pb.RatePull{}
		}
		if proto.Unmarshal(b[1:], m) != nil {
			return
		}
		answered := make(chan proto.Message, 2)
		n.serve[name]("b", m, func(m proto.Message) { answered <- m })
		select {
		case <-answered:
		case <-time.After(10 * time.Second):
			t.Fatal("no answer")
		}
		n.table.WithPartition(int(part), func(p *ratelimit.Partition) {
			if w := p.Get(key); w != nil {
				s := w.Look(n.table.Instant(), ratelimit.Quota{Limit: 1, Period: int64(time.Hour)})
				if s.Used < 0 || s.Retry > 2*int64(time.Hour) {
					t.Errorf("%+v", s)
				}
			}
		})
	})
}

// The state of a partition is transferred in chunks and arrives unchanged.
func TestPartitionIsTransferredInPieces(t *testing.T) {
	w := newWorld(t)
	w.start("a", "b")
	a, b := w.nodes["a"], w.nodes["b"]
	defer a.Close()
	defer b.Close()
	var keys []ratelimit.Key
	for i := 0; len(keys) < 900; i++ {
		if k := (ratelimit.Key{Rule: "r", Name: string(rune('a'+i%26)) + time.Duration(i).String()}); k.Partition() == 7 {
			keys = append(keys, k)
		}
	}
	now := a.table.Instant()
	a.table.WithPartition(7, func(p *ratelimit.Partition) {
		for _, k := range keys {
			for range 100 {
				p.GetOrCreate(k).Admit(now, ratelimit.Quota{Limit: 200, Period: int64(time.Hour)})
			}
			if k == keys[5] || k == keys[800] {
				p.Get(k).ShareFor(now, time.Hour)
			}
		}
	})
	var after []byte
	pieces := 0
	for {
		var s *pb.RateState
		a.table.WithPartition(7, func(p *ratelimit.Partition) { s = a.chunks(7, p, after)[0] })
		if !stateFits(s) || bytes.Compare(s.Keys[0], after) <= 0 {
			t.Fatal("a piece that does not fit")
		}
		pieces++
		b.table.WithPartition(7, func(p *ratelimit.Partition) { b.add(p, &b.partitions[7], s) })
		if after = s.Keys[len(s.Keys)-1]; !s.More {
			break
		}
	}
	if pieces < 3 {
		t.Errorf("%d pieces", pieces)
	}
	b.table.WithPartition(7, func(p *ratelimit.Partition) {
		for _, k := range keys {
			quota := ratelimit.Quota{Limit: 200, Period: int64(time.Hour)}
			if w := p.Get(k); w == nil || w.Look(b.table.Instant(), quota).Used != 100 {
				t.Fatalf("%v did not arrive", k)
			} else if w.SharedAt(b.table.Instant()) != (k == keys[5] || k == keys[800]) {
				t.Errorf("%v: it is not said which keys are shared", k)
			}
		}
	})
}
