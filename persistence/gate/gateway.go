package gate

import (
	"context"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/gate/gateway"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// Gateways keeps the routes and the grants of the guard for gateways.
type Gateways struct{ db *engine.DB }

func NewGateways(db *engine.DB) gateway.Store { return Gateways{db} }

type guardRouteRow struct {
	bun.BaseModel `bun:"table:guard_route,alias:r"`

	ID                 int64 `bun:",pk,autoincrement"`
	Host, Method, Path string
	Mode, ActionCode   string
	Display            record.JSON[[]gateway.Row]
	Status             string
	record.Stamps
}

type guardGrantRow struct {
	bun.BaseModel `bun:"table:guard_grant,alias:g"`

	ID     string `bun:",pk"`
	UserID string
	MadeAt int64
	UsedAt int64
	UseID  string
}

type guardSpelledRow struct {
	bun.BaseModel `bun:"table:guard_spelled,alias:s"`

	ID      string `bun:",pk"`
	RouteID int64
	Reader  string
	Hour    int64
	Sent    string
	Count   int64
}

// usedGrant is the change of a row.
type usedGrant struct {
	ID     string
	UsedAt int64
	UseID  string
}

// GatewayFences use a grant once.
var GatewayFences = []engine.Kind{
	engine.Fenced("UPDATE guard_grant SET used_at = v.used_at, use_id = v.use_id {FROM v} "+
		"WHERE guard_grant.id = v.id AND guard_grant.used_at = 0 {RETURNING guard_grant.id}",
		func(w gateway.Use) usedGrant { return usedGrant{w.ID, engine.Millis(w.At), w.Use} }),
}

var GatewayWrites = []engine.Kind{
	engine.Insert(func(w gateway.Add) guardGrantRow { return guardGrants.Row(w.Grant) }),
}

var guardRoutes = record.Of(record.Table[guardRouteRow, gateway.Route]{
	Order:  record.Keyset{Columns: "id"},
	Fixed:  []string{"id", "created_at"},
	Absent: "there is no route of this id",
}, record.Names{"Display": "Rows"})

var guardGrants = record.Of(record.Table[guardGrantRow, gateway.Grant]{Absent: "there is no such grant"},
	record.Names{"UseID": "Use"})

var guardSpelled = record.Of(record.Table[guardSpelledRow, gateway.Spelled]{}, record.Names{"ID": ""})

func (s Gateways) Routes(ctx context.Context) ([]gateway.Route, error) {
	return guardRoutes.List(ctx, s.db, record.Part{})
}

func (s Gateways) Add(ctx context.Context, r gateway.Route) (int64, error) {
	return guardRoutes.Add(ctx, s.db, r)
}

func (s Gateways) Change(ctx context.Context, id int64, f func(gateway.Route) (gateway.Route, error)) error {
	return guardRoutes.Change(ctx, s.db, f, record.Is("id", id))
}

func (s Gateways) Remove(ctx context.Context, id int64) error {
	return guardRoutes.Remove(ctx, s.db, record.Is("id", id))
}

// Grant reads a grant by the id of its challenge.
func (s Gateways) Grant(ctx context.Context, id string) (gateway.Grant, error) {
	return guardGrants.Find(ctx, s.db, record.Is("id", id))
}

// Count adds to the requests of a route, a reader and an hour.
func (s Gateways) Count(ctx context.Context, w gateway.Spelled) error {
	return s.db.InTx(ctx, func(ctx context.Context) error {
		_, err := s.db.Conn(ctx).NewRaw("INSERT INTO guard_spelled (id, route_id, reader, hour, sent, count) "+
			"VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET count = guard_spelled.count + excluded.count",
			spelledID(w.Hour)+fmt.Sprintf("/%d/%s", w.RouteID, w.Reader), w.RouteID, w.Reader, engine.Millis(w.Hour),
			w.Sent, w.Count).Exec(ctx)
		return engine.Translate(err)
	})
}

// Spelled lists the requests of the hours since an instant.
func (s Gateways) Spelled(ctx context.Context, since time.Time) ([]gateway.Spelled, error) {
	return guardSpelled.List(ctx, s.db, record.Part{Where: []record.Filter{record.Where("id >= ?", spelledID(since))}})
}

// spelledID is the start of the ids of an hour.
func spelledID(hour time.Time) string { return fmt.Sprintf("%013d", engine.Millis(hour)) }

// spelledLife is how long the counts of an hour are kept.
const spelledLife = 25 * time.Hour

// Purge removes old grants and counts: the id of a challenge begins with its creation.
func (s Gateways) Purge(ctx context.Context, before time.Time) error {
	if err := s.db.Purge(ctx, "guard_spelled", "id", "id < ?", spelledID(before.Add(-spelledLife))); err != nil {
		return err
	}
	return s.db.Purge(ctx, "guard_grant", "id", "id < ?", id.Before(before))
}
