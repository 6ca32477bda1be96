package persistence

import (
	"context"
	"reflect"
	"slices"

	"github.com/uptrace/bun"

	"castellan/domain/commit"
	"castellan/domain/cronkey"
	"castellan/domain/keyring"
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

var cronKeyFences = []planFor{
	{reflect.TypeFor[cronkey.Remove](), plan{apply: func(ctx context.Context, l *lane, ws []commit.Write) (missing []int, err error) {
		names := make([]string, len(ws))
		for i, w := range ws {
			names[i] = w.(cronkey.Remove).Name
		}
		slices.Sort(names) // one order in every process
		var gone []string
		if _, err = l.tx.NewDelete().Table("cron_key").Where("name IN (?)", bun.List(names)).Returning("name").Exec(ctx, &gone); err != nil {
			return nil, err
		}
		for i, w := range ws {
			if !slices.Contains(gone, w.(cronkey.Remove).Name) {
				missing = append(missing, i)
			}
		}
		return missing, nil
	}}},
}

var cronKeyWrites = []planFor{
	inserts(func(_ *DBRow, w cronkey.Add) cronKeyRow {
		return cronKeyRow{Name: w.Name, HashKey: w.Hash.Key, Hash: w.Hash.Sum, CreatedAt: ms(w.CreatedAt)}
	}),
}

// Keys implements cronkey.Store.
func (s CronKeys) Keys(ctx context.Context) ([]cronkey.Key, error) {
	ctx, cancel := s.db.bound(ctx)
	defer cancel()
	var rows []cronKeyRow
	err := s.db.conn(ctx).NewSelect().Model(&rows).Order("name").Scan(ctx)
	out := make([]cronkey.Key, len(rows))
	for i, r := range rows {
		out[i] = cronkey.Key{Name: r.Name, Hash: keyring.Sum{Key: r.HashKey, Sum: r.Hash}, CreatedAt: at(r.CreatedAt)}
	}
	return out, translate(err)
}
