// Package limit serves the limits of accounts, a part of section 4.12 of the interface (D-USR-03, D-USR-09).
package limit

import (
	"context"
	"strings"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/limit"
	"castellan/http/rest"
)

const section = "4.12 Users"

// Group serves the endpoints.
type Group struct{ Service *limit.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/user/limit-info", "Get the caller's limits", rest.Tenant, g.ownLimit).
			For(rest.SelfUser).
			Doc("getLimits", "Amounts are in TRY. A remaining amount is the smaller of two: for TRY, and for all other "+
				"currencies together. Days and months are in UTC."),
		rest.Get("/admin/user/limit-info", "Get the limits of an account", rest.Tenant, g.of,
			fault.InvalidField, fault.RecordNotFound).
			Try("userId=${user.id}").
			Doc("getLimitsOfUser", "Without userId, returns the limits of the caller."),
	)
}

type request struct {
	UserID *string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA" maxLength:"64" doc:"default: the caller"`
}

type userLimitInfo struct {
	UserID             string        `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	LevelID            int64         `json:"levelId" example:"1"`
	LevelLabel         string        `json:"levelLabel" example:"Confirmed"`
	SendTryDaily       amount.Amount `json:"sendLimitTRYDaily" example:"50000"`
	SendCryptoDaily    amount.Amount `json:"sendLimitCryptoDaily" example:"50000"`
	SendTryMonthly     amount.Amount `json:"sendLimitTRYMonthly" example:"500000"`
	SendCryptoMonthly  amount.Amount `json:"sendLimitCryptoMonthly" example:"500000"`
	ReceiveTryDaily    amount.Amount `json:"receiveLimitTRYDaily" example:"100000"`
	ReceiveCryptoDaily amount.Amount `json:"receiveLimitCryptoDaily" example:"100000"`
	CreditDaily        amount.Amount `json:"creditRemainingDaily" example:"97500" doc:"left to receive today"`
	DebitDaily         amount.Amount `json:"debitRemainingDaily" example:"50000" doc:"left to send today"`
	CreditMonthly      amount.Amount `json:"creditRemainingMonthly" example:"2997500" doc:"left to receive this month"`
	DebitMonthly       amount.Amount `json:"debitRemainingMonthly" example:"500000" doc:"left to send this month"`
}

func (g Group) ownLimit(ctx context.Context, who rest.Caller, _ rest.None) (userLimitInfo, error) {
	return g.read(ctx, who.UserID)
}

func (g Group) of(ctx context.Context, who rest.Caller, in request) (userLimitInfo, error) {
	userID := rest.Or(in.UserID, who.UserID)
	if strings.TrimSpace(userID) == "" {
		return userLimitInfo{}, fault.Invalid("userId", "must not be blank")
	}
	return g.read(ctx, userID)
}

func (g Group) read(ctx context.Context, userID string) (userLimitInfo, error) {
	i, err := g.Service.Of(ctx, userID)
	l := i.Level
	return userLimitInfo{i.UserID, l.ID, l.Label, l.SendTryDaily, l.SendCryptoDaily, l.SendTryMonthly,
		l.SendCryptoMonthly,
		l.ReceiveTryDaily, l.ReceiveCryptoDaily, i.CreditDaily, i.DebitDaily, i.CreditMonthly, i.DebitMonthly}, err
}
