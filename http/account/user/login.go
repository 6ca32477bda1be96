package user

import (
	"context"
	"net/netip"

	"castellan/domain/kit/fault"
	"castellan/domain/session/session"
	"castellan/http/rest"
)

// login is a line of the login history (D-USR-04).
type login struct {
	ID          string    `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	UserID      *string   `json:"userId" doc:"null if no account has the identifier"`
	IPAddress   string    `json:"ipaddress" example:"203.0.113.9"`
	DeviceBrand string    `json:"deviceBrand" example:"Apple"`
	DeviceModel string    `json:"deviceModel" example:"iPhone 16"`
	DeviceDesc  string    `json:"deviceDesc" example:"iOS 18.1"`
	CountryName *string   `json:"countryName" doc:"null if unknown"`
	Success     bool      `json:"success"`
	CreatedAt   rest.Time `json:"createdAt"`
	// Extensions (D-USR-04): the cause of a refused login.
	// reset: the password must be reset first. country: the location is not allowed for the account.
	Reason       *string    `json:"reason" enum:"password,status,reset,country" doc:"of a refusal; null if not stored"`
	Attempt      *int       `json:"attempt" example:"3" doc:"refused tries from the network, with this one"`
	AttemptLimit *int       `json:"attemptLimit" example:"10" doc:"tries after which the network is locked"`
	LockedUntil  *rest.Time `json:"lockedUntil" doc:"end of the lock of the network; null if it is not locked"`
}

func (login) SchemaName() string { return "Login" }

// showLogin shows a line in a language.
func (g Group) showLogin(language string) func(session.Login) login {
	return func(l session.Login) login {
		out := login{ID: l.ID, UserID: rest.Filled(l.UserID), IPAddress: l.IP, DeviceBrand: l.Brand, DeviceModel: l.Model,
			DeviceDesc: l.Description, Success: l.Success, CreatedAt: rest.Time{Time: l.At}}
		if l.Country != "" {
			out.CountryName = new(g.CountryName(l.Country, language))
		}
		if cause := l.Refusal; cause.Reason != "" {
			out.Reason = new(string(cause.Reason))
			out.Attempt, out.AttemptLimit = &cause.Standing.Tries, &cause.Standing.Limit
			out.LockedUntil = rest.At(cause.Standing.LockedUntil)
		}
		return out
	}
}

type loginsRequest struct {
	UserID string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	rest.Recent
}

func (g Group) logins(ctx context.Context, who rest.Caller, in loginsRequest) (rest.Reply[[]login], error) {
	return rest.List(ctx, who, in.Paging(), in.UserID, g.Sessions.Logins, g.showLogin(who.Language))
}

// maxLogins bounds the history of an address.
const maxLogins = 1000

type loginsFromRequest struct {
	IPAddress string `json:"ipaddress" example:"203.0.113.9" doc:"an IPv4 or IPv6 address"`
}

func (g Group) loginsFrom(ctx context.Context, who rest.Caller, in loginsFromRequest) ([]login, error) {
	ip, err := netip.ParseAddr(in.IPAddress)
	if err != nil {
		return nil, fault.Invalid("ipaddress", "must be an IP address")
	}
	all, err := g.Sessions.LoginsFrom(ctx, ip.Unmap().String(), maxLogins)
	return rest.Each(all, g.showLogin(who.Language)), err
}
