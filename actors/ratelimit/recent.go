package ratelimit

import "castellan/domain/ratelimit"

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
type recent struct {
	queue   []named // from head on
	head    int
	dropped int            // entries that have left the queue in front of it
	at      map[uint64]int // of a name: dropped + its place in queue
}

// find is the admission of a name; nil when it is not known.
func (r *recent) find(id uint64) *named {
	if i, ok := r.at[id]; ok {
		return &r.queue[i-r.dropped]
	}
	return nil
}

// note remembers an admission, and forgets old ones.
func (r *recent) note(x named, now int64) {
	r.trim(now)
	if r.at == nil {
		r.at = map[uint64]int{}
	}
	r.at[x.id] = r.dropped + len(r.queue)
	r.queue = append(r.queue, x)
}

// forget ends a name that was taken back.
func (r *recent) forget(x *named) {
	delete(r.at, x.id)
	x.count = 0
}

// trim forgets what is too old, or too much.
func (r *recent) trim(now int64) {
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
	r.queue, r.head = r.queue[:0], 0
	if cap(r.queue) > 256 {
		r.queue, r.at = nil, nil
	}
	clear(r.at)
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

// addOnce counts an admission, unless this node knows its name. The caller has the
// partition locked.
func (l *Limiter) addOnce(windows *ratelimit.Partition, part *partition, x *update) {
	if x.id != 0 && part.recent.find(x.id) != nil {
		return
	}
	now := l.table.Instant()
	instant := windows.GetOrCreate(x.demand.Key).Add(now, x.ahead, x.count, quotaOf(&x.demand))
	if x.id != 0 {
		part.recent.note(named{x.id, hashOf(x.demand.Key), instant, int32(x.count)}, now)
	}
}

// forgetNamed takes back at most count admissions of a name, and tells how many.
func forgetNamed(windows *ratelimit.Partition, part *partition, k ratelimit.Key, id uint64, count int64) (n int64) {
	x := part.recent.find(id)
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
