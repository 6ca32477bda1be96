package user

import (
	"context"

	"castellan/domain/access/profile"
	"castellan/domain/access/user"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

// preferences are the endpoints by which users choose how the service writes to them.
func (g Group) preferences() rest.Endpoints {
	const path = "/user/preferences"
	return rest.Section("Extensions: users",
		rest.Get(path, "Read the caller's preferences", rest.User, g.preferred).
			Doc("getPreferences", "The language of messages, and the channels over which campaigns may come."),
		rest.Patch(path, "Change the caller's preferences", rest.User, g.prefer, fault.InvalidField).
			Try(`{"language":"en","campaignSms":false}`).
			Doc("changePreferences", "Fields that are not sent stay as they are. The next message is written in the new "+
				"language. Codes and security notices are no campaigns and come in any case."),
	).For(rest.SelfUser).Extended()
}

type preferences struct {
	Language     *string `json:"language" doc.enum:"tr,en,ar" doc:"null: that of the installation" example:"tr"`
	CampaignMail bool    `json:"campaignMail" doc:"campaigns may come by mail" example:"true"`
	CampaignSMS  bool    `json:"campaignSms" doc:"campaigns may come by SMS" example:"true"`
	CampaignPush bool    `json:"campaignPush" doc:"campaigns may wake the user's devices" example:"true"`
}

// SchemaName names the schema in the published document.
func (preferences) SchemaName() string { return "UserPreferences" }

func showPreferences(u user.User) preferences {
	out := preferences{nil, u.Campaigns.Mail, u.Campaigns.SMS, u.Campaigns.Push}
	if u.Language != "" {
		out.Language = &u.Language
	}
	return out
}

func (g Group) preferred(ctx context.Context, who rest.Caller, _ rest.None) (rest.Data[preferences], error) {
	u, err := g.Users.Get(ctx, who.UserID)
	return rest.Data[preferences]{Data: showPreferences(u)}, err
}

type preferRequest struct {
	Language     rest.Nullable[string] `json:"language" enum:"tr,en,ar" doc:"null: that of the installation"`
	CampaignMail *bool                 `json:"campaignMail" example:"true"`
	CampaignSMS  *bool                 `json:"campaignSms" example:"false"`
	CampaignPush *bool                 `json:"campaignPush" example:"true"`
}

func (g Group) prefer(ctx context.Context, who rest.Caller, in preferRequest) (rest.Data[preferences], error) {
	u, err := g.Profiles.Prefer(ctx, who.By(), func(p *profile.Preferences) {
		if in.Language.Sent {
			p.Language = in.Language.Value // "" of null
		}
		rest.Set(&p.Campaigns.Mail, in.CampaignMail)
		rest.Set(&p.Campaigns.SMS, in.CampaignSMS)
		rest.Set(&p.Campaigns.Push, in.CampaignPush)
	})
	return rest.Data[preferences]{Data: showPreferences(u)}, err
}
