// Package issuer serves the links of users who log in elsewhere (D-EXT-12): an extension with which administrators say
// which subject of a login service is which account.
//
// Start reading at Group.Endpoints.
package issuer

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/proof/issuer"
	"castellan/http/rest"
)

const section = "Extensions: foreign users"

// Group serves the endpoints.
type Group struct{ Service *issuer.Service }

func (g Group) Endpoints() []rest.Endpoint {
	const path = "/admin/user/link"
	return rest.Section(section,
		rest.Get(path, "List the links of an account", rest.Tenant, g.list, fault.InvalidField).
			Try("userId=${user.id}").
			Doc("listUserLinks", "By issuer and subject."),
		rest.Post(path, "Link a subject of a login service to an account", rest.Tenant, g.add,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist).
			Names(rest.Contact, "userId").
			Try(`{"userId":"${user.id}","issuer":"https://id.example.com/realms/shop","subject":"f:1:jane"}`,
				fault.InvalidField).
			Doc("linkUser", "Tokens of the subject are then accepted for the account: as userToken of a withdrawal and at "+
				"the guard. The issuer must be one of guard.issuers. A subject belongs to one account; an account may have "+
				"several subjects."),
		rest.Delete(path, "Remove a link of an account", rest.Tenant, g.remove,
			fault.InvalidField, fault.RecordNotFound).
			Names(rest.Contact, "userId").
			Try(`{"userId":"${user.id}","issuer":"https://id.example.com/realms/shop","subject":"f:1:jane"}`,
				fault.RecordNotFound).
			Doc("unlinkUser", "The next token of the subject is refused with SUBJECT_UNKNOWN."),
	).For(rest.Admin).MarkSensitive().Extended()
}

type linkRequest struct {
	UserID  string `json:"userId" maxLength:"64"`
	Issuer  string `json:"issuer" maxLength:"512" doc:"claim iss" example:"https://id.example.com/realms/shop"`
	Subject string `json:"subject" maxLength:"255" doc:"claim that identifies the user" example:"f:1:jane"`
}

func (in linkRequest) link() issuer.Link {
	return issuer.Link{UserID: in.UserID, Issuer: in.Issuer, Subject: in.Subject}
}

// userLink is a link of an account.
type userLink struct {
	UserID  string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Issuer  string `json:"issuer" example:"https://id.example.com/realms/shop"`
	Subject string `json:"subject" example:"f:1:jane"`
}

type linksQuery struct {
	UserID string `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

// listedLink is a link with the time of its creation.
type listedLink struct {
	userLink
	CreatedAt rest.Time `json:"createdAt"`
}

func (g Group) list(ctx context.Context, _ rest.Caller, in linksQuery) ([]listedLink, error) {
	all, err := g.Service.Store.Links(ctx, in.UserID)
	return rest.Each(all, func(l issuer.Link) listedLink {
		return listedLink{userLink{l.UserID, l.Issuer, l.Subject}, rest.Time{Time: l.CreatedAt}}
	}), err
}

func (g Group) add(ctx context.Context, who rest.Caller, in linkRequest) (rest.Data[userLink], error) {
	return rest.Data[userLink]{Data: userLink(in)}, g.Service.Link(ctx, who.By(), in.link())
}

func (g Group) remove(ctx context.Context, who rest.Caller, in linkRequest) (rest.Data[userLink], error) {
	return rest.Data[userLink]{Data: userLink(in)}, g.Service.Unlink(ctx, who.By(), in.link())
}
