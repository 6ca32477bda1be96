package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/cronkey"
	"castellan/domain/keyring"
	"castellan/persistence/engine"
)

// CronKeys implements cronkey.Store.
type CronKeys struct{ db *DB }

var _ cronkey.Store = CronKeys{}

// NewCronKeys returns the keys of scheduled clients kept in db.
func NewCronKeys(db *DB) CronKeys { return CronKeys{db} }

type cronKeyRow struct {
	bun.BaseModel `bun:"table:cron_key,alias:k"`

	Name      string `bun:",pk"`
	HashKey   string
	Hash      []byte
	CreatedAt int64
}

var cronKeyFences = []engine.Kind{
	engine.AllFenced(func(w cronkey.Remove) string { return w.Name },
		func(ctx context.Context, tx bun.Tx, ws []cronkey.Remove) (gone []string, err error) {
			names := make([]string, len(ws))
			for i, w := range ws {
				names[i] = w.Name
			}
			_, err = tx.NewDelete().Table("cron_key").Where("name IN (?)", bun.List(names)).Returning("name").
				Exec(ctx, &gone)
			return gone, err
		}),
}

var cronKeyWrites = []engine.Kind{
	engine.Insert(func(w cronkey.Add) cronKeyRow {
		return cronKeyRow{Name: w.Name, HashKey: w.Hash.Key, Hash: w.Hash.Sum, CreatedAt: ms(w.CreatedAt)}
	}),
}

var cronKeys = table[cronKeyRow, cronkey.Key]{
	order: keyset{columns: "name"},
	record: func(r cronKeyRow) (cronkey.Key, error) {
		return cronkey.Key{Name: r.Name, Hash: keyring.Sum{Key: r.HashKey, Sum: r.Hash}, CreatedAt: at(r.CreatedAt)},
			nil
	},
}

// Keys implements cronkey.Store.
func (s CronKeys) Keys(ctx context.Context) ([]cronkey.Key, error) {
	return cronKeys.list(ctx, s.db, part{})
}
