// Package resource is the registry of what the service and its front ends
// offer, the roles that accounts hold, and the grants of one to the other
// (sections 2.4 and 4.6 of the interface; decisions D-RES-01…07, D-AUTH-03).
//
// The one idea: what may be called is judged from a snapshot of roles and
// grants that every node holds in memory (Live), so a permission costs two
// look-ups and no database read. The registry's rows of the endpoint table are
// the program's own: Sync writes them at every start, and nobody can take them
// away or make them passive.
//
// Start reading at Live.Judge for what a request meets, then Admin for what an
// administrator may change, and store.go for the contract.
package resource

import (
	"encoding/json"
	"strings"
	"time"
)

// Context is where a resource lives.
type Context string

// The contexts.
const (
	UI  Context = "UI"
	API Context = "API"
)

// Status of a record. It says what front ends show; it grants nothing and
// takes nothing away.
type Status int

// The statuses.
const (
	Passive Status = 0
	Active  Status = 1
)

// Stamp is who made a record and who changed it last. A record that was never
// changed names its maker twice, for the interface knows no null there.
type Stamp struct {
	CreatedBy string
	CreatedAt time.Time
	UpdatedBy string
	UpdatedAt time.Time
}

// System makes the records of the endpoint table.
const System = "system"

// Type is a kind of resource. Its code is unique within its context.
type Type struct {
	ID      int64
	Name    string
	Code    string
	Context Context
	Status  Status
	Actions json.RawMessage // any JSON, echoed; nil for null
	Stamp
}

// Resource is something a role may be granted. Its code is unique within its
// context: "<METHOD> <path>" for API, a page's path or "WIDGET <name>" for UI.
type Resource struct {
	ID       int64
	Code     string
	Name     string
	Status   Status
	TypeID   int64
	TypeCode string // of the type; not written
	Context  Context
	ParentID int64           // the resource it is nested in; 0 for none
	Actions  json.RawMessage // any JSON, echoed; nil for null
	MenuItem json.RawMessage // likewise
	Stamp
}

// Permission is what a grant says.
type Permission string

// The permissions. Audit is Allow with an audit row for every call. Revoked
// stands in the permission log alone, for a grant that was taken away.
const (
	None    Permission = ""
	Allow   Permission = "ALLOW"
	Deny    Permission = "DENY"
	Audit   Permission = "AUDIT"
	Revoked Permission = "REVOKE"
)

// acts reports whether the permission lets the holder act as an administrator.
func (p Permission) acts() bool { return p == Allow || p == Audit }

// Role is what accounts hold and permissions are granted to.
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

// LogPlace is where a line of the log stands.
type LogPlace struct{ ID int64 }

func (e LogEntry) Mark() LogPlace { return LogPlace{e.ID} }

// Member is a role that an account was given. It is its own place in the list:
// by time, then account, then role.
type Member struct {
	UserID    string
	RoleCode  string
	CreatedAt time.Time
}

func (m Member) Mark() Member { return m }

// Endpoint is a line of the endpoint table as the registry knows it.
type Endpoint struct {
	Method, Path, Name string
	// Reserved endpoints accept the role admin alone and cannot be granted.
	Reserved bool
	// Open endpoints are permitted to every user who is not denied. ForOthers: a grant
	// lets the holder act for other users.
	Open, ForOthers bool
}

// Code is the endpoint's resource code.
func (e Endpoint) Code() string { return e.Method + " " + e.Path }

// Table is the endpoint table: the resources that this program serves.
type Table []Endpoint

// methods are the resource types that every installation has.
var methods = []string{"GET", "POST", "PATCH", "DELETE"}

// types are the codes of the resource types that the table needs.
func (t Table) types() []string {
	out, known := append([]string(nil), methods...), map[string]bool{}
	for _, m := range methods {
		known[m] = true
	}
	for _, e := range t {
		if !known[e.Method] {
			known[e.Method] = true
			out = append(out, e.Method)
		}
	}
	return out
}

// find returns the line of a resource, and whether it has one.
func (t Table) find(c Context, code string) (Endpoint, bool) {
	method, path, ok := strings.Cut(code, " ")
	if c == API && ok {
		for _, e := range t {
			if e.Path == path && e.Method == method {
				return e, true
			}
		}
	}
	return Endpoint{}, false
}

func (t Table) hasType(c Context, code string) bool {
	if c == API {
		for _, known := range t.types() {
			if known == code {
				return true
			}
		}
	}
	return false
}
