package user

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// names is the endpoint by which a client shows people instead of the ids in other records.
func (g Group) names() rest.Endpoints {
	return rest.Section("Extensions: users",
		rest.Get("/admin/user-names", "List the names of accounts", rest.Tenant, g.named, fault.InvalidField).
			Try("ids=${user.id}").
			Doc("listUserNames", "Unknown ids are omitted. The contact data requires permission for GET /admin/list-users."),
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
