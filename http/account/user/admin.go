package user

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/session/profile"
	"castellan/http/rest"
)

// administration are the endpoints by which operators see names, the security of an account and refused logins.
func (g Group) administration() rest.Endpoints {
	const security = "/admin/user/security"
	return rest.Section("Extensions: users",
		rest.Get("/admin/user-names", "List the names of accounts", rest.Tenant, g.named, fault.InvalidField).
			Try("ids=${user.id}").
			Doc("listUserNames", "Unknown ids are omitted. The contact data requires permission for GET /admin/list-users."),
		rest.Get(security, "Get the second factors and sessions of an account", rest.Tenant, g.factors,
			fault.InvalidField, fault.RecordNotFound).
			Try("userId=${user.id}").
			Doc("getUserSecurity", "Contains counts and flags only: no key, no secret and no name of a device. "+
				"Codes by SMS and mail need no setup."),
		rest.Delete(security, "Delete the second factors of one kind from an account", rest.Tenant, g.removeFactor,
			fault.InvalidField, fault.RecordNotFound).
			Names(rest.Contact, "userId").
			Try(`{"userId":"${user.id}","factor":"AUTHENTICATOR"}`, fault.RecordNotFound).
			Doc("deleteUserFactors", "For an account owner who lost them: an account with a passkey changes its factors only "+
				"with a passkey or a recovery code. The owner is notified, open challenges close, and the remaining passkeys "+
				"count for phishingResistant only after webauthn.settle.").
			MarkSensitive(),
		rest.Get("/admin/refused-logins", "List refused logins over all accounts, newest first", rest.Tenant,
			g.refusedLogins, fault.InvalidField).
			Try("limit=1").
			Doc("listRefusedLogins", "Attempts with an unknown identifier are only counted and not listed."),
	).For(rest.Admin).Extended()
}

type namesRequest struct {
	IDs []string `json:"ids" maxItems:"100" maxLength:"64" doc:"1 to 100 ids of accounts, separated by commas"`
}

// Validate requires an id.
func (in namesRequest) Validate() error {
	if len(in.IDs) == 0 {
		return fault.Invalid("ids", "must not be blank")
	}
	return nil
}

type userName struct {
	UserID      string  `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	FullName    string  `json:"fullName" example:"Ayşe Yılmaz" doc:"empty if the account has none"`
	Email       *string `json:"email" example:"ayse@example.com" doc:"null if hidden or unknown"`
	PhoneNumber *string `json:"phoneNumber" example:"+905321234567" doc:"null if hidden or unknown"`
}

func (userName) SchemaName() string { return "UserName" }

func (g Group) named(ctx context.Context, who rest.Caller, in namesRequest) (out rest.Data[[]userName], err error) {
	found, err := g.Directory.ByIDs(ctx, in.IDs)
	if err != nil {
		return out, err
	}
	contacts := g.Shows != nil && g.Shows(who, "GET /admin/list-users")
	out.Data = make([]userName, len(found))
	for i, u := range found {
		out.Data[i] = userName{UserID: u.ID, FullName: u.FullName()}
		if contacts {
			out.Data[i].Email, out.Data[i].PhoneNumber = rest.Filled(u.Email), rest.Filled(u.Phone)
		}
	}
	return out, nil
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

type refusedRequest struct{ rest.Paging }

func (g Group) refusedLogins(ctx context.Context, who rest.Caller, in refusedRequest) (rest.Reply[[]login], error) {
	return rest.List(ctx, who, in.Paging, struct{}{}, g.Sessions.RefusedLogins, g.showLogin(who.Language))
}
