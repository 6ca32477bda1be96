package gate

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/gate/errand"
	"castellan/domain/kit/id"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

// Errands keeps the operations of other services.
type Errands struct{ db *engine.DB }

func NewErrands(db *engine.DB) errand.Store { return Errands{db} }

type errandRow struct {
	bun.BaseModel `bun:"table:errand,alias:e"`

	ID                 string `bun:",pk"`
	Service, Reference string
	Digest             []byte
	Action, UserID     string
	Status             int16
	CreatedAt          int64
	ExpiresAt          int64
	SettledAt          int64
	Intent             string
	Methods            string // separated by spaces
	Payload            []byte
	RedeemedAt         int64
	Redemption         string
}

// settledErrand and redeemedErrand are the changes of a row.
type settledErrand struct {
	ID        string
	Status    int16
	SettledAt int64
	Intent    string
	Methods   string
	Payload   []byte
}

type redeemedErrand struct {
	ID         string
	RedeemedAt int64
	Redemption string
}

// errandStates are the stored numbers of the states.
var errandStates = []errand.Status{errand.Pending, errand.Completed, errand.Denied, errand.Expired, errand.Failed}

func errandState(s errand.Status) int16 { return int16(slices.Index(errandStates, s)) }

// ErrandFences settle a pending errand, and redeem a completed one (status 1).
var ErrandFences = []engine.Kind{
	engine.Fenced("UPDATE errand SET status = v.status, settled_at = v.settled_at, intent = v.intent, "+
		"methods = v.methods, payload = v.payload {FROM v} WHERE errand.id = v.id AND errand.status = 0 "+
		"{RETURNING errand.id}",
		func(w errand.Settle) settledErrand {
			return settledErrand{w.ID, errandState(w.Status), engine.Millis(w.SettledAt), w.Intent,
				strings.Join(w.Methods, " "), w.Payload}
		}),
	engine.Fenced("UPDATE errand SET redeemed_at = v.redeemed_at, redemption = v.redemption, payload = NULL {FROM v} "+
		"WHERE errand.id = v.id AND errand.status = 1 AND errand.redeemed_at = 0 {RETURNING errand.id}",
		func(w errand.Redeem) redeemedErrand {
			return redeemedErrand{w.ID, engine.Millis(w.At), w.Redemption}
		}),
}

var ErrandWrites = []engine.Kind{
	engine.Insert(func(w errand.Add) errandRow { return errands.Row(w.Errand) }),
}

var errands = record.Of(record.Table[errandRow, errand.Errand]{
	Order:  record.Keyset{Columns: "expires_at"},
	Absent: "there is no such challenge of this service",
	Reads: func(r errandRow, e *errand.Errand) error {
		e.Status, e.Methods = errandStates[r.Status], strings.Fields(r.Methods)
		return nil
	},
	Writes: func(e errand.Errand, r *errandRow) {
		r.Status, r.Methods = errandState(e.Status), strings.Join(e.Methods, " ")
	},
}, record.Names{"Status": "", "Methods": ""}, "Status", "Methods")

func (s Errands) Get(ctx context.Context, id string) (errand.Errand, error) {
	return errands.Find(ctx, s.db, record.Is("id", id))
}

func (s Errands) Referenced(ctx context.Context, service, reference string) (errand.Errand, error) {
	return errands.Find(ctx, s.db, record.Is("service", service), record.Is("reference", reference))
}

// Overdue lists pending errands whose challenge has expired.
func (s Errands) Overdue(ctx context.Context, expired time.Time, max int) ([]errand.Errand, error) {
	return errands.List(ctx, s.db, record.Part{Limit: max,
		Where: []record.Filter{record.Where("status = 0 AND expires_at <= ?", engine.Millis(expired))}})
}

// Purge removes old errands: their ids begin with their creation.
func (s Errands) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "errand", "id", "id < ?", id.Before(before))
}
