package transaction

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/transaction"
	"castellan/http/rest"
)

// waitingTransaction is a pending deposit in the owner's view.
type waitingTransaction struct {
	TransactionID string        `json:"transactionId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	UserID        string        `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyCode  string        `json:"currencyCode" example:"BTC"`
	Status        int           `json:"status" doc:"-5: waitingSenderInfo, -9: waitingTreasuryApproval" example:"-9"`
	Value         amount.Amount `json:"value" example:"0.25"`
	TxID          *string       `json:"txId" example:"4a5e1e4baab89f3a32518a88c31bc87f"`
	ToAddress     *string       `json:"toAddress" example:"castellan:1:01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

// receivedTransaction is a deposit in the administrators' view.
type receivedTransaction struct {
	TransactionID string        `json:"transactionId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	UserID        string        `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Status        int           `json:"status" example:"-9"`
	CurrencyCode  string        `json:"currencyCode" example:"BTC"`
	Value         amount.Amount `json:"value" example:"0.25"`
	SenderInfo    rest.JSON     `json:"senderInfo" schema:"SenderInfo"`
	Failed        string        `json:"failed,omitempty" doc:"reason of a failed update" example:"FORBIDDEN"`
}

func (g Group) code(asset int64) string {
	pair, _ := g.Service.Currencies.Catalog().Pair(asset)
	return pair.Currency.Code
}

func (g Group) showReceived(d transaction.Deposit) receivedTransaction {
	return receivedTransaction{TransactionID: d.ID, UserID: d.UserID, Status: g.Numbers.Status(d.Status),
		CurrencyCode: g.code(d.Asset), Value: d.Amount, SenderInfo: rest.JSON(d.SenderInfo)}
}

type ownRequest struct{ rest.Paging }

func (g Group) ownDeposits(ctx context.Context, who rest.Caller,
	in ownRequest) (rest.Reply[[]waitingTransaction], error) {
	return rest.List(ctx, who, in.Paging, transaction.WaitingQuery{UserID: who.UserID}, g.Service.Store.Waiting,
		func(d transaction.Deposit) waitingTransaction {
			return waitingTransaction{d.ID, d.UserID, g.code(d.Asset), g.Numbers.Status(d.Status), d.Amount,
				rest.Filled(d.TxID), rest.Filled(d.ToAddress)}
		})
}

type waitingRequest struct {
	UserID    *string `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	TxID      *string `json:"txId" maxLength:"256" doc:"hash of the transaction on its network"`
	ToAddress *string `json:"toAddress" maxLength:"256" doc:"receiving address"`
	rest.Sorted
}

func (g Group) waiting(
	ctx context.Context, who rest.Caller, in waitingRequest,
) (rest.Reply[[]receivedTransaction], error) {
	q := transaction.WaitingQuery{Treasury: true}
	var ps fault.Problems
	for _, sought := range [...]struct {
		field    string
		sent, to *string
	}{{"userId", in.UserID, &q.UserID}, {"txId", in.TxID, &q.TxID}, {"toAddress", in.ToAddress, &q.ToAddress}} {
		*sought.to = rest.Or(sought.sent, "")
		ps.Require(sought.sent == nil || *sought.to != "", sought.field, "must not be blank")
	}
	if err := fault.All(ps); err != nil {
		return rest.Reply[[]receivedTransaction]{}, err
	}
	return rest.List(ctx, who, in.Paging, q, g.Service.Store.Waiting, g.showReceived)
}

// statusCode is a status of a transaction as a request writes it: its number, the
// digits of it, or its name (D-TX-01).
type statusCode string

func (c *statusCode) UnmarshalJSON(b []byte) error {
	var name string
	if err := json.Unmarshal(b, &name); err == nil {
		*c = statusCode(strings.TrimSpace(name))
		return nil
	}
	n, err := rest.ParseDecimal(string(b))
	*c = statusCode(n)
	return err
}

type updateRequest struct {
	TransactionIDs []string   `json:"transactionIds" maxItems:"1000" maxLength:"64"`
	Status         statusCode `json:"status" schema:"TransactionStatusCode"`
	Reason         *string    `json:"reason" maxLength:"500" doc:"for the audit log" example:"The sender is known"`

	to transaction.Status
}

// check validates the ids first, then the status (D-TX-04).
func (g Group) check(in *updateRequest) error {
	var ps fault.Problems
	ids := slices.Sorted(slices.Values(in.TransactionIDs))
	switch {
	case len(ids) == 0:
		ps.Require(false, "transactionIds", "must name a transaction")
	case strings.TrimSpace(ids[0]) == "":
		ps.Require(false, "transactionIds", "must not hold a blank id")
	default:
		ps.Require(len(slices.Compact(ids)) == len(ids), "transactionIds", "must not name a transaction twice")
	}
	for _, s := range []transaction.Status{transaction.WaitingSender, transaction.FinalizedDeposit} {
		if string(in.Status) == s.String() || string(in.Status) == strconv.Itoa(g.Numbers.Status(s)) {
			in.to = s
		}
	}
	ps.Require(in.to != 0, "status", "must be waitingSenderInfo or finalizedDeposit")
	return fault.All(ps)
}

// owners returns the users of the deposits. An unknown id has no user.
func (g Group) owners(ctx context.Context, _ rest.Caller, in updateRequest) (rest.Named, error) {
	found, err := g.Service.Store.Deposits(ctx, in.TransactionIDs...)
	return rest.Named{Matter: rest.Standing,
		Users: rest.Each(found, func(d transaction.Deposit) string { return d.UserID })}, err
}

// transactionUpdate names the job that continues after the answer.
type transactionUpdate struct {
	Accepted bool   `json:"accepted"`
	ID       string `json:"id" doc:"id of the job" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Count    int    `json:"count" example:"21"`
}

type updatedTransactions struct {
	Data rest.Either[[]receivedTransaction, transactionUpdate] `json:"data"`
}

func (g Group) update(ctx context.Context, who rest.Caller, in updateRequest) (out updatedTransactions, err error) {
	u, err := g.Service.UpdateStatus(ctx, who.By(), transaction.Update{IDs: in.TransactionIDs, To: in.to,
		Reason: strings.TrimSpace(rest.Or(in.Reason, ""))})
	out.Data.Value = transactionUpdate{true, u.JobID, len(in.TransactionIDs)}
	if u.Deposits != nil {
		out.Data.Value = rest.Each(u.Deposits, func(d transaction.Deposit) receivedTransaction {
			r := g.showReceived(d)
			r.Failed = string(u.Failed[d.ID])
			return r
		})
	}
	return out, err
}
