package access

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/access/gateway"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// Gateways keeps the routes and the grants of the guard for gateways.
type Gateways struct{ db *engine.DB }

var _ gateway.Store = Gateways{}

// NewGateways returns the routes and grants kept in db.
func NewGateways(db *engine.DB) Gateways { return Gateways{db} }

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
	engine.Insert(func(w gateway.Add) guardGrantRow {
		return guardGrantRow{ID: w.ID, UserID: w.UserID, MadeAt: engine.Millis(w.MadeAt)}
	}),
}

var guardRoutes = record.Table[guardRouteRow, gateway.Route]{
	Order:  record.Keyset{Columns: "id"},
	Fixed:  []string{"id", "created_at"},
	Absent: "there is no route of this id",
	Record: func(r guardRouteRow) (gateway.Route, error) {
		return gateway.Route{ID: r.ID, Host: r.Host, Method: r.Method, Path: r.Path, Mode: gateway.Mode(r.Mode),
			ActionCode: r.ActionCode, Rows: r.Display.V, Status: gateway.Status(r.Status),
			UpdatedAt: engine.Time(r.UpdatedAt)}, nil
	},
	Row: func(r gateway.Route) guardRouteRow {
		return guardRouteRow{ID: r.ID, Host: r.Host, Method: r.Method, Path: r.Path, Mode: string(r.Mode),
			ActionCode: r.ActionCode, Display: record.JSONOf(r.Rows), Status: string(r.Status)}
	},
}

var guardGrants = record.Table[guardGrantRow, gateway.Grant]{
	Absent: "there is no such grant",
	Record: func(r guardGrantRow) (gateway.Grant, error) {
		return gateway.Grant{ID: r.ID, UserID: r.UserID, MadeAt: engine.Time(r.MadeAt), UsedAt: engine.Time(r.UsedAt),
			Use: r.UseID}, nil
	},
}

// Routes lists every route.
func (s Gateways) Routes(ctx context.Context) ([]gateway.Route, error) {
	return guardRoutes.List(ctx, s.db, record.Part{})
}

// Add inserts a route.
func (s Gateways) Add(ctx context.Context, r gateway.Route) (int64, error) {
	return guardRoutes.Add(ctx, s.db, r)
}

// Change changes a route as one step.
func (s Gateways) Change(ctx context.Context, id int64, f func(gateway.Route) (gateway.Route, error)) error {
	return guardRoutes.Change(ctx, s.db, f, record.Is("id", id))
}

// Remove deletes a route.
func (s Gateways) Remove(ctx context.Context, id int64) error {
	return guardRoutes.Remove(ctx, s.db, record.Is("id", id))
}

// Grant reads a grant by the id of its challenge.
func (s Gateways) Grant(ctx context.Context, id string) (gateway.Grant, error) {
	return guardGrants.Find(ctx, s.db, record.Is("id", id))
}

// Purge removes old grants: the id of a challenge begins with its creation.
func (s Gateways) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "guard_grant", "id", "id < ?", id.Before(before))
}
