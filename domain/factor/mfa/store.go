package mfa

import (
	"context"
	"fmt"

	"castellan/domain/kit/change"
)

// Store keeps the configuration. Every method joins the transaction of its context (commit.Committer.InTx), and
// otherwise runs in its own. It is safe for concurrent use.
//
// A Change method loads one record, passes it to change and saves the result, as one step: no other change of the
// record comes between. If change returns an error, nothing is saved and the method returns the error.
// RECORD_NOT_FOUND when the record does not exist.
type Store interface {
	// Methods, Actions and Policies list in order of creation. Methods and actions are those with the codes, or all
	// without any.
	Methods(ctx context.Context, codes ...string) ([]Method, error)
	Actions(ctx context.Context, codes ...string) ([]Action, error)
	Policies(ctx context.Context) ([]Policy, error)

	// AddMethod and AddAction insert a record; RECORD_ALREADY_EXIST when its code is taken, even under concurrent
	// calls.
	AddMethod(ctx context.Context, m Method) error
	AddAction(ctx context.Context, a Action) error
	// AddPolicy inserts a policy and returns its id; p.ID is ignored. RECORD_ALREADY_EXIST when the action has one of
	// the type for the entity, expired or not (D-MFA-08), even under concurrent calls.
	AddPolicy(ctx context.Context, p Policy) (int64, error)

	// ChangeMethod and ChangeAction find the record by its code, which never changes.
	ChangeMethod(ctx context.Context, code string, change func(Method) (Method, error)) error
	ChangeAction(ctx context.Context, code string, change func(Action) (Action, error)) error
	// ChangeCommon changes a policy of type COMMON: its name, end, methods and numbers. Its id, action, type and
	// entity never change.
	ChangeCommon(ctx context.Context, id int64, change func(Policy) (Policy, error)) error
	// RemoveCommon deletes a policy of type COMMON unless check, which sees it, returns an error; then the method
	// returns that. RECORD_NOT_FOUND when there is none, also under concurrent calls.
	RemoveCommon(ctx context.Context, id int64, check func(Policy) error) error
}

// Load reads the whole configuration.
func Load(ctx context.Context, s Store) (*Catalog, error) {
	methods, err := s.Methods(ctx)
	if err != nil {
		return nil, err
	}
	actions, err := s.Actions(ctx)
	if err != nil {
		return nil, err
	}
	policies, err := s.Policies(ctx)
	if err != nil {
		return nil, err
	}
	return NewCatalog(methods, actions, policies), nil
}

// Cache is the node's snapshot. A writer of the configuration updates it before the caller is answered. Every node
// updates it on a note of topic change.MFA, so a change applies to every challenge created afterwards. It is safe for
// concurrent use.
type Cache struct{ *change.Snapshot[Catalog] }

// NewCache returns a Cache over a store. It has no methods until the first Reload, so no challenge can start.
func NewCache(store Store) *Cache {
	load := func(ctx context.Context) (*Catalog, error) {
		c, err := Load(ctx, store)
		if err != nil {
			return nil, fmt.Errorf("reload the mfa configuration: %w", err)
		}
		return c, nil
	}
	return &Cache{change.NewSnapshot(NewCatalog(nil, nil, nil), load, nil)}
}

// Catalog returns the current snapshot.
func (l *Cache) Catalog() *Catalog { return l.Current() }

// ServiceActions returns whether another service may start an action: it has a record, and its code is none of those
// that this service starts itself.
func ServiceActions(store Store, own func(code string) bool) func(ctx context.Context, code string) (bool, error) {
	return func(ctx context.Context, code string) (bool, error) {
		if own(code) {
			return false, nil
		}
		found, err := store.Actions(ctx, code)
		return len(found) > 0, err
	}
}
