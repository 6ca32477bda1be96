package office

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/office/foureyes"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type FourEyes struct{ db *engine.DB }

func NewFourEyes(db *engine.DB) foureyes.Store { return FourEyes{db} }

type fourEyesRow struct {
	bun.BaseModel `bun:"table:four_eyes,alias:f"`

	ID          string `bun:",pk"`
	Method      string
	Path        string
	Summary     string
	RequestedBy string
	RequestedAt int64
	ExpiresAt   int64
	Status      string
	DecidedBy   string
	DecidedAt   int64
	Reason      string
	Sealed      []byte
	Result      []byte
}

var fourEyes = record.Of(record.Table[fourEyesRow, foureyes.Request]{
	Order:  record.Keyset{Columns: "id", Descending: true},
	Fixed:  []string{"id", "method", "path", "summary", "requested_by", "requested_at", "expires_at"},
	Absent: "no such request",
}, nil)

func (s FourEyes) Add(ctx context.Context, r foureyes.Request) error {
	row := fourEyes.Row(r)
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		_, err := tx.NewInsert().Model(&row).Exec(ctx)
		return err
	})
}

func (s FourEyes) Get(ctx context.Context, id string) (foureyes.Request, error) {
	return fourEyes.Find(ctx, s.db, record.Is("id", id))
}

func (s FourEyes) Hold(ctx context.Context, id string) (foureyes.Request, error) {
	return fourEyes.Lock(ctx, s.db, record.Is("id", id))
}

func (s FourEyes) Decide(ctx context.Context, r foureyes.Request) error {
	return fourEyes.Save(ctx, s.db, r, record.Is("id", r.ID), record.Where("sealed IS NOT NULL"))
}

func fourEyesFilters(q foureyes.Query) []record.Filter {
	now, approved := engine.Millis(q.Now), engine.Millis(q.Now.Add(-foureyes.FetchTime))
	all := []record.Filter{record.Given("status", string(q.Status))}
	switch q.Status {
	case foureyes.Pending:
		all = append(all, record.Where("expires_at > ?", now))
	case foureyes.Approved:
		all = append(all, record.Where("(sealed IS NULL OR decided_at > ?)", approved))
	case foureyes.Expired:
		all = []record.Filter{record.Where("(status = ? AND expires_at <= ? OR "+
			"status = ? AND sealed IS NOT NULL AND decided_at <= ?)", string(foureyes.Pending), now,
			string(foureyes.Approved), approved)}
	}
	return all
}

func (s FourEyes) List(ctx context.Context, q foureyes.Query,
	p page.Query[foureyes.Place]) (page.Of[foureyes.Request], error) {
	got, err := record.ListPage(ctx, s.db, fourEyes, p, record.ByID, fourEyesFilters(q))
	for i := range got.Records {
		got.Records[i] = got.Records[i].At(q.Now)
	}
	return got, err
}

// Ids begin with the instant of their making.
func (s FourEyes) Purge(ctx context.Context, before time.Time) error {
	return s.db.Purge(ctx, "four_eyes", "id", "id < ?", id.Before(before))
}
