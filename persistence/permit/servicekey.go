package permit

import (
	"context"
	"net/netip"

	"github.com/uptrace/bun"

	"castellan/domain/kit/keyring"
	"castellan/domain/permit/servicekey"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// ServiceKeys keeps the keys of service clients.
type ServiceKeys struct{ db *engine.DB }

func NewServiceKeys(db *engine.DB) servicekey.Store { return ServiceKeys{db} }

type serviceKeyRow struct {
	bun.BaseModel `bun:"table:service_key,alias:k"`

	ID                   int64 `bun:",pk,autoincrement"`
	Name, Role           string
	Networks             record.JSON[[]netip.Prefix]
	Actions              record.JSON[[]string]
	Callback             string
	HashKey              string
	Hash                 []byte
	OldHashKey           string
	OldHash              []byte
	OldUntil, RotatedAt  int64
	CreatedAt, UpdatedAt int64
}

var serviceKeys = record.Table[serviceKeyRow, servicekey.Key]{
	Order:  record.Keyset{Columns: "name"},
	Fixed:  []string{"id", "name", "created_at", "updated_at"},
	Absent: "there is no key of this name",
	Record: func(r serviceKeyRow) (servicekey.Key, error) {
		return servicekey.Key{Name: r.Name, Role: r.Role, Networks: r.Networks.V,
			Actions: r.Actions.V, Callback: r.Callback,
			Hash:     keyring.Sum{Key: r.HashKey, Sum: r.Hash},
			OldHash:  keyring.Sum{Key: r.OldHashKey, Sum: r.OldHash},
			OldUntil: engine.Time(r.OldUntil), RotatedAt: engine.Time(r.RotatedAt), CreatedAt: engine.Time(r.CreatedAt)}, nil
	},
	Row: func(k servicekey.Key) serviceKeyRow {
		return serviceKeyRow{Name: k.Name, Role: k.Role, Networks: record.JSONOf(k.Networks),
			Actions: record.JSONOf(k.Actions), Callback: k.Callback, HashKey: k.Hash.Key, Hash: k.Hash.Sum,
			OldHashKey: k.OldHash.Key, OldHash: k.OldHash.Sum, OldUntil: engine.Millis(k.OldUntil),
			RotatedAt: engine.Millis(k.RotatedAt),
			CreatedAt: engine.Millis(k.CreatedAt), UpdatedAt: engine.Millis(k.CreatedAt)}
	},
}

func (s ServiceKeys) List(ctx context.Context) ([]servicekey.Key, error) {
	return serviceKeys.List(ctx, s.db, record.Part{})
}

func (s ServiceKeys) Add(ctx context.Context, k servicekey.Key) error {
	_, err := serviceKeys.Add(ctx, s.db, k)
	return err
}

func (s ServiceKeys) Change(ctx context.Context, name string, f func(servicekey.Key) (servicekey.Key, error)) error {
	return serviceKeys.Change(ctx, s.db, f, record.Is("name", name))
}

func (s ServiceKeys) Remove(ctx context.Context, name string) error {
	return serviceKeys.Remove(ctx, s.db, record.Is("name", name))
}
