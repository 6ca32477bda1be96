package session

import (
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
)

// Revocations is a node's table of the session ids revoked during the last token lifetime, and of the lowest valid
// session version of users. Older entries are dropped, because their tokens have expired.
//
// A read takes two lookups in immutable maps, and no lock; a write replaces the map of one shard. It is safe for
// concurrent use.
type Revocations struct {
	life time.Duration
	now  func() time.Time
	seed maphash.Seed

	sessions, users [shards]shard
}

const shards = 256

type shard struct {
	mu sync.Mutex // of writers
	m  atomic.Pointer[map[string]revoked]
}

type revoked struct {
	sv    int64
	until int64 // ms
}

// NewRevocations returns an empty table for tokens with the maximum lifetime life.
func NewRevocations(life time.Duration, now func() time.Time) *Revocations {
	return &Revocations{life: life, now: now, seed: maphash.MakeSeed()}
}

// Revoked reports whether a token of this session, user and version was revoked.
func (r *Revocations) Revoked(sessionID, userID string, sv int64) bool {
	if _, ok := r.get(&r.sessions, sessionID); ok {
		return true
	}
	least, ok := r.get(&r.users, userID)
	return ok && sv < least.sv
}

// Live is the opposite of Revoked, with the parameters in the order of the guards.
func (r *Revocations) Live(userID, sessionID string, sv int64) bool {
	return !r.Revoked(sessionID, userID, sv)
}

// End records that a session has ended. The service calls it after the commit and before it answers.
func (r *Revocations) End(sessionID string) { r.put(&r.sessions, sessionID, 0, r.now()) }

// Raise records that sessions of a version below sv have ended. A version never decreases.
func (r *Revocations) Raise(userID string, sv int64) { r.put(&r.users, userID, sv, r.now()) }

// Apply applies a note that another node wrote into the feed under change.Sessions. Applying a note again has no
// effect. An unknown key is an error: the node may miss a revocation, so it must not trust its table.
func (r *Revocations) Apply(_ context.Context, key string) error {
	kind, rest, _ := strings.Cut(key, "/")
	first, second, ok := strings.Cut(rest, "/")
	switch {
	case kind == "sid" && ok && first != "":
		r.End(first)
		return nil
	case kind == "sv" && ok && first != "":
		if sv, err := strconv.ParseInt(second, 10, 64); err == nil {
			r.Raise(first, sv)
			return nil
		}
	}
	return fmt.Errorf("session: malformed note: %q", key)
}

func sidKey(sessionID, userID string) string { return "sid/" + sessionID + "/" + userID }

func svKey(userID string, sv int64) string { return "sv/" + userID + "/" + strconv.FormatInt(sv, 10) }

// Load applies all revocations in the store. The node calls it after it has begun to follow the feed and before it
// serves.
func (r *Revocations) Load(ctx context.Context, s Store) error {
	// A second more, because the instants are from the clocks of other nodes.
	all, err := s.Revoked(ctx, r.now().Add(-r.life-2*time.Second))
	if err != nil {
		return fmt.Errorf("load revocations: %w", err)
	}
	for _, e := range all {
		if e.SessionID != "" {
			r.put(&r.sessions, e.SessionID, 0, e.At)
		} else {
			r.put(&r.users, e.UserID, e.SV, e.At)
		}
	}
	return nil
}

// Len returns the number of entries, for metrics.
func (r *Revocations) Len() int {
	n := 0
	for _, table := range []*[shards]shard{&r.sessions, &r.users} {
		for i := range table {
			if m := table[i].m.Load(); m != nil {
				n += len(*m)
			}
		}
	}
	return n
}

func (r *Revocations) get(table *[shards]shard, key string) (revoked, bool) {
	m := table[maphash.String(r.seed, key)%shards].m.Load()
	if m == nil {
		return revoked{}, false
	}
	e, ok := (*m)[key]
	return e, ok
}

// put also drops expired entries, so no sweep is needed: a shard without writes does not grow.
func (r *Revocations) put(table *[shards]shard, key string, sv int64, at time.Time) {
	s := &table[maphash.String(r.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	now := r.now().UnixMilli()
	next := map[string]revoked{}
	if old := s.m.Load(); old != nil {
		for k, e := range *old {
			if e.until > now {
				next[k] = e
			}
		}
	}
	e := next[key]
	next[key] = revoked{sv: max(e.sv, sv), until: max(e.until, at.Add(r.life+2*time.Second).UnixMilli())}
	s.m.Store(&next)
}

// Revoking is a Committer that passes every end of a session to this node's table as soon as it is durable, and so
// before any caller is answered. It is for writers that cannot do so themselves, such as the action of a challenge,
// whose writes the challenge's owner commits.
type Revoking struct {
	commit.Committer
	Revocations *Revocations
	// Also, which may be nil, gets every write that has become durable. It updates another copy on this node before
	// any caller is answered.
	Also func(w commit.Write)
}

func (r Revoking) Commit(ctx context.Context, writes ...commit.Write) error {
	if err := r.Committer.Commit(ctx, writes...); err != nil {
		return err
	}
	commit.After(ctx, func() { r.report(writes) })
	return nil
}

func (r Revoking) report(writes []commit.Write) {
	for _, w := range writes {
		switch w := w.(type) {
		case End:
			r.Revocations.End(w.SessionID)
		case user.EndSessions:
			r.Revocations.Raise(w.UserID, w.SV+1)
		}
		if r.Also != nil {
			r.Also(w)
		}
	}
}
