package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/people/intake"
	"castellan/persistence/account"
	"castellan/persistence/engine"
	"castellan/persistence/record"
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

var (
	imports = record.Of(record.Table[importRow, intake.State]{},
		record.Names{"Position": "Cursor", "CreatedAt": "StartedAt", "UpdatedAt": ""})
	byLine   = record.Keyset{Columns: "line"}
	refusals = record.Of(record.Table[refusalRow, intake.Refusal]{Order: byLine}, record.Names{"ImportID": ""})
	notes    = record.Of(record.Table[noteRow, intake.Note]{Order: byLine},
		record.Names{"ImportID": "", "Note": "Text"})
)

// IntakeFences are the writes of the progress.
var IntakeFences = []engine.Kind{
	engine.FencedByVersion(true, func(w intake.Save) importRow {
		row := imports.Row(w.State)
		row.Version, row.UpdatedAt = max(w.Version, 1), engine.Millis(w.At)
		return row
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
	state, err := imports.Find(ctx, s.db, record.Is("id", id))
	if fault.CodeOf(err) == fault.RecordNotFound {
		return intake.State{ID: id}, nil
	}
	return state, err
}

func (s Intake) Refusals(ctx context.Context, id string, after int64, limit int) ([]intake.Refusal, error) {
	return refusals.List(ctx, s.db, linesAfter(id, after, limit))
}

func (s Intake) Notes(ctx context.Context, id string, after int64, limit int) ([]intake.Note, error) {
	return notes.List(ctx, s.db, linesAfter(id, after, limit))
}

func linesAfter(id string, line int64, limit int) record.Part {
	return record.Part{Where: []record.Filter{record.Is("import_id", id), record.Where("line > ?", line)}, Limit: limit}
}

// Taken returns those of the names that accounts have.
func (s Intake) Taken(ctx context.Context, n intake.Names) (found intake.Names, err error) {
	if found.Phones, err = account.NewUsers(s.db).PhonesTaken(ctx, n.Phones); err != nil {
		return found, err
	}
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
		if err := s.db.Scan(ctx, sel, q.to); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (s Intake) ExternalIDs(ctx context.Context, userIDs []string) (map[string]string, error) {
	of := map[string]string{}
	if len(userIDs) == 0 {
		return of, nil
	}
	var rows []struct{ RecordID, ExternalID string }
	err := s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("integration_claim").Column("record_id", "external_id").
		Where("kind = ?", string(integration.Users)).Where("record_id IN (?)", bun.List(userIDs)), &rows)
	for _, r := range rows {
		of[r.RecordID] = r.ExternalID
	}
	return of, err
}
