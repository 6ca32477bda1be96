package permit

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/keyring"
	"castellan/domain/permit/cronkey"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type CronKeys struct{ db *engine.DB }

func NewCronKeys(db *engine.DB) cronkey.Store { return CronKeys{db} }

type cronKeyRow struct {
	bun.BaseModel `bun:"table:cron_key,alias:k"`

	Name      string `bun:",pk"`
	HashKey   string
	Hash      []byte
	CreatedAt int64
}

var CronKeyFences = []engine.Kind{
	engine.Fenced("DELETE FROM cron_key {USING v} WHERE cron_key.name = v.name {RETURNING cron_key.name}",
		func(w cronkey.Remove) cronKeyRow { return cronKeyRow{Name: w.Name} }),
}

var CronKeyWrites = []engine.Kind{
	engine.Insert(func(w cronkey.Add) cronKeyRow {
		return cronKeyRow{Name: w.Name, HashKey: w.Hash.Key, Hash: w.Hash.Sum, CreatedAt: engine.Millis(w.CreatedAt)}
	}),
}

var cronKeys = record.Table[cronKeyRow, cronkey.Key]{
	Order: record.Keyset{Columns: "name"},
	Record: func(r cronKeyRow) (cronkey.Key, error) {
		return cronkey.Key{Name: r.Name, Hash: keyring.Sum{Key: r.HashKey, Sum: r.Hash}, CreatedAt: engine.Time(r.CreatedAt)},
			nil
	},
}

func (s CronKeys) Keys(ctx context.Context) ([]cronkey.Key, error) {
	return cronKeys.List(ctx, s.db, record.Part{})
}
