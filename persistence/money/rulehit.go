package money

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/sorting"
	"castellan/domain/money/policy"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

var _ policy.HitStore = Rules{}

// hitRow is how often a version of a rule asked for something in an hour.
type hitRow struct {
	bun.BaseModel `bun:"table:money_rule_hit,alias:h"`

	Hour    int64  `bun:",pk"` // its begin
	Label   string `bun:",pk"`
	Version int64  `bun:",pk"`
	Number  int64
}

// AddHits adds the counts by one statement, in one order, so that no two nodes wait for each other.
func (s Rules) AddHits(ctx context.Context, at time.Time, counts map[policy.Named]int64) error {
	rows := make([]hitRow, 0, len(counts))
	for n, c := range counts {
		rows = append(rows, hitRow{Hour: engine.Millis(at.Truncate(time.Hour)), Label: n.Label, Version: n.Version,
			Number: c})
	}
	sorting.Func(rows, func(a, b hitRow) int {
		return cmp.Or(strings.Compare(a.Label, b.Label), cmp.Compare(a.Version, b.Version))
	})
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&rows).On("CONFLICT (hour, label, version) DO UPDATE").
			Set("number = h.number + EXCLUDED.number").Exec(ctx)
		return err
	})
}

func (s Rules) Hits(ctx context.Context, since time.Time) (map[policy.Named]int64, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []hitRow
	err := s.db.Conn(ctx).NewSelect().Model(&rows).ExcludeColumn("hour").
		Where("hour >= ?", engine.Millis(since.Truncate(time.Hour))).Scan(ctx)
	all := map[policy.Named]int64{}
	for _, r := range rows {
		all[policy.Named{Label: r.Label, Version: r.Version}] += r.Number
	}
	return all, engine.Translate(err)
}

// PurgeHits deletes the hits of the hours that began before an instant.
func (s Rules) PurgeHits(ctx context.Context, before time.Time) error {
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewDelete().Model((*hitRow)(nil)).Where("hour < ?", engine.Millis(before)).Exec(ctx)
		return err
	})
}
