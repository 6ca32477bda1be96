package transaction

import (
	"context"

	"castellan/domain/amount"
	"castellan/domain/ledger"
	"castellan/domain/transaction"
	"castellan/http/rest"
)

type previewRequest struct {
	UserID       string        `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyCode string        `json:"currencyCode" maxLength:"64" example:"BTC"`
	NetworkCode  string        `json:"networkCode" maxLength:"64" example:"BTC"`
	Amount       amount.Amount `json:"amount" doc.exclusiveMinimum:"0" example:"0.25"`
	Type         string        `json:"type" enum:"C,D" doc:"C: credit, a deposit. D: debit, a withdrawal"`
}

// holding is what the account of a user has.
type holding struct {
	Balance   amount.Amount `json:"balance" example:"120.5"`
	Available amount.Amount `json:"available" example:"100"`
	Locked    amount.Amount `json:"locked" example:"20.5"`
}

// owing is what the treasury has; below 0 it is what it owes to users.
type owing struct {
	Balance amount.Amount `json:"balance" example:"-120.5"`
}

// change is an account before an adjustment and after it.
type change[T any] struct {
	Before T `json:"before"`
	After  T `json:"after"`
}

type preview struct {
	User     change[holding] `json:"user"`
	Treasury change[owing]   `json:"treasury"`
}

// SchemaName names the schema in the published document.
func (preview) SchemaName() string { return "AdjustmentPreview" }

func (g Group) preview(ctx context.Context, _ rest.Caller, in previewRequest) (out preview, err error) {
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
