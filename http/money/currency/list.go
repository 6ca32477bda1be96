package currency

import (
	"context"

	"castellan/domain/kit/amount"
	"castellan/domain/money/currency"
	"castellan/http/rest"
)

type allRequest struct {
	Type        string  `json:"type" enum:"CURRENCY,CURRENCY_NETWORK,CURRENCY_OF_NETWORK"`
	Symbol      *string `json:"symbol" doc:"for CURRENCY: the currency code" example:"USDT"`
	IsActive    *bool   `json:"isActive" doc:"for CURRENCY: the active status"`
	NetworkCode *string `json:"networkCode" doc:"for CURRENCY_NETWORK: the network code"`
}

// stored holds the fields that every record has beside those of its section.
type stored struct {
	ID       int64 `json:"id"`
	IsActive bool  `json:"isActive"`
}

type currencyRecord struct {
	stored
	currencyFields
}

type currencyNetworkRecord struct {
	stored
	networkFields
}

type currencyOfNetworkRecord struct {
	stored
	linkFields
	MaxDeposit *amount.Amount `json:"maxDeposit" doc:"extension: null: 10^15 units" example:"50000"`
}

type anyRecord = rest.OneOf[currencyRecord, currencyNetworkRecord, currencyOfNetworkRecord]

func (g Group) all(ctx context.Context, _ rest.Caller, in allRequest) ([]anyRecord, error) {
	store := g.Service.Store
	switch in.Type {
	case "CURRENCY":
		all, err := store.Currencies(ctx, currency.Query{Code: in.Symbol, Active: in.IsActive})
		return rest.Each(all, func(c currency.Currency) anyRecord {
			return anyRecord{Value: currencyRecord{stored{c.ID, c.Active}, currencyFields{c.Code, c.Network, c.Image, c.Name,
				c.PriceFormat, c.QuantityFormat, c.Deposit, c.Withdraw, c.PNGImage, c.MarketDataID, c.Threshold,
				c.MarketListingSlug}}}
		}), err
	case "CURRENCY_NETWORK":
		all, err := store.Networks(ctx, currency.Query{Code: in.NetworkCode})
		return rest.Each(all, func(n currency.Network) anyRecord {
			return anyRecord{Value: currencyNetworkRecord{stored{n.ID, n.Active}, networkFields{n.Code, n.Name, n.KYTName}}}
		}), err
	default:
		catalog, err := currency.Load(ctx, store)
		if err != nil {
			return nil, err
		}
		return rest.Each(catalog.Pairs(nil), func(l currency.Listed) anyRecord {
			return anyRecord{Value: currencyOfNetworkRecord{stored{l.ID, l.Active}, linkFields{l.Currency.Code,
				l.Network.Code,
				l.ScreeningSymbol, l.Deposit, l.Withdraw, l.FormatPrecision, l.MintAddress, rest.ID(l.WalletProviderID),
				l.DepositAddress, rest.ID(l.WalletCurrencyID), rest.ID(l.ProviderNetworkID)}, l.MaxDeposit}}
		}), nil
	}
}
