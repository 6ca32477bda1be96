package ratelimit

import (
	"slices"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"castellan/actors/pb"
	"castellan/actors/ratelimit/shard"
	"castellan/domain/guard/ratelimit"
)

// receiveQueries decides about the requests of another node. It answers when every decision is confirmed or has failed.
func (dr *decider) receiveQueries(from string, question proto.Message, answer func(proto.Message)) {
	dr.peers.recordQueryFrom(from)
	q, ok := question.(*pb.RateAsk)
	var demands []ratelimit.Demand
	if ok {
		demands, ok = demandsOf(q)
	}
	if !ok {
		answer(&pb.RateAnswer{})
		return
	}
	n := len(demands)
	back := &pb.RateAnswer{Verdicts: make([]uint32, len(q.Sizes)), Used: make([]int64, n), Reset_: make([]int64, n),
		Retry: make([]int64, n), Instants: make([]int64, n), Numbers: make([]uint64, n), Counts: make([]int64, n)}
	if dr.place.Load().alone { // the sender has a view with more members than this node
		answer(back)
		return
	}
	ids := q.Ids
	if len(ids) == 0 {
		ids = make([]uint64, n)
	}
	decisions, standings := make([]decision, len(q.Sizes)), make([]ratelimit.Standing, n)
	var places []shard.At // in use while a decision is made
	var hashes []uint64
	var left atomic.Int32
	left.Store(1)
	finish := func() {
		if left.Add(-1) != 0 {
			return
		}
		for i := range decisions {
			if decisions[i].failed() {
				back.Verdicts[i] = uint32(retry)
			}
		}
		answer(back)
	}
	begin := 0
	for i, size := range q.Sizes {
		end, d := begin+int(size), &decisions[i]
		d.Standings, d.At, d.Hashes = standings[begin:end], places[:0], hashes[:0]
		d.init(dr, from, q.Modes[i] == modeAsReplica)
		d.Demands, d.IDs = demands[begin:end], ids[begin:end]
		_, d.Again = slices.BinarySearch(q.Again, uint32(i))
		switch mode := q.Modes[i]; mode {
		case modeLook:
			back.Verdicts[i] = uint32(refused)
			for k := range d.Demands {
				var known bool
				if d.Standings[k], known = dr.look(&d.Demands[k]); !known {
					back.Verdicts[i] = uint32(retry)
				}
			}
		case modeTakeBack:
			back.Verdicts[i] = uint32(refused)
			for k := range d.Demands {
				dr.forget(&d.Demands[k], ids[begin+k], countOf(q, begin+k))
			}
		case modeCount, modeAsReplica, modeReserve:
			left.Add(1)
			d.then, d.Numbers = finish, back.Numbers[begin:end:end]
			if mode != modeReserve {
				back.Verdicts[i] = uint32(d.decide())
				places, hashes = d.At, d.Hashes
				if d.Witnessed != nil {
					back.Witnessed = append(back.Witnessed, make([]uint64, n-len(back.Witnessed))...)
					copy(back.Witnessed[begin:], d.Witnessed)
				}
			} else if size == 1 {
				d.Requester = "" // this node notifies the replica, not the answer
				back.Counts[begin] = dr.grant(d, countOf(q, begin))
				if back.Counts[begin] > 0 {
					back.Verdicts[i] = uint32(admitted)
				}
			}
			d.finish()
		}
		begin = end
	}
	for i, s := range standings {
		back.Used[i], back.Reset_[i], back.Retry[i] = s.Used, s.Reset, s.Retry
		if s.Sharing != ratelimit.Alone {
			if back.Sharing == nil {
				back.Sharing = make([]uint32, n)
			}
			back.Sharing[i] = uint32(s.Sharing)
		}
	}
	finish()
}

// demandsOf decodes the demands of a message; false when they are invalid.
func demandsOf(q *pb.RateAsk) ([]ratelimit.Demand, bool) {
	if !queryFits(q) {
		return nil, false
	}
	demands := make([]ratelimit.Demand, len(q.Keys))
	for i := range demands {
		key, ok := shard.ParseKey(q.Keys[i])
		if !ok || q.Limits[i] < 1 || q.Periods[i] < 1 {
			return nil, false
		}
		demands[i] = ratelimit.Demand{Key: key, Limit: q.Limits[i], Period: time.Duration(q.Periods[i])}
	}
	for _, i := range q.Shared {
		if int(i) < len(demands) {
			demands[i].Shared = true
		}
	}
	return demands, true
}

// countOf returns the number of requests for demand i of a message.
func countOf(q *pb.RateAsk, i int) int64 {
	if len(q.Counts) == 0 {
		return 1
	}
	return max(1, min(q.Counts[i], maxReservation))
}
