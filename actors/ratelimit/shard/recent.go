package shard

import "castellan/domain/guard/ratelimit"

// A request counts once. Its requester gives each admission a name. If the requester gets no answer and asks again,
// here or elsewhere, it uses the same name. A copy of an admission includes its name. So a node that has a name does
// not count it again. Two states with the same name count it once when they are merged. An admission whose client has
// gone is taken back by its name.

// named is an admission, or a reservation of some, that has a name.
type named struct {
	id      uint64
	key     uint64 // the fingerprint of its key
	instant int64
	count   int32 // 0: taken back
}

const (
	// recentTime is how long a name is remembered, in nanoseconds. No requester uses one for longer, including a process
	// that stalled for some seconds.
	recentTime = 5e9
	// maxRecent bounds the names of a partition. An admission whose name is forgotten too early may count twice.
	maxRecent = 1 << 15
)

// recent holds the named admissions of the last seconds of a partition, oldest first. Names are rarely looked up, so
// the index is built on the first lookup and kept for as long as names are remembered.
type recent struct {
	queue   []named // from head on
	head    int
	dropped int            // entries that were removed from the front of the queue
	at      map[uint64]int // by name: dropped + its place in queue; nil: no index
	wanted  int64          // when a name was last looked up
	// mergedUntil: until then a repetition may arrive unmarked, because states of other nodes were merged.
	mergedUntil int64
}

// find returns the admission of a name; nil if there is none.
func (r *recent) find(id uint64, now int64) *named {
	const near = 64
	for i := len(r.queue) - 1; r.at == nil && i >= max(r.head, len(r.queue)-near); i-- {
		if r.queue[i].id == id && r.queue[i].count > 0 {
			return &r.queue[i]
		}
	}
	if r.at == nil && len(r.queue)-r.head <= near {
		return nil
	}
	if r.wanted = now; r.at == nil {
		r.at = make(map[uint64]int, len(r.queue)-r.head)
		for i := r.head; i < len(r.queue); i++ {
			if r.queue[i].count > 0 {
				r.at[r.queue[i].id] = r.dropped + i
			}
		}
	}
	if i, ok := r.at[id]; ok {
		return &r.queue[i-r.dropped]
	}
	return nil
}

// note remembers an admission, and now and then forgets old ones.
func (r *recent) note(x named, now int64) {
	if len(r.queue)%64 == 0 {
		r.trim(now)
	}
	if r.at != nil {
		r.at[x.id] = r.dropped + len(r.queue)
	}
	r.queue = append(r.queue, x)
}

// forget removes a name whose admission was taken back.
func (r *recent) forget(x *named) {
	delete(r.at, x.id)
	x.count = 0
}

// forgetKey removes the names of a key's admissions at or before an instant.
func (r *recent) forgetKey(key uint64, instant int64) {
	for i := r.head; i < len(r.queue); i++ {
		if x := &r.queue[i]; x.key == key && x.count > 0 && x.instant <= instant {
			r.forget(x)
		}
	}
}

// trim removes the entries that are too old or too many.
func (r *recent) trim(now int64) {
	if r.at != nil && now-r.wanted > recentTime {
		r.at = nil
	}
	for r.head < len(r.queue) {
		x := &r.queue[r.head]
		if x.instant+recentTime > now && len(r.queue)-r.head < maxRecent {
			break
		}
		if i, ok := r.at[x.id]; ok && i == r.dropped+r.head {
			delete(r.at, x.id)
		}
		r.head++
	}
	switch {
	case r.head == len(r.queue):
		r.clear()
	case r.head > 64 && r.head > len(r.queue)/2:
		r.dropped += r.head
		r.queue = r.queue[:copy(r.queue, r.queue[r.head:])]
		r.head = 0
	}
}

// clear removes everything and releases most memory.
func (r *recent) clear() {
	r.dropped += len(r.queue)
	r.queue, r.head, r.at = r.queue[:0], 0, nil
	if cap(r.queue) > 256 {
		r.queue = nil
	}
}

// byKey returns the named admissions of each key, by its fingerprint.
func (r *recent) byKey() map[uint64][]named {
	all := map[uint64][]named{}
	for _, x := range r.queue[r.head:] {
		if x.count > 0 {
			all[x.key] = append(all[x.key], x)
		}
	}
	return all
}

// addOnce counts an admission, unless this node has its name. If nothing marks the admission as a possible repetition,
// the name is not looked up.
func (s *Shard) addOnce(x *Update, now int64) {
	if x.ID != 0 && (x.Again || now < s.recent.mergedUntil) && s.recent.find(x.ID, now) != nil {
		return
	}
	w := s.windows.Get(x.Demand.Key)
	if w == nil {
		if w = s.windows.GetOrCreate(x.Demand.Key); x.Demand.Shared {
			w.ShareFor(now, x.Demand.Period)
		}
	}
	instant := w.Add(now, x.Ahead, x.Count, x.Demand.Quota())
	if x.ID != 0 {
		s.recent.note(named{x.ID, x.Demand.Key.Fingerprint(), instant, int32(x.Count)}, now)
	}
}

// forgetNamed takes back at most count admissions of a name, and returns how many.
func (s *Shard) forgetNamed(k ratelimit.Key, id uint64, count, now int64) (n int64) {
	x := s.recent.find(id, now)
	if x == nil {
		return 0
	}
	if w := s.windows.Get(k); w != nil {
		for n < min(count, int64(x.count)) && w.Forget(x.instant) {
			n++
		}
	}
	if x.count -= int32(n); x.count == 0 || n == 0 {
		s.recent.forget(x)
	}
	return n
}
