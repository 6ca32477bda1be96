// Package gateway guards the requests that a gateway, such as nginx, sends to other services (D-EXT-11). Routes say
// which requests need a session, and which a challenge that their user has completed for exactly this request.
//
// The one idea: the gateway asks about each request, and the answer binds what it decided on. A grant names the user,
// the session, host, method, path, query and digest of the body, and is used once. So a grant that is stolen or
// repeated opens nothing else.
//
// Start reading at Guard.Check, then Table for the routes.
package gateway

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"castellan/domain/factor/mfa"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/legible"
)

// Mode is what a route requires.
type Mode string

// The modes.
const (
	Guarded Mode = "guarded" // a challenge for each request
	Session Mode = "session" // a valid session
	Refuse  Mode = "refuse"  // no request passes
)

// Status is whether a route applies.
type Status string

// The statuses. A route on trial is only counted.
const (
	Active   Status = "ACTIVE"
	Trial    Status = "TRIAL"
	Inactive Status = "INACTIVE"
)

// The sources of a row.
const (
	FromPath   = "path"
	FromQuery  = "query"
	FromHeader = "header"
)

// Row is a value of the request that the user sees before approving.
type Row struct {
	Key   string `json:"key"`
	Label string `json:"label"`
	From  string `json:"from"`
	Index int    `json:"index,omitempty"` // of the segment of the path, from 0
	Name  string `json:"name,omitempty"`  // of the query parameter or the header
}

// Route is a rule for requests.
type Route struct {
	ID         int64  `audit:"-"` // the target
	Host       string // lower case, without a port; "": every host
	Method     string // "*": every method
	Path       string // segments are literal, or * for any one segment; the last may be ** for any number of them
	Mode       Mode
	ActionCode string // of a guarded route
	Rows       []Row
	Status     Status
	UpdatedAt  time.Time `audit:"-"`
}

const (
	maxRows      = 20
	maxPathBytes = 512
	maxNameChars = 64
	maxRoutes    = 2000
)

