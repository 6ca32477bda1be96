package integration

import (
	"context"
	"strconv"

	"castellan/domain/kit/fault"
	"castellan/domain/people/corporate"
	"castellan/http/rest"
)

// Applications serves the applications of companies (D-INT-06).
type Applications struct{ Service *corporate.Service }

func (g Applications) Endpoints() []rest.Endpoint {
	const path = "/integration/corporate-applications"
	return rest.Section(section,
		rest.Post(path, "Create a corporate application", rest.TenantOrService, g.add, fault.InvalidField,
			fault.InvalidState).
			Try(`{"externalId":"application-1","companyName":"Acme A.Ş.","taxNumber":"1234567890"}`).
			Doc("reportCorporateApplication", "The same externalId with the same fields returns the application with its "+
				"current status; with other fields it gives 409 INVALID_STATE."),
		rest.Patch(path+"/{id}", "Set the status of a corporate application", rest.TenantOrService, g.change,
			fault.InvalidField, fault.RecordNotFound).
			Try(`{"id":"${reportCorporateApplication.data.id}","status":"APPROVED"}`).
			Doc("setCorporateApplicationStatus", "Setting the current status changes nothing."),
	).For(rest.Admin).Extended().NamesNoUser("an application has no account")
}

type applicationRequest struct {
	ExternalID  string `json:"externalId" maxLength:"128" example:"application-1"`
	CompanyName string `json:"companyName" maxLength:"200" example:"Acme A.Ş."`
	TaxNumber   string `json:"taxNumber" maxLength:"64" example:"1234567890"`
	Status      string `json:"status" default:"PENDING" maxLength:"64"`
}

// integrationCorporateApplication is the wire shape of an application for other services.
type integrationCorporateApplication struct {
	ID          string    `json:"id" example:"1"`
	ExternalID  *string   `json:"externalId" doc:"null: created in this service" example:"application-1"`
	CompanyName string    `json:"companyName" example:"Acme A.Ş."`
	TaxNumber   string    `json:"taxNumber" example:"1234567890"`
	Status      string    `json:"status" example:"PENDING"`
	CreatedAt   rest.Time `json:"createdAt"`
}

func showApplication(a corporate.Application) rest.Data[integrationCorporateApplication] {
	return rest.Data[integrationCorporateApplication]{Data: integrationCorporateApplication{
		strconv.FormatInt(a.ID, 10), rest.Filled(a.ExternalID), a.CompanyName, a.TaxNumber, a.Status,
		rest.Time{Time: a.CreatedAt}}}
}

func (g Applications) add(
	ctx context.Context, who rest.Caller, in applicationRequest,
) (rest.Data[integrationCorporateApplication], error) {
	a, err := g.Service.Report(ctx, who.By(), corporate.Application{ExternalID: in.ExternalID,
		CompanyName: in.CompanyName, TaxNumber: in.TaxNumber, Status: in.Status})
	return showApplication(a), err
}

type statusRequest struct {
	ID     rest.ID `json:"id" example:"1"`
	Status string  `json:"status" maxLength:"64" example:"APPROVED"`
}

func (g Applications) change(
	ctx context.Context, who rest.Caller, in statusRequest,
) (rest.Data[integrationCorporateApplication], error) {
	a, err := g.Service.SetStatus(ctx, who.By(), int64(in.ID), in.Status)
	return showApplication(a), err
}
