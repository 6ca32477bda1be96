// Package level serves the levels of accounts, which are part of section 4.16 of the
// interface (D-KYC-08).
package level

import (
	"context"

	"castellan/domain/amount"
	"castellan/domain/fault"
	"castellan/domain/level"
	"castellan/http/rest"
)

const section = "4.16 KYC and levels"

// Group serves the endpoint.
type Group struct{ Store level.Store }

// Endpoints implements rest.Group.
func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/admin/levels-info", "List the levels of accounts", rest.Tenant, g.list, fault.InvalidField).
			Try("isSpecial=false").
			Doc("listLevels", "In the order of their numbers. Limits are in TRY."),
	)
}

type listRequest struct {
	IsSpecial *bool `json:"isSpecial"`
}

type record struct {
	LevelID            int64         `json:"levelId" doc:"0: a new account" example:"1"`
	LevelLabel         string        `json:"levelLabel" example:"Confirmed"`
	IsSpecial          bool          `json:"isSpecial" doc:"given by hand, apart from the order of the others"`
	SendTryDaily       amount.Amount `json:"sendLimitTRYDaily" example:"50000"`
	SendCryptoDaily    amount.Amount `json:"sendLimitCryptoDaily" example:"50000"`
	SendTryMonthly     amount.Amount `json:"sendLimitTRYMonthly" example:"500000"`
	SendCryptoMonthly  amount.Amount `json:"sendLimitCryptoMonthly" example:"500000"`
	ReceiveTryDaily    amount.Amount `json:"receiveLimitTRYDaily" example:"100000"`
	ReceiveCryptoDaily amount.Amount `json:"receiveLimitCryptoDaily" example:"100000"`
}

// SchemaName names the schema in the published document.
func (record) SchemaName() string { return "Level" }

func (g Group) list(ctx context.Context, _ rest.Caller, in listRequest) ([]record, error) {
	all, err := g.Store.List(ctx, level.Query{Special: in.IsSpecial})
	return rest.Each(all, show), err
}

func show(l level.Level) record {
	return record{l.ID, l.Label, l.Special, l.SendTryDaily, l.SendCryptoDaily, l.SendTryMonthly, l.SendCryptoMonthly,
		l.ReceiveTryDaily, l.ReceiveCryptoDaily}
}