var (
	hostForm   = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	methodForm = regexp.MustCompile(`^(\*|[A-Z]{1,20})$`)
	codeForm   = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,63}$`)
	nameForm   = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~\\[\\]-]{1,64}$")
)

// Check returns all invalid fields of a route.
func (r Route) Check() error {
	var ps fault.Problems
	ps.Require(r.Host == "" || hostForm.MatchString(r.Host), "host",
		"must be a host name in lower case without a port, or empty")
	ps.Require(methodForm.MatchString(r.Method), "method", "must be a method in capital letters, or *")
	segments, deep, plain := compile(r.Path)
	good := plain && len(r.Path) <= maxPathBytes
	for _, s := range segments {
		good = good && (s == "*" || !strings.ContainsAny(s, "*{}") && !strings.HasPrefix(s, ":"))
	}
	ps.Require(good, "path", "must be a path of at most %d bytes whose segments are literal or *, or end in /**",
		maxPathBytes)
	ps.Require(!deep || r.Mode != Guarded, "path", "must end in /** only with mode session or refuse")
	ps.Require(r.Mode != Guarded || codeForm.MatchString(r.ActionCode), "actionCode",
		"must be a code of capital letters, digits and underscores")
	ps.Require(r.Mode == Guarded || r.ActionCode == "" && len(r.Rows) == 0, "mode",
		"must be guarded with actionCode or rows")
	ps.Require(len(r.Rows) <= maxRows, "rows", "must be at most %d", maxRows)
	keys := map[string]bool{}
	for _, row := range r.Rows {
		ps.Require(row.Key != "" && utf8.RuneCountInString(row.Key) <= maxNameChars && !keys[row.Key], "rows",
			"must have different keys of at most %d characters", maxNameChars)
		keys[row.Key] = true
		ps.Require(legible.Valid(row.Key) && legible.Valid(row.Label), "rows",
			"must have keys and labels without control or invisible characters")
		ps.Require(!mfa.Reserved(row.Key), "rows", "must not have the key time, device, ip, country or remembered")
		ps.Require(utf8.RuneCountInString(row.Label) <= maxNameChars, "rows", "must have labels of at most %d characters",
			maxNameChars)
		if row.From == FromPath {
			ps.Require(row.Index >= 0 && row.Index < len(segments), "rows", "must have the index of a segment of the path")
		} else {
			ps.Require(nameForm.MatchString(row.Name), "rows", "must have the name of a query parameter or a header")
		}
	}
	return fault.All(ps)
}

// Store keeps routes. Every method joins the transaction that its context carries. It is safe for concurrent use.
type Store interface {
	// Routes lists the routes in order of creation.
	Routes(ctx context.Context) ([]Route, error)
	// Add inserts a route and returns its id; RECORD_ALREADY_EXIST if a route has the host, the method and the path, also
	// under concurrent calls.
	Add(ctx context.Context, r Route) (int64, error)
	// Change calls f with the route and saves the result, as one step. RECORD_NOT_FOUND; RECORD_ALREADY_EXIST.
	Change(ctx context.Context, id int64, f func(Route) (Route, error)) error
	// Remove deletes a route. RECORD_NOT_FOUND.
	Remove(ctx context.Context, id int64) error
	// Grant reads a grant by the id of its challenge. RECORD_NOT_FOUND.
	Grant(ctx context.Context, id string) (Grant, error)
	// Count adds to the requests of a route, a reader and an hour. The first Sent is kept.
	Count(ctx context.Context, s Spelled) error
	// Spelled lists the requests of an hour that begins at an instant or later, oldest first.
	Spelled(ctx context.Context, since time.Time) ([]Spelled, error)
	// Purge removes the grants that were made, and the counts of hours that ended, before an instant.
	Purge(ctx context.Context, before time.Time) error
}

// Admin changes routes. All fields are required.
type Admin struct {
	Store   Store
	Changes admin.Changes // of topic change.Gateways
	// BuiltIn reports whether a code is that of an action of this service, whose effect a route must not start.
	BuiltIn func(code string) bool
	// Action reports whether a code is that of an action for services (mfa.ServiceActions).
	Action func(ctx context.Context, code string) (bool, error)
}

// action checks the action of a route, unless it is the one that the route had before. A route of an earlier version
// may have one without a record, or one of this service, which the guard refuses.
func (a *Admin) action(ctx context.Context, r Route, before string) error {
	if r.Mode != Guarded || r.ActionCode == before {
		return nil
	}
	if a.BuiltIn(r.ActionCode) {
		return fault.Invalid("actionCode", "is an action of this service; choose another code")
	}
	known, err := a.Action(ctx, r.ActionCode)
	if err == nil && !known {
		err = fault.Invalid("actionCode", "must be the code of an action; create it first")
	}
	return err
}

// changed checks the next form of a route. Fields of a route of an earlier version keep their values.
func (a *Admin) changed(ctx context.Context, r, next Route) error {
	err := fault.Since(r.Check(), next.Check(), map[string]bool{"host": next.Host != r.Host,
		"method": next.Method != r.Method, "path": next.Path != r.Path, "actionCode": next.ActionCode != r.ActionCode,
		"mode": next.Mode != r.Mode, "rows": !slices.Equal(next.Rows, r.Rows)})
	if err != nil {
		return err
	}
	return a.action(ctx, next, r.ActionCode)
}

// stored reads a route in the transaction of its change: after the commit, a failed read would deny the change.
func (a *Admin) stored(ctx context.Context, id int64) (r Route, err error) {
	all, err := a.Store.Routes(ctx)
	for _, one := range all {
		if one.ID == id {
			r = one
		}
	}
	return r, err
}

// Add adds a route and returns it as it is stored. INVALID_FIELD, RECORD_ALREADY_EXIST, RECORD_LIMIT_REACHED.
func (a *Admin) Add(ctx context.Context, by audit.By, r Route) (added Route, err error) {
	if err = r.Check(); err == nil {
		err = a.action(ctx, r, "")
	}
	if err != nil {
		return r, err
	}
	err = a.Changes.Do(ctx, by, "GUARD_ROUTE_ADD", func(ctx context.Context) (admin.Done, error) {
		all, err := a.Store.Routes(ctx)
		if err == nil && len(all) >= maxRoutes {
			err = fault.New(fault.RecordLimitReached, "there are %d routes already", maxRoutes)
		}
		if err == nil {
			r.ID, err = a.Store.Add(ctx, r)
		}
		if err == nil {
			added, err = a.stored(ctx, r.ID)
		}
		return r.done(admin.Values(r)), err
	})
	return added, err
}

// Change changes a route and returns it as it is stored. INVALID_FIELD, RECORD_NOT_FOUND, RECORD_ALREADY_EXIST.
func (a *Admin) Change(ctx context.Context, by audit.By, id int64, edit func(*Route)) (next Route, err error) {
	err = a.Changes.Do(ctx, by, "GUARD_ROUTE_UPDATE", func(ctx context.Context) (done admin.Done, err error) {
		err = a.Store.Change(ctx, id, func(r Route) (Route, error) {
			next = r
			next.Rows = slices.Clone(r.Rows)
			edit(&next)
			done = next.done(admin.Difference(r, next))
			return next, a.changed(ctx, r, next)
		})
		if err == nil {
			next, err = a.stored(ctx, id)
		}
		return done, err
	})
	return next, err
}

// Remove deletes a route. RECORD_NOT_FOUND.
func (a *Admin) Remove(ctx context.Context, by audit.By, id int64) error {
	return a.Changes.Do(ctx, by, "GUARD_ROUTE_DELETE", func(ctx context.Context) (admin.Done, error) {
		all, err := a.Store.Routes(ctx)
		if err != nil {
			return admin.Done{}, err
		}
		removed := Route{ID: id}
		if i := slices.IndexFunc(all, func(r Route) bool { return r.ID == id }); i >= 0 {
			removed = all[i]
		}
		return removed.done(admin.Values(removed)), a.Store.Remove(ctx, id)
	})
}

func (r Route) done(detail string) admin.Done {
	return admin.Done{Target: fmt.Sprint(r.ID), Detail: detail}
}
