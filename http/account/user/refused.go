package user

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// refused is the endpoint by which an operator sees the refused logins of all accounts.
func (g Group) refused() rest.Endpoints {
	return rest.Section("Extensions: users",
		rest.Get("/admin/refused-logins", "List refused logins over all accounts, newest first", rest.Tenant,
			g.refusedLogins, fault.InvalidField).
			Try("limit=1").
			Doc("listRefusedLogins", "Attempts with an unknown identifier are only counted and not listed."),
	).For(rest.Admin).Extended()
}

type refusedRequest struct{ rest.Paging }

func (g Group) refusedLogins(ctx context.Context, who rest.Caller, in refusedRequest) (rest.Reply[[]login], error) {
	return rest.List(ctx, who, in.Paging, struct{}{}, g.Sessions.RefusedLogins, g.showLogin(who.Language))
}
