// Package remembered serves the extension endpoints for remembered clients (decision D-AUTH-17): their list, and their
// end.
//
// Start reading at Endpoints. Every rule is in domain/factor/remembered.
package remembered

import (
	"context"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// Group serves the endpoints. Service is required.
type Group struct{ Service *remembered.Service }

func (g Group) Endpoints() []rest.Endpoint {
	const path = "/auth/remembered"
	return rest.Section("Extensions: login and sessions",
		rest.Get(path, "List the caller's remembered browsers, newest first", rest.User, g.list).
			Doc("listRemembered",
				"A browser is remembered by its key, for one action, if remember is true in completeChallenge and the policy "+
					"allows it. current marks those with the key of this session."),
		rest.Delete(path, "Forget one or all remembered browsers of the caller", rest.User, g.end,
			fault.InvalidField, fault.RecordNotFound).
			Try(`{"all":true}`).
			Doc("endRemembered", "Send id to forget one browser, or all: true to forget all of them. The sessions stay."),
	).Extended()
}

// record is the wire shape of a remembered client.
type record struct {
	ID         string         `json:"id"`
	ActionCode string         `json:"actionCode" example:"LOGIN"`
	Method     challenge.Name `json:"method" doc:"counts as completed"`
	CreatedAt  rest.Time      `json:"createdAt"`
	LastUsedAt rest.Time      `json:"lastUsedAt"`
	ExpiresAt  rest.Time      `json:"expiresAt" example:"2026-03-02T10:00:00.000Z" doc:"under the current policy"`
	IP         string         `json:"ip" doc:"at the creation"`
	DeviceDesc string         `json:"deviceDesc" doc:"at the creation"`
	Current    bool           `json:"current" doc:"has the key of this session"`
}

func (record) SchemaName() string { return "RememberedBrowser" }

func (g Group) list(ctx context.Context, who rest.Caller, _ rest.None) ([]record, error) {
	all, err := g.Service.List(ctx, who.UserID, who.By().IP)
	return rest.Each(all, func(c remembered.Client) record {
		return record{ID: c.ID, ActionCode: c.Action, Method: c.Method, CreatedAt: rest.Time{Time: c.CreatedAt},
			LastUsedAt: rest.Time{Time: c.LastUsedAt}, ExpiresAt: rest.Time{Time: c.ExpiresAt}, IP: c.IP,
			DeviceDesc: c.Description, Current: who.KeyThumbprint != "" && c.Thumbprint == who.KeyThumbprint}
	}), err
}

type endRequest struct {
	ID  *string `json:"id" doc:"alternative to all"`
	All *bool   `json:"all" doc:"true forgets all browsers"`
}

// Validate requires exactly one of the two.
func (in endRequest) Validate() error {
	switch all := in.All != nil && *in.All; {
	case all && in.ID != nil:
		return fault.Invalid("id", "send either id or all")
	case !all && in.ID == nil:
		return fault.Invalid("id", "is required unless all is true")
	}
	return nil
}

type ended struct {
	Ended int `json:"ended"`
}

func (g Group) end(ctx context.Context, who rest.Caller, in endRequest) (rest.Data[ended], error) {
	if in.ID == nil {
		n, err := g.Service.EndAll(ctx, who.By())
		return rest.Data[ended]{Data: ended{n}}, err
	}
	return rest.Data[ended]{Data: ended{1}}, g.Service.End(ctx, who.By(), *in.ID)
}
