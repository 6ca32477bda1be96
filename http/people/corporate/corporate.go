// Package corporate serves section 4.20 of the interface, the applications and users of
// companies. Its two writes return refusals in message (D-COR-04).
package corporate

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/people/corporate"
	"castellan/http/rest"
)

const section = "4.20 Corporate"

// Group serves the section.
type Group struct{ Service *corporate.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/get-corporate-application", "List corporate applications, newest first", rest.Tenant,
			g.applications, fault.InvalidField).
			Try("limit=10").
			Doc("listCorporateApplications", "Send the filters in body or as separate parameters; a separate parameter "+
				"overrides the same filter in body. companyName matches part of the name and is not case-sensitive."),
		rest.Get("/admin/get-corporate-users", "List corporate users, newest first", rest.Tenant, g.users,
			fault.InvalidField).
			Try("limit=10").
			Doc("listCorporateUsers", "Filters are combined: a user must match all of them."),
		rest.Post("/admin/insert-corporate-user", "Add a user to a company", rest.Tenant, g.insert,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist).RefuseWith(refuseInsert).
			Names(rest.General, "userId").
			Doc("insertCorporateUser", "Without userId, an account is created, with a placeholder phone number and without "+
				"campaigns. Its password must be reset before the first login. taxNumber is stored in the account. A repeated "+
				"request returns the first response."),
		rest.NamesBy(rest.Post("/admin/update-corporate-user", "Update a corporate user", rest.Tenant, g.change,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist).RefuseWith(refuseChange).
			Try(`{"id":"${insertCorporateUser.id}","status":"passive"}`).
			Doc("updateCorporateUser", "Fields that are not sent stay unchanged; at least one field besides id and userId "+
				"is required. null clears email and taxNumber; taxNumber belongs to the account."), g.linked),
	)
}

type corporateApplicationFilter struct {
	ID          *rest.ID `json:"id"`
	CompanyName *string  `json:"companyName" maxLength:"200" example:"acme"`
	TaxNumber   *string  `json:"taxNumber" maxLength:"64" example:"1234567890"`
	Status      *string  `json:"status" maxLength:"64" example:"PENDING"`
}

type applicationsRequest struct {
	corporateApplicationFilter
	Body *corporateApplicationFilter `json:"body" doc:"filters; as a query parameter, JSON"`
	rest.Sorted
}

type application struct {
	ID          string    `json:"id" doc:"digits" example:"12"`
	CompanyName string    `json:"companyName" example:"Acme A.Ş."`
	TaxNumber   string    `json:"taxNumber" example:"1234567890"`
	Status      string    `json:"status" example:"PENDING"`
	CreatedAt   rest.Time `json:"createdAt"`
}

func showApplication(a corporate.Application) application {
	return application{digits(a.ID), a.CompanyName, a.TaxNumber, a.Status, rest.Time{Time: a.CreatedAt}}
}

func (g Group) applications(ctx context.Context, who rest.Caller,
	in applicationsRequest) (rest.Reply[[]application], error) {
	f := in.corporateApplicationFilter
	if b := in.Body; b != nil {
		f = corporateApplicationFilter{cmp.Or(f.ID, b.ID), cmp.Or(f.CompanyName, b.CompanyName),
			cmp.Or(f.TaxNumber, b.TaxNumber), cmp.Or(f.Status, b.Status)}
	}
	q := corporate.ApplicationQuery{ID: (*int64)(f.ID), CompanyName: f.CompanyName, TaxNumber: f.TaxNumber,
		Status: f.Status}
	return rest.List(ctx, who, in.Paging, q, g.Service.Store.Applications, showApplication)
}

func digits(id int64) string { return strconv.FormatInt(id, 10) }

type usersRequest struct {
	UserID          *string `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CorporateUserID *string `json:"corporateUserId" maxLength:"64" example:"acme"`
	Status          *string `json:"status" maxLength:"64" example:"active"`
	rest.Paging
}

type corporateUser struct {
	ID              string  `json:"id" doc:"digits" example:"12"`
	UserID          string  `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CorporateUserID string  `json:"corporateUserId" example:"acme"`
	Role            string  `json:"role" example:"owner"`
	Status          string  `json:"status" example:"active"`
	Email           *string `json:"email" example:"ayse@acme.example"`
}

func show(u corporate.User) corporateUser {
	return corporateUser{digits(u.ID), u.UserID, u.CorporateUserID, u.Role, u.Status, u.Email}
}

func (g Group) users(ctx context.Context, who rest.Caller, in usersRequest) (rest.Reply[[]corporateUser], error) {
	q := corporate.UserQuery{UserID: in.UserID, CorporateUserID: in.CorporateUserID, Status: in.Status}
	return rest.List(ctx, who, in.Paging, q, g.Service.Store.Users, show)
}

