// Package staffrequest serves section 4.13 of the interface, deploy and VPN requests. Its
// records are in snake_case, as its requests are (D-DVP-03).
package staffrequest

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/office/staffrequest"
	"castellan/http/rest"
)

const section = "4.13 Deploy and VPN requests"

// Group serves the section.
type Group struct{ Service *staffrequest.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/deploy-request", "List deploy requests, newest first", rest.Tenant, g.deploys, fault.InvalidField).
			Try("limit=10").
			Doc("listDeployRequests", pendingOnly),
		rest.Post("/admin/deploy-request", "Create a deploy request", rest.Tenant, g.addDeploy, fault.InvalidField).
			Doc("addDeployRequest", "The caller becomes the requestor."),
		rest.Post("/admin/update-deploy-request", "Approve, reject or update a deploy request", rest.Tenant,
			g.changeDeploy, fault.InvalidField, fault.RecordNotFound).
			Try(`{"id":${addDeployRequest.data.id},"status":"APPROVED"}`).
			NamesNoUser("a deployment concerns no account").
			Doc("updateDeployRequest", changes),
		rest.Get("/admin/vpn-request", "List VPN requests, newest first", rest.Tenant, g.vpns, fault.InvalidField).
			Try("limit=10").
			Doc("listVpnRequests", pendingOnly),
		rest.Post("/admin/vpn-request", "Create a VPN request", rest.Tenant, g.addVPN,
			fault.InvalidField, fault.RecordNotFound).
			Try(`{"userId":"${user.id}","user_name":"jane","type":"developer","comment":"Works from home"}`).
			Names(rest.General, "userId").
			Doc("addVpnRequest", "The user of userId becomes the requestor; name and surname come from the account."),
		rest.NamesBy(rest.Post("/admin/update-vpn-request", "Approve, reject or update a VPN request", rest.Tenant,
			g.changeVPN, fault.InvalidField, fault.RecordNotFound).
			Try(`{"id":${addVpnRequest.data.id},"status":"REJECTED","comment":"The contract ends soon"}`).
			Doc("updateVpnRequest", changes), g.requestor),
	)
}

const (
	pendingOnly = "Without id and status, returns only requests with the status PENDING; status=ALL returns all."
	changes     = "Fields that are not sent stay unchanged; at least one is required. " +
		"Every update records the caller as the one who decided."
)

// all is the status that selects every request (D-DVP-01).
const all = "ALL"

// statusOf is the status that a list selects; nil: any. A request by id matches every status unless it names one.
func statusOf(id *rest.ID, sent *string) *staffrequest.Status {
	switch {
	case sent == nil && id != nil, sent != nil && *sent == all:
		return nil
	case sent == nil:
		return new(staffrequest.Pending)
	}
	return (*staffrequest.Status)(sent)
}

type deployRequest struct {
	ID                  int64     `json:"id"`
	ServiceName         string    `json:"service_name" example:"wallet"`
	OriginalServiceName string    `json:"original_service_name" example:"wallet-service"`
	BuildNumber         string    `json:"build_number" example:"2026.1.31"`
	Status              string    `json:"status" enum:"PENDING,APPROVED,REJECTED"`
	DurationMinutes     int64     `json:"duration_minutes" example:"15"`
	Comment             string    `json:"comment" example:"Fixes the daily limits"`
	Type                string    `json:"type" example:"backend"`
	RequestorUserID     string    `json:"requestor_userid" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	DeciderUserID       *string   `json:"approver_rejection_userid" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CreatedAt           rest.Time `json:"created_at"`
	UpdatedAt           rest.Time `json:"updated_at"`
}

func showDeploy(d staffrequest.Deploy) deployRequest {
	return deployRequest{d.ID, d.ServiceName, d.OriginalServiceName, d.BuildNumber, string(d.Status), d.Minutes,
		d.Comment, d.Type, d.RequestorID, rest.Filled(d.DeciderID), rest.Time{Time: d.CreatedAt},
		rest.Time{Time: d.UpdatedAt}}
}

