// Package transaction serves section 4.14 of the interface, transactions.
package transaction

import (
	"context"
	"errors"
	"strings"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/transaction"
	"castellan/http/rest"
	"castellan/http/wire"
)

const (
	section = "4.14 Transactions"
	lists   = "4.9 Process and balance"
	more    = "Extensions: transactions"
)

// Group serves the section.
type Group struct {
	Service *transaction.Service
	Numbers wire.Numbers
	// Shows reports whether the caller may use an endpoint for other users; nil: never.
	Shows func(who rest.Caller, endpoint string) bool
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/user/get-waiting-info-transactions", "List the caller's pending deposits", rest.Tenant, g.ownDeposits,
			fault.InvalidField).For(rest.SelfUser).
			Try("limit=10").
			Doc("listOwnWaitingTransactions", "Newest first. Returns deposits that need sender information and deposits "+
				"that need the approval of the treasury."),
		rest.Get("/admin/get-waiting-info-transactions", "List the deposits pending treasury approval", rest.Tenant,
			g.waiting, fault.InvalidField).
			Try("limit=10").
			Doc("listWaitingTransactions", "Newest first. senderInfo is null until it is provided."),
		rest.Previewed(rest.NamesBy(rest.Checked(rest.Post("/admin/update-status-transaction",
			"Approve or return deposits pending treasury approval", rest.Tenant, g.update, fault.InvalidField,
			fault.RecordNotFound, fault.InvalidState).Verified().Idempotent().Body(rest.LargeBody).
			Try(`{"transactionIds":["${deposit.waiting}"],"status":"finalizedDeposit"}`).
			Doc("updateTransactionStatus", "All records are validated before the first update, then updated one every half "+
				"second. finalizedDeposit credits a record. For up to 20 records, the response has the updated records; for "+
				"more, it has the job that continues. A record of a user whose money the caller may not decide on fails "+
				"alone, with FORBIDDEN. So does one that the money policy does not let the caller credit. Owners are "+
				"notified in their account, by mail and by SMS."), g.check), g.owners).Rows(), g.updating),
		rest.Previewed(rest.Post("/admin/transaction/adjust-balance", "Adjust the balance of a user", rest.Tenant, g.adjust,
			fault.InvalidField).Idempotent().RefuseWith(malformed).
			Try(`{"userId":"${user.id}","currencyCode":"BTC","networkCode":"BTC","amount":0.25,"type":"C",`+
				`"uniqueId":"correction-2026-01"}`).
			Names(rest.Standing, "userId").
			Doc("adjustBalance", "Idempotent by uniqueId: a repeated request returns the first response. C is a deposit, D "+
				"a withdrawal to the treasury's address. Business refusals have the status 200 and code 1: an unknown "+
				"currency, network or user, an insufficient balance, a uniqueId of another request, or a rule of the money "+
				"policy. An adjustment that rules permit with an approval passes through mfa.four_eyes alone."),
			g.adjusting),
		rest.Get("/admin/transaction/adjust-balance/preview", "Preview a balance adjustment", rest.Tenant, g.preview,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Of(more).Extended().
			Try("userId=x&currencyCode=BTC&networkCode=BTC&amount=0.25&type=C", fault.RecordNotFound).
			Doc("previewAdjustment", "Returns the accounts of the user and of the treasury, before and after. Nothing is "+
				"posted. The request is refused for the same reasons as the adjustment."),
		rest.Previewed(rest.NamesBy(rest.Post("/admin/update-wallet-withdrawal-crypto-queue",
			"Set the status of a queued withdrawal", rest.Tenant, g.decide, fault.InvalidField, fault.RecordNotFound,
			fault.InvalidState).Idempotent().
			Try(`{"withdrawalId":"${withdrawal.queued}","status":4,"currencyCode":"BTC"}`).
			Doc("updateWithdrawalQueue", "The withdrawal must be waiting for the hot wallet or have timed out. Status 4 "+
				"(success) posts the amount and the fee: the fee of the withdrawal, otherwise the fee of its currency. Status "+
				"5 returns it to approval. Rules of the money policy may deny status 4, or require a second person (202)."),
			g.queueOwner), g.deciding).GovernedBy(marked),
		rest.Get("/process/get-process-admin", "List the transaction processes of a user", rest.Tenant, g.processes,
			fault.InvalidField).Of(lists).
			Try("userId=${user.id}&type=bireysel").
			Doc("listProcesses", "The events of transactions on their networks, newest first."),
		rest.Get("/admin/get-withdrawal-crypto-queue", "List queued withdrawals", rest.Tenant, g.queue,
			fault.InvalidField).Of(lists).
			Try("isActive=true&statusCode=6").
			Doc("listWithdrawalQueue", "Newest first. Filters match exactly, except fullName, which matches part of the "+
				"name and is not case-sensitive."),
	)
}

