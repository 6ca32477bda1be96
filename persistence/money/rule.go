package money

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/money/policy"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// Rules keeps the rules of the money policy.
type Rules struct{ db *engine.DB }

var _ policy.Store = Rules{}

// NewRules returns the rules kept in db.
func NewRules(db *engine.DB) Rules { return Rules{db} }

type ruleRow struct {
	bun.BaseModel `bun:"table:money_rule,alias:r"`

	Label      string `bun:",pk"`
	Version    int64  `bun:",pk"`
	Status     string
	Definition record.JSON[policy.Rule]
	CreatedAt  int64
}

// ruleLock is the key under which rules change: each is judged among all others.
const ruleLock = 0x6d6f6e6579726c // "moneyrl"

// Lock makes the changes of rules wait for each other.
func (s Rules) Lock(ctx context.Context) error { return s.db.LockTx(ctx, ruleLock) }

// deleted is the status of a version that ends its rule.
const deleted = "DELETED"

func (s Rules) Rules(ctx context.Context, labels ...string) ([]policy.Rule, error) {
	var rows []ruleRow
	q := s.db.Conn(ctx).NewSelect().Model(&rows).Where("status <> ?", deleted).
		Where("version = (SELECT max(version) FROM money_rule WHERE label = r.label)").Order("label")
	if len(labels) > 0 {
		q.Where("label IN (?)", bun.List(labels))
	}
	if err := q.Scan(ctx); err != nil {
		return nil, fmt.Errorf("rules: %w", engine.Translate(err))
	}
	all := make([]policy.Rule, len(rows))
	for i, r := range rows {
		all[i] = r.Definition.V
		all[i].Label, all[i].Version = r.Label, r.Version
	}
	return all, nil
}

func (s Rules) Last(ctx context.Context, label string) (version int64, err error) {
	var last sql.NullInt64
	err = s.db.Conn(ctx).NewSelect().Table("money_rule").ColumnExpr("max(version)").Where("label = ?", label).
		Scan(ctx, &last)
	return last.Int64, engine.Translate(err)
}

func (s Rules) Put(ctx context.Context, r policy.Rule, ends bool, at time.Time) error {
	row := ruleRow{Label: r.Label, Version: r.Version, Status: string(r.Status), Definition: record.JSONOf(r),
		CreatedAt: engine.Millis(at)}
	if ends {
		row.Status = deleted
	}
	return s.db.InTx(ctx, func(ctx context.Context) error {
		_, err := s.db.Conn(ctx).NewInsert().Model(&row).Exec(ctx)
		return engine.Translate(err)
	})
}
