// Package gateway serves the guard for gateways (D-EXT-11): the check that a gateway makes for each request, and the
// administration of its routes.
//
// Start reading at Mount in check.go, then Group.Endpoints for the routes.
package gateway

import (
	"context"
	"strings"

	"castellan/domain/factor/challenge"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

const section = "Extensions: gateways"

// Group serves the administration of routes.
type Group struct {
	Admin *gateway.Admin
	Guard *gateway.Guard
}

func (g Group) Endpoints() []rest.Endpoint {
	const path = "/admin/guard/routes"
	explain := rest.Section(section,
		rest.Post("/admin/guard/explain", "Explain the decision about a request of a gateway", rest.Tenant, g.explain,
			fault.InvalidField).Body(rest.LargeBody).
			Try(`{"host":"shop.example.com","method":"POST","path":"/orders/7/payout?amount=3"}`).
			Doc("explainGuard", "Starts and changes nothing. CHALLENGE and SESSION are the requirements of the route. The "+
				"decision of a route on trial is the one that holds now."),
	).For(rest.Admin).Extended().NamesNoUser("it changes nothing")
	routes := rest.Section(section,
		rest.Get(path, "List the routes of gateways", rest.Tenant, g.list).
			Doc("listGuardRoutes", "In order of creation."),
		rest.Post(path, "Create a route of gateways", rest.Tenant, g.add,
			fault.InvalidField, fault.RecordAlreadyExist, fault.RecordLimitReached).
			Try(`{"host":"shop.example.com","method":"POST","path":"/orders/*/payout","mode":"guarded",
				"actionCode":"PAYOUT","rows":[{"key":"order","label":"Order","from":"path","index":1},
				{"key":"amount","label":"Amount","from":"query","name":"amount"}],"status":"TRIAL"}`).
			Doc("addGuardRoute", "A route says which requests of gateways need a session, or a challenge that the user "+
				"completed for this request. It takes effect on every node within one second. The most specific route "+
				"decides: by host, then by path from the left, then by method. A path that ends in /** is for everything "+
				"below it, and comes last; its mode is session or refuse. GET includes HEAD. A route of status TRIAL is only "+
				"counted."),
		rest.Patch(path, "Update a route of gateways", rest.Tenant, g.change,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist).
			Try(`{"id":${addGuardRoute.data.id},"status":"INACTIVE"}`).
			Doc("updateGuardRoute", "Fields that are not sent stay unchanged."),
		rest.Delete(path, "Delete a route of gateways", rest.Tenant, g.remove, fault.RecordNotFound).
			TryLast(`{"id":${addGuardRoute.data.id}}`).
			Doc("removeGuardRoute", "All nodes ignore the route within one second."),
	).For(rest.Admin).MarkSensitive().Extended().NamesNoUser("a route has no account")
	return append(routes, explain...)
}

type guardRoute struct {
	ID         rest.ID    `json:"id" example:"1"`
	Host       string     `json:"host" doc:"empty: every host" example:"shop.example.com"`
	Method     string     `json:"method" doc:"*: every method" example:"POST"`
	Path       string     `json:"path" example:"/orders/*/payout"`
	Mode       string     `json:"mode" enum:"guarded,session,refuse"`
	ActionCode string     `json:"actionCode" doc:"empty unless guarded" example:"PAYOUT"`
	Rows       []guardRow `json:"rows"`
	Status     string     `json:"status" enum:"ACTIVE,TRIAL,INACTIVE"`
	TrialCount int64      `json:"trialCount" doc:"requests on trial, counted by this node since its start" example:"0"`
	UpdatedAt  rest.Time  `json:"updatedAt" example:"2026-11-24T10:00:00.000Z"`
}

// guardRow is a value of the request that its user sees before approving.
type guardRow struct {
	Key   string `json:"key" maxLength:"64" example:"amount"`
	Label string `json:"label" maxLength:"64" example:"Amount"`
	From  string `json:"from" enum:"path,query,header"`
	Index int    `json:"index" default:"0" minimum:"0" maximum:"99" doc:"segment of the path, from 0" example:"1"`
	Name  string `json:"name" default:"" maxLength:"64" doc:"query parameter or header" example:"amount"`
}

func (g Group) show(r gateway.Route) guardRoute {
	return guardRoute{ID: rest.ID(r.ID), Host: r.Host, Method: r.Method, Path: r.Path, Mode: string(r.Mode),
		ActionCode: r.ActionCode, Rows: rest.Each(r.Rows, func(row gateway.Row) guardRow { return guardRow(row) }),
		Status: string(r.Status), TrialCount: g.Guard.Tried(r.ID), UpdatedAt: rest.Time{Time: r.UpdatedAt}}
}

func rowsOf(rows []guardRow) []gateway.Row {
	return rest.Each(rows, func(row guardRow) gateway.Row { return gateway.Row(row) })
}

func (g Group) list(ctx context.Context, _ rest.Caller, _ rest.None) ([]guardRoute, error) {
	all, err := g.Admin.Store.Routes(ctx)
	return rest.Each(all, g.show), err
}

type addRequest struct {
	Host       string     `json:"host" default:"" maxLength:"253" doc:"empty: every host" example:"shop.example.com"`
	Method     string     `json:"method" maxLength:"20" doc:"*: every method" example:"POST"`
	Path       string     `json:"path" maxLength:"512" doc:"* is a segment, /** the rest" example:"/orders/*/payout"`
	Mode       string     `json:"mode" enum:"guarded,session,refuse"`
	ActionCode string     `json:"actionCode" default:"" maxLength:"64" doc:"required for guarded" example:"PAYOUT"`
	Rows       []guardRow `json:"rows,omitempty" maxItems:"20" doc:"values that the user sees before approving"`
	Status     string     `json:"status" enum:"ACTIVE,TRIAL,INACTIVE" default:"ACTIVE"`
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (rest.Data[guardRoute], error) {
	r, err := g.Admin.Add(ctx, who.By(), gateway.Route{Host: in.Host, Method: in.Method, Path: in.Path,
		Mode: gateway.Mode(in.Mode), ActionCode: in.ActionCode, Rows: rowsOf(in.Rows), Status: gateway.Status(in.Status)})
	return rest.Data[guardRoute]{Data: g.show(r)}, err
}

type changeRequest struct {
	ID         rest.ID     `json:"id" example:"1"`
	Host       *string     `json:"host" maxLength:"253" example:"shop.example.com"`
	Method     *string     `json:"method" maxLength:"20" example:"POST"`
	Path       *string     `json:"path" maxLength:"512" example:"/orders/*/payout"`
	Mode       *string     `json:"mode" enum:"guarded,session,refuse"`
	ActionCode *string     `json:"actionCode" maxLength:"64" example:"PAYOUT"`
	Rows       *[]guardRow `json:"rows" maxItems:"20"`
	Status     *string     `json:"status" enum:"ACTIVE,TRIAL,INACTIVE"`
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (rest.Data[guardRoute], error) {
	r, err := g.Admin.Change(ctx, who.By(), int64(in.ID), func(r *gateway.Route) {
		rest.Set(&r.Host, in.Host)
		rest.Set(&r.Method, in.Method)
		rest.Set(&r.Path, in.Path)
		rest.Set((*string)(&r.Mode), in.Mode)
		rest.Set(&r.ActionCode, in.ActionCode)
		rest.Set((*string)(&r.Status), in.Status)
		if in.Rows != nil {
			r.Rows = rowsOf(*in.Rows)
		}
	})
	return rest.Data[guardRoute]{Data: g.show(r)}, err
}

type routeID struct {
	ID rest.ID `json:"id" example:"1"`
}

func (g Group) remove(ctx context.Context, who rest.Caller, in routeID) (rest.Data[routeID], error) {
	return rest.Data[routeID]{Data: in}, g.Admin.Remove(ctx, who.By(), int64(in.ID))
}

type explainRequest struct {
	Host    string        `json:"host" default:"" maxLength:"253" example:"shop.example.com"`
	Method  string        `json:"method" maxLength:"20" example:"POST"`
	Path    string        `json:"path" maxLength:"2048" doc:"with its query" example:"/orders/7/payout?amount=3"`
	Headers []guardHeader `json:"headers,omitempty" maxItems:"50"`
}

type guardHeader struct {
	Name  string `json:"name" maxLength:"64" example:"x-account"`
	Value string `json:"value" maxLength:"512" example:"7"`
}

type guardExplanation struct {
	RouteID  *rest.ID    `json:"routeId" doc:"null: no route" example:"1"`
	Decision string      `json:"decision" enum:"ALLOW,SESSION,CHALLENGE,DENY"`
	Reason   string      `json:"reason" enum:"NO_ROUTE,ROUTE,TRIAL,AMBIGUOUS_PATH,HIDDEN_VALUE,UNKNOWN_HOST"`
	Detail   string      `json:"detail,omitempty" doc:"servers that take it for the route" example:"PHP and CGI"`
	Rows     []guardSaid `json:"rows" doc:"what the user would see"`
}

// guardSaid is a row with its value.
type guardSaid struct {
	Key   string `json:"key" example:"amount"`
	Label string `json:"label" example:"Amount"`
	Value string `json:"value" example:"3"`
}

func (g Group) explain(_ context.Context, _ rest.Caller, in explainRequest) (out rest.Data[guardExplanation], _ error) {
	headers := func(yield func(name, value string) bool) {
		for _, h := range in.Headers {
			if !yield(h.Name, h.Value) {
				return
			}
		}
	}
	q := gateway.Request{Host: gateway.HostOf(in.Host), Method: in.Method, Headers: headers}
	q.Path, q.Query, _ = strings.Cut(in.Path, "?")
	x := g.Guard.Explain(q)
	out.Data = guardExplanation{Decision: x.Decision, Reason: x.Reason, Detail: x.Detail,
		Rows: rest.Each(x.Rows, func(v challenge.Detail) guardSaid { return guardSaid(v) })}
	if x.RouteID != 0 {
		out.Data.RouteID = (*rest.ID)(&x.RouteID)
	}
	return out, nil
}
