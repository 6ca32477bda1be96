package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/people/intake"
	"castellan/persistence/account"
	"castellan/persistence/engine"
)

// Intake keeps the imports of users.
type Intake struct{ db *engine.DB }

var _ intake.Store = Intake{}

func NewIntake(db *engine.DB) Intake { return Intake{db} }

type importRow struct {
	bun.BaseModel `bun:"table:user_import,alias:i"`

	ID        string `bun:",pk"`
	Version   int64
	Position  int64
	Imported  int64
	Refused   int64
	Done      bool
	CreatedAt int64
	UpdatedAt int64
}

type refusalRow struct {
	bun.BaseModel `bun:"table:user_import_refusal,alias:r"`

	ImportID string `bun:",pk"`
	Line     int64  `bun:",pk"`
	Reason   string
}

type noteRow struct {
	bun.BaseModel `bun:"table:user_import_note,alias:n"`

	ImportID string `bun:",pk"`
	Line     int64  `bun:",pk"`
	Note     string
}

// IntakeFences are the writes of the progress.
var IntakeFences = []engine.Kind{
	engine.FencedByVersion(true, func(w intake.Save) importRow {
		return importRow{ID: w.ID, Version: max(w.Version, 1), Position: w.Cursor, Imported: w.Imported,
			Refused: w.Refused, Done: w.Done, CreatedAt: engine.Millis(w.StartedAt), UpdatedAt: engine.Millis(w.At)}
	}, "position", "imported", "refused", "done", "updated_at"),
}

// IntakeWrites are the writes of refused lines and of notes.
var IntakeWrites = []engine.Kind{
	engine.Insert(func(w intake.Refuse) refusalRow {
		return refusalRow{ImportID: w.ImportID, Line: w.Line, Reason: w.Reason}
	}),
	engine.Insert(func(w intake.Remark) noteRow {
		return noteRow{ImportID: w.ImportID, Line: w.Line, Note: w.Text}
	}),
}

func (s Intake) State(ctx context.Context, id string) (intake.State, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var r importRow
	err := engine.Translate(s.db.Conn(ctx).NewSelect().Model(&r).Where("id = ?", id).Scan(ctx))
	if fault.CodeOf(err) == fault.RecordNotFound {
		return intake.State{ID: id}, nil
	}
	return intake.State{ID: r.ID, Version: r.Version, Cursor: r.Position, Imported: r.Imported, Refused: r.Refused,
		Done: r.Done, StartedAt: engine.Time(r.CreatedAt)}, err
}

func (s Intake) Refusals(ctx context.Context, id string, after int64, limit int) ([]intake.Refusal, error) {
	return lines(ctx, s.db, id, after, limit, func(r refusalRow) intake.Refusal {
		return intake.Refusal{Line: r.Line, Reason: r.Reason}
	})
}

func (s Intake) Notes(ctx context.Context, id string, after int64, limit int) ([]intake.Note, error) {
	return lines(ctx, s.db, id, after, limit, func(r noteRow) intake.Note {
		return intake.Note{Line: r.Line, Text: r.Note}
	})
}

func lines[R, T any](ctx context.Context, db *engine.DB, id string, after int64, limit int, of func(R) T) ([]T, error) {
	ctx, cancel := db.Bound(ctx)
	defer cancel()
	var rows []R
	err := db.Conn(ctx).NewSelect().Model(&rows).Where("import_id = ?", id).Where("line > ?", after).Order("line").
		Limit(int64(limit)).Scan(ctx)
	list := make([]T, len(rows))
	for i, r := range rows {
		list[i] = of(r)
	}
	return list, engine.Translate(err)
}

// Taken returns those of the names that accounts have.
func (s Intake) Taken(ctx context.Context, n intake.Names) (found intake.Names, err error) {
	if found.Phones, err = account.NewUsers(s.db).PhonesTaken(ctx, n.Phones); err != nil {
		return found, err
	}
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	for _, q := range []struct {
		table, column string
		names         []string
		to            *[]string
	}{{"users", "email", n.Mails, &found.Mails},
		{"integration_claim", "external_id", n.ExternalIDs, &found.ExternalIDs}} {
		if len(q.names) == 0 {
			continue
		}
		sel := s.db.Conn(ctx).NewSelect().Table(q.table).Column(q.column).Where("? IN (?)", bun.Ident(q.column),
			bun.List(q.names))
		if q.table == "integration_claim" {
			sel = sel.Where("kind = ?", string(integration.Users))
		}
		if err := sel.Scan(ctx, q.to); err != nil {
			return found, engine.Translate(err)
		}
	}
	return found, nil
}

func (s Intake) ExternalIDs(ctx context.Context, userIDs []string) (map[string]string, error) {
	of := map[string]string{}
	if len(userIDs) == 0 {
		return of, nil
	}
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []struct{ RecordID, ExternalID string }
	err := s.db.Conn(ctx).NewSelect().Table("integration_claim").Column("record_id", "external_id").
		Where("kind = ?", string(integration.Users)).Where("record_id IN (?)", bun.List(userIDs)).Scan(ctx, &rows)
	for _, r := range rows {
		of[r.RecordID] = r.ExternalID
	}
	return of, engine.Translate(err)
}
