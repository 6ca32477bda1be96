// Package resource owns the resources of the service and its front ends, the roles of accounts, and the grants of
// resources to roles (sections 2.4 and 4.6 of the interface; decisions D-RES-01…07, D-AUTH-03).
//
// The one idea: every node holds a snapshot of roles and grants in memory (Cache), so a permission costs two look-ups
// and no database read. The program owns the registry's rows of the endpoint table: Sync writes them at every start,
// and no administrator can delete or deactivate them.
//
// Start reading at Cache.Judge for the check of a request, then Admin for the changes of administrators, and Store
// for the contract.
package resource

import (
	"encoding/json"
	"slices"
	"time"
)

// Context is the application part that a resource belongs to.
type Context string

// The contexts.
const (
	UI  Context = "UI"
	API Context = "API"
)

// Status is the status of a record. It informs front ends and has no effect on permissions.
type Status int

// The statuses.
const (
	Passive Status = 0
	Active  Status = 1
)

// Stamp names the creator of a record and its last editor. A record that was never changed names its creator twice,
// because the interface allows no null.
type Stamp struct {
	CreatedBy string
	CreatedAt time.Time
	UpdatedBy string
	UpdatedAt time.Time
}

// System is the creator of the records of the endpoint table.
const System = "system"

// Type is a kind of resource. Its code is unique within its context.
type Type struct {
	ID      int64 `audit:"-"` // the target
	Name    string
	Code    string
	Context Context
	Status  Status
	Actions json.RawMessage // any JSON, echoed; nil for null
	Stamp   `audit:"-"`
}

// Resource is the object of a grant. Its code is unique within its context: "<METHOD> <path>" for API, a page's path
// or "WIDGET <name>" for UI.
type Resource struct {
	ID       int64 `audit:"-"` // the target
	Code     string
	Name     string
	Status   Status
	TypeID   int64
	TypeCode string `audit:"-"` // of the type; not written
	Context  Context
	ParentID int64           // the resource it is nested in; 0 for none
	Actions  json.RawMessage // any JSON, echoed; nil for null
	MenuItem json.RawMessage // likewise
	Stamp    `audit:"-"`
}

// Permission is the effect of a grant.
type Permission string

// The permissions. Audit is Allow with an audit row for every call. Revoked occurs only in the permission log, for a
// removed grant.
const (
	None    Permission = ""
	Allow   Permission = "ALLOW"
	Deny    Permission = "DENY"
	Audit   Permission = "AUDIT"
	Revoked Permission = "REVOKE"
)

// acts reports whether the permission lets the holder act as an administrator.
func (p Permission) acts() bool { return p == Allow || p == Audit }

// Role is a named set of grants that accounts hold.
type Role struct {
	ID        int64
	Code      string
	Name      string
	CreatedAt time.Time
}

// Grant is the permission of one role on one resource.
type Grant struct {
	ID           int64
	RoleID       int64
	RoleCode     string // of the role; not written
	ResourceID   int64
	ResourceCode string  // of the resource; not written
	Context      Context // likewise
	Permission   Permission
	CreatedAt    time.Time
}

// LogEntry is one change of a grant, kept for ever (D-RES-05).
type LogEntry struct {
	ID         int64
	RoleID     int64
	ResourceID int64
	Permission Permission
	CreatedAt  time.Time
}

// LogPlace is the position of a line in the log.
type LogPlace struct{ ID int64 }

func (e LogEntry) Mark() LogPlace { return LogPlace{e.ID} }

// Member is a role that was given to an account. It is its own position in the list: by time, then account, then
// role.
type Member struct {
	UserID    string
	RoleCode  string
	CreatedAt time.Time
}

func (m Member) Mark() Member { return m }

// Endpoint is a line of the endpoint table for the registry.
type Endpoint struct {
	Method, Path, Name string
	// Reserved endpoints require the role admin and cannot be granted.
	Reserved bool
	// Open endpoints are permitted to every user who is not denied. With ForOthers a grant gives the right to act for
	// other users.
	Open, ForOthers bool
}

// Code returns the endpoint's resource code.
func (e Endpoint) Code() string { return e.Method + " " + e.Path }

// Table is the endpoint table: the resources that this program serves.
type Table []Endpoint

// methods are the resource types of every installation.
var methods = []string{"GET", "POST", "PATCH", "DELETE"}

// types returns the codes of the resource types that the table needs.
func (t Table) types() []string {
	out := slices.Clone(methods)
	for _, e := range t {
		if !slices.Contains(out, e.Method) {
			out = append(out, e.Method)
		}
	}
	return out
}

// find returns the line of a resource, and whether it exists.
func (t Table) find(c Context, code string) (Endpoint, bool) {
	return first(t, func(e Endpoint) bool { return c == API && e.Code() == code })
}

func (t Table) hasType(c Context, code string) bool {
	return c == API && slices.Contains(t.types(), code)
}
