package staffrequest

import (
	"context"
	"strings"

	"castellan/domain/kit/page"
	"castellan/domain/office/staffrequest"
	"castellan/http/rest"
)

type vpnRequest struct {
	ID              int64     `json:"id"`
	UserName        string    `json:"user_name" example:"jane"`
	Name            string    `json:"name" example:"Jane"`
	Surname         string    `json:"surname" example:"Doe"`
	Status          string    `json:"status" enum:"PENDING,APPROVED,REJECTED"`
	Comment         string    `json:"comment" example:"Works from home"`
	Type            string    `json:"type" example:"DEVELOPER"`
	RequestorUserID string    `json:"requestor_userid" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	DeciderUserID   *string   `json:"approver_rejection_userid" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CreatedAt       rest.Time `json:"created_at"`
	UpdatedAt       rest.Time `json:"updated_at"`
}

func showVPN(v staffrequest.VPN) vpnRequest {
	return vpnRequest{v.ID, v.UserName, v.Name, v.Surname, string(v.Status), v.Comment, v.Type, v.RequestorID,
		rest.Filled(v.DeciderID), rest.Time{Time: v.CreatedAt}, rest.Time{Time: v.UpdatedAt}}
}

type vpnsRequest struct {
	ID       *rest.ID `json:"id"`
	UserName *string  `json:"user_name" example:"jane"`
	Status   *string  `json:"status" enum:"PENDING,APPROVED,REJECTED,ALL"`
	Type     *string  `json:"type" doc:"not case-sensitive" example:"DEVELOPER"`
	rest.Sorted
}

func (g Group) vpns(ctx context.Context, who rest.Caller, in vpnsRequest) (rest.Reply[[]vpnRequest], error) {
	q := staffrequest.VPNQuery{ID: (*int64)(in.ID), Status: statusOf(in.ID, in.Status), UserName: in.UserName}
	if in.Type != nil {
		q.Type = new(strings.ToUpper(*in.Type))
	}
	return rest.List(ctx, who, in.Paging, q, g.Service.VPNs.List, showVPN)
}

type addVPNRequest struct {
	UserID   string  `json:"userId" doc:"the requestor"`
	UserName string  `json:"user_name" doc.maxLength:"200" example:"jane"`
	Status   *string `json:"status" enum:"PENDING,APPROVED,REJECTED" doc:"default PENDING"`
	Comment  *string `json:"comment" doc.maxLength:"2000" example:"Works from home"`
	Type     string  `json:"type" doc.maxLength:"200" doc:"stored in upper case" example:"developer"`
}

func (g Group) addVPN(ctx context.Context, who rest.Caller, in addVPNRequest) (rest.Data[vpnRequest], error) {
	v, err := g.Service.AddVPN(ctx, who.By(), in.UserID, staffrequest.VPN{UserName: in.UserName,
		Request: staffrequest.Request{Status: asked(in.Status), Comment: rest.Or(in.Comment, ""), Type: in.Type}})
	return rest.Data[vpnRequest]{Data: showVPN(v)}, err
}

type changeVPNRequest struct {
	ID       rest.ID `json:"id"`
	UserName *string `json:"user_name" doc.maxLength:"200" example:"jane"`
	Status   *string `json:"status" enum:"PENDING,APPROVED,REJECTED"`
	Comment  *string `json:"comment" doc.maxLength:"2000" example:"Works from home"`
}

// Validate requires a change.
func (in changeVPNRequest) Validate() error {
	if in == (changeVPNRequest{ID: in.ID}) {
		return rest.NothingSent("user_name", "status", "comment")
	}
	return nil
}

func (in changeVPNRequest) edit(v *staffrequest.VPN) {
	rest.Set(&v.UserName, in.UserName)
	rest.Set(&v.Comment, in.Comment)
	rest.Set(&v.Status, (*staffrequest.Status)(in.Status))
}

// requestor returns the user whose access a request concerns.
func (g Group) requestor(ctx context.Context, _ rest.Caller, in changeVPNRequest) (rest.Named, error) {
	found, err := g.Service.VPNs.List(ctx, staffrequest.VPNQuery{ID: (*int64)(&in.ID)},
		page.Query[staffrequest.Place]{Limit: 1})
	return rest.Named{Matter: rest.General,
		Users: rest.Each(found.Records, func(v staffrequest.VPN) string { return v.RequestorID })}, err
}

func (g Group) changeVPN(ctx context.Context, who rest.Caller, in changeVPNRequest) (rest.Data[vpnRequest], error) {
	v, err := g.Service.ChangeVPN(ctx, who.By(), int64(in.ID), in.edit)
	return rest.Data[vpnRequest]{Data: showVPN(v)}, err
}
