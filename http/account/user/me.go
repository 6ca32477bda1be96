package user

import (
	"context"

	"castellan/http/rest"
)

// me is the endpoint by which a client shows whose session it uses.
func (g Group) me() rest.Endpoints {
	return rest.Section("Extensions: users",
		rest.Get("/auth/me", "Get the caller's account", rest.User, g.self).
			Doc("getMe", "The name, the addresses and the roles of the caller. Roles are for display; "+
				"listOwnPermissions has the permissions."),
	).For(rest.SelfUser).Extended()
}

type me struct {
	UserID      string   `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	FullName    string   `json:"fullName" example:"Ayşe Yılmaz" doc:"empty if the account has none"`
	Email       string   `json:"email" example:"ayse@example.com" doc:"empty if the account has none"`
	PhoneNumber string   `json:"phoneNumber" example:"+905321234567" doc:"empty if the account has none"`
	Roles       []string `json:"roles" doc:"codes of the granted roles, in ascending order"`
}

func (me) SchemaName() string { return "Me" }

func (g Group) self(ctx context.Context, who rest.Caller, _ rest.None) (rest.Data[me], error) {
	u, err := g.Users.Get(ctx, who.UserID)
	return rest.Data[me]{Data: me{u.ID, u.FullName(), u.Email, u.Phone, append([]string{}, u.Roles...)}}, err
}
