package resource

import (
	"context"
	"time"
)

// Store keeps the registry, the roles and the grants. Every method joins the
// transaction that its context carries (commit.Committer.InTx) and else runs
// in one of its own. It is safe for concurrent use and passes
// resourcetest.TestStore.
type Store interface {
	// Lock makes the transaction that ctx carries the only one between its
	// Lock and its end that has called it, on all nodes: what is read after it
	// stays true until the commit. Every change of what this store keeps
	// begins with it. Call it inside InTx, before anything is read.
	Lock(ctx context.Context) error

	// Types, Resources, Roles and Grants list everything in order of creation.
	Types(ctx context.Context) ([]Type, error)
	Resources(ctx context.Context) ([]Resource, error)
	Roles(ctx context.Context) ([]Role, error)
	Grants(ctx context.Context) ([]Grant, error)
	// Log lists the changes of grants, newest first; CountLog counts them.
	Log(ctx context.Context, q LogQuery) ([]LogEntry, error)
	CountLog(ctx context.Context, q LogQuery) (int, error)
	// Members lists the roles that accounts were given, newest first;
	// CountMembers counts them. What every account has is no row.
	Members(ctx context.Context, q MemberQuery) ([]Member, error)
	CountMembers(ctx context.Context, q MemberQuery) (int, error)
	// HeldByAnother reports whether an active account other than userID holds
	// a role. Demonstration accounts count where demo is true.
	HeldByAnother(ctx context.Context, role, userID string, demo bool) (bool, error)

	// AddType, AddResource and AddRole insert a record and return its id; ids
	// of the argument are ignored. RECORD_ALREADY_EXIST when the code is
	// taken, for types and resources within the context, also under
	// concurrent calls.
	AddType(ctx context.Context, t Type) (int64, error)
	AddResource(ctx context.Context, r Resource) (int64, error)
	AddRole(ctx context.Context, r Role) (int64, error)
	// SaveType and SaveResource replace everything of a record but who made
	// it. RECORD_NOT_FOUND; RECORD_ALREADY_EXIST when the code is taken.
	SaveType(ctx context.Context, t Type) error
	SaveResource(ctx context.Context, r Resource) error
	// RemoveType, RemoveResource and RemoveRole delete a record. They do not
	// look at what refers to it. RECORD_NOT_FOUND.
	RemoveType(ctx context.Context, id int64) error
	RemoveResource(ctx context.Context, id int64) error
	RemoveRole(ctx context.Context, id int64) error

	// SetGrant gives a role a permission on a resource, in the place of the one
	// it has, and returns its id. There is one per role and resource, also
	// under concurrent calls. RemoveGrant deletes it; RECORD_NOT_FOUND.
	// Both append a line to the log, stamped at.
	SetGrant(ctx context.Context, roleID, resourceID int64, p Permission, at time.Time) (int64, error)
	RemoveGrant(ctx context.Context, roleID, resourceID int64, at time.Time) error
}

// LogQuery says what of the log is wanted; the zero value is all of it.
type LogQuery struct {
	ID, RoleID, ResourceID int64 // 0: any
	Before                 int64 // ids below; 0: from the newest
	Limit                  int   // 0: no limit
}

// MemberQuery says which members are wanted; the zero value is all.
type MemberQuery struct {
	UserID, RoleCode string // "": any
	After            Member // those that come after it in the list; the zero value: from the start
	Limit            int    // 0: no limit
}
