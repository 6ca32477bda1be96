// Package level serves the levels of accounts, which are part of section 4.16 of the interface
// (D-KYC-08): their list, the level of an account, and their administration, an extension.
package level

import (
	"context"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/level"
	"castellan/http/rest"
)

const section = "4.16 KYC and levels"

// Group serves the endpoints.
type Group struct{ Service *level.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return append(rest.Section(section,
		rest.Get("/admin/levels-info", "List levels", rest.Tenant, g.list, fault.InvalidField).
			Try("isSpecial=false").
			Doc("listLevels", "Sorted by level number. Limits are in TRY."),
		rest.Post("/level/update-level", "Set the level of an account", rest.Tenant, g.give, fault.InvalidField,
			fault.RecordNotFound).Sets("LEVEL").
			Try(`{"userId":"${user.id}","levelId":1}`).Names(rest.Standing, "userId").
			Doc("updateLevel", "The limits of the level apply immediately. Setting the current level changes nothing."),
	), g.administration()...)
}

type listRequest struct {
	IsSpecial *bool `json:"isSpecial"`
}

type record struct {
	LevelID            int64         `json:"levelId" doc:"0: the level of new accounts" example:"1"`
	LevelLabel         string        `json:"levelLabel" example:"Confirmed"`
	IsSpecial          bool          `json:"isSpecial" doc:"assigned manually, outside the order"`
	SendTryDaily       amount.Amount `json:"sendLimitTRYDaily" example:"50000"`
	SendCryptoDaily    amount.Amount `json:"sendLimitCryptoDaily" example:"50000"`
	SendTryMonthly     amount.Amount `json:"sendLimitTRYMonthly" example:"500000"`
	SendCryptoMonthly  amount.Amount `json:"sendLimitCryptoMonthly" example:"500000"`
	ReceiveTryDaily    amount.Amount `json:"receiveLimitTRYDaily" example:"100000"`
	ReceiveCryptoDaily amount.Amount `json:"receiveLimitCryptoDaily" example:"100000"`
}

func (g Group) list(ctx context.Context, _ rest.Caller, in listRequest) ([]record, error) {
	all, err := g.Service.Store.List(ctx, level.Query{Special: in.IsSpecial})
	return rest.Each(all, show), err
}

func show(l level.Level) record {
	return record{l.ID, l.Label, l.Special, l.SendTryDaily, l.SendCryptoDaily, l.SendTryMonthly, l.SendCryptoMonthly,
		l.ReceiveTryDaily, l.ReceiveCryptoDaily}
}

type giveRequest struct {
	UserID  string  `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	LevelID rest.ID `json:"levelId" example:"1"`
}

// userLevel is an account with its level, with the field names of limits.
type userLevel struct {
	UserID     string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	LevelID    int64  `json:"levelId" example:"1"`
	LevelLabel string `json:"levelLabel" example:"Confirmed"`
}

func (g Group) give(ctx context.Context, who rest.Caller, in giveRequest) (rest.Data[userLevel], error) {
	l, err := g.Service.Assign(ctx, who.By(), in.UserID, int64(in.LevelID))
	return rest.Data[userLevel]{Data: userLevel{in.UserID, l.ID, l.Label}}, err
}