type adjustRequest struct {
	UserID       string        `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyCode string        `json:"currencyCode" maxLength:"64" example:"BTC"`
	NetworkCode  string        `json:"networkCode" maxLength:"64" example:"BTC"`
	Amount       amount.Amount `json:"amount" doc.exclusiveMinimum:"0" example:"0.25"`
	Type         string        `json:"type" enum:"C,D" doc:"C: credit, a deposit; D: debit, a withdrawal"`
	UniqueID     string        `json:"uniqueId" doc.maxLength:"128" example:"correction-2026-01"`
	Timestamp    *int64        `json:"timestamp" minimum:"1" maximum:"253402300799999" doc:"epoch ms; effective time"`
	Reason       *string       `json:"reason" maxLength:"500" doc:"for the audit log" example:"A deposit was booked short"`
}

// adjusted is the answer: code is null, or 1 beside a message (D-TX-05).
type adjusted struct {
	Code    *int               `json:"code" example:"null" doc:"1: refused"`
	Data    *balanceAdjustment `json:"data"`
	Message string             `json:"message,omitempty" doc:"reason of the refusal"`
}

func (a adjusted) Undone() (why string, is bool) { return a.Message, a.Code != nil }

type balanceAdjustment struct {
	TransactionID string        `json:"transactionId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	UserID        string        `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyCode  string        `json:"currencyCode" example:"BTC"`
	NetworkCode   string        `json:"networkCode" example:"BTC"`
	Amount        amount.Amount `json:"amount" example:"0.25"`
	Type          string        `json:"type" enum:"C,D"`
	UniqueID      string        `json:"uniqueId" example:"correction-2026-01"`
	Status        int           `json:"status" example:"1"`
	Address       string        `json:"address" example:"castellan:1:01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	ToAddress     string        `json:"toAddress" example:"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"`
	Timestamp     int64         `json:"timestamp" example:"1767225600000"`
	CreatedAt     rest.Time     `json:"createdAt"`
}

func (g Group) adjust(ctx context.Context, who rest.Caller, in adjustRequest) (adjusted, error) {
	a := transaction.Adjustment{UserID: in.UserID, CurrencyCode: in.CurrencyCode, NetworkCode: in.NetworkCode,
		Amount: in.Amount, Direction: transaction.Direction(in.Type), UniqueID: in.UniqueID,
		Reason: strings.TrimSpace(rest.Or(in.Reason, ""))}
	if in.Timestamp != nil {
		a.At = time.UnixMilli(*in.Timestamp).UTC()
	}
	made, err := g.Service.Adjust(ctx, who.By(), a)
	if message, is := ofBusiness(err); is {
		return adjusted{Code: new(1), Message: message}, nil
	}
	if err != nil {
		return adjusted{}, err
	}
	return adjusted{Data: &balanceAdjustment{made.TransactionID, made.UserID, made.CurrencyCode, made.NetworkCode,
		made.Amount, string(made.Direction), made.UniqueID, int(made.Status), made.Address, made.ToAddress,
		made.At.UnixMilli(), rest.Time{Time: made.CreatedAt}}}, nil
}

// ofBusiness is the text of a business refusal, which has the status 200.
func ofBusiness(err error) (message string, is bool) {
	var f *fault.Error
	if !errors.As(err, &f) {
		return "", false
	}
	switch f.Code {
	case fault.RecordNotFound, fault.InvalidState, fault.RecordAlreadyExist, fault.PolicyDenied:
		return f.Message, true
	}
	return "", false
}

// balanceAdjustmentRefusal is the answer to an unreadable request: the keys of an answer, and the code of the error
// (D-TX-05).
type balanceAdjustmentRefusal struct {
	Code    int                `json:"code" example:"1"`
	Data    *balanceAdjustment `json:"data" example:"null"`
	Message string             `json:"message" example:"amount: must be greater than 0"`
	Error   string             `json:"error" example:"INVALID_FIELD"`
}

func malformed(_ int, f *fault.Error) any {
	if f.Code != fault.InvalidField {
		return nil
	}
	return balanceAdjustmentRefusal{1, nil, f.Message, string(f.Code)}
}
