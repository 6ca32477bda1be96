package token

import (
	"crypto/sha256"
	"encoding/binary"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func (m *memory) size() (n int) {
	for i := range m.shards {
		n += len(m.shards[i].places)
	}
	return n
}

// check fails if the two views of a shard differ.
func (m *memory) check(t *testing.T) {
	t.Helper()
	for i := range m.shards {
		s := &m.shards[i]
		if len(s.bySum) != len(s.places) || len(s.places) > m.room {
			t.Fatalf("shard %d: %d by sum, %d places, room %d", i, len(s.bySum), len(s.places), m.room)
		}
		for at, e := range s.places {
			if e.place != at || s.bySum[e.sum] != e {
				t.Fatalf("shard %d: place %d is wrong", i, at)
			}
		}
	}
}

func numbered(n int, end time.Time) *entry {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	return &entry{sum: sha256.Sum256(b[:]), expires: end.Unix()}
}

func TestMemoryIsBounded(t *testing.T) {
	for _, capacity := range []int{1, 2, 63, 64, 65, 1000} {
		m := newMemory(capacity)
		for n := range 4 * capacity {
			e := numbered(n, noon.Add(time.Hour))
			m.put(e, noon)
			storetest.Equal(t, m.get(e.sum), e, "capacity", capacity, "a newcomer is not remembered")
		}
		m.check(t)
		if got := m.size(); got > capacity || got < capacity/2 {
			t.Errorf("capacity %d: %d remembered", capacity, got)
		}
	}
	m := newMemory(0)
	m.put(numbered(1, noon.Add(time.Hour)), noon)
	m.drop(numbered(1, noon).sum)
	if m.get(numbered(1, noon).sum) != nil {
		t.Error("capacity 0 remembers")
	}
}

func TestMemoryRemovesExpiredTokens(t *testing.T) {
	m := newMemory(64 * 64)
	now := noon
	// Ten times the capacity over time, but only a tenth of it live at once.
	for n := range 10 * 64 * 64 {
		now = now.Add(time.Second)
		m.put(numbered(n, now.Add(410*time.Second)), now)
	}
	m.check(t)
	if got := m.size(); got > 2*410+410/2 {
		t.Errorf("%d remembered, 410 alive", got)
	}
}

// Unauthenticated callers can cause p-auth tokens; sessions stay cached.
func TestMemoryKeepsLongTokensInAFlood(t *testing.T) {
	m := newMemory(64 * 32)
	const sessions = 64 * 16
	for n := range sessions {
		m.put(numbered(n, noon.Add(30*time.Minute)), noon)
	}
	kept := func() (n int) {
		for i := range sessions {
			if m.get(numbered(i, noon).sum) != nil {
				n++
			}
		}
		return n
	}
	before := kept()
	for n := range 64 * 32 * 3 { // with random removal one session in twenty would stay
		m.put(numbered(1_000_000+n, noon.Add(5*time.Minute)), noon)
	}
	m.check(t)
	if after := kept(); after < before/4 {
		t.Errorf("%d of %d sessions remembered after the flood", after, before)
	}
}

func TestMemoryStoresNeitherFailuresNorExpiredTokens(t *testing.T) {
	now := noon
	ring := keyringtest.Ring(t, func() time.Time { return now })
	signer := NewIssuer(ring, "iss", "tid", func() time.Time { return now }, 0)
	i := NewIssuer(ring, "iss", "tid", func() time.Time { return now }, 100)
	raw := storetest.Value(signer.Sign(Claims{Class: OTAuth, ID: "1", IssuedAt: now, ExpiresAt: now.Add(time.Minute)}))(t)
	for _, bad := range []string{"", "x", raw[:len(raw)-1], raw + "A", raw[1:]} {
		storetest.Wants(t, storetest.Err(i.Verify(OTAuth, bad)), fault.Unauthenticated)
	}
	storetest.Wants(t, storetest.Err(i.Verify(PAuth, raw)), fault.Unauthenticated)
	storetest.Equal(t, i.memory.size(), 0)
	for range 2 {
		storetest.Value(i.Verify(OTAuth, raw))(t)
	}
	storetest.Equal(t, i.memory.size(), 1)
	now = now.Add(time.Minute)
	for range 2 {
		storetest.Wants(t, storetest.Err(i.Verify(OTAuth, raw)), fault.TokenExpired)
	}
	storetest.Equal(t, i.memory.size(), 0)
}
