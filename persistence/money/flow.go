package money

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/id"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// flowRow is what the movements of an hour add up to that nothing can change any more. The row of asset 0 and scope ""
// says that the hour is complete.
type flowRow struct {
	bun.BaseModel `bun:"table:money_flow,alias:f"`

	Flow    string
	Scope   string // an initiator; "" for all
	Hour    int64  // its begin
	AssetID int64
	Number  int64
	record.SumColumns
}

// counted is a sum of movements of one asset.
type counted struct {
	UserID, Initiator string
	AssetID           int64
	Number            int64
	record.SumColumns
}

// flowed selects the movements of a flow from an instant until before another; a zero one is open.
func (s Transactions) flowed(ctx context.Context, f transaction.Flow, from, to time.Time) *bun.SelectQuery {
	table, column, bound := "withdrawal", "id", func(at time.Time) any { return id.Before(at) }
	if f.Direction == policy.In {
		table = "deposit"
	}
	switch {
	case f.Left:
		column, bound = "left_at", func(at time.Time) any { return engine.Millis(at) }
	case f.Kind != policy.Withdrawal:
		column = "transfer_id"
	}
	rows := s.db.Conn(ctx).NewSelect().Table(table).Where("? >= ?", bun.Ident(column), bound(from))
	if !to.IsZero() {
		rows.Where("? < ?", bun.Ident(column), bound(to))
	}
	switch {
	case f.Kind == policy.Adjustment:
		return rows.Where("id = transfer_id")
	case f.Kind == policy.Deposit:
		return rows.Where("id <> transfer_id")
	case f.Left:
		rows.Where("left_at > 0") // as the index has it
	}
	return rows.Where("hold_id IS NOT NULL").Where("status NOT IN (?, ?)", int(transaction.Failed),
		int(transaction.Cancelled))
}

// countedQuery selects the movements of a sum from an instant until before another, by asset; those to a destination
// also by user.
func (s Transactions) countedQuery(ctx context.Context, q transaction.CountedQuery, from,
	to time.Time) *bun.SelectQuery {
	rows := s.flowed(ctx, q.Flow, from, to).Column("asset_id").ColumnExpr("count(*) AS number").
		Where("id <> ?", q.Except).Group("asset_id").Order("asset_id")
	if q.UserID != "" {
		rows.Where("user_id = ?", q.UserID)
	}
	if q.Initiator != "" {
		rows.Where("initiator = ?", q.Initiator)
	}
	if q.Destination != "" {
		rows.Column("user_id").Where("destination = ?", q.Destination).Group("user_id").Order("user_id")
	}
	return record.WithSums(rows)
}

// Counted reads the hours that are complete from money_flow, and the others from the movements.
func (s Transactions) Counted(ctx context.Context, q transaction.CountedQuery) (all []transaction.Counted, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	from, to := q.After.Add(time.Millisecond), time.Time{}
	if !q.Until.IsZero() {
		to = q.Until.Add(time.Millisecond)
	}
	var rows []counted
	read := func(from, to time.Time) error {
		var some []counted
		err := s.countedQuery(ctx, q, from, to).Scan(ctx, &some)
		rows = append(rows, some...)
		return err
	}
	if q.UserID == "" && q.Destination == "" {
		var hours []time.Time
		if hours, rows, err = s.closed(ctx, q, from, to); err != nil {
			return nil, engine.Translate(err)
		}
		for _, hour := range hours {
			if hour.After(from) {
				if err := read(from, hour); err != nil {
					return nil, engine.Translate(err)
				}
			}
			from = hour.Add(time.Hour)
		}
	}
	if err := read(from, to); err != nil {
		return nil, engine.Translate(err)
	}
	for _, r := range rows {
		sum, err := r.Sum()
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(c transaction.Counted) bool { return c.UserID == r.UserID && c.Asset == r.AssetID })
		if i < 0 {
			i, all = len(all), append(all, transaction.Counted{UserID: r.UserID, Asset: r.AssetID})
		}
		all[i].Number, all[i].Sum = all[i].Number+r.Number, all[i].Sum.Add(sum)
	}
	return all, nil
}

// closed returns the complete hours between two instants, ascending, and what they add up to. It is one statement, so
// that no hour is completed between the two.
func (s Transactions) closed(ctx context.Context, q transaction.CountedQuery, from, to time.Time) (hours []time.Time,
	sums []counted, err error) {
	of := func(scope string) *bun.SelectQuery {
		rows := s.db.Conn(ctx).NewSelect().Table("money_flow").Where("flow = ?", q.Flow.String()).
			Where("scope = ?", scope).Where("hour >= ?", engine.Millis(from))
		if !to.IsZero() {
			rows.Where("hour <= ?", engine.Millis(to.Add(-time.Hour)))
		}
		return rows
	}
	marks := of("").Where("asset_id = 0").Column("hour", "asset_id", "number", "hi_high", "hi_low", "lo_high", "lo_low")
	all := of(q.Initiator).Where("asset_id <> 0").ColumnExpr("-1").Column("asset_id").Group("asset_id")
	for _, column := range []string{"number", "hi_high", "hi_low", "lo_high", "lo_low"} {
		all.ColumnExpr("CAST(sum(?) AS BIGINT)", bun.Ident(column))
	}
	var rows []flowRow
	if err := marks.UnionAll(all).Scan(ctx, &rows); err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		if r.AssetID == 0 {
			hours = append(hours, engine.Time(r.Hour))
			continue
		}
		sums = append(sums, counted{AssetID: r.AssetID, Number: r.Number, SumColumns: r.SumColumns})
	}
	sorting.Func(hours, time.Time.Compare)
	return hours, sums, nil
}

