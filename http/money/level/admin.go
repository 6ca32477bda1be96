package level

import (
	"context"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/level"
	"castellan/http/rest"
)

// administration are the endpoints with which administrators manage the levels.
func (g Group) administration() rest.Endpoints {
	const path = "/admin/levels"
	return rest.Section("Extensions: levels",
		rest.Get(path, "List levels with all limits", rest.Tenant, g.listAll).
			Doc("listAllLevels", "Sorted by level number. Limits are in TRY. A monthly receive limit of null is 30 times "+
				"the daily limit."),
		rest.Post(path, "Create a level", rest.Tenant, g.add, fault.InvalidField, fault.RecordAlreadyExist).
			Sets("LEVEL").
			Try(`{"levelId":3,"levelLabel":"Premium","sendLimitTRYDaily":750000,"sendLimitCryptoDaily":750000,`+
				`"sendLimitTRYMonthly":7500000,"sendLimitCryptoMonthly":7500000,"receiveLimitTRYDaily":1500000,`+
				`"receiveLimitCryptoDaily":1500000}`).
			Doc("addLevel", "The number and the label must be unique."),
		rest.Patch(path, "Update a level", rest.Tenant, g.change, fault.InvalidField, fault.RecordNotFound,
			fault.RecordAlreadyExist).Sets("LEVEL").
			Try(`{"levelId":${addLevel.data.levelId},"receiveLimitTRYMonthly":20000000}`).
			Doc("changeLevel", "Fields that are not sent stay unchanged. The limits apply immediately to all accounts of "+
				"the level."),
	).For(rest.Admin).MarkSensitive().Extended().NamesNoUser("a level is no account")
}

// fullLevel is a level with the limits that the interface does not have.
type fullLevel struct {
	record
	ReceiveTryMonthly    *amount.Amount `json:"receiveLimitTRYMonthly" example:"1000000" doc:"null: 30 x daily limit"`
	ReceiveCryptoMonthly *amount.Amount `json:"receiveLimitCryptoMonthly" example:"1000000" doc:"null: 30 x daily limit"`
}

func showAll(l level.Level) fullLevel {
	return fullLevel{show(l), l.ReceiveTryMonthly, l.ReceiveCryptoMonthly}
}

func (g Group) listAll(ctx context.Context, _ rest.Caller, _ rest.None) ([]fullLevel, error) {
	all, err := g.Service.Store.List(ctx, level.Query{})
	return rest.Each(all, showAll), err
}

// addRequest has a level number that fits the column of an account's level.
type addRequest struct {
	LevelID    int64  `json:"levelId" minimum:"0" maximum:"1000000" example:"3"`
	LevelLabel string `json:"levelLabel" maxLength:"100" example:"Premium"`
	IsSpecial  bool   `json:"isSpecial" default:"false" doc:"assigned manually, outside the order"`
	limits
}

// limits are level.Limits of a request.
type limits struct {
	SendTryDaily         amount.Amount  `json:"sendLimitTRYDaily" example:"750000"`
	SendCryptoDaily      amount.Amount  `json:"sendLimitCryptoDaily" example:"750000"`
	SendTryMonthly       amount.Amount  `json:"sendLimitTRYMonthly" example:"7500000"`
	SendCryptoMonthly    amount.Amount  `json:"sendLimitCryptoMonthly" example:"7500000"`
	ReceiveTryDaily      amount.Amount  `json:"receiveLimitTRYDaily" example:"1500000"`
	ReceiveCryptoDaily   amount.Amount  `json:"receiveLimitCryptoDaily" example:"1500000"`
	ReceiveTryMonthly    *amount.Amount `json:"receiveLimitTRYMonthly" example:"20000000"`
	ReceiveCryptoMonthly *amount.Amount `json:"receiveLimitCryptoMonthly" example:"20000000"`
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (out rest.Data[fullLevel], err error) {
	l := level.Level{ID: in.LevelID, Label: in.LevelLabel, Special: in.IsSpecial, Limits: level.Limits(in.limits)}
	return rest.Data[fullLevel]{Data: showAll(l)}, g.Service.Add(ctx, who.By(), l)
}

type changeRequest struct {
	LevelID              rest.ID                      `json:"levelId" example:"1"`
	LevelLabel           *string                      `json:"levelLabel" maxLength:"100" blank:"no" example:"Confirmed"`
	IsSpecial            *bool                        `json:"isSpecial"`
	SendTryDaily         *amount.Amount               `json:"sendLimitTRYDaily"`
	SendCryptoDaily      *amount.Amount               `json:"sendLimitCryptoDaily"`
	SendTryMonthly       *amount.Amount               `json:"sendLimitTRYMonthly"`
	SendCryptoMonthly    *amount.Amount               `json:"sendLimitCryptoMonthly"`
	ReceiveTryDaily      *amount.Amount               `json:"receiveLimitTRYDaily"`
	ReceiveCryptoDaily   *amount.Amount               `json:"receiveLimitCryptoDaily"`
	ReceiveTryMonthly    rest.Nullable[amount.Amount] `json:"receiveLimitTRYMonthly"`
	ReceiveCryptoMonthly rest.Nullable[amount.Amount] `json:"receiveLimitCryptoMonthly"`
}

func (in changeRequest) edit(l *level.Level) {
	set(&l.Label, in.LevelLabel)
	set(&l.Special, in.IsSpecial)
	set(&l.SendTryDaily, in.SendTryDaily)
	set(&l.SendCryptoDaily, in.SendCryptoDaily)
	set(&l.SendTryMonthly, in.SendTryMonthly)
	set(&l.SendCryptoMonthly, in.SendCryptoMonthly)
	set(&l.ReceiveTryDaily, in.ReceiveTryDaily)
	set(&l.ReceiveCryptoDaily, in.ReceiveCryptoDaily)
	in.ReceiveTryMonthly.Put(&l.ReceiveTryMonthly)
	in.ReceiveCryptoMonthly.Put(&l.ReceiveCryptoMonthly)
}

// set sets a field to the sent value; nil leaves it unchanged.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (out rest.Data[fullLevel], err error) {
	l, err := g.Service.Change(ctx, who.By(), int64(in.LevelID), in.edit)
	return rest.Data[fullLevel]{Data: showAll(l)}, err
}
