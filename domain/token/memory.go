package token

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"
)

// memory holds tokens whose signature was good, by the SHA-256 of the whole
// token. It is bounded, and failures never enter it, so no caller without a
// token of ours can fill it.
//
// For each newcomer two entries at random go if they have ended: without a
// sweep, no more than about half of what is held is dead. When there is no room
// the one of two that ends sooner goes, so that a flood of short-lived p-auth
// tokens, which strangers can cause, displaces its own kind, not sessions.
type memory struct {
	shards []shard
	room   int // of each shard
}

type shard struct {
	mu     sync.Mutex
	bySum  map[[sha256.Size]byte]*entry
	places []*entry // the same entries, for a random choice
}

// entry is immutable but for its place, which its shard guards.
type entry struct {
	sum    [sha256.Size]byte
	kid    string
	claims Claims
	place  int
}

const shardCount = 64

func newMemory(capacity int) *memory {
	n := min(shardCount, capacity)
	if n <= 0 {
		return &memory{}
	}
	m := &memory{shards: make([]shard, n), room: capacity / n}
	for i := range m.shards {
		m.shards[i].bySum = map[[sha256.Size]byte]*entry{}
	}
	return m
}

// shard returns the shard of a sum; nil when nothing is remembered.
func (m *memory) shard(sum *[sha256.Size]byte) *shard {
	if len(m.shards) == 0 {
		return nil
	}
	return &m.shards[(int(sum[0])<<8|int(sum[1]))%len(m.shards)]
}

func (m *memory) get(sum [sha256.Size]byte) *entry {
	s := m.shard(&sum)
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bySum[sum]
}

func (m *memory) put(e *entry, now time.Time) {
	s := m.shard(&e.sum)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySum[e.sum] != nil {
		return
	}
	for range 2 {
		if old := s.any(); old != nil && old.claims.ended(now) {
			s.remove(old)
		}
	}
	if len(s.places) >= m.room {
		old, other := s.any(), s.any()
		if other.claims.ExpiresAt.Before(old.claims.ExpiresAt) {
			old = other
		}
		s.remove(old)
	}
	e.place = len(s.places)
	s.places = append(s.places, e)
	s.bySum[e.sum] = e
}

func (m *memory) drop(sum [sha256.Size]byte) {
	s := m.shard(&sum)
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.bySum[sum]; e != nil {
		s.remove(e)
	}
}

// any is an entry at random; nil when there is none.
func (s *shard) any() *entry {
	if len(s.places) == 0 {
		return nil
	}
	return s.places[rand.IntN(len(s.places))]
}

func (s *shard) remove(e *entry) {
	delete(s.bySum, e.sum)
	last := len(s.places) - 1
	s.places[e.place] = s.places[last]
	s.places[e.place].place = e.place
	s.places[last] = nil
	s.places = s.places[:last]
}
