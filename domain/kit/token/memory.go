package token

import (
	"crypto/sha256"
	"math/rand/v2"
	"sync"
	"time"

	"castellan/domain/kit/pack"
)

// memory caches tokens with a valid signature, by the SHA-256 of the whole token. It is bounded, and failures never
// enter it, so no caller without a valid token can fill it.
//
// For each new entry two random entries are removed if they have expired: without a sweep, at most about half of the
// entries are expired. If the cache is full, the one of two entries that expires sooner is removed. So a flood of
// short-lived p-auth tokens, which unauthenticated callers can cause, displaces such tokens, not sessions.
type memory struct {
	shards []shard
	room   int // per shard
}

type shard struct {
	mu     sync.Mutex
	bySum  map[[sha256.Size]byte]*entry
	places []*entry // the same entries, for random selection
}

// entry is immutable except for its place, which its shard guards. Many entries exist, so the claims are stored
// compactly in one piece.
type entry struct {
	sum     [sha256.Size]byte
	kid     string
	class   Class
	expires int64 // Unix seconds
	claims  string
	place   int
}

// newEntry stores normal claims under the key that signed them; the caller sets sum.
func newEntry(kid string, c Claims) *entry {
	b := make([]byte, 0, 256)
	b = pack.Int(pack.String(b, c.ID), c.IssuedAt.Unix())
	switch c.Class {
	case XAuth:
		b = pack.Int(pack.String(pack.String(b, c.Subject), c.SessionID), c.SV)
		b = pack.Int(pack.Strings(pack.Strings(b, c.Roles), c.AMR), c.AuthTime.Unix())
		if c.Thumbprint != "" {
			b = pack.String(b, c.Thumbprint)
		}
	case PAuth:
		b = pack.String(b, c.ChallengeID)
	}
	return &entry{kid: kid, class: c.Class, expires: c.ExpiresAt.Unix(), claims: string(b)}
}

// read returns the claims given to newEntry.
func (e *entry) read(tenant string) Claims {
	in := pack.Read(e.claims)
	c := Claims{Class: e.class, Tenant: tenant, ID: in.String(), IssuedAt: second(in.Int()), ExpiresAt: second(e.expires)}
	switch e.class {
	case XAuth:
		c.Subject, c.SessionID, c.SV = in.String(), in.String(), in.Int()
		c.Roles, c.AMR, c.AuthTime = in.Strings(), in.Strings(), second(in.Int())
		if in.More() {
			c.Thumbprint = in.String()
		}
	case PAuth:
		c.ChallengeID = in.String()
	}
	return c
}

func (e *entry) ended(now time.Time) bool { return !now.Before(second(e.expires)) }

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

// shard returns the shard of a sum; nil if the cache is disabled.
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
		if old := s.any(); old != nil && old.ended(now) {
			s.remove(old)
		}
	}
	if len(s.places) >= m.room {
		old, other := s.any(), s.any()
		if other.expires < old.expires {
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

// any returns a random entry; nil if there is none.
func (s *shard) any() *entry {
	if len(s.places) == 0 {
		return nil
	}
	// #nosec G404: the choice of the removed entry is not secret.
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
