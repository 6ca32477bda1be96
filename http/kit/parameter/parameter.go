// Package parameter serves the system parameters of section 4.10 of the interface (D-ADM-02):
// two endpoints, of which the second requires a code of the administrator's authenticator.
package parameter

import (
	"context"
	"encoding/json"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/http/rest"
)

const section = "4.10 Admin operations"

// Group serves the endpoints. The list shows the stored values, not this node's snapshot.
type Group struct{ Service *parameter.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/get-parameters", "List system parameters", rest.Tenant, g.list, fault.InvalidField).
			Try("isEditable=true").
			Doc("listParameters", "Lists of codes, upload folders and other values that the service reads."),
		rest.NamesBy(rest.Post("/admin/update-parameters", "Update a system parameter", rest.Tenant, g.update,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Verified().Body(rest.LargeBody).MarkSensitive().
			Try(`{"id":${listParameters.0.id},"json":${listParameters.0.json}}`).
			Doc("updateParameter", "The object is replaced as a whole, on every node. If two administrators send the "+
				"ifUpdatedAt of the same version, the second request is refused. Rules of the money policy may deny a change "+
				"of fees, minimums, treasury addresses and AMLCONTROL, or require a second person (202)."), g.ignored).
			GovernedBy(g.governed),
	)
}

type listRequest struct {
	ID         *rest.ID `json:"id"`
	Code       *string  `json:"code" example:"CDN"`
	IsEditable *bool    `json:"isEditable"`
}

type record struct {
	ID         int64           `json:"id"`
	Code       string          `json:"code" example:"CDN"`
	Name       string          `json:"name" example:"Folders of the CDN"`
	JSON       json.RawMessage `json:"json" schema:"ParameterValues"`
	IsEditable bool            `json:"isEditable"`
	CreatedAt  rest.Time       `json:"createdAt"`
	UpdatedAt  rest.Time       `json:"updatedAt" doc:"increases with every change" example:"2026-11-22T10:00:00.000Z"`
}

func show(p parameter.Parameter) record {
	return record{p.ID, p.Code, p.Name, p.JSON, p.Editable, rest.Time{Time: p.CreatedAt}, rest.Time{Time: p.UpdatedAt}}
}

func (g Group) list(ctx context.Context, _ rest.Caller, in listRequest) ([]record, error) {
	all, err := g.Service.Store.List(ctx,
		parameter.Query{ID: (*int64)(in.ID), Code: in.Code, Editable: in.IsEditable})
	return rest.Each(all, show), err
}

type updateRequest struct {
	ID   rest.ID   `json:"id"`
	JSON rest.JSON `json:"json" schema:"ParameterValues"`
	// IfUpdatedAt is an extension.
	IfUpdatedAt *rest.Time `json:"ifUpdatedAt" doc:"extension: the expected version; another version is refused"`
}

// ignored returns the users that a change of AMLCONTROL exempts from the AML control, or no longer exempts.
func (g Group) ignored(ctx context.Context, _ rest.Caller, in updateRequest) (rest.Named, error) {
	found, err := g.Service.Store.List(ctx, parameter.Query{ID: (*int64)(&in.ID), Code: &parameter.AMLControl.Code})
	n := rest.Named{Matter: rest.Standing}
	for _, p := range found {
		n.Users = parameter.IgnoredDiffer(p.JSON, json.RawMessage(in.JSON))
	}
	return n, err
}

// governed returns the setting of the money policy that a parameter belongs to.
func (g Group) governed(ctx context.Context, in any) (is rest.Governed, err error) {
	found, err := g.Service.Store.List(ctx, parameter.Query{ID: (*int64)(&in.(*updateRequest).ID)})
	for _, p := range found {
		switch p.Code {
		case parameter.Fee.Code, parameter.Minimum.Code:
			is = rest.Governed{Kind: "SETTING", Setting: "FEE"}
		case parameter.Treasury.Code:
			is = rest.Governed{Kind: "SETTING", Setting: "TREASURY"}
		case parameter.AMLControl.Code:
			is = rest.Governed{Kind: "SETTING", Setting: "LEVEL"}
		}
	}
	return is, err
}

func (g Group) update(ctx context.Context, who rest.Caller, in updateRequest) (rest.Data[record], error) {
	var read *time.Time
	if in.IfUpdatedAt != nil {
		read = &in.IfUpdatedAt.Time
	}
	p, err := g.Service.Update(ctx, who.By(), int64(in.ID), json.RawMessage(in.JSON), read)
	return rest.Data[record]{Data: show(p)}, err
}
