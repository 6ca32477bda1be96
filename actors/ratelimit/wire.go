package ratelimit

import "castellan/actors/pb"

// queryFits and updateFits report whether the columns of a message have matching lengths.
func queryFits(q *pb.RateAsk) bool {
	n, sum := len(q.Keys), uint64(0)
	for _, s := range q.Sizes {
		sum += uint64(s)
	}
	return sum == uint64(n) && len(q.Modes) == len(q.Sizes) && len(q.Limits) == n && len(q.Periods) == n &&
		len(q.Instants) == n && (len(q.Counts) == 0 || len(q.Counts) == n) && (len(q.Ids) == 0 || len(q.Ids) == n)
}

func updateFits(q *pb.RateCopy) bool {
	n := len(q.Parts)
	return len(q.Numbers) == n && len(q.Keys) == n && len(q.Limits) == n && len(q.Periods) == n && len(q.Taken) == n &&
		(len(q.Counts) == n && len(q.Aheads) == n || len(q.Counts)+len(q.Aheads) == 0) &&
		(len(q.Ids) == 0 || len(q.Ids) == n)
}
