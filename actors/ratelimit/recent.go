package ratelimit

import "castellan/domain/guard/ratelimit"

// A request counts once. Each admission has a name, which its asker gives it: when
// the asker hears nothing and asks again, here or elsewhere, it asks under the same
// name. Whoever copies an admission copies its name. So a node that knows a name does
// not count it again, two states that both have it count it once when they are
// merged, and an admission that nobody waits for is taken back by its name.

// named is an admission, or the reservation of some, that has a name.
type named struct {
	id      uint64
	key     uint64 // the hash of its key
	instant int64
	count   int32 // 0: taken back
}

const (
	// recentTime is how long a name is remembered: longer than anybody asks for one,
	// a process that stood still for some seconds included.
	recentTime = 5e9
	// maxRecent bounds the names of a partition. One that is forgotten too early may
	// count twice.
	maxRecent = 1 << 15
)

// recent is the named admissions of the last seconds of a partition, oldest first.
// Hardly anybody looks for a name, so an index is made when somebody does, and kept
// for as long as names are remembered.
type recent struct {
	queue   []named // from head on
	head    int
	dropped int            // entries that have left the queue in front of it
	at      map[uint64]int // of a name: dropped + its place in queue; nil: there is no index
	wanted  int64          // when a name was looked for last
	// mergedUntil: until then what was asked for before may come again without saying
	// so, for states of other nodes were merged.
	mergedUntil int64
}

// find is the admission of a name; nil when it is not known.
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

// forget ends a name that was taken back.
func (r *recent) forget(x *named) {
	delete(r.at, x.id)
	x.count = 0
}

// trim forgets what is too old, or too much.
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

// clear forgets everything. It keeps little memory.
func (r *recent) clear() {
	r.dropped += len(r.queue)
	r.queue, r.head, r.at = r.queue[:0], 0, nil
	if cap(r.queue) > 256 {
		r.queue = nil
	}
}

// byKey are the named admissions of each key, by its hash.
func (r *recent) byKey() map[uint64][]named {
	all := map[uint64][]named{}
	for _, x := range r.queue[r.head:] {
		if x.count > 0 {
			all[x.key] = append(all[x.key], x)
		}
	}
	return all
}

// addOnce counts an admission, unless this node knows its name. Where nothing says
// that it may have come before, the name is not looked for. The caller has the
// partition locked.
func (l *Limiter) addOnce(windows *ratelimit.Partition, part *partition, x *update) {
	now := l.table.Instant()
	if x.id != 0 && (x.again || now < part.recent.mergedUntil) && part.recent.find(x.id, now) != nil {
		return
	}
	w := windows.Get(x.demand.Key)
	if w == nil {
		if w = windows.GetOrCreate(x.demand.Key); x.demand.Shared {
			w.ShareFor(now, x.demand.Period)
		}
	}
	instant := w.Add(now, x.ahead, x.count, quotaOf(&x.demand))
	if x.id != 0 {
		part.recent.note(named{x.id, hashOf(x.demand.Key), instant, int32(x.count)}, now)
	}
}

// forgetNamed takes back at most count admissions of a name, and tells how many.
func (l *Limiter) forgetNamed(windows *ratelimit.Partition, part *partition, k ratelimit.Key, id uint64,
	count int64) (n int64) {
	x := part.recent.find(id, l.table.Instant())
	if x == nil {
		return 0
	}
	if w := windows.Get(k); w != nil {
		for n < min(count, int64(x.count)) && w.Forget(x.instant) {
			n++
		}
	}
	if x.count -= int32(n); x.count == 0 || n == 0 {
		part.recent.forget(x)
	}
	return n
}
