package money

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/page"
	"castellan/domain/money/provider"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Providers struct{ db *engine.DB }

var _ provider.Store = Providers{}

func NewProviders(db *engine.DB) Providers { return Providers{db} }

type providerAccountRow struct {
	bun.BaseModel `bun:"table:provider_account,alias:a"`

	Provider string `bun:",pk"`
	Account  string `bun:",pk"`
}

type providerSnapshotRow struct {
	bun.BaseModel `bun:"table:provider_snapshot,alias:s"`

	ID       int64 `bun:",pk,autoincrement"`
	Provider string
	Account  string
	At       int64
}

type providerBalanceRow struct {
	bun.BaseModel `bun:"table:provider_balance,alias:b"`

	SnapshotID int64  `bun:",pk"`
	Asset      string `bun:",pk"`
	providerAmounts
}

type providerAmounts struct {
	Free   record.AmountColumns `bun:"embed:free_"`
	Locked record.AmountColumns `bun:"embed:locked_"`
}

// providerEntryRow is a balance with its snapshot.
type providerEntryRow struct {
	bun.BaseModel `bun:"table:provider_snapshot,alias:s"`

	Account string
	At      int64
	Asset   string `bun:",scanonly"`
	providerAmounts
}

// ProviderWrites store what arrived. There is one for each account every five
// minutes.
var ProviderWrites = []engine.Kind{engine.Each(addSnapshot)}

func addSnapshot(ctx context.Context, tx bun.Tx, w provider.Arrived) error {
	account := providerAccountRow{Provider: w.Provider, Account: w.Account}
	_, err := tx.NewInsert().Model(&account).On("CONFLICT DO NOTHING").Returning("NULL").Exec(ctx)
	if err != nil {
		return err
	}
	var ids []int64
	s := providerSnapshotRow{Provider: w.Provider, Account: w.Account, At: engine.Millis(w.At)}
	_, err = tx.NewInsert().Model(&s).ExcludeColumn("id").On("CONFLICT (provider, account, at) DO NOTHING").
		Returning("id").Exec(ctx, &ids)
	if err != nil || len(ids) == 0 {
		return err // it was there before
	}
	var rows []providerBalanceRow
	for i, b := range w.Balances {
		rows = append(rows, providerBalanceRow{SnapshotID: ids[0], Asset: b.Asset,
			providerAmounts: providerAmounts{record.ColumnsOf(b.Free), record.ColumnsOf(b.Locked)}})
		if len(rows) < rowsPerInsert && i < len(w.Balances)-1 {
			continue
		}
		if _, err := tx.NewInsert().Model(&rows).Returning("NULL").Exec(ctx); err != nil {
			return err
		}
		rows = rows[:0]
	}
	return nil
}

// providerEntries is what accounts had, newest first; providerAccounts is the same
// by account and asset.
var (
	providerEntries = record.Of(record.Table[providerEntryRow, provider.Entry]{
		Order: record.Keyset{Columns: "s.at, s.account", Descending: true},
		Join: func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.ColumnExpr("s.account, s.at, b.asset, b.free_hi, b.free_lo, b.locked_hi, b.locked_lo").
				Join("JOIN provider_balance AS b ON b.snapshot_id = s.id")
		},
	}, nil)
	providerAccounts = record.Table[providerEntryRow, provider.Entry]{
		Order: record.Keyset{Columns: "s.account, b.asset"}, Join: providerEntries.Join, Record: providerEntries.Record,
	}
)

// latestFilters select by the last snapshot of each account, which is one step of an
// index.
func latestFilters(name, account, asset string) []record.Filter {
	text := "s.id IN (SELECT (SELECT l.id FROM provider_snapshot AS l WHERE l.provider = a.provider AND " +
		"l.account = a.account ORDER BY l.at DESC LIMIT 1) FROM provider_account AS a WHERE a.provider = ?"
	args := []any{name}
	if account != "" {
		text, args = text+" AND a.account = ?", append(args, account)
	}
	return []record.Filter{record.Where(text+")", args...), record.Given("b.asset", asset)}
}

func (s Providers) Latest(ctx context.Context, name, account, asset string) ([]provider.Entry, error) {
	return providerAccounts.List(ctx, s.db, record.Part{Where: latestFilters(name, account, asset)})
}

func providerPlace(p provider.Place) []any { return []any{engine.Millis(p.At), p.Account} }

func historyFilters(q provider.History) []record.Filter {
	return []record.Filter{record.Is("s.provider", q.Provider), record.Given("s.account", q.Account),
		record.Is("b.asset", q.Asset), record.Between("s.at", q.From, q.To)}
}

func (s Providers) History(ctx context.Context, q provider.History,
	p page.Query[provider.Place]) (page.Of[provider.Entry], error) {
	return record.ListPage(ctx, s.db, providerEntries, p, providerPlace, historyFilters(q))
}

func atFilters(name string, at time.Time) []record.Filter {
	return []record.Filter{record.Is("s.provider", name), record.Is("s.at", at.UnixMilli())}
}

func (s Providers) At(ctx context.Context, name string, at time.Time) (all []provider.Entry, found bool, err error) {
	all, err = providerAccounts.List(ctx, s.db, record.Part{Where: atFilters(name, at)})
	if err != nil || len(all) > 0 {
		return all, err == nil, err
	}
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	found, err = record.Filtered(s.db.Conn(ctx).NewSelect().Model((*providerSnapshotRow)(nil)), atFilters(name,
		at)).Exists(ctx)
	return nil, found, engine.Translate(err)
}

// The balances go with their snapshots.
func (s Providers) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "provider_snapshot", "id", "at < ?", engine.Millis(before))
}
