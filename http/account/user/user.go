// Package user serves section 4.12 of the interface: the caller's profile, and accounts for administrators.
package user

import (
	"context"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
	"castellan/domain/session/profile"
	"castellan/domain/session/session"
	"castellan/http/rest"
)

const section = "4.12 Users"

// Group serves the section.
type Group struct {
	Users     user.Store
	Directory user.Directory
	// Statuses are the known statuses of accounts (D-GEN-17).
	Statuses func() []string
	// HashesIdentity returns the keyed hashes that index an identity number.
	HashesIdentity func(number string) []string
	Now            func() time.Time
	Sessions       session.Store // has the history of logins
	TOTP           totp.Store
	Devices        *device.Service
	Remembered     *remembered.Service
	CountryName    func(code, language string) string
	Levels         func(context.Context) ([]LevelName, error)
	Profiles       *profile.Service
	// Shows reports whether the caller may use an endpoint for other users; nil: never.
	Shows func(who rest.Caller, endpoint string) bool
}

func (g Group) Endpoints() []rest.Endpoint {
	return append(rest.Section(section,
		rest.Get("/admin/list-users", "List accounts", rest.Tenant, g.list, fault.InvalidField).
			Try("email=demo@demo.castellan.test").
			Doc("listUsers", "Filters are combined: an account must match all of them. Each word of search begins a word of "+
				"the name or the mail address, without case and accents and in any order. Three digits or more occur anywhere "+
				"in the phone number."),
		rest.Get("/user/user-profile", "Get the caller's profile", rest.Tenant, g.profile).
			For(rest.SelfUser).
			Doc("getProfile", "The account data by which a client shows or hides functions."),
		rest.Get("/admin/login-history", "List the logins of an account, newest first", rest.Tenant, g.logins,
			fault.InvalidField).
			Try("userId=${user.id}&limit=1").
			Doc("listLogins", "Includes completed and refused logins. A refused login has its reason: password (wrong "+
				"password), status (inactive account), reset (password reset required) or country (location not "+
				"allowed)."),
		rest.Get("/admin/login-history-v2", "List the logins from an address, newest first", rest.Tenant, g.loginsFrom,
			fault.InvalidField).
			Doc("listLoginsFromAddress", "Covers all accounts; returns at most the last 1000 logins."),
		rest.Get("/admin/get-users-by-register-date", "List accounts by registration date, newest first", rest.Tenant,
			g.registered, fault.InvalidField).
			Try("beginDate=2020-01-01&endDate=2020-12-31&limit=10").
			Doc("listUsersByRegisterDate", "Both ends of the range are inclusive."),
		rest.Get("/admin/get-user-counts-by-register-date", "Count registrations per day", rest.Tenant,
			g.countsBetween, fault.InvalidField).
			Doc("countUsersByRegisterDate", "Days (UTC) in ascending order; days without a registration are omitted."),
		rest.Get("/admin/get-active-users", "List active accounts", rest.Tenant, g.active, fault.InvalidField).
			Try("pastMonths=3&limit=1").
			Doc("listActiveUsers", "Returns accounts with a login within the last pastMonths months (UTC), most recent "+
				"login first."),
		rest.Get("/user/total-count-by-status", "Count accounts by status", rest.Tenant, g.byStatus, fault.InvalidField).
			For(rest.Admin).
			Try("statusCode=active").
			Doc("countUsersByStatus", "Every status is listed, including those without accounts."),
		rest.Get("/user/last-month-user-count-day-by-day", "Count registrations per day over the last 30 days", rest.Tenant,
			g.lastMonth).
			For(rest.Admin).
			Doc("countUsersOfLastMonth", "One item per day (UTC) in ascending order, ending with today."),
		rest.Get("/admin/get-count-of-users-by-level", "Count accounts by level", rest.Tenant, g.byLevel).
			Doc("countUsersByLevel", "Every level is listed, including those without accounts."),
		rest.Post("/admin/user/update-fullname", "Update the name of an account", rest.Tenant, g.setName,
			fault.InvalidField, fault.RecordNotFound).
			Try(`{"userId":"${user.id}","name":"Ayşe","surname":"Yılmaz"}`).
			Names(rest.General, "userId").
			Doc("updateFullName", "The sessions of the account stay open."),
		rest.Post("/admin/user/update-phonenumber", "Update the phone number of an account", rest.Tenant, g.setPhone,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist).
			Try(`{"userId":"${user.id}","phoneNum":"${user.phone}","countryCode":"90"}`).
			Names(rest.Contact, "userId").
			Doc("updatePhoneNumber", "A new number ends all sessions of the account and the challenges that they started. "+
				"Both numbers and the mail address are notified. Sending the current number changes nothing."),
		rest.Post("/admin/user/update-email", "Update the mail address of an account", rest.Tenant, g.setMail,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist).
			Try(`{"userId":"${user.id}","mailAddress":"demo@demo.castellan.test"}`).
			Names(rest.Contact, "userId").
			Doc("updateEmail", "A new address ends all sessions of the account and the challenges that they started. Both "+
				"addresses are notified, and the old address is kept in the history. Sending the current address changes "+
				"nothing."),
		rest.Get("/admin/get-email-change-history", "List the mail address changes of an account, newest first",
			rest.Tenant, g.history, fault.InvalidField).
			Try("userId=${user.id}").
			Doc("listEmailChanges", "startDate and endDate limit the time of the change; both are inclusive."),
	), slices.Concat(g.me(), g.administration(), g.preferences())...)
}

// facts is the account data that the interface shows to the owner.
type facts struct {
	TOTP                 bool `json:"totp" doc:"whether an authenticator is active"`
	IsWithdrawProhibited bool `json:"isWithdrawProhibited"`
}

func (g Group) profile(ctx context.Context, who rest.Caller, _ rest.None) (facts, error) {
	u, err := g.Users.Get(ctx, who.UserID)
	return facts{u.TOTP, u.WithdrawProhibited}, err
}
