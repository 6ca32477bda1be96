package wire

import (
	"fmt"

	"castellan/domain/kit/amount"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
)

// UserAsset is the balance of an account in a currency on a network (D-CUR-09).
type UserAsset struct {
	CurrencyCode string        `json:"currencyCode"`
	CurrencyName string        `json:"currencyName" example:"Tether USD"`
	NetworkCode  string        `json:"networkCode"`
	Balance      amount.Amount `json:"balance" example:"120.5"`
	Available    amount.Amount `json:"available" example:"100"`
	Locked       amount.Amount `json:"locked" example:"20.5"`
}

// UserAssets shows balances; of returns their currency and network.
func UserAssets(balances []ledger.Balance, of func(asset int64) (currency.Listed, error)) ([]UserAsset, error) {
	out := make([]UserAsset, len(balances))
	for i, b := range balances {
		p, err := of(b.Asset)
		if err != nil {
			return nil, fmt.Errorf("currency of a balance: %w", err)
		}
		out[i] = UserAsset{p.Currency.Code, p.Currency.Name, p.Network.Code, b.Posted, b.Available(), b.Locked}
	}
	return out, nil
}