// flowLate is how long after its end an hour may still get movements: the time of a transaction, and the difference of
// two clocks.
const flowLate = time.Hour

// CloseHours stores the hours from an instant on that are complete and whose withdrawals are all decided.
func (s Transactions) CloseHours(ctx context.Context, f transaction.Flow, from, now time.Time) error {
	from = from.Truncate(time.Hour)
	done, _, err := s.closed(ctx, transaction.CountedQuery{Flow: f}, from, now)
	if err != nil {
		return engine.Translate(err)
	}
	for hour := from; !hour.Add(time.Hour + flowLate).After(now); hour = hour.Add(time.Hour) {
		if slices.ContainsFunc(done, hour.Equal) {
			continue
		}
		if f.Kind == policy.Withdrawal {
			open, err := s.flowed(ctx, f, hour, hour.Add(time.Hour)).ColumnExpr("1").
				Where("status = ?", int(transaction.WaitingQueue)).Exists(ctx)
			if err != nil || open {
				if err != nil {
					return engine.Translate(err)
				}
				continue
			}
		}
		rows, err := s.hourOf(ctx, f, hour)
		if err != nil {
			return err
		}
		err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
			_, err := tx.NewInsert().Model(&rows).On("CONFLICT DO NOTHING").Exec(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// hourOf adds up the movements of an hour. Owners are no scope: their sums are of one account.
func (s Transactions) hourOf(ctx context.Context, f transaction.Flow, hour time.Time) ([]flowRow, error) {
	var found []counted
	err := record.WithSums(s.flowed(ctx, f, hour, hour.Add(time.Hour)).Column("initiator", "asset_id").
		ColumnExpr("count(*) AS number").Group("initiator", "asset_id")).Scan(ctx, &found)
	rows := []flowRow{{Flow: f.String(), Hour: engine.Millis(hour)}}
	add := func(scope string, c counted) {
		i := slices.IndexFunc(rows, func(r flowRow) bool { return r.Scope == scope && r.AssetID == c.AssetID })
		if i < 0 {
			i, rows = len(rows), append(rows, flowRow{Flow: rows[0].Flow, Scope: scope, Hour: rows[0].Hour,
				AssetID: c.AssetID})
		}
		r := &rows[i]
		r.Number += c.Number
		r.HiHigh, r.HiLow = r.HiHigh+c.HiHigh, r.HiLow+c.HiLow
		r.LoHigh, r.LoLow = r.LoHigh+c.LoHigh, r.LoLow+c.LoLow
	}
	for _, c := range found {
		add("", c)
		if c.Initiator != "" && c.Initiator != string(policy.User) {
			add(c.Initiator, c)
		}
	}
	return rows, engine.Translate(err)
}

// VerifyFlow compares the complete hours with the movements. Its error wraps ledger.ErrBroken for one that differs.
func (s Transactions) VerifyFlow(ctx context.Context) error {
	for _, f := range transaction.Flows() {
		hours, _, err := s.closed(ctx, transaction.CountedQuery{Flow: f}, time.UnixMilli(0), time.Time{})
		if err != nil {
			return engine.Translate(err)
		}
		for _, hour := range hours {
			var is []flowRow
			err := s.db.Conn(ctx).NewSelect().Model(&is).Where("flow = ?", f.String()).Where("hour = ?",
				engine.Millis(hour)).Scan(ctx)
			if err != nil {
				return engine.Translate(err)
			}
			want, err := s.hourOf(ctx, f, hour)
			if err != nil {
				return err
			}
			sorting.Func(is, flowRow.compare)
			sorting.Func(want, flowRow.compare)
			if len(is) > 0 && !slices.Equal(is, want) { // they may be purged meanwhile
				return fmt.Errorf("%w: the hour %s of %s in money_flow does not match its movements", ledger.ErrBroken,
					hour.UTC().Format(time.RFC3339), f)
			}
		}
	}
	return nil
}

func (r flowRow) compare(o flowRow) int {
	return cmp.Or(cmp.Compare(r.Scope, o.Scope), cmp.Compare(r.AssetID, o.AssetID))
}

// PurgeFlow removes the hours before an instant.
func (s Transactions) PurgeFlow(ctx context.Context, before time.Time) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Table("money_flow").Where("hour < ?", engine.Millis(before)).Exec(ctx)
		return err
	})
}
