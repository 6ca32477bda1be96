// Package standing serves the status of accounts and the AML control, a part of section 4.16 of the interface.
package standing

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/people/standing"
	"castellan/http/rest"
)

const section = "4.16 KYC and levels"

// Group serves the endpoints.
type Group struct{ Service *standing.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.NamesBy(rest.Post("/admin/user/close-user-authentication", "Set the status of an account", rest.Tenant, g.set,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			Try(`{"userId":"${user.id}","status":"active","description":"The papers are complete"}`).
			Doc("setUserStatus", "Without userId, applies to the caller's account. Any status but active ends the sessions "+
				"of the account, refuses logins, and blocks all available balances with one blockage for each currency. "+
				"active releases these blockages. All changes are made together or not at all. Repeating a status only blocks "+
				"deposits since then. The last active administrator cannot be closed."),
			func(_ context.Context, who rest.Caller, in setRequest) (rest.Named, error) {
				return rest.Named{Users: []string{rest.Or(in.UserID, who.UserID)}, Matter: rest.Standing}, nil
			}),
		rest.Get("/admin/user/get-users-without-aml-confirmed", "List accounts with an unconfirmed AML finding, newest "+
			"first", rest.Tenant, g.risky, fault.InvalidField).
			Try("limit=10").
			Doc("listUsersWithoutAmlConfirmed", "Accounts that an administrator has confirmed are omitted."),
		rest.Post("/admin/user/update-user-aml-confirmed", "Confirm the AML status of an account", rest.Tenant, g.confirm,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Try(`{"userId":"${user.id}"}`).Names(rest.Standing, "userId").
			Doc("confirmUserAml", "The AML status becomes notRisky, and the account is added to ignoredUsers of the "+
				"parameter AMLCONTROL. An account that is notRisky stays unchanged."),
	)
}

type setRequest struct {
	UserID           *string `json:"userId" maxLength:"64" doc:"default: the caller" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Status           string  `json:"status" maxLength:"64" doc:"a value of the parameter USER_STATUS" example:"blocked"`
	Description      *string `json:"description" maxLength:"2000" example:"The papers are complete"`
	ClosedUserReason *string `json:"closedUserReason" maxLength:"2000" example:"Asked for by the user"`
}

type userStanding struct {
	UserID           string  `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	FullName         string  `json:"fullName" example:"Jane Doe"`
	Email            *string `json:"email" example:"jane@example.com"`
	Status           string  `json:"status" example:"blocked"`
	Description      *string `json:"description" example:"The papers are complete"`
	ClosedUserReason *string `json:"closedUserReason" example:"Asked for by the user"`
}

func (g Group) set(ctx context.Context, who rest.Caller, in setRequest) (rest.Data[userStanding], error) {
	next := standing.Standing{UserID: rest.Or(in.UserID, who.UserID), Status: user.Status(in.Status),
		Description: rest.Or(in.Description, ""), Reason: rest.Or(in.ClosedUserReason, "")}
	u, err := g.Service.Set(ctx, who.By(), next)
	return rest.Data[userStanding]{Data: userStanding{u.ID, u.FullName(), rest.Filled(u.Email), string(u.Status),
		rest.Filled(next.Description), rest.Filled(next.Reason)}}, err
}

type userAmlStatus struct {
	UserID    string    `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	FullName  string    `json:"fullName" example:"Jane Doe"`
	Email     *string   `json:"email" example:"jane@example.com"`
	AMLStatus string    `json:"amlStatus" example:"risky"`
	CreatedAt rest.Time `json:"createdAt"`
}

func show(u user.User) userAmlStatus {
	return userAmlStatus{u.ID, u.FullName(), rest.Filled(u.Email), u.AMLStatus, rest.Time{Time: u.CreatedAt}}
}

type riskyRequest struct{ rest.Sorted }

func (g Group) risky(ctx context.Context, who rest.Caller, in riskyRequest) (rest.Reply[[]userAmlStatus], error) {
	return rest.List(ctx, who, in.Paging, struct{}{}, g.Service.Store.Risky, show)
}

type confirmRequest struct {
	UserID string `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

func (g Group) confirm(ctx context.Context, who rest.Caller, in confirmRequest) (rest.Data[userAmlStatus], error) {
	u, err := g.Service.ConfirmAML(ctx, who.By(), in.UserID)
	return rest.Data[userAmlStatus]{Data: show(u)}, err
}
