package money

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/sorting"
	"castellan/domain/money/rate"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Rates struct{ db *engine.DB }

var _ rate.Store = Rates{}

func NewRates(db *engine.DB) Rates { return Rates{db} }

type exchangePairRow struct {
	bun.BaseModel `bun:"table:exchange_pair,alias:p"`

	ID    int64 `bun:",pk,autoincrement"`
	Base  string
	Quote string
}

type exchangeRateRow struct {
	bun.BaseModel `bun:"table:exchange_rate,alias:r"`

	PairID    int64 `bun:",pk"`
	At        int64 `bun:",pk"`
	Rate      string
	Source    string
	CreatedAt int64
}

// rowsPerInsert keeps a statement below the parameters that a database takes.
const rowsPerInsert = 500

// RateWrites store what arrived. There is one every few minutes.
func RateWrites(now func() time.Time) []engine.Kind {
	return []engine.Kind{engine.Each(func(ctx context.Context, tx bun.Tx, w rate.Arrived) error {
		_, err := addRates(ctx, tx, engine.Millis(now()), w)
		return err
	})}
}

func (s Rates) Add(ctx context.Context, source string, quotes []rate.Quote) (changed int, err error) {
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		changed, err = addRates(ctx, tx, engine.Millis(s.db.Now()), rate.Arrived{Source: source, Quotes: quotes})
		return err
	})
	return changed, err
}

func addRates(ctx context.Context, tx bun.IDB, now int64, w rate.Arrived) (changed int, err error) {
	ids := map[rate.Pair]int64{}
	quotes := inOrder(w.Quotes)
	rows := make([]exchangeRateRow, 0, min(len(quotes), rowsPerInsert))
	for i, q := range quotes {
		id, known := ids[q.Pair]
		if !known {
			if id, err = exchangePair(ctx, tx, q.Pair); err != nil {
				return 0, err
			}
			ids[q.Pair] = id
		}
		rows = append(rows, exchangeRateRow{PairID: id, At: engine.Millis(q.At), Rate: q.Rate.String(), Source: w.Source,
			CreatedAt: now})
		if len(rows) < rowsPerInsert && i < len(quotes)-1 {
			continue
		}
		result, err := tx.NewInsert().Model(&rows).On("CONFLICT (pair_id, at) DO UPDATE").
			Set("rate = EXCLUDED.rate, source = EXCLUDED.source, created_at = EXCLUDED.created_at").
			Where("r.rate <> EXCLUDED.rate").Returning("NULL").Exec(ctx)
		if err != nil {
			return 0, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		changed, rows = changed+int(n), rows[:0]
	}
	return changed, nil
}

// inOrder is the order in which every writer takes the rows, so that two of them
// never wait for each other, without those that a later one replaces.
func inOrder(quotes []rate.Quote) []rate.Quote {
	sorted := slices.Clone(quotes)
	order := func(a, b rate.Quote) int {
		return cmp.Or(strings.Compare(a.Base, b.Base), strings.Compare(a.Quote, b.Quote), a.At.Compare(b.At))
	}
	sorting.Stable(sorted, order)
	slices.Reverse(sorted)
	sorted = slices.CompactFunc(sorted, func(a, b rate.Quote) bool { return order(a, b) == 0 })
	slices.Reverse(sorted)
	return sorted
}

// exchangePair is the id of a pair, which is added where it is new.
func exchangePair(ctx context.Context, tx bun.IDB, p rate.Pair) (id int64, err error) {
	row := exchangePairRow{Base: p.Base, Quote: p.Quote}
	if _, err := tx.NewInsert().Model(&row).ExcludeColumn("id").On("CONFLICT (base, quote) DO NOTHING").
		Returning("NULL").Exec(ctx); err != nil {
		return 0, err
	}
	err = tx.NewSelect().Model(&row).Column("id").Where("base = ? AND quote = ?", p.Base, p.Quote).Scan(ctx, &id)
	return id, err
}

func (s Rates) Last(ctx context.Context, until time.Time, pairs ...rate.Pair) ([]rate.Quote, error) {
	var rows []struct {
		Base, Quote string
		At          *int64
		Rate        *string
	}
	if err := scan(ctx, s.db, s.last(ctx, until, pairs), &rows); err != nil {
		return nil, err
	}
	out := make([]rate.Quote, 0, len(rows))
	for _, r := range rows {
		if r.At == nil || r.Rate == nil {
			continue // of this pair every rate is later
		}
		value, err := rate.Parse(*r.Rate)
		if err != nil {
			return nil, fmt.Errorf("read the rate of %s in %s: %w", r.Base, r.Quote, err)
		}
		out = append(out, rate.Quote{Pair: rate.Pair{Base: r.Base, Quote: r.Quote}, Rate: value, At: engine.Time(*r.At)})
	}
	return out, nil
}

// last is the query of Last: of each pair one step down the primary key.
func (s Rates) last(ctx context.Context, until time.Time, pairs []rate.Pair) *bun.SelectQuery {
	conn := s.db.Conn(ctx)
	of := func(column string) *bun.SelectQuery {
		return conn.NewSelect().Model((*exchangeRateRow)(nil)).Column(column).Where("r.pair_id = p.id").
			Where("r.at <= ?", until.UnixMilli()).OrderExpr("r.at DESC").Limit(1)
	}
	q := conn.NewSelect().Model((*exchangePairRow)(nil)).Column("base", "quote").ColumnExpr("(?) AS at", of("at")).
		ColumnExpr("(?) AS rate", of("rate")).OrderExpr("base, quote")
	if len(pairs) == 0 {
		return q
	}
	return q.WhereGroup(" AND ", func(q *bun.SelectQuery) *bun.SelectQuery {
		for _, p := range pairs {
			q = q.WhereOr("p.base = ? AND p.quote = ?", p.Base, p.Quote)
		}
		return q
	})
}
