package ratelimit

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"iter"
	"slices"
	"sync"
	"time"
)

// Table is the Limiter of one node: windows in memory, distributed over partitions with a lock each. A request under
// several keys holds the locks of all of them during the decision.
type Table struct {
	// instant reads the clock, in nanoseconds since the start. It is read inside the locks, so that windows see time
	// in order.
	instant    func() int64
	partitions [Partitions]Partition
	tally      Tally
}

// Partitions is the number of partitions of the keys. Every process distributes them in the same way, so each
// partition can have one owner (D-WAF-13).
const Partitions = 1024

// Partition holds the windows of one partition.
type Partition struct {
	mu      sync.Mutex
	windows KeyMap[Window]
	tally   *Tally
	_       [24]byte // neighbours share no cache line
}

// Gate decides whether locked partitions may decide, and receives their counts.
type Gate interface {
	// MayDecide reports whether the windows of a demand's partition may be used. It is called for each demand in turn.
	MayDecide(demand int) bool
	// Counted records that a demand was counted, count times, at an instant.
	Counted(demand int, instant, count int64)
}

var _ Limiter = (*Table)(nil)

// NewTable returns an empty Table. A nil now is the monotonic clock of the machine, which is also the cheaper one to
// read.
func NewTable(now func() time.Time) *Table {
	t := &Table{}
	for i := range t.partitions {
		t.partitions[i].tally = &t.tally
	}
	if now == nil {
		origin := time.Now()
		t.instant = func() int64 { return int64(time.Since(origin)) }
	} else {
		origin := now()
		t.instant = func() int64 { return int64(now().Sub(origin)) }
	}
	return t
}

// Bound sets how many keys of a rule are kept (see Tally).
func (t *Table) Bound(most int) { t.tally.Bound(most) }

// Instant returns the time of the windows' clock: nanoseconds since a fixed instant of this process.
func (t *Table) Instant() int64 { return t.instant() }

// Partition returns the number of the key's partition.
func (k Key) Partition() int { return PartitionOf(k.Hash()) }

// PartitionOf returns the number of the partition of a key with that hash.
func PartitionOf(hash uint64) int { return int(hash % Partitions) }

// Hash returns a hash of the key, the same in every process, which places the key. Different addresses of one rule have
// different hashes. A client can compute names with the same one, so it identifies no key: see Fingerprint.
func (k Key) Hash() uint64 {
	h := uint64(14695981039346656037)
	for i := range len(k.Rule) {
		h = (h ^ uint64(k.Rule[i])) * 1099511628211
	}
	h = mix(h)
	if k.IP.IsValid() {
		a := k.IP.As16()
		h = mix(mix(h^binary.LittleEndian.Uint64(a[:8])) ^ binary.LittleEndian.Uint64(a[8:]))
	}
	for i := range len(k.Name) {
		h = (h ^ uint64(k.Name[i])) * 1099511628211
	}
	return mix(h)
}

var seed = maphash.MakeSeed()

// Fingerprint returns a hash that differs between processes, so a client cannot find two keys with the same one.
func (k Key) Fingerprint() uint64 {
	h := mix(maphash.String(seed, k.Rule))
	if k.IP.IsValid() {
		a := k.IP.As16()
		return h ^ maphash.Bytes(seed, a[:])
	}
	return mix(h ^ maphash.String(seed, k.Name))
}

// mix spreads every bit over all others.
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// maxDemands is how many keys of one request are decided without an allocation.
const maxDemands = 8

func (t *Table) Allow(_ context.Context, demands []Demand, standings []Standing) (admitted bool, err error) {
	var room [maxDemands]int
	var hashed [maxDemands]uint64
	var locked [maxDemands]*Partition
	at, hashes, parts := room[:0], hashed[:0], locked[:0]
	for i := range demands {
		hash := demands[i].Key.Hash()
		n := PartitionOf(hash)
		at, hashes, parts = append(at, n), append(hashes, hash), append(parts, &t.partitions[n])
	}
	t.Lock(at)
	defer t.Unlock(at)
	admitted, _ = Decide(parts, hashes, demands, standings, t.instant(), nil)
	return admitted, nil
}

// Decide is Limiter.Allow at an instant, through a gate, which may be nil. parts and hashes are those of the demands;
// the partitions are locked. When the gate forbids one, nothing is counted and open is false.
func Decide(parts []*Partition, hashes []uint64, demands []Demand, standings []Standing, now int64,
	gate Gate) (admitted, open bool) {
	if gate != nil {
		for i := range demands {
			if !gate.MayDecide(i) {
				return false, false
			}
		}
	}
	var found [maxDemands]*Window
	windows := found[:0]
	admitted = true
	for i, p := range parts {
		w := p.windows.get(&demands[i].Key, hashes[i])
		windows = append(windows, w)
		standings[i] = look(w, &demands[i], now)
		if standings[i].Retry == 0 {
			standings[i].Sharing = p.tally.sharing(w, &demands[i], now, false)
		}
		admitted = admitted && standings[i].Retry == 0 && standings[i].Sharing == Alone
	}
	if !admitted {
		return false, true
	}
	for i, p := range parts {
		if windows[i] == nil {
			windows[i] = p.add(demands[i].Key, hashes[i], now+int64(demands[i].Period))
			if demands[i].Shared {
				windows[i].ShareFor(now, demands[i].Period)
			}
		}
		instant, cost := now, max(1, demands[i].Cost)
		if cost == 1 {
			windows[i].Admit(now, demands[i].Quota())
		} else {
			instant = windows[i].Add(now, 0, cost, demands[i].Quota())
		}
		if standings[i].Used += cost; standings[i].Used == cost {
			standings[i].Reset = int64(demands[i].Period)
		}
		if gate != nil {
			gate.Counted(i, instant, cost)
		}
	}
	return true, true
}

