package integration

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/people/standing"
	"castellan/http/rest"
)

// Findings serves the AML findings of a screening service (D-INT-06).
type Findings struct{ Service *standing.Service }

func (g Findings) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/integration/aml-findings", "Report an AML finding about a user", rest.TenantOrService, g.report,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Names(rest.Standing, "userId").
			Try(`{"externalId":"finding-1","userId":"${user.id}","status":"notRisky","source":"screening",
				"reference":"case 7","detail":"No hit on any list"}`).
			Doc("reportAmlFinding", "The AML status of the account becomes the status of the finding if this is worse: "+
				"notRisky, risky, highRisk. A finding never improves it. After a finding of risk, "+
				"listUsersWithoutAmlConfirmed returns the account until an administrator confirms it, even if it was "+
				"confirmed before. The same externalId with the same fields returns the finding; with other fields it gives "+
				"409 INVALID_STATE."),
		rest.Get("/integration/aml-findings/{id}", "Get an AML finding", rest.TenantOrService, g.read,
			fault.RecordNotFound).Try("id=${reportAmlFinding.data.id}").
			Doc("getAmlFinding", "status belongs to the finding. The status of the account can be worse, or confirmed since."),
	).For(rest.Admin).Extended()
}

type findingRequest struct {
	ExternalID string  `json:"externalId" maxLength:"128" example:"finding-1"`
	UserID     string  `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Status     string  `json:"status" enum:"notRisky,risky,highRisk" example:"risky"`
	Source     string  `json:"source" maxLength:"128" doc:"name of the service or list" example:"screening"`
	Reference  *string `json:"reference" maxLength:"256" doc:"reference of the finding at its source" example:"case 7"`
	Detail     *string `json:"detail" maxLength:"4000" example:"A name on a sanctions list"`
}

// amlFinding is the wire shape of a finding for other services.
type amlFinding struct {
	ID         string    `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	ExternalID string    `json:"externalId" example:"finding-1"`
	UserID     string    `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Status     string    `json:"status" example:"risky"`
	Source     string    `json:"source" example:"screening"`
	Reference  *string   `json:"reference" example:"case 7"`
	Detail     *string   `json:"detail" example:"A name on a sanctions list"`
	CreatedAt  rest.Time `json:"createdAt"`
}

func showFinding(f standing.Finding) rest.Data[amlFinding] {
	return rest.Data[amlFinding]{Data: amlFinding{f.ID, f.ExternalID, f.UserID, f.Status, f.Source,
		rest.Filled(f.Reference),
		rest.Filled(f.Detail), rest.Time{Time: f.At}}}
}

func (g Findings) report(ctx context.Context, who rest.Caller, in findingRequest) (rest.Data[amlFinding], error) {
	f, err := g.Service.Find(ctx, who.By(), standing.Finding{ExternalID: in.ExternalID, UserID: in.UserID,
		Status: in.Status, Source: in.Source, Reference: rest.Or(in.Reference, ""), Detail: rest.Or(in.Detail, "")})
	return showFinding(f), err
}

func (g Findings) read(ctx context.Context, _ rest.Caller, in idRequest) (rest.Data[amlFinding], error) {
	f, err := g.Service.Store.Finding(ctx, in.ID)
	return showFinding(f), err
}
