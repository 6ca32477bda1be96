package resource

import (
	"context"
	"slices"
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

func first[T any](all []T, match func(T) bool) (x T, found bool) {
	if i := slices.IndexFunc(all, match); i >= 0 {
		return all[i], true
	}
	return x, false
}

// one returns the record of a list that matches; RECORD_NOT_FOUND, or the error of the list.
func one[T any](what string, match func(T) bool, all []T, err error) (T, error) {
	x, found := first(all, match)
	if err == nil && !found {
		err = notFound(what)
	}
	return x, err
}
