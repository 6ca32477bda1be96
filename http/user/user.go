// Package user serves section 4.12 of the interface, as far as it is about the
// caller's own account.
package user

import (
	"context"

	"castellan/domain/user"
	"castellan/http/rest"
)

const section = "4.12 Users"

// Group serves the section.
type Group struct{ Users user.Store }

// Endpoints implements rest.Group.
func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/user/user-profile", "Read the caller's profile", rest.Tenant, g.profile).
			Doc("getProfile", "The facts of the account that a client shows or hides functions by."),
	).For(rest.SelfUser)
}

// profile is all that the interface shows of an account to its owner.
type profile struct {
	TOTP                 bool `json:"totp" doc:"an authenticator is active"`
	IsWithdrawProhibited bool `json:"isWithdrawProhibited"`
}

func (g Group) profile(ctx context.Context, who rest.Caller, _ rest.None) (profile, error) {
	u, err := g.Users.Get(ctx, who.UserID)
	return profile{u.TOTP, u.WithdrawProhibited}, err
}
