package transaction

import (
	"context"
	"slices"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/http/rest"
)

type previewRequest struct {
	UserID       string        `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyCode string        `json:"currencyCode" maxLength:"64" example:"BTC"`
	NetworkCode  string        `json:"networkCode" maxLength:"64" example:"BTC"`
	Amount       amount.Amount `json:"amount" doc.exclusiveMinimum:"0" example:"0.25"`
	Type         string        `json:"type" enum:"C,D" doc:"C: credit, a deposit; D: debit, a withdrawal"`
}

// holding is the balance of a user's account.
type holding struct {
	Balance   amount.Amount `json:"balance" example:"120.5"`
	Available amount.Amount `json:"available" example:"100"`
	Locked    amount.Amount `json:"locked" example:"20.5"`
}

// owing is the balance of the treasury; a negative balance is its debt to users.
type owing struct {
	Balance amount.Amount `json:"balance" example:"-120.5"`
}

// change is an account before an adjustment and after it.
type change[T any] struct {
	Before T `json:"before"`
	After  T `json:"after"`
}

type adjustmentPreview struct {
	User     change[holding] `json:"user"`
	Treasury change[owing]   `json:"treasury"`
}

func (g Group) preview(ctx context.Context, _ rest.Caller, in previewRequest) (out adjustmentPreview, err error) {
	user, treasury, err := g.Service.Preview(ctx, transaction.Adjustment{UserID: in.UserID, CurrencyCode: in.CurrencyCode,
		NetworkCode: in.NetworkCode, Amount: in.Amount, Direction: transaction.Direction(in.Type)})
	if err != nil {
		return out, err
	}
	out.User = change[holding]{held(user.Before), held(user.After)}
	out.Treasury = change[owing]{owing{treasury.Before.Posted}, owing{treasury.After.Posted}}
	return out, nil
}

func held(b ledger.Balance) holding { return holding{b.Posted, b.Available(), b.Locked} }

// adjusting returns both accounts of an adjustment.
func (g Group) adjusting(ctx context.Context, in adjustRequest) ([]rest.Change, error) {
	p, err := g.preview(ctx, rest.Caller{}, previewRequest{in.UserID, in.CurrencyCode, in.NetworkCode, in.Amount, in.Type})
	return []rest.Change{{Of: "user", ID: in.UserID, Before: p.User.Before, After: p.User.After},
		{Of: "treasury", Before: p.Treasury.Before, After: p.Treasury.After}}, err
}

// moving is a transaction whose status changes.
type moving struct {
	UserID   string        `json:"userId"`
	Currency string        `json:"currencyCode"`
	Amount   amount.Amount `json:"amount"`
	Address  string        `json:"address,omitempty"`
	Status   string        `json:"status"`
}

func (m moving) to(of, id, status string) rest.Change {
	next := m
	next.Status = status
	return rest.Change{Of: of, ID: id, Before: m, After: next}
}

// maxShown is the largest number of deposits of an update that are shown.
const maxShown = 50

// updating returns the deposits of an update, at most the first maxShown.
func (g Group) updating(ctx context.Context, in updateRequest) (all []rest.Change, err error) {
	ids := in.TransactionIDs[:min(len(in.TransactionIDs), maxShown)]
	found, err := g.Service.Store.Deposits(ctx, ids...)
	sorting.Func(found, func(a, b transaction.Deposit) int {
		return slices.Index(ids, a.ID) - slices.Index(ids, b.ID)
	})
	for _, d := range found {
		m := moving{UserID: d.UserID, Currency: g.code(d.Asset), Amount: d.Amount, Status: d.Status.String()}
		all = append(all, m.to("deposit", d.ID, in.to.String()))
	}
	return all, err
}

// deciding returns the queue entry of a decision.
func (g Group) deciding(ctx context.Context, in decideRequest) ([]rest.Change, error) {
	q, err := g.Service.Store.Queued(ctx, in.WithdrawalID)
	if err != nil {
		return nil, err
	}
	w, err := g.Service.Store.Withdrawal(ctx, in.WithdrawalID)
	m := moving{UserID: q.UserID, Currency: g.code(q.Asset), Amount: w.Amount, Address: q.Address,
		Status: q.Status.String()}
	return []rest.Change{m.to("withdrawal", q.ID, transaction.QueueStatus(in.Status).String())}, err
}
