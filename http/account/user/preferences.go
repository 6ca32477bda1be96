package user

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/session/profile"
	"castellan/http/rest"
)

// own are the endpoints by which a client shows whose session it uses, and by which users set their preferences.
func (g Group) own() rest.Endpoints {
	const path = "/user/preferences"
	return rest.Section("Extensions: users",
		rest.Get("/auth/me", "Get the caller's account", rest.User, g.self).
			Doc("getMe", "The name, the addresses and the roles of the caller. Roles are for display; "+
				"listOwnPermissions has the permissions."),
		rest.Get(path, "Get the caller's preferences", rest.User, g.preferred).
			Doc("getPreferences", "The language of messages, and the channels on which campaigns are allowed."),
		rest.Patch(path, "Update the caller's preferences", rest.User, g.prefer, fault.InvalidField).
			Try(`{"language":"en","campaignSms":false}`).
			Doc("changePreferences", "Fields that are not sent stay unchanged. The language applies from the next message. "+
				"Codes and security notices are not campaigns and are always sent."),
	).For(rest.SelfUser).Extended()
}

type preferences struct {
	Language     *string `json:"language" doc.enum:"tr,en,ar" doc:"null: the default language" example:"tr"`
	CampaignMail bool    `json:"campaignMail" doc:"campaigns by mail are allowed" example:"true"`
	CampaignSMS  bool    `json:"campaignSms" doc:"campaigns by SMS are allowed" example:"true"`
	CampaignPush bool    `json:"campaignPush" doc:"campaigns by push are allowed" example:"true"`
}

func showPreferences(u user.User) preferences {
	return preferences{rest.Filled(u.Language), u.Campaigns.Mail, u.Campaigns.SMS, u.Campaigns.Push}
}

func (g Group) preferred(ctx context.Context, who rest.Caller, _ rest.None) (rest.Data[preferences], error) {
	u, err := g.Users.Get(ctx, who.UserID)
	return rest.Data[preferences]{Data: showPreferences(u)}, err
}

type preferRequest struct {
	Language     rest.Nullable[string] `json:"language" enum:"tr,en,ar" doc:"null: the default language"`
	CampaignMail *bool                 `json:"campaignMail" example:"true"`
	CampaignSMS  *bool                 `json:"campaignSms" example:"false"`
	CampaignPush *bool                 `json:"campaignPush" example:"true"`
}

func (g Group) prefer(ctx context.Context, who rest.Caller, in preferRequest) (rest.Data[preferences], error) {
	u, err := g.Profiles.Prefer(ctx, who.By(), func(p *profile.Preferences) {
		in.Language.Set(&p.Language)
		rest.Set(&p.Campaigns.Mail, in.CampaignMail)
		rest.Set(&p.Campaigns.SMS, in.CampaignSMS)
		rest.Set(&p.Campaigns.Push, in.CampaignPush)
	})
	return rest.Data[preferences]{Data: showPreferences(u)}, err
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
