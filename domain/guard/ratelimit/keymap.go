package ratelimit

import (
	"iter"
	"math/bits"
)

// KeyMap maps keys to values that expire. Each value has a deadline, and a wheel of deadlines finds the expired ones:
// no function visits all keys. The zero value is empty and small. It needs a lock.
//
// A deadline is not moved when its value is used. Expire asks for the next one when the old one is reached, so a busy
// key costs nothing between two of them.
type KeyMap[V any] struct {
	values map[uint64]*entry[V] // by the hash of the key
	// others holds the keys whose hash another key had first, by the whole key. Clients that choose names can compute
	// such keys: they cost a second lookup and no list.
	others map[Key]*entry[V]
	wheel  *wheel[V]
}

type entry[V any] struct {
	sameSlot *entry[V]
	key      Key
	value    V
}

// The wheel has levels of 16 slots. A slot of the lowest level holds the deadlines of one tick of 1.07 s, a slot of
// another level those of 16 slots of the level below.
const (
	tickShift  = 30 // a tick in nanoseconds, as a power of two
	levelShift = 4
	levels     = 4 // together 19.5 hours; later deadlines are looked at again then
	levelSlots = 1 << levelShift
)

type wheel[V any] struct {
	tick    int64
	slots   [levels * levelSlots]*entry[V]
	reached uint64    // slots whose time has come, one bit each
	visited *entry[V] // the rest of such a slot
}

// Len returns the number of keys.
func (m *KeyMap[V]) Len() int { return len(m.values) + len(m.others) }

// Get returns the value of a key; nil if there is none.
func (m *KeyMap[V]) Get(k Key) *V {
	if m.Len() == 0 {
		return nil
	}
	return m.Find(&k, k.Hash())
}

// Find is Get with the hash of the key.
func (m *KeyMap[V]) Find(k *Key, hash uint64) *V {
	if e := m.values[hash]; e != nil && e.key == *k {
		return &e.value
	}
	if len(m.others) > 0 {
		if e := m.others[*k]; e != nil {
			return &e.value
		}
	}
	return nil
}

// Add adds a key that is not in the map, with a zero value and a deadline.
func (m *KeyMap[V]) Add(k Key, deadline int64) *V { return m.add(k, k.Hash(), deadline) }

func (m *KeyMap[V]) add(k Key, hash uint64, deadline int64) *V {
	if m.values == nil {
		m.values, m.wheel = map[uint64]*entry[V]{}, &wheel[V]{}
	}
	e := &entry[V]{key: k}
	if m.values[hash] == nil {
		m.values[hash] = e
	} else {
		if m.others == nil {
			m.others = map[Key]*entry[V]{}
		}
		m.others[k] = e
	}
	m.wheel.put(e, deadline)
	return &e.value
}

// Clear removes every key.
func (m *KeyMap[V]) Clear() { *m = KeyMap[V]{} }

// Keys returns the keys, in any order.
func (m *KeyMap[V]) Keys() iter.Seq[Key] {
	return func(yield func(Key) bool) {
		for _, e := range m.values {
			if !yield(e.key) {
				return
			}
		}
		for k := range m.others {
			if !yield(k) {
				return
			}
		}
	}
}

// SweepSteps is how many values a sweep visits before it lets others use the map.
const SweepSteps = 256

// Expire visits values whose deadline was reached, at most most of them. next returns the next deadline of a value; if
// that is not after now, the key is removed. more: call Expire again.
func (m *KeyMap[V]) Expire(now int64, most int, next func(k Key, v *V) int64) (more bool) {
	w := m.wheel
	if w == nil {
		return false
	}
	w.advance(now >> tickShift)
	for ; most > 0; most-- {
		e := w.pop()
		if e == nil {
			return false
		}
		if deadline := next(e.key, &e.value); deadline > now {
			w.put(e, deadline)
			continue
		}
		if m.remove(e); m.Len() == 0 {
			m.Clear() // a large map never shrinks
			return false
		}
	}
	return w.visited != nil || w.reached != 0
}

func (m *KeyMap[V]) remove(e *entry[V]) {
	if hash := e.key.Hash(); m.values[hash] == e {
		delete(m.values, hash)
	} else if delete(m.others, e.key); len(m.others) == 0 {
		m.others = nil // a large map never shrinks
	}
}

// put adds an entry to the slot of its deadline. The level is that of the highest digit in which its tick differs from
// the present one.
func (w *wheel[V]) put(e *entry[V], deadline int64) {
	tick := min(max(deadline>>tickShift, w.tick), w.tick|(1<<(levels*levelShift)-1))
	i := slotOf(tick, levelOf(tick, w.tick))
	e.sameSlot, w.slots[i] = w.slots[i], e
}

func levelOf(a, b int64) int { return max(0, bits.Len64(uint64(a^b))-1) / levelShift }

func slotOf(tick int64, level int) int {
	return level*levelSlots + int(tick>>(level*levelShift))&(levelSlots-1)
}

// advance marks the slots that a tick reaches. Those below the highest changed digit have passed as a whole.
func (w *wheel[V]) advance(tick int64) {
	switch level := levelOf(tick, w.tick); {
	case tick <= w.tick:
		if w.visited == nil && w.reached == 0 {
			w.reached = 1 << slotOf(w.tick, 0)
		}
		return
	case level >= levels:
		w.reached = ^uint64(0)
	default:
		w.reached |= 1<<(level*levelSlots) - 1 | 1<<slotOf(w.tick, 0) // the last one may hold a rest
		for i := slotOf(w.tick, level); i != slotOf(tick, level); {
			i++
			w.reached |= 1 << i
		}
	}
	w.tick = tick
}

// pop removes an entry of a reached slot; nil if there is none.
func (w *wheel[V]) pop() *entry[V] {
	for w.visited == nil && w.reached != 0 {
		i := bits.TrailingZeros64(w.reached)
		w.reached &^= 1 << i
		w.visited, w.slots[i] = w.slots[i], nil
	}
	e := w.visited
	if e != nil {
		w.visited = e.sameSlot
	}
	return e
}
