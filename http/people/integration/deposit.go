package integration

import (
	"context"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/transaction"
	"castellan/http/rest"
	"castellan/http/wire"
)

// Deposits serves the deposits that a wallet reports (D-INT-05).
type Deposits struct {
	Service *transaction.Service
	Numbers wire.Numbers
}

func (g Deposits) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.NamesBy(rest.Post("/integration/deposits", "Report a deposit, its sender or its completion",
			rest.TenantOrService, g.report, fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist,
			fault.InvalidState).
			Try(`{"externalId":"deposit-1","userId":"${user.id}","currencyCode":"BTC","network":"BTC","amount":"0.25",
				"txId":"4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b","status":"waiting",
				"senderInfo":{"name":"Ada Lovelace"}}`).
			Doc("reportDeposit", "A new deposit is waitingSenderInfo (-5); with senderInfo it is waitingTreasuryApproval "+
				"(-9); with the status finalized it is credited. Send the same request again with senderInfo to move it from "+
				"-5 to -9, and with the status finalized to credit it. A deposit is credited once. A request without changes "+
				"returns the deposit. Changed fields give 409 INVALID_STATE, and so does a deposit that the treasury is "+
				"deciding on or has credited. Report a transaction once for each address and currency: combine several "+
				"outputs to one address into one deposit. Another externalId for them gives 409 RECORD_ALREADY_EXIST, in any "+
				"spelling of txId and toAddress. A deposit above maxDeposit of its currency and network waits for the "+
				"treasury although it is finalized."), g.owners),
		rest.Get("/integration/deposits/{id}", "Get a deposit", rest.TenantOrService, g.read, fault.RecordNotFound).
			Try("id=${reportDeposit.data.id}").
			Doc("getDeposit", "externalId is null for a deposit that another service did not report."),
	).For(rest.Admin).Extended()
}

type depositRequest struct {
	ExternalID   string        `json:"externalId" maxLength:"128" example:"deposit-1"`
	UserID       *string       `json:"userId" maxLength:"64" doc:"required without toAddress"`
	CurrencyCode string        `json:"currencyCode" maxLength:"64" example:"BTC"`
	Network      string        `json:"network" maxLength:"64" example:"BTC"`
	Amount       amount.Amount `json:"amount" example:"0.25"`
	TxID         string        `json:"txId" maxLength:"256" doc:"hash of the transaction" example:"4a5e1e4baab89f3a"`
	ToAddress    *string       `json:"toAddress" maxLength:"256" doc:"default: the user's own address" example:"bc1qto"`
	FromAddress  *string       `json:"fromAddress" maxLength:"256" example:"bc1qsender"`
	SenderInfo   *rest.JSON    `json:"senderInfo" schema:"DepositSender"`
	Status       string        `json:"status" enum:"waiting,finalized" example:"waiting"`
}

// deposit is the wire shape of a deposit for other services.
type deposit struct {
	ID           string        `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	ExternalID   *string       `json:"externalId" example:"deposit-1"`
	Status       string        `json:"status" example:"waitingSenderInfo"`
	StatusCode   int           `json:"statusCode" example:"-5"`
	UserID       string        `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Amount       amount.Amount `json:"amount" example:"0.25"`
	CurrencyCode string        `json:"currencyCode" example:"BTC"`
	Network      string        `json:"network" example:"BTC"`
	TxID         *string       `json:"txId" example:"4a5e1e4baab89f3a32518a88c31bc87f"`
	CreatedAt    rest.Time     `json:"createdAt"`
}

func (g Deposits) show(d transaction.Deposit) deposit {
	pair, _ := g.Service.Currencies.Catalog().Pair(d.Asset)
	return deposit{d.ID, rest.Filled(d.ExternalID), d.Status.String(), g.Numbers.Status(d.Status), d.UserID, d.Amount,
		pair.Currency.Code, pair.Network.Code, rest.Filled(d.TxID), rest.Time{Time: d.At}}
}

// owners returns the user, also by the address. An address without a user has none.
func (g Deposits) owners(ctx context.Context, _ rest.Caller, in depositRequest) (rest.Named, error) {
	n := rest.Named{Matter: rest.Standing}
	if in.UserID != nil {
		n.Users = append(n.Users, *in.UserID)
	}
	if in.ToAddress == nil {
		return n, nil
	}
	holder, err := g.Service.Holder(ctx, *in.ToAddress)
	switch {
	case err == nil:
		n.Users = append(n.Users, holder.Owner)
	case fault.CodeOf(err) != fault.RecordNotFound:
		return n, err
	}
	return n, nil
}

func (g Deposits) report(ctx context.Context, who rest.Caller, in depositRequest) (out rest.Data[deposit], err error) {
	r := transaction.Report{ExternalID: in.ExternalID, UserID: rest.Or(in.UserID, ""),
		ToAddress: rest.Or(in.ToAddress, ""), CurrencyCode: in.CurrencyCode, Network: in.Network, Amount: in.Amount,
		TxID: in.TxID, FromAddress: rest.Or(in.FromAddress, ""), Final: in.Status == "finalized"}
	if in.SenderInfo != nil {
		r.SenderInfo = string(*in.SenderInfo)
	}
	d, err := g.Service.Report(ctx, who.By(), r)
	if err != nil {
		return out, err
	}
	return rest.Data[deposit]{Data: g.show(d)}, nil
}

// idRequest names a record by its id.
type idRequest struct {
	ID string `json:"id" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

func (g Deposits) read(ctx context.Context, _ rest.Caller, in idRequest) (out rest.Data[deposit], err error) {
	d, err := g.Service.Deposit(ctx, in.ID)
	if err != nil {
		return out, err
	}
	return rest.Data[deposit]{Data: g.show(d)}, nil
}
