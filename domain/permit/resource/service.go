package resource

import (
	"context"
	"slices"
	"strconv"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
)

// Admin makes the changes of administrators: the registry (registry.go), and roles, their holders and their grants
// (role.go). A change of a grant also writes a line of the permission log. Besides its documented errors, every method
// returns UNAVAILABLE if the database or the reload fails.
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

// Store keeps the registry, the roles and the grants. Every method joins the transaction of its context
// (commit.Committer.InTx), and otherwise runs in its own. It is safe for concurrent use.
type Store interface {
	// Lock gives the transaction of ctx an exclusive lock over all nodes until its end. Reads after it stay true
	// until the commit. Every change of this store begins with it. Call it inside InTx, before any read.
	Lock(ctx context.Context) error

	// Types, Resources, Roles and Grants list in order of creation. Resources are those of the given contexts, or of
	// both without any. The query selects the grants.
	Types(ctx context.Context) ([]Type, error)
	Resources(ctx context.Context, of ...Context) ([]Resource, error)
	Roles(ctx context.Context) ([]Role, error)
	Grants(ctx context.Context, q GrantQuery) ([]Grant, error)
	// Log lists the changes of grants, newest first.
	Log(ctx context.Context, q LogQuery, p page.Query[LogPlace]) (page.Of[LogEntry], error)
	// Members lists the roles given to accounts, newest first. The role of every account has no row.
	Members(ctx context.Context, q MemberQuery, p page.Query[Member]) (page.Of[Member], error)
	// HeldByAnother reports whether an active account other than userID holds a role. Demonstration accounts count if
	// demo is true.
	HeldByAnother(ctx context.Context, role, userID string, demo bool) (bool, error)

	// AddType, AddResource and AddRole insert a record and return its id; they ignore ids in the argument.
	// RECORD_ALREADY_EXIST when the code is taken, even under concurrent calls. The codes of types and resources are
	// unique within a context.
	AddType(ctx context.Context, t Type) (int64, error)
	AddResource(ctx context.Context, r Resource) (int64, error)
	AddRole(ctx context.Context, r Role) (int64, error)
	// SaveType and SaveResource replace all of a record except its creator. RECORD_NOT_FOUND; RECORD_ALREADY_EXIST
	// when the code is taken.
	SaveType(ctx context.Context, t Type) error
	SaveResource(ctx context.Context, r Resource) error
	// RemoveType, RemoveResource and RemoveRole delete a record. They do not check references to it.
	// RECORD_NOT_FOUND.
	RemoveType(ctx context.Context, id int64) error
	RemoveResource(ctx context.Context, id int64) error
	RemoveRole(ctx context.Context, id int64) error

	// SetGrant gives a role a permission on a resource, replaces an existing grant, and returns its id. A role has
	// one grant per resource, even under concurrent calls. RemoveGrant deletes it; RECORD_NOT_FOUND. Both append a
	// line to the log, stamped at.
	SetGrant(ctx context.Context, roleID, resourceID int64, p Permission, at time.Time) (int64, error)
	RemoveGrant(ctx context.Context, roleID, resourceID int64, at time.Time) error
}

// GrantQuery selects grants; nil: any.
type GrantQuery struct{ RoleID, ResourceID *int64 }

// LogQuery selects lines of the log; nil: any.
type LogQuery struct{ ID, RoleID, ResourceID *int64 }

// MemberQuery selects members; "": any.
type MemberQuery struct{ UserID, RoleCode string }
