package kit

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/id"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/page"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// Integration keeps the external ids and the events of other services.
type Integration struct{ db *engine.DB }

var _ integration.Store = Integration{}

func NewIntegration(db *engine.DB) Integration { return Integration{db} }

type claimRow struct {
	bun.BaseModel `bun:"table:integration_claim,alias:c"`

	Kind       string `bun:",pk"`
	ExternalID string `bun:",pk"`
	Digest     []byte
	RecordID   string
	CreatedAt  int64
}

// newEventRow is an event as it is inserted: the database gives it its place.
type newEventRow struct {
	bun.BaseModel `bun:"table:integration_event"`

	ID     string `bun:",pk"`
	Type   string
	UserID string
	Data   string
	At     int64
}

type eventRow struct {
	bun.BaseModel `bun:"table:integration_event,alias:e"`

	Tx               int64
	ID, Type, UserID string
	Data             record.JSON[map[string]string]
	At               int64
}

// rebindRow binds an external id to another record.
type rebindRow struct {
	Kind, ExternalID, FromID, RecordID string
}

var IntegrationFences = []engine.Kind{
	engine.Fenced("UPDATE integration_claim SET record_id = v.record_id {FROM v} "+
		"WHERE integration_claim.kind = v.kind AND integration_claim.external_id = v.external_id "+
		"AND integration_claim.record_id = v.from_id "+
		"{RETURNING integration_claim.kind || '/' || integration_claim.external_id}",
		func(w integration.Rebind) rebindRow {
			return rebindRow{Kind: string(w.Kind), ExternalID: w.ExternalID, FromID: w.From, RecordID: w.To}
		}),
}

var IntegrationWrites = []engine.Kind{
	engine.Insert(func(w integration.Add) claimRow { return claims.Row(w.Claim) }),
	engine.Insert(func(w integration.Publish) newEventRow {
		return newEventRow{ID: w.ID, Type: string(w.Type), UserID: w.UserID, Data: engine.WriteJSON(w.Data),
			At: engine.Millis(w.At)}
	}),
}

var claims = record.Of(record.Table[claimRow, integration.Claim]{
	Order:  record.Keyset{Columns: "kind, external_id"},
	Absent: "there is no record of this external id",
}, record.Names{"CreatedAt": "At"})

var events = record.Of(record.Table[eventRow, integration.Event]{Order: record.Keyset{Columns: "tx, id"}}, nil)

func (s Integration) Claim(ctx context.Context, kind integration.Kind, externalID string) (integration.Claim, error) {
	return claims.Find(ctx, s.db, record.Is("kind", string(kind)), record.Is("external_id", externalID))
}

// ClaimOf reads the claim that is bound to a record.
func (s Integration) ClaimOf(ctx context.Context, kind integration.Kind, recordID string) (integration.Claim, error) {
	return claims.Find(ctx, s.db, record.Is("kind", string(kind)), record.Is("record_id", recordID))
}

// EventsOffset is added to the numbers of PostgreSQL's transactions: after a restore they may begin again.
const EventsOffset = "(SELECT COALESCE(MAX(events_offset), 0) FROM restore)"

// lost reports whether a restore has lost the event at a place.
func (s Integration) lost(ctx context.Context, tx int64) (bool, error) {
	return engine.Read(ctx, s.db, s.db.Conn(ctx).NewSelect().Table("restore").Where("events_after < ?", tx).
		Where("events_from > ?", tx).Exists)
}

// Events lists events in the order of their commits.
func (s Integration) Events(ctx context.Context, q integration.EventQuery,
	p page.Query[integration.Place]) (page.Of[integration.Event], error) {
	filters := []record.Filter{record.Among("type", q.Types)}
	if s.db.Postgres() {
		filters = append(filters, record.Where("tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint + "+EventsOffset))
	}
	if p.After != nil {
		lost, err := s.lost(ctx, p.After.Tx)
		if err == nil && lost {
			err = integration.ErrLost
		}
		if err != nil {
			return page.Of[integration.Event]{}, err
		}
	}
	return record.ListPage(ctx, s.db, events, p, func(m integration.Place) []any { return []any{m.Tx, m.ID} }, filters)
}

// PurgeEvents removes the events that are older than before.
func (s Integration) PurgeEvents(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "integration_event", "id", "id < ?", id.Before(before))
}
