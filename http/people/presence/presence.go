// Package presence serves the extension that shows operators the other viewers of a record (D-KYC-10).
package presence

import (
	"context"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/people/presence"
	"castellan/http/rest"
)

const section = "Extensions: presence"

// subjects are the kinds of record with presence, each with the endpoint that shows the record. A caller without
// access to the endpoint does not see the viewers.
var subjects = map[string]string{
	"kyc":         "GET /user/get-kyc-images",
	"user":        "GET /admin/list-users",
	"transaction": "GET /admin/get-waiting-info-transactions",
	"withdrawal":  "GET /admin/get-withdrawal-crypto-queue",
}

// Group serves the endpoint.
type Group struct {
	Rooms presence.Rooms
	Users user.Store
	// Shows reports whether the caller may use an endpoint, as "GET /admin/list-users", for other users.
	Shows func(who rest.Caller, endpoint string) bool
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/admin/presence", "Report an open record and list its other viewers", rest.Tenant, g.say,
			fault.InvalidField, fault.Overloaded, fault.Unavailable).
			Try(`{"subject":"kyc/${user.id}"}`).
			Doc("sayPresence", "The kinds are kyc, user, transaction and withdrawal. A presence lasts 30 seconds; clients "+
				"repeat the request every 10 seconds. leaves: true ends it at once. Presence is informational and locks "+
				"nothing. It requires permission to read the record.").NamesNoUser("it changes no record"),
	).For(rest.Admin).Extended()
}

type sayRequest struct {
	Subject string `json:"subject" maxLength:"100" doc:"kind, slash and id of the record" example:"kyc/01JD3X4Q7V0S8D4T"`
	Leaves  bool   `json:"leaves" default:"false"`
}

type presentPerson struct {
	UserID   string    `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	FullName string    `json:"fullName" example:"Ayşe Yılmaz"`
	Since    rest.Time `json:"since" example:"2026-01-31T10:00:00.000Z"`
}

type record struct {
	Subject string          `json:"subject" example:"kyc/01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Others  []presentPerson `json:"others" doc:"other viewers of the record, earliest first"`
}

func (g Group) say(ctx context.Context, who rest.Caller, in sayRequest) (out rest.Data[record], err error) {
	kind, id, _ := strings.Cut(in.Subject, "/")
	endpoint, known := subjects[kind]
	if !known || strings.TrimSpace(id) == "" {
		return out, fault.Invalid("subject", "must be kyc, user, transaction or withdrawal, a slash, and its id")
	}
	if !g.Shows(who, endpoint) {
		return out, fault.New(fault.Forbidden, "the caller cannot read these records")
	}
	u, err := g.Users.Get(ctx, who.UserID)
	if err != nil {
		return out, err
	}
	others, err := g.Rooms.Say(ctx, in.Subject, presence.Person{UserID: who.UserID, Name: u.FullName()}, in.Leaves)
	out.Data = record{in.Subject, rest.Each(others, func(o presence.Person) presentPerson {
		return presentPerson{o.UserID, o.Name, rest.Time{Time: o.Since}}
	})}
	return out, err
}
