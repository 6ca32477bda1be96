package resource

import (
	"context"
	"strconv"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Admin makes the changes of administrators: the registry (registry.go), roles and their holders (role.go), grants
// (grant.go). A change of a grant also writes a line of the permission log. Besides its documented errors, every
// method returns UNAVAILABLE if the database or the reload fails.
type Admin struct {
	Store    Store
	Accounts Accounts
	Changes  admin.Changes // of topic change.Roles, under Store.Lock
	Table    Table
	// Keyed reports whether a service key has a role; nil: none has.
	Keyed func(ctx context.Context, role string) (bool, error)
	// Dev makes demonstration accounts count as administrators.
	Dev bool
}

func (a *Admin) stamp(by audit.By) Stamp {
	now := a.Changes.Now()
	return Stamp{CreatedBy: by.UserID, CreatedAt: now, UpdatedBy: by.UserID, UpdatedAt: now}
}

func number(id int64) string { return strconv.FormatInt(id, 10) }

func notFound(what string) error { return fault.New(fault.RecordNotFound, "there is no such %s", what) }

func state(format string, args ...any) error { return fault.New(fault.InvalidState, format, args...) }

func taken(c Context, code string) error {
	return fault.New(fault.RecordAlreadyExist, "the code %q is already used in the context %s", code, c)
}

func first[T any](all []T, match func(T) bool) (T, bool) {
	for _, x := range all {
		if match(x) {
			return x, true
		}
	}
	var none T
	return none, false
}
