package resource

import (
	"context"
	"time"

	"castellan/domain/kit/page"
)

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
