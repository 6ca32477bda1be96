package geofilter

import (
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/geo"
)

// Cache is a node's copy of all filters, which checks requests without a database read. Every node follows the change
// feed (topic change.Geofilter). The node that changed a filter updates it before it answers any caller (Apply).
//
// A read takes one lookup in an immutable map, and no lock; a write replaces the map of one shard. It is safe for
// concurrent use.
type Cache struct {
	store  Store
	seed   maphash.Seed
	shards [shards]shard
}

const shards = 256

type shard struct {
	mu sync.Mutex // of writers
	m  atomic.Pointer[map[string]held]
}

// held is a filter and its version. An empty one is kept, so that an older answer of the database cannot restore its
// countries.
type held struct {
	filter geo.Filter
	cv     int64
}

// NewCache returns a Cache without filters until Reload.
func NewCache(s Store) *Cache { return &Cache{store: s, seed: maphash.MakeSeed()} }

// Filter returns the filter of an account.
func (l *Cache) Filter(userID string) geo.Filter {
	m := l.shard(userID).m.Load()
	if m == nil {
		return ""
	}
	return (*m)[userID].filter
}

// Reload reads all filters. The node calls it after it has begun to follow the feed and before it serves.
func (l *Cache) Reload(ctx context.Context) error {
	all, err := l.store.All(ctx)
	if err != nil {
		return fmt.Errorf("load the geographic filters: %w", err)
	}
	by := map[*shard][]Held{}
	for _, h := range all {
		s := l.shard(h.UserID)
		by[s] = append(by[s], h)
	}
	for s, hs := range by {
		s.put(hs...)
	}
	return nil
}

// Follow reads the filters of accounts again.
func (l *Cache) Follow(ctx context.Context, userIDs ...string) error {
	for _, id := range userIDs {
		h, err := l.store.Get(ctx, id)
		if err != nil {
			return fmt.Errorf("follow a geographic filter: %w", err)
		}
		l.shard(id).put(h)
	}
	return nil
}

// Apply applies a write that has just become durable; it ignores the writes of other packages.
func (l *Cache) Apply(w commit.Write) {
	if w, ok := w.(user.SetCountries); ok {
		l.shard(w.UserID).put(Held{UserID: w.UserID, CV: w.CV + 1, Filter: w.Countries})
	}
}

func (l *Cache) shard(userID string) *shard {
	return &l.shards[maphash.String(l.seed, userID)%shards]
}

func (s *shard) put(hs ...Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string]held{}
	if old := s.m.Load(); old != nil {
		next = maps.Clone(*old)
	}
	for _, h := range hs {
		if h.CV > 0 && h.CV >= next[h.UserID].cv {
			next[h.UserID] = held{h.Filter, h.CV}
		}
	}
	s.m.Store(&next)
}
