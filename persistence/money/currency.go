package money

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/money/currency"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Currencies struct{ db *engine.DB }

var _ currency.Store = Currencies{}

func NewCurrencies(db *engine.DB) Currencies { return Currencies{db} }

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
	PriceFormat       record.AmountColumns `bun:"embed:price_format_"`
	QuantityFormat    record.AmountColumns `bun:"embed:quantity_format_"`
	Threshold         record.AmountColumns `bun:"embed:threshold_"`
	DepositEnable     bool
	WithdrawEnable    bool
	Active            bool
	record.Stamps
}

type networkRow struct {
	bun.BaseModel `bun:"table:currency_network,alias:n"`

	ID      int64 `bun:",pk,autoincrement"`
	Code    string
	Name    string
	KYTName string `bun:"kyt_name"`
	Active  bool
	record.Stamps
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
	record.Stamps
}

// pairRead is a pair with its largest deposit.
type pairRead struct {
	bun.BaseModel `bun:"table:currency_of_network,alias:p"`

	pairRow
	MaxHi, MaxLo *int64
}

type maxDepositRow struct {
	bun.BaseModel `bun:"table:pair_max_deposit"`

	PairID int64 `bun:",pk"`
	Hi, Lo int64
}

var enabled = record.Names{"DepositEnable": "Deposit", "WithdrawEnable": "Withdraw"}

var (
	currencies = record.Of(record.Table[currencyRow, currency.Currency]{Fixed: []string{"created_at"}}, enabled)
	networks   = record.Of(record.Table[networkRow, currency.Network]{Fixed: []string{"created_at"}}, nil)
	pairs      = record.Of(record.Table[pairRow, currency.Pair]{
		Fixed: []string{"created_at", "currency_id", "network_id"}}, enabled, "MaxDeposit")
	pairList = record.Table[pairRead, currency.Pair]{
		Order: record.Keyset{Columns: "p.id"},
		Join: func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.ColumnExpr("p.*, m.hi AS max_hi, m.lo AS max_lo").
				Join("LEFT JOIN pair_max_deposit AS m ON m.pair_id = p.id")
		},
		Record: func(r pairRead) (currency.Pair, error) {
			p, err := pairs.Record(r.pairRow)
			if r.MaxHi != nil && r.MaxLo != nil {
				p.MaxDeposit = new(amount.Amount)
				*p.MaxDeposit, err = amount.Of(*r.MaxHi, *r.MaxLo)
			}
			return p, err
		},
	}
)

func selected(q currency.Query) record.Part {
	return record.Part{Where: []record.Filter{record.Sent("code", q.Code), record.Sent("active", q.Active)}}
}

func (s Currencies) Currencies(ctx context.Context, q currency.Query) ([]currency.Currency, error) {
	return currencies.List(ctx, s.db, selected(q))
}

func (s Currencies) Networks(ctx context.Context, q currency.Query) ([]currency.Network, error) {
	return networks.List(ctx, s.db, selected(q))
}

func (s Currencies) Pairs(ctx context.Context) ([]currency.Pair, error) {
	return pairList.List(ctx, s.db, record.Part{})
}

func (s Currencies) AddCurrency(ctx context.Context, c currency.Currency) (int64, error) {
	return currencies.Add(ctx, s.db, c)
}

func (s Currencies) AddNetwork(ctx context.Context, n currency.Network) (int64, error) {
	return networks.Add(ctx, s.db, n)
}

func (s Currencies) AddPair(ctx context.Context, p currency.Pair) (id int64, err error) {
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		if id, err = pairs.Add(ctx, s.db, p); err == nil {
			err = setMaxDeposit(ctx, tx, id, p.MaxDeposit)
		}
		return err
	})
	return id, err
}

func (s Currencies) ChangeCurrency(ctx context.Context, id int64,
	f func(currency.Currency) (currency.Currency, error)) error {
	return currencies.Change(ctx, s.db, f, record.Is("id", id))
}

func (s Currencies) ChangeNetwork(ctx context.Context, id int64,
	f func(currency.Network) (currency.Network, error)) error {
	return networks.Change(ctx, s.db, f, record.Is("id", id))
}

func (s Currencies) ChangePair(ctx context.Context, id int64, f func(currency.Pair) (currency.Pair, error)) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		var next currency.Pair
		err := pairs.Change(ctx, s.db, func(currency.Pair) (currency.Pair, error) {
			have, err := pairList.Find(ctx, s.db, record.Is("p.id", id))
			if err == nil {
				next, err = f(have)
			}
			return next, err
		}, record.Is("id", id))
		if err == nil {
			err = setMaxDeposit(ctx, tx, id, next.MaxDeposit)
		}
		return err
	})
}

func setMaxDeposit(ctx context.Context, tx bun.IDB, pair int64, max *amount.Amount) (err error) {
	row := maxDepositRow{PairID: pair}
	if max == nil {
		_, err = tx.NewDelete().Model(&row).WherePK().Exec(ctx)
		return err
	}
	row.Hi, row.Lo = max.Parts()
	_, err = tx.NewInsert().Model(&row).On("CONFLICT (pair_id) DO UPDATE").
		Set("hi = EXCLUDED.hi").Set("lo = EXCLUDED.lo").Exec(ctx)
	return err
}
