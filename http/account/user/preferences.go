package user

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/session/profile"
	"castellan/http/rest"
)

// preferences are the endpoints for the message preferences of users.
func (g Group) preferences() rest.Endpoints {
	const path = "/user/preferences"
	return rest.Section("Extensions: users",
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
