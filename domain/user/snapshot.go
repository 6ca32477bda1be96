package user

import (
	"context"
	"sync/atomic"
)

// Snapshot is the node's view of granted roles, by which requests are judged
// without a database read (D-AUTH-03). It is replaced whole by Reload: at the
// start, and when the change feed tells of an account. It is safe for
// concurrent use.
type Snapshot struct {
	store   Store
	holders atomic.Pointer[map[string]map[string]bool] // role → user ids
}

// NewSnapshot returns a snapshot that grants nothing until Reload.
func NewSnapshot(s Store) *Snapshot {
	n := &Snapshot{store: s}
	n.holders.Store(&map[string]map[string]bool{})
	return n
}

// Reload reads the granted roles. When it fails the snapshot stays as it is.
func (s *Snapshot) Reload(ctx context.Context) error {
	roles, err := s.store.Holders(ctx)
	if err != nil {
		return err
	}
	next := make(map[string]map[string]bool, len(roles))
	for role, ids := range roles {
		set := make(map[string]bool, len(ids))
		for _, id := range ids {
			set[id] = true
		}
		next[role] = set
	}
	s.holders.Store(&next)
	return nil
}

// Has reports whether an account was granted a role; RoleUser everybody has.
func (s *Snapshot) Has(userID, role string) bool {
	return userID != "" && (role == RoleUser || (*s.holders.Load())[role][userID])
}
