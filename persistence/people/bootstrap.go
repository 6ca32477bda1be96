package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/keyring"
	"castellan/domain/people/bootstrap"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Bootstrap struct{ db *engine.DB }

var _ bootstrap.Store = Bootstrap{}

func NewBootstrap(db *engine.DB) Bootstrap { return Bootstrap{db} }

// bootstrapLock is the key under which the link changes and administrators are added.
const bootstrapLock = 0x7365747570206c6e // "setup ln"

// theLink is the id of the only row.
const theLink = 1

type setupLinkRow struct {
	bun.BaseModel `bun:"table:setup_link,alias:l"`

	ID        int64 `bun:",pk"`
	SumKey    string
	Sum       []byte
	CreatedAt int64
	ExpiresAt int64
	SpentKey  string
	Spent     []byte
	UserID    string
}

var setupLinks = record.Table[setupLinkRow, bootstrap.Link]{
	Absent: "there is no setup link",
	Record: func(r setupLinkRow) (bootstrap.Link, error) {
		return bootstrap.Link{Sum: keyring.Sum{Key: r.SumKey, Sum: r.Sum}, CreatedAt: engine.Time(r.CreatedAt),
			ExpiresAt: engine.Time(r.ExpiresAt), Spent: keyring.Sum{Key: r.SpentKey, Sum: r.Spent},
			UserID: r.UserID}, nil
	},
	Row: func(l bootstrap.Link) setupLinkRow {
		return setupLinkRow{ID: theLink, SumKey: l.Sum.Key, Sum: l.Sum.Sum, CreatedAt: engine.Millis(l.CreatedAt),
			ExpiresAt: engine.Millis(l.ExpiresAt), SpentKey: l.Spent.Key, Spent: append([]byte{}, l.Spent.Sum...),
			UserID: l.UserID}
	},
}

func (s Bootstrap) Lock(ctx context.Context) error { return s.db.LockTx(ctx, bootstrapLock) }

func (s Bootstrap) Get(ctx context.Context) (bootstrap.Link, error) {
	return setupLinks.Find(ctx, s.db, record.Is("id", theLink))
}

func (s Bootstrap) Put(ctx context.Context, l bootstrap.Link) error {
	row := setupLinks.Row(l)
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		if _, err := tx.NewDelete().Model(&row).WherePK().Exec(ctx); err != nil {
			return err
		}
		_, err := tx.NewInsert().Model(&row).Exec(ctx)
		return err
	})
}
