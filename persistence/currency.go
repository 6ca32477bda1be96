package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/money/currency"
)

type Currencies struct{ db *DB }

var _ currency.Store = Currencies{}

// NewCurrencies returns the reference data kept in db.
func NewCurrencies(db *DB) Currencies { return Currencies{db} }

type currencyRow struct {
	bun.BaseModel `bun:"table:currency,alias:c"`

	ID                int64 `bun:",pk,autoincrement"`
	Code              string
	Name              string
	Network           string
	Image             string
	PNGImage          string `bun:"png_image"`
	MarketDataID      string `bun:"market_data_id"`
	MarketListingSlug string
	PriceFormat       amountColumns `bun:"embed:price_format_"`
	QuantityFormat    amountColumns `bun:"embed:quantity_format_"`
	Threshold         amountColumns `bun:"embed:threshold_"`
	DepositEnable     bool
	WithdrawEnable    bool
	Active            bool
	stamps
}

type networkRow struct {
	bun.BaseModel `bun:"table:currency_network,alias:n"`

	ID      int64 `bun:",pk,autoincrement"`
	Code    string
	Name    string
	KYTName string `bun:"kyt_name"`
	Active  bool
	stamps
}

type pairRow struct {
	bun.BaseModel `bun:"table:currency_of_network,alias:p"`

	ID                int64 `bun:",pk,autoincrement"`
	CurrencyID        int64
	NetworkID         int64
	FormatPrecision   string
	ScreeningSymbol   string
	MintAddress       string
	DepositAddress    bool
	WalletProviderID  int64
	WalletCurrencyID  int64
	ProviderNetworkID int64
	DepositEnable     bool
	WithdrawEnable    bool
	Active            bool
	stamps
}

var (
	currencies = table[currencyRow, currency.Currency]{
		fixed: []string{"created_at"},
		record: func(r currencyRow) (c currency.Currency, err error) {
			c = currency.Currency{ID: r.ID, Code: r.Code, Name: r.Name, Network: r.Network, Image: r.Image,
				PNGImage: r.PNGImage, MarketDataID: r.MarketDataID, MarketListingSlug: r.MarketListingSlug,
				Deposit: r.DepositEnable, Withdraw: r.WithdrawEnable, Active: r.Active}
			err = readAmounts(map[*amount.Amount]amountColumns{&c.PriceFormat: r.PriceFormat,
				&c.QuantityFormat: r.QuantityFormat, &c.Threshold: r.Threshold})
			return c, err
		},
		row: func(c currency.Currency) currencyRow {
			return currencyRow{Code: c.Code, Name: c.Name, Network: c.Network, Image: c.Image, PNGImage: c.PNGImage,
				MarketDataID: c.MarketDataID, MarketListingSlug: c.MarketListingSlug,
				PriceFormat: columnsOf(c.PriceFormat), QuantityFormat: columnsOf(c.QuantityFormat),
				Threshold: columnsOf(c.Threshold), DepositEnable: c.Deposit, WithdrawEnable: c.Withdraw, Active: c.Active}
		},
	}
	networks = table[networkRow, currency.Network]{
		fixed: []string{"created_at"},
		record: func(r networkRow) (currency.Network, error) {
			return currency.Network{ID: r.ID, Code: r.Code, Name: r.Name, KYTName: r.KYTName, Active: r.Active}, nil
		},
		row: func(n currency.Network) networkRow {
			return networkRow{Code: n.Code, Name: n.Name, KYTName: n.KYTName, Active: n.Active}
		},
	}
	pairs = table[pairRow, currency.Pair]{
		fixed: []string{"created_at", "currency_id", "network_id"},
		record: func(r pairRow) (currency.Pair, error) {
			return currency.Pair{ID: r.ID, CurrencyID: r.CurrencyID, NetworkID: r.NetworkID,
				FormatPrecision: r.FormatPrecision, ScreeningSymbol: r.ScreeningSymbol, MintAddress: r.MintAddress,
				DepositAddress: r.DepositAddress, WalletProviderID: r.WalletProviderID,
				WalletCurrencyID: r.WalletCurrencyID, ProviderNetworkID: r.ProviderNetworkID,
				Deposit: r.DepositEnable, Withdraw: r.WithdrawEnable, Active: r.Active}, nil
		},
		row: func(p currency.Pair) pairRow {
			return pairRow{CurrencyID: p.CurrencyID, NetworkID: p.NetworkID, FormatPrecision: p.FormatPrecision,
				ScreeningSymbol: p.ScreeningSymbol, MintAddress: p.MintAddress, DepositAddress: p.DepositAddress,
				WalletProviderID: p.WalletProviderID, WalletCurrencyID: p.WalletCurrencyID,
				ProviderNetworkID: p.ProviderNetworkID, DepositEnable: p.Deposit, WithdrawEnable: p.Withdraw,
				Active: p.Active}
		},
	}
)

func selected(q currency.Query) part {
	return part{where: []filter{sent("code", q.Code), sent("active", q.Active)}}
}

func (s Currencies) Currencies(ctx context.Context, q currency.Query) ([]currency.Currency, error) {
	return currencies.list(ctx, s.db, selected(q))
}

func (s Currencies) Networks(ctx context.Context, q currency.Query) ([]currency.Network, error) {
	return networks.list(ctx, s.db, selected(q))
}

func (s Currencies) Pairs(ctx context.Context) ([]currency.Pair, error) {
	return pairs.list(ctx, s.db, part{})
}

func (s Currencies) AddCurrency(ctx context.Context, c currency.Currency) (int64, error) {
	return currencies.add(ctx, s.db, c)
}

func (s Currencies) AddNetwork(ctx context.Context, n currency.Network) (int64, error) {
	return networks.add(ctx, s.db, n)
}

func (s Currencies) AddPair(ctx context.Context, p currency.Pair) (int64, error) {
	return pairs.add(ctx, s.db, p)
}

func (s Currencies) ChangeCurrency(ctx context.Context, id int64,
	f func(currency.Currency) (currency.Currency, error)) error {
	return currencies.change(ctx, s.db, f, is("id", id))
}

func (s Currencies) ChangeNetwork(ctx context.Context, id int64,
	f func(currency.Network) (currency.Network, error)) error {
	return networks.change(ctx, s.db, f, is("id", id))
}

func (s Currencies) ChangePair(ctx context.Context, id int64,
	f func(currency.Pair) (currency.Pair, error)) error {
	return pairs.change(ctx, s.db, f, is("id", id))
}
