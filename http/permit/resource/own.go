package resource

import (
	"context"

	"castellan/http/rest"
)

// Own lists the endpoints that callers may use, so that a client shows only buttons that work.
type Own struct {
	// Table lists the endpoints of the program.
	Table func() []rest.Endpoint
	// Permits returns the decision of the guards; asAdmin: the caller may also act for other accounts.
	Permits func(who rest.Caller, e *rest.Endpoint) (permitted, asAdmin bool)
	// Action is the code of the challenge that a call starts, "" for none.
	Action func(e *rest.Endpoint) string
}

func (g Own) Endpoints() []rest.Endpoint {
	return rest.Section("Extensions: login and sessions",
		rest.Get("/auth/permissions", "List the endpoints that the caller may use", rest.User, g.list).
			Doc("listOwnPermissions",
				"Returns the endpoints that require a session token, in the order of the interface. asAdmin: the caller may "+
					"act for other accounts. The response can lag a role change by one second; each endpoint checks permissions "+
					"itself."),
	).Extended()
}

type ownPermission struct {
	Method  string `json:"method" example:"GET"`
	Path    string `json:"path" doc:"path template, as in this document" example:"/admin/list-users"`
	AsAdmin bool   `json:"asAdmin" doc:"the caller may act for other accounts"`
	Action  string `json:"action,omitempty" doc:"action of the challenge that a request starts, if any" example:"LOGIN"`
}

func (g Own) list(_ context.Context, who rest.Caller, _ rest.None) ([]ownPermission, error) {
	table := g.Table()
	may := make([]ownPermission, 0, len(table))
	for i := range table {
		e := &table[i]
		switch e.Audience {
		case rest.SelfUser, rest.SelfOrAdmin, rest.Admin:
			if permitted, asAdmin := g.Permits(who, e); permitted {
				may = append(may, ownPermission{e.Method, e.Path, asAdmin, g.Action(e)})
			}
		}
	}
	return may, nil
}