type insertRequest struct {
	UserID          *string `json:"userId" maxLength:"64" doc:"without it, an account is created"`
	CorporateUserID string  `json:"corporateUserId" maxLength:"64" doc:"id of the company" example:"acme"`
	Status          string  `json:"status" maxLength:"64" example:"active"`
	Role            string  `json:"role" maxLength:"64" example:"owner"`
	CountryCode     string  `json:"countryCode" maxLength:"16" doc:"dialling code" example:"90"`
	PhoneNumber     string  `json:"phoneNumber" maxLength:"64" example:"5321234567"`
	Email           string  `json:"email" maxLength:"254" example:"ayse@acme.example"`
	TaxNumber       *string `json:"taxNumber" maxLength:"10" doc:"tax number of the account (VKN)" example:"1234567890"`
}

// Validate refuses a blank user id.
func (in insertRequest) Validate() error { return requireUserID(in.UserID) }

func requireUserID(userID *string) error {
	if userID != nil && strings.TrimSpace(*userID) == "" {
		return fault.Invalid("userId", "must not be blank")
	}
	return nil
}

type corporateUserInserted struct {
	ID      *string `json:"id" doc:"digits; null for a refusal" example:"12"`
	Message *string `json:"message" doc:"reason of a refusal; otherwise null" example:"null"`
}

func (g Group) insert(ctx context.Context, who rest.Caller, in insertRequest) (corporateUserInserted, error) {
	id, err := g.Service.Insert(ctx, who.By(), corporate.User{UserID: rest.Or(in.UserID, ""),
		CorporateUserID: in.CorporateUserID, Status: in.Status, Role: in.Role, CountryCode: in.CountryCode,
		PhoneNumber: in.PhoneNumber, Email: &in.Email}, rest.Or(in.TaxNumber, ""))
	return corporateUserInserted{ID: new(digits(id))}, err
}

type changeRequest struct {
	ID              rest.ID               `json:"id"`
	UserID          *string               `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CorporateUserID *string               `json:"corporateUserId" maxLength:"64" example:"acme"`
	Status          *string               `json:"status" maxLength:"64" example:"active"`
	Role            *string               `json:"role" maxLength:"64" example:"owner"`
	CountryCode     *string               `json:"countryCode" maxLength:"16" doc:"dialling code" example:"90"`
	PhoneNumber     *string               `json:"phoneNumber" maxLength:"64" example:"5321234567"`
	Email           rest.Nullable[string] `json:"email" maxLength:"254" example:"ayse@acme.example"`
	TaxNumber       rest.Nullable[string] `json:"taxNumber" maxLength:"10" doc:"of the account" example:"1234567890"`
}

// Validate requires a change besides that of the account (D-COR-05).
func (in changeRequest) Validate() error {
	if in == (changeRequest{ID: in.ID, UserID: in.UserID}) {
		return rest.NothingSent("corporateUserId", "status", "role", "countryCode", "phoneNumber", "email", "taxNumber")
	}
	return requireUserID(in.UserID)
}

type corporateUserUpdated struct {
	Message *string `json:"message" doc:"reason of a refusal; otherwise null" example:"null"`
}

// linked returns the user of a link, and the user that replaces it.
func (g Group) linked(ctx context.Context, _ rest.Caller, in changeRequest) (rest.Named, error) {
	found, err := g.Service.Store.Users(ctx, corporate.UserQuery{ID: (*int64)(&in.ID)},
		page.Query[corporate.Place]{Limit: 1})
	n := rest.Named{Matter: rest.General,
		Users: rest.Each(found.Records, func(u corporate.User) string { return u.UserID })}
	if in.UserID != nil {
		n.Users = append(n.Users, *in.UserID)
	}
	return n, err
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (corporateUserUpdated, error) {
	e := corporate.Edit{UserID: in.UserID, CorporateUserID: in.CorporateUserID, Status: in.Status, Role: in.Role,
		CountryCode: in.CountryCode, PhoneNumber: in.PhoneNumber}
	if in.Email.Sent {
		mail := in.Email.Pointer()
		e.Email = &mail
	}
	if in.TaxNumber.Sent {
		e.TaxNumber = &in.TaxNumber.Value
	}
	return corporateUserUpdated{}, g.Service.Change(ctx, who.By(), int64(in.ID), e)
}

// corporateUserUpdateRefusal and insertRefused are the bodies of refusals (D-COR-04).
type corporateUserUpdateRefusal struct {
	Message string     `json:"message" example:"there is no such user"`
	Code    fault.Code `json:"code" example:"RECORD_NOT_FOUND"`
}

type corporateUserInsertRefusal struct {
	ID *string `json:"id" example:"null"`
	corporateUserUpdateRefusal
}

func refuseInsert(status int, f *fault.Error) any {
	if ofGuards(status) {
		return nil
	}
	return corporateUserInsertRefusal{nil, corporateUserUpdateRefusal{f.Message, f.Code}}
}

func refuseChange(status int, f *fault.Error) any {
	if ofGuards(status) {
		return nil
	}
	return corporateUserUpdateRefusal{f.Message, f.Code}
}

// ofGuards reports whether a status comes from the credential, the firewall or the transport,
// whose refusals keep the general shape.
func ofGuards(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType:
		return true
	}
	return false
}
