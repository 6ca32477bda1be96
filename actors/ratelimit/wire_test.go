package ratelimit

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// Every message of a member is answered, and no message makes a window admit more.
func FuzzPeer(f *testing.F) {
	key := ratelimit.Key{Rule: "r", Name: "kept"}
	text := shard.AppendKey(nil, key)
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
	seed('c', &pb.RateCopy{Witness: &pb.RateCopy{Parts: []uint32{part}, Numbers: []uint64{1}, Keys: [][]byte{text},
		Limits: []int64{3}, Periods: []int64{1e9}, Taken: []bool{false}, Aheads: []int64{-1 << 63}, Counts: []int64{-1}}})
	seed('c', &pb.RateCopy{Without: "b", Of: []uint32{1 << 30, part}})
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
