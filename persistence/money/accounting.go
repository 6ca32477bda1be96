package money

import (
	"context"
	"time"

	"castellan/domain/kit/id"
	"castellan/domain/money/accounting"
	"castellan/domain/money/ledger"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Accounting struct{ db *engine.DB }

var _ accounting.Store = Accounting{}

// NewAccounting returns what a journal reads of the ledger in db.
func NewAccounting(db *engine.DB) Accounting { return Accounting{db} }

// totalRow is a group of transfers.
type totalRow struct {
	Day     int64
	AssetID int64
	Kind    string
	Debit   string
	Credit  string
	Count   int64
	record.SumColumns
}

const dayMs = 86_400_000

// Ids of transfers begin with their instant, so
// a period is a range of the primary key.
func (s Accounting) Totals(ctx context.Context, from, to time.Time) ([]accounting.Total, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []totalRow
	err := record.WithSums(s.db.Conn(ctx).NewSelect().TableExpr("transfer AS t").
		Join("JOIN account AS d ON d.id = t.debit_id").Join("JOIN account AS c ON c.id = t.credit_id").
		ColumnExpr("t.at / ? AS day", dayMs).Column("t.asset_id", "t.kind").ColumnExpr("d.kind AS debit").
		ColumnExpr("c.kind AS credit").ColumnExpr("count(*) AS count")).
		Where("t.id >= ?", id.Before(from)).Where("t.id < ?", id.Before(to)).
		Where("t.at >= ?", engine.Millis(from)).Where("t.at < ?", engine.Millis(to)).
		GroupExpr("1, 2, 3, 4, 5").OrderExpr("1, 2, 3, 4, 5").Scan(ctx, &rows)
	if err != nil {
		return nil, engine.Translate(err)
	}
	out := make([]accounting.Total, len(rows))
	for i, r := range rows {
		sum, err := r.Sum()
		if err != nil {
			return nil, err
		}
		out[i] = accounting.Total{Day: time.UnixMilli(r.Day * dayMs).UTC(), Asset: r.AssetID, Kind: r.Kind,
			Debit: ledger.Kind(r.Debit), Credit: ledger.Kind(r.Credit), Sum: sum, Count: r.Count}
	}
	return out, nil
}
