package resource

import (
	"context"
	"time"

	"castellan/domain/kit/page"
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

	// Types, Resources, Roles and Grants list in order of creation: resources of
	// the contexts, or of both where none is named; grants as the query selects.
	Types(ctx context.Context) ([]Type, error)
	Resources(ctx context.Context, of ...Context) ([]Resource, error)
	Roles(ctx context.Context) ([]Role, error)
	Grants(ctx context.Context, q GrantQuery) ([]Grant, error)
	// Log lists the changes of grants, newest first.
	Log(ctx context.Context, q LogQuery, p page.Query[LogPlace]) (page.Of[LogEntry], error)
	// Members lists the roles that accounts were given, newest first. The role
	// that every account has is no row.
	Members(ctx context.Context, q MemberQuery, p page.Query[Member]) (page.Of[Member], error)
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

// GrantQuery selects grants; nil: any.
type GrantQuery struct{ RoleID, ResourceID *int64 }

// LogQuery selects lines of the log; nil: any.
type LogQuery struct{ ID, RoleID, ResourceID *int64 }

// MemberQuery selects members; "": any.
type MemberQuery struct{ UserID, RoleCode string }