type deploysRequest struct {
	ID                  *rest.ID `json:"id"`
	ServiceName         *string  `json:"service_name" example:"wallet"`
	OriginalServiceName *string  `json:"original_service_name" example:"wallet-service"`
	Status              *string  `json:"status" enum:"PENDING,APPROVED,REJECTED,ALL"`
	Type                *string  `json:"type" example:"backend"`
	rest.Sorted
}

func (g Group) deploys(ctx context.Context, who rest.Caller, in deploysRequest) (rest.Reply[[]deployRequest], error) {
	q := staffrequest.DeployQuery{ID: (*int64)(in.ID), Status: statusOf(in.ID, in.Status), ServiceName: in.ServiceName,
		OriginalServiceName: in.OriginalServiceName, Type: in.Type}
	return rest.List(ctx, who, in.Paging, q, g.Service.Deploys.List, showDeploy)
}

type addDeployRequest struct {
	ServiceName         string  `json:"service_name" doc.maxLength:"200" example:"wallet"`
	OriginalServiceName string  `json:"original_service_name" doc.maxLength:"200" example:"wallet-service"`
	BuildNumber         string  `json:"build_number" doc.maxLength:"200" example:"2026.1.31"`
	Status              *string `json:"status" enum:"PENDING,APPROVED,REJECTED" doc:"default PENDING"`
	DurationMinutes     int64   `json:"duration_minutes" doc.minimum:"1" doc.maximum:"525600" example:"15"`
	Comment             string  `json:"comment" doc.maxLength:"2000" example:"Fixes the daily limits"`
	Type                string  `json:"type" doc.maxLength:"200" example:"backend"`
}

func (g Group) addDeploy(ctx context.Context, who rest.Caller, in addDeployRequest) (rest.Data[deployRequest], error) {
	d, err := g.Service.AddDeploy(ctx, who.By(), staffrequest.Deploy{
		Request:     staffrequest.Request{Status: asked(in.Status), Comment: in.Comment, Type: in.Type},
		ServiceName: in.ServiceName, OriginalServiceName: in.OriginalServiceName, BuildNumber: in.BuildNumber,
		Minutes: in.DurationMinutes})
	return rest.Data[deployRequest]{Data: showDeploy(d)}, err
}

func asked(status *string) staffrequest.Status {
	return rest.Or((*staffrequest.Status)(status), staffrequest.Pending)
}

type changeDeployRequest struct {
	ID                  rest.ID `json:"id"`
	ServiceName         *string `json:"service_name" doc.maxLength:"200" example:"wallet"`
	OriginalServiceName *string `json:"original_service_name" doc.maxLength:"200" example:"wallet-service"`
	BuildNumber         *string `json:"build_number" doc.maxLength:"200" example:"2026.1.31"`
	Status              *string `json:"status" enum:"PENDING,APPROVED,REJECTED"`
	DurationMinutes     *int64  `json:"duration_minutes" doc.minimum:"1" doc.maximum:"525600" example:"15"`
	Comment             *string `json:"comment" blank:"no" doc.maxLength:"2000" example:"Fixes the daily limits"`
}

// Validate requires a change.
func (in changeDeployRequest) Validate() error {
	if in == (changeDeployRequest{ID: in.ID}) {
		return rest.NothingSent("service_name", "original_service_name", "build_number", "status", "duration_minutes",
			"comment")
	}
	return nil
}

func (in changeDeployRequest) edit(d *staffrequest.Deploy) {
	rest.Set(&d.ServiceName, in.ServiceName)
	rest.Set(&d.OriginalServiceName, in.OriginalServiceName)
	rest.Set(&d.BuildNumber, in.BuildNumber)
	rest.Set(&d.Comment, in.Comment)
	rest.Set(&d.Status, (*staffrequest.Status)(in.Status))
	rest.Set(&d.Minutes, in.DurationMinutes)
}

func (g Group) changeDeploy(ctx context.Context, who rest.Caller,
	in changeDeployRequest) (rest.Data[deployRequest], error) {
	d, err := g.Service.ChangeDeploy(ctx, who.By(), int64(in.ID), in.edit)
	return rest.Data[deployRequest]{Data: showDeploy(d)}, err
}
