package money

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/id"
	"castellan/domain/money/balance"
	"castellan/domain/money/ledger"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Balances struct{ db *engine.DB }

var _ balance.Store = Balances{}

// NewBalances returns what is summed of the ledger in db.
func NewBalances(db *engine.DB) Balances { return Balances{db} }

// sumRow is what the accounts of users have of an asset.
type sumRow struct {
	AssetID   int64
	Posted    record.SumColumns `bun:"embed:posted_"`
	Available record.SumColumns `bun:"embed:available_"`
	Locked    record.SumColumns `bun:"embed:locked_"`
}

// The accounts of all users are added up asset by asset, so that a statement stays within its time limit.
func (s Balances) Sums(ctx context.Context, q balance.Query) (out []balance.Sum, err error) {
	if q.UserID != nil && (q.Assets == nil || len(q.Assets) > 0) {
		return s.sumsOf(ctx, q)
	}
	assets := slices.Sorted(slices.Values(q.Assets))
	if q.Assets == nil {
		all := s.db.Conn(ctx).NewSelect().Table("asset").ColumnExpr("DISTINCT id").OrderExpr("id")
		if err := scan(ctx, s.db, all, &assets); err != nil {
			return nil, err
		}
	}
	for _, asset := range assets {
		some, err := s.sumsOf(ctx, balance.Query{UserID: q.UserID, Assets: []int64{asset}})
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

func (s Balances) sumsOf(ctx context.Context, q balance.Query) ([]balance.Sum, error) {
	var rows []sumRow
	if err := scan(ctx, s.db, s.sums(ctx, q), &rows); err != nil {
		return nil, err
	}
	out := make([]balance.Sum, len(rows))
	for i, r := range rows {
		var errs [3]error
		out[i].Asset = r.AssetID
		out[i].Posted, errs[0] = r.Posted.Sum()
		out[i].Available, errs[1] = r.Available.Sum()
		out[i].Locked, errs[2] = r.Locked.Sum()
		if err := errors.Join(errs[:]...); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sums judges what may be used account by account: a lock beyond a balance takes
// nothing of others.
func (s Balances) sums(ctx context.Context, q balance.Query) *bun.SelectQuery {
	const free = "(b.posted_hi > b.locked_hi OR b.posted_hi = b.locked_hi AND b.posted_lo > b.locked_lo)"
	sel := s.db.Conn(ctx).NewSelect().TableExpr("account AS a").Join("JOIN balance AS b ON b.account_id = a.id").
		Column("a.asset_id").ColumnExpr(record.Summed("posted_", "", "b.posted_", "")).
		ColumnExpr(record.Summed("locked_", "", "b.locked_", "")).
		ColumnExpr(record.Summed("available_", free, "b.posted_", "b.locked_")).
		GroupExpr("a.asset_id").OrderExpr("a.asset_id")
	return record.Filtered(sel, []record.Filter{record.Is("a.kind", string(ledger.User)), record.Sent("a.owner", q.UserID),
		record.Among("a.asset_id", q.Assets)})
}

// positionRow is what moved of an asset on a day, in one page of transfers.
type positionRow struct {
	Day     int64
	AssetID int64
	In      record.SumColumns `bun:"embed:in_"`
	Out     record.SumColumns `bun:"embed:out_"`
	Last    string
	Count   int
}

// movedPage is how many transfers one statement adds up: little enough for its time
// limit, however many there are.
const movedPage = 20_000

// Ids of transfers begin with their instant, so a
// period is a range of the primary key.
func (s Balances) Moved(ctx context.Context, from, to time.Time) ([]balance.Day, error) {
	type key struct{ day, asset int64 }
	sums := map[key]balance.Day{}
	var order []key
	for after := id.Before(from); ; {
		var rows []positionRow
		if err := scan(ctx, s.db, s.moved(ctx, after, id.Before(to)), &rows); err != nil {
			return nil, err
		}
		n := 0
		for _, r := range rows {
			k := key{r.Day, r.AssetID}
			d, known := sums[k]
			if !known {
				order = append(order, k)
			}
			d.Day, d.Asset = r.Day, r.AssetID
			in, errIn := r.In.Sum()
			out, errOut := r.Out.Sum()
			if err := errors.Join(errIn, errOut); err != nil {
				return nil, err
			}
			d.In, d.Out = d.In.Add(in), d.Out.Add(out)
			sums[k] = d
			n, after = n+r.Count, max(after, r.Last)
		}
		if n < movedPage {
			break
		}
	}
	out := make([]balance.Day, 0, len(order))
	for _, k := range order {
		if d := sums[k]; d.In.Sign() != 0 || d.Out.Sign() != 0 {
			out = append(out, d)
		}
	}
	return out, nil
}

// The ids of accounts of users, as ledger.Account.ID makes them.
const (
	// #nosec G101: a part of a query; no credential.
	userCredited = "t.credit_id >= 'user/' AND t.credit_id < 'user0'"
	userDebited  = "t.debit_id >= 'user/' AND t.debit_id < 'user0'"
)

func (s Balances) moved(ctx context.Context, after, before string) *bun.SelectQuery {
	page := s.db.Conn(ctx).NewSelect().Table("transfer").
		Column("id", "at", "asset_id", "debit_id", "credit_id", "hi", "lo").
		Where("id > ?", after).Where("id < ?", before).OrderExpr("id").Limit(movedPage)
	return s.db.Conn(ctx).NewSelect().TableExpr("(?) AS t", page).ColumnExpr("t.at / ? AS day", dayMs).
		Column("t.asset_id").ColumnExpr(record.Summed("in_", userCredited, "t.", "")).
		ColumnExpr(record.Summed("out_", userDebited, "t.", "")).ColumnExpr("MAX(t.id) AS last").
		ColumnExpr("count(*) AS count").GroupExpr("1, 2").OrderExpr("1, 2")
}

func (s Balances) Next(ctx context.Context, from time.Time) (int64, bool, error) {
	var rows []transferRow
	err := s.db.Ask(ctx, &rows, engine.Query{Columns: "id", Where: "id > $1", Order: "id LIMIT 1"}, id.Before(from))
	if err != nil || len(rows) == 0 {
		return 0, false, err
	}
	return id.Millis(rows[0].ID) / dayMs, true, nil
}

// assetDayRow is a day that is summed.
type assetDayRow struct {
	bun.BaseModel `bun:"table:asset_day,alias:d"`

	Day     int64              `bun:",pk"`
	AssetID int64              `bun:",pk"`
	In      record.WideColumns `bun:"embed:in_"`
	Out     record.WideColumns `bun:"embed:out_"`
	Posted  record.WideColumns `bun:"embed:posted_"`
}

var BalanceWrites = []engine.Kind{engine.Each(func(ctx context.Context, tx bun.Tx, w balance.Summed) error {
	rows := make([]assetDayRow, len(w.Days))
	for i, d := range w.Days {
		rows[i] = assetDayRow{Day: d.Day, AssetID: d.Asset, In: record.WideOf(d.In), Out: record.WideOf(d.Out),
			Posted: record.WideOf(d.Posted)}
	}
	if len(rows) == 0 {
		return nil
	}
	_, err := tx.NewInsert().Model(&rows).On("CONFLICT (day, asset_id) DO NOTHING").Returning("NULL").Exec(ctx)
	return err
})}

var assetDays = record.Table[assetDayRow, balance.Day]{
	Order: record.Keyset{Columns: "d.day, d.asset_id"},
	Record: func(r assetDayRow) (balance.Day, error) {
		d := balance.Day{Day: r.Day, Asset: r.AssetID}
		return d, record.ReadSums(map[*amount.Sum]record.WideColumns{&d.In: r.In, &d.Out: r.Out, &d.Posted: r.Posted})
	},
}

// Spans implements balance.Store: of each asset the two ends of an index.
func (s Balances) Spans(ctx context.Context) (out []balance.Span, err error) {
	end := func(which string) *bun.SelectQuery {
		return s.db.Conn(ctx).NewSelect().TableExpr("asset_day AS d").ColumnExpr(which + "(d.day)").
			Where("d.asset_id = s.asset")
	}
	err = scan(ctx, s.db, s.db.Conn(ctx).NewSelect().TableExpr("(SELECT DISTINCT id AS asset FROM asset) AS s").
		Column("s.asset").ColumnExpr("(?) AS first", end("MIN")).ColumnExpr("(?) AS last", end("MAX")).
		Where("EXISTS (SELECT 1 FROM asset_day AS d WHERE d.asset_id = s.asset)").OrderExpr("s.asset"), &out)
	return out, err
}

func (s Balances) Days(ctx context.Context, first, last int64, assets []int64) ([]balance.Day, error) {
	if assets != nil && len(assets) == 0 {
		return nil, nil
	}
	return assetDays.List(ctx, s.db, record.Part{Where: []record.Filter{record.Where("d.day >= ?", first),
		record.Where("d.day <= ?", last), record.Among("d.asset_id", assets)}})
}

// Before implements balance.Store: of each asset one step down an index.
func (s Balances) Before(ctx context.Context, day int64) ([]balance.Day, error) {
	last := record.Where("(d.day, d.asset_id) IN (SELECT (SELECT MAX(l.day) FROM asset_day AS l "+
		"WHERE l.asset_id = s.id AND l.day < ?), s.id FROM asset AS s)", day)
	return assetDays.List(ctx, s.db, record.Part{Where: []record.Filter{last}})
}
