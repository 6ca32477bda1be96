package shard

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/sorting"
)

// AppendKey encodes a key: the length of the rule's label, the label, and the entity after the letter of its kind.
func AppendKey(b []byte, k ratelimit.Key) []byte {
	b = binary.AppendUvarint(b, uint64(len(k.Rule)))
	b = append(b, k.Rule...)
	if k.IP.IsValid() {
		return append(append(b, 'i'), k.IP.AsSlice()...)
	}
	return append(append(b, 'n'), k.Name...)
}

// ParseKey decodes a key; not ok: it is none.
func ParseKey(b []byte) (k ratelimit.Key, ok bool) {
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

// StateFits reports whether the columns of a state have matching lengths.
func StateFits(s *pb.RateState) bool {
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

// MaxLead bounds how far ahead another node may count, in microseconds.
const MaxLead = 1e6

// ReservationTime is how far ahead a reservation counts.
const ReservationTime = 100 * time.Millisecond

// run is a number of admissions with the same instant.
type run struct{ instant, count int64 }

// add puts the windows of states into the shard. Their instants are converted to this node's clock, and no admission
// becomes older than it is. States may have keys in common: a recent admission in two states counts once, by its name;
// an older one counts twice.
func (s *Shard) add(states []*pb.RateState, now int64) {
	type sum struct {
		runs  []run
		names map[uint64]named
		quota ratelimit.Quota
		share bool
	}
	sums := map[ratelimit.Key]*sum{}
	for _, x := range states {
		if !StateFits(x) {
			continue
		}
		newest := now + int64(min(x.Lead, MaxLead))*1000
		instant := func(age uint64) int64 { return newest - int64(min(age, math.MaxInt64/2000))*1000 }
		from, name := 0, 0
		for i, text := range x.Keys {
			to := from + int(x.Runs[i])
			key, ok := ParseKey(text)
			if ok && key.Partition() == int(x.Part) && x.Periods[i] > 0 {
				at := sums[key]
				if at == nil {
					at = &sum{quota: ratelimit.Quota{Limit: ratelimit.MaxExact}, names: map[uint64]named{}}
					sums[key] = at
				}
				at.quota.Period = max(at.quota.Period, x.Periods[i])
				if _, shared := slices.BinarySearch(x.Shared, uint32(i)); shared {
					at.share = true
				}
				if x.Coarse[i] {
					at.quota.Limit = ratelimit.MaxExact + 1
				}
				some := make([]run, 0, to-from)
				for n := from; n < to; n++ {
					some = append(some, run{instant(x.Ages[n]), int64(min(x.Counts[n], math.MaxInt32))})
				}
				for ; name < len(x.Of) && int(x.Of[name]) <= i; name++ {
					y := named{id: x.Ids[name], key: key.Fingerprint(), instant: instant(x.IdAges[name]),
						count: int32(min(x.IdCounts[name], math.MaxInt32))}
					if int(x.Of[name]) == i {
						addName(at.names, some, y)
					}
				}
				at.runs = append(at.runs, some...)
			}
			from = to
		}
	}
	for key, at := range sums {
		if len(at.names) > 0 {
			s.recent.mergedUntil = now + recentTime
		}
		slices.SortStableFunc(at.runs, func(a, b run) int { return cmp.Compare(a.instant, b.instant) })
		w := s.windows.GetOrCreate(key)
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
			s.recent.note(x, now)
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

// maxChunk is how many keys and admissions a chunk of a state holds before the next one begins.
const maxChunk = 1 << 15

// chunks returns the state of a partition, starting after a key. It returns at least one chunk. Ages are rounded down.
func (s *Shard) chunks(after []byte, now int64) (all []*pb.RateState) {
	type kept struct {
		text []byte
		key  ratelimit.Key
	}
	keys := make([]kept, 0, s.windows.Len())
	for k := range s.windows.Keys() {
		if text := AppendKey(nil, k); bytes.Compare(text, after) > 0 {
			keys = append(keys, kept{text, k})
		}
	}
	sorting.Func(keys, func(a, b kept) int { return bytes.Compare(a.text, b.text) })
	names := s.recent.byKey()
	age := func(instant int64) uint64 { return uint64(max(0, now+int64(ReservationTime)-instant)) / 1000 }
	x := &pb.RateState{Part: uint32(s.n), Number: s.number, Next: len(after) > 0,
		Lead: uint64(ReservationTime.Microseconds())}
	all = append(all, x)
	for _, k := range keys {
		w := s.windows.Get(k.key)
		if w.Idle(now) {
			continue
		}
		if len(x.Keys)+len(x.Ages) > maxChunk {
			x.More = true
			x = &pb.RateState{Part: uint32(s.n), Number: s.number, Next: true, Lead: x.Lead}
			all = append(all, x)
		}
		runs := uint32(0)
		w.Runs(func(instant, count int64) {
			runs++
			x.Ages = append(x.Ages, age(instant))
			x.Counts = append(x.Counts, uint64(count))
		})
		for _, y := range names[k.key.Fingerprint()] {
			x.Ids = append(x.Ids, y.id)
			x.Of = append(x.Of, uint32(len(x.Keys)))
			x.IdAges = append(x.IdAges, age(y.instant))
			x.IdCounts = append(x.IdCounts, uint64(y.count))
		}
		if w.SharedAt(now) {
			x.Shared = append(x.Shared, uint32(len(x.Keys)))
		}
		x.Keys = append(x.Keys, k.text)
		x.Periods = append(x.Periods, w.Period())
		x.Coarse = append(x.Coarse, w.Coarse())
		x.Runs = append(x.Runs, runs)
	}
	return all
}
