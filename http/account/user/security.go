package user

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/session/profile"
	"castellan/http/rest"
)

// security is the endpoint by which an operator sees how an account logs in.
func (g Group) security() rest.Endpoints {
	const path = "/admin/user/security"
	return rest.Section("Extensions: users",
		rest.Get(path, "Get the second factors and sessions of an account", rest.Tenant, g.factors,
			fault.InvalidField, fault.RecordNotFound).
			Try("userId=${user.id}").
			Doc("getUserSecurity", "Contains counts and flags only: no key, no secret and no name of a device. "+
				"Codes by SMS and mail need no setup."),
		rest.Delete(path, "Delete the second factors of one kind from an account", rest.Tenant, g.removeFactor,
			fault.InvalidField, fault.RecordNotFound).
			Names(rest.Contact, "userId").
			Try(`{"userId":"${user.id}","factor":"AUTHENTICATOR"}`, fault.RecordNotFound).
			Doc("deleteUserFactors", "For an account owner who lost them: an account with a passkey changes its factors only "+
				"with a passkey or a recovery code. The owner is notified, open challenges close, and the remaining passkeys "+
				"count for phishingResistant only after webauthn.settle.").
			MarkSensitive(),
	).For(rest.Admin).Extended()
}

type factorRequest struct {
	UserID string `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Factor string `json:"factor" enum:"DEVICE,PASSKEY,AUTHENTICATOR" doc:"DEVICE: devices that sign pushes"`
}

type deletedFactors struct {
	Deleted int `json:"deleted" example:"1" doc:"number of deleted factors"`
}

func (g Group) removeFactor(ctx context.Context, who rest.Caller, in factorRequest) (out rest.Data[deletedFactors],
	err error) {
	out.Data.Deleted, err = g.Profiles.RemoveFactor(ctx, who.By(), in.UserID, profile.Factor(in.Factor))
	return out, err
}

type securityQuery struct {
	UserID string `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

type userSecurity struct {
	UserID             string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	TOTP               bool   `json:"totp" doc:"whether an authenticator is active"`
	TOTPConfirmed      bool   `json:"totpConfirmed" doc:"whether a code of the authenticator was accepted"`
	Devices            int    `json:"devices" doc:"devices that sign pushes, without passkeys" example:"2"`
	Passkeys           int    `json:"passkeys" example:"1"`
	Sessions           int    `json:"sessions" doc:"active sessions" example:"3"`
	RememberedBrowsers int    `json:"rememberedBrowsers" doc:"under the policies without an address" example:"1"`
}

func (userSecurity) SchemaName() string { return "UserSecurity" }

func (g Group) factors(ctx context.Context, _ rest.Caller, in securityQuery) (out rest.Data[userSecurity], err error) {
	u, err := g.Users.Get(ctx, in.UserID)
	if err != nil {
		return out, err
	}
	out.Data = userSecurity{UserID: u.ID}
	switch app, err := g.TOTP.Get(ctx, u.ID); {
	case err == nil:
		out.Data.TOTP, out.Data.TOTPConfirmed = true, app.LastStep > 0
	case fault.CodeOf(err) != fault.TOTPNotDefined:
		return out, err
	}
	devices, err := g.Devices.Store.List(ctx, u.ID)
	if err != nil {
		return out, err
	}
	passkeys, err := g.Devices.ListPasskeys(ctx, u.ID)
	if err != nil {
		return out, err
	}
	remembered, err := g.Remembered.List(ctx, u.ID, "")
	if err != nil {
		return out, err
	}
	browsers := map[string]bool{} // one may be remembered for several actions
	for _, one := range remembered {
		browsers[one.Thumbprint] = true
	}
	out.Data.Devices, out.Data.Passkeys, out.Data.RememberedBrowsers = len(devices), len(passkeys), len(browsers)
	out.Data.Sessions, err = g.Sessions.Count(ctx, u.ID, g.Now())
	return out, err
}
