// Package password serves section 4.3 of the interface: the reset of a forgotten password in two
// steps, and the change of the password of a user who is logged in.
//
// Start reading at Endpoints. Every rule is in domain/session/replace.
package password

import (
	"context"
	"encoding/json"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/session/replace"
	"castellan/http/auth"
	"castellan/http/rest"
)

const section = "4.3 Password"

// Group serves the section.
type Group struct {
	Service *replace.Service
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Start2FA("POST", "/auth/password/reset",
			"Start a password reset with codes by SMS and mail", rest.NoAuth,
			replace.ActionReset, g.reset, fault.InvalidField, fault.RateLimited, fault.MFANotAvailable).
			Try(`{"countryCode":"90","phoneNumber":"${user.phone}"}`).
			Doc("resetPassword",
				"Starts a challenge with one code by SMS and one by mail. When it is complete, the response of "+
					"completeChallenge has the header ot-auth for updatePassword. The response is the same whether or not the "+
					"phone number has an account."),
		rest.Post("/auth/password/update", "Set the password after a completed reset; all sessions end",
			rest.OTAuth, g.update,
			fault.InvalidField, fault.TokenRevoked, fault.GeoBlocked, fault.PasswordReused, fault.Overloaded).
			Doc("updatePassword",
				"The first success consumes ot-auth and ends all sessions. The password must have the configured length. A "+
					"common password or one of the last used passwords is refused."),
		rest.Start2FA("POST", "/auth/password",
			"Change the password after a challenge; all other sessions end", rest.User,
			replace.ActionChange, g.change, fault.InvalidField, fault.PasswordWrong, fault.PasswordReused,
			fault.MFANotAvailable, fault.RateLimited,
			fault.Overloaded).
			Try(`{"oldPassword":"${user.password}","password":"tall lantern orchard","passwordVerify":"tall lantern orchard"}`).
			Doc("changePassword",
				"Starts a challenge. The old password is checked at once. The new password takes effect when the challenge is "+
					"complete; all other sessions end."),
	)
}

// Public starts the challenges that the section's public endpoints prepare (auth.Starter).
func (g Group) Public() map[string]func(context.Context, challenge.Starter, []byte) (challenge.Started, error) {
	return map[string]func(context.Context, challenge.Starter, []byte) (challenge.Started,
		error){replace.ActionReset: g.startReset}
}

type resetRequest struct {
	CountryCode string `json:"countryCode" doc:"dialling code" example:"90"`
	PhoneNumber string `json:"phoneNumber" example:"5321234567"`
}

func (g Group) reset(_ context.Context, _ rest.Caller, in resetRequest) (replace.ResetRequest, error) {
	r := replace.ResetRequest{CountryCode: in.CountryCode, Phone: in.PhoneNumber}
	return r, r.Validate()
}

func (g Group) startReset(ctx context.Context, from challenge.Starter, command []byte) (challenge.Started, error) {
	var r replace.ResetRequest
	if err := json.Unmarshal(command, &r); err != nil {
		return challenge.Started{}, err
	}
	return g.Service.StartReset(ctx, r, from)
}

type updateRequest struct {
	Password       string `json:"password" blank:"ok" maxLength:"1024"`
	PasswordVerify string `json:"passwordVerify" blank:"ok" maxLength:"1024" doc:"repeats password"`
}

type updated struct {
	Success bool `json:"success"`
}

func (g Group) update(ctx context.Context, who rest.Caller, in updateRequest) (updated, error) {
	err := g.Service.Update(ctx, replace.UpdateRequest{TokenID: who.TokenID, Password: in.Password,
		Verify: in.PasswordVerify, From: auth.From(who)})
	return updated{Success: err == nil}, err
}

type changeRequest struct {
	Password       string `json:"password" blank:"ok" maxLength:"1024" doc:"the new password"`
	PasswordVerify string `json:"passwordVerify" blank:"ok" maxLength:"1024" doc:"repeats the new password"`
	OldPassword    string `json:"oldPassword" blank:"ok" maxLength:"1024"`
}

// Validate reports an empty old password as missing.
func (in changeRequest) Validate() error {
	if in.OldPassword == "" {
		return fault.Invalid("oldPassword", "is required")
	}
	return nil
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (replace.Command, error) {
	return g.Service.PrepareChange(ctx, replace.ChangeRequest{UserID: who.UserID, Old: in.OldPassword,
		Password: in.Password, Verify: in.PasswordVerify,
		From: auth.From(who)})
}