// Reserve counts admissions under a key in advance, at an instant that many nanoseconds ahead: the receiver must use
// them before it. It counts at most most, and at most the remaining room of the key divided by share. It returns how
// many. The partition is locked.
func (p *Partition) Reserve(d *Demand, most, share, ahead int64, stand *Standing, now int64,
	gate Gate) (reserved int64, open bool) {
	hash := d.Key.Hash()
	if !gate.MayDecide(0) {
		return 0, false
	}
	w := p.windows.get(&d.Key, hash)
	if *stand = look(w, d, now); p.tally.sharing(w, d, now, true) != Alone {
		return 0, true
	}
	if reserved = min(most, (d.Limit-stand.Used)/share); reserved <= 0 {
		return 0, true
	}
	if w == nil {
		w = p.add(d.Key, hash, now+ahead+int64(d.Period))
	}
	gate.Counted(0, w.Add(now, ahead, reserved, d.Quota()), reserved)
	stand.Used += reserved
	return reserved, true
}

func (t *Table) Look(_ context.Context, demands []Demand, standings []Standing) error {
	for i := range demands {
		hash := demands[i].Key.Hash()
		p := &t.partitions[PartitionOf(hash)]
		p.mu.Lock()
		standings[i] = p.Look(&demands[i], hash, t.instant())
		p.mu.Unlock()
	}
	return nil
}

// Look returns the state of a demand whose key has that hash. The partition is locked.
func (p *Partition) Look(d *Demand, hash uint64, now int64) (at Standing) {
	w := p.windows.get(&d.Key, hash)
	if at = look(w, d, now); at.Retry == 0 {
		at.Sharing = p.tally.sharing(w, d, now, true)
	}
	return at
}

// Lock locks some partitions, each once. All callers use the same order, so they never deadlock.
func (t *Table) Lock(at []int) {
	if len(at) == 1 { // the common case
		t.partitions[at[0]].mu.Lock()
		return
	}
	for previous := -1; ; {
		next := Partitions
		for _, n := range at {
			if n > previous {
				next = min(next, n)
			}
		}
		if next == Partitions {
			return
		}
		t.partitions[next].mu.Lock()
		previous = next
	}
}

// Unlock unlocks partitions that Lock has locked.
func (t *Table) Unlock(at []int) {
	for i, n := range at {
		if !slices.Contains(at[:i], n) {
			t.partitions[n].mu.Unlock()
		}
	}
}

// look returns the state of a demand in its window; a nil window has no admission.
func look(w *Window, d *Demand, now int64) (at Standing) {
	if w != nil {
		at = w.Look(now, d.Quota())
	}
	if d.Cost > 1 && at.Used+d.Cost > d.Limit {
		at.Retry = w.waitFor(d.Cost, now, d.Quota())
	}
	return at
}

// add creates the window of a key, for its first admission. A look creates none.
func (p *Partition) add(k Key, hash uint64, deadline int64) *Window {
	p.tally.Add(k, 1)
	return p.windows.add(k, hash, deadline)
}

// Sweep deletes the windows in which no admission counts any more. It visits only those whose deadline was reached.
func (t *Table) Sweep() {
	for i := range t.partitions {
		p, now := &t.partitions[i], int64(0)
		next := func(k Key, w *Window) int64 {
			if w.Idle(now) {
				p.tally.Add(k, -1)
			}
			return w.Deadline()
		}
		for more := true; more; {
			p.mu.Lock()
			now = t.instant()
			more = p.windows.Expire(now, SweepSteps, next)
			p.mu.Unlock()
		}
	}
}

// Keys returns how many windows are kept.
func (t *Table) Keys() (n int) {
	for i := range t.partitions {
		p := &t.partitions[i]
		p.mu.Lock()
		n += p.windows.Len()
		p.mu.Unlock()
	}
	return n
}

// WithPartition calls do with a partition locked. do must not retain it.
func (t *Table) WithPartition(partition int, do func(p *Partition)) {
	p := &t.partitions[partition]
	p.mu.Lock()
	defer p.mu.Unlock()
	do(p)
}

// At returns a partition, which is used only while it is locked.
func (t *Table) At(partition int) *Partition { return &t.partitions[partition] }

// Len returns how many windows the partition has.
func (p *Partition) Len() int { return p.windows.Len() }

// Get returns the window of a key; nil when it has no admission.
func (p *Partition) Get(k Key) *Window { return p.windows.Get(k) }

// GetOrCreate returns the window of a key, and creates it if necessary.
func (p *Partition) GetOrCreate(k Key) *Window {
	hash := k.Hash()
	if w := p.windows.get(&k, hash); w != nil {
		return w
	}
	return p.add(k, hash, 0) // the next Sweep learns the deadline
}

// Clear deletes all windows.
func (p *Partition) Clear() {
	for k := range p.windows.Keys() {
		p.tally.Add(k, -1)
	}
	p.windows.Clear()
}

func (p *Partition) Keys() iter.Seq[Key] { return p.windows.Keys() }
