package ratelimit

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
)

// appendKey encodes a key: the length of the rule's label, the label, and the entity after the letter of its kind.
func appendKey(b []byte, k ratelimit.Key) []byte {
	b = binary.AppendUvarint(b, uint64(len(k.Rule)))
	b = append(b, k.Rule...)
	if k.IP.IsValid() {
		return append(append(b, 'i'), k.IP.AsSlice()...)
	}
	return append(append(b, 'n'), k.Name...)
}

func parseKey(b []byte) (k ratelimit.Key, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n >= uint64(len(b)-size) {
		return k, false
	}
	b = b[size:]
	switch kind, rest := b[n], b[n+1:]; kind {
	case 'i':
		k.Rule = string(b[:n])
		k.IP, ok = netip.AddrFromSlice(rest)
		return k, ok
	case 'n':
		text := string(b) // both in one allocation
		k.Rule, k.Name = text[:n], text[n+1:]
		return k, true
	}
	return k, false
}

// queryFits, updateFits and stateFits report whether the columns of a message have matching lengths.
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

func stateFits(s *pb.RateState) bool {
	n := len(s.Keys)
	runs := uint64(0)
	for _, r := range s.Runs {
		runs += uint64(r)
	}
	names := len(s.Ids)
	return len(s.Periods) == n && len(s.Coarse) == n && len(s.Runs) == n && uint64(len(s.Ages)) == runs &&
		len(s.Counts) == len(s.Ages) && len(s.Of) == names && len(s.IdAges) == names && len(s.IdCounts) == names &&
		slices.IsSorted(s.Of)
}

// maxLead bounds how far ahead another node may count, in microseconds.
const maxLead = 1e6

// run is a number of admissions with the same instant.
type run struct{ instant, count int64 }

// add puts the windows of a state into the table. Their instants are converted to this node's clock, and no admission
// becomes older than it is.
func (l *Limiter) add(windows *ratelimit.Partition, part *partition, s *pb.RateState) {
	l.addAll(windows, part, []*pb.RateState{s})
}

// addAll is add for several states that may have keys in common. A recent admission in two states counts once, by its
// name; an older one counts twice.
func (l *Limiter) addAll(windows *ratelimit.Partition, part *partition, states []*pb.RateState) {
	type sum struct {
		runs  []run
		names map[uint64]named
		quota ratelimit.Quota
		share bool
	}
	sums := map[ratelimit.Key]*sum{}
	now := l.table.Instant()
	for _, s := range states {
		if !stateFits(s) {
			continue
		}
		newest := now + int64(min(s.Lead, maxLead))*1000
		instant := func(age uint64) int64 { return newest - int64(min(age, math.MaxInt64/2000))*1000 }
		from, name := 0, 0
		for i, text := range s.Keys {
			to := from + int(s.Runs[i])
			key, ok := parseKey(text)
			if ok && key.Partition() == int(s.Part) && s.Periods[i] > 0 {
				at := sums[key]
				if at == nil {
					at = &sum{quota: ratelimit.Quota{Limit: ratelimit.MaxExact}, names: map[uint64]named{}}
					sums[key] = at
				}
				at.quota.Period = max(at.quota.Period, s.Periods[i])
				if _, shared := slices.BinarySearch(s.Shared, uint32(i)); shared {
					at.share = true
				}
				if s.Coarse[i] {
					at.quota.Limit = ratelimit.MaxExact + 1
				}
				some := make([]run, 0, to-from)
				for n := from; n < to; n++ {
					some = append(some, run{instant(s.Ages[n]), int64(min(s.Counts[n], math.MaxInt32))})
				}
				for ; name < len(s.Of) && int(s.Of[name]) <= i; name++ {
					x := named{id: s.Ids[name], key: key.Fingerprint(), instant: instant(s.IdAges[name]),
						count: int32(min(s.IdCounts[name], math.MaxInt32))}
					if int(s.Of[name]) == i {
						addName(at.names, some, x)
					}
				}
				at.runs = append(at.runs, some...)
			}
			from = to
		}
	}
	for key, at := range sums {
		if len(at.names) > 0 {
			part.recent.mergedUntil = now + recentTime
		}
		slices.SortStableFunc(at.runs, func(a, b run) int { return cmp.Compare(a.instant, b.instant) })
		w := windows.GetOrCreate(key)
		if at.share {
			w.ShareFor(now, time.Duration(at.quota.Period))
		}
		for _, r := range at.runs {
			if at.quota.Limit == ratelimit.MaxExact {
				r.count = min(r.count, ratelimit.MaxExact)
			}
			w.Add(now, r.instant-now, r.count, at.quota)
		}
		for _, x := range slices.SortedFunc(maps.Values(at.names), func(a, b named) int {
			return cmp.Compare(a.instant, b.instant)
		}) {
			part.recent.note(x, now)
		}
	}
}

// addName records the name of an admission that is among the runs of a state. If another state has it, too, it does not
// count in this one.
func addName(names map[uint64]named, runs []run, x named) {
	i, _ := slices.BinarySearchFunc(runs, x.instant, func(r run, at int64) int { return cmp.Compare(r.instant, at) })
	if i == len(runs) { // it has left the window
		return
	}
	x.instant = runs[i].instant
	if twin, ok := names[x.id]; ok {
		for n := int64(min(twin.count, x.count)); i < len(runs) && n > 0; i++ {
			some := min(n, runs[i].count)
			runs[i].count -= some
			n -= some
		}
		twin.count = max(twin.count, x.count)
		x = twin
	}
	names[x.id] = x
}
