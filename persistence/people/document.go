package people

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/people/document"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Documents struct{ db *engine.DB }

var _ document.Store = Documents{}

func NewDocuments(db *engine.DB) Documents { return Documents{db} }

type documentRow struct {
	bun.BaseModel `bun:"table:document,alias:d"`

	ID               string `bun:",pk"`
	UserID           string
	Name             string
	MimeType         string
	Type             int64
	Description      *string
	NameTexts        record.JSON[map[string]string]
	DescriptionTexts record.JSON[map[string]string]
	Status           string
	Reason           *string
	Path             string
	Size             int64
	CreatedAt        int64
	UpdatedAt        int64
}

type quotaRow struct {
	bun.BaseModel `bun:"table:document_quota,alias:q"`

	UserID string `bun:",pk"`
	Bytes  int64
}

var documents = record.Of(record.Table[documentRow, document.Document]{
	Fixed:  []string{"id", "user_id", "mime_type", "path", "size", "created_at", "updated_at"},
	Absent: "no such document",
	Writes: func(_ document.Document, r *documentRow) { r.UpdatedAt = r.CreatedAt },
}, record.Names{"UpdatedAt": ""}, "OwnerName", "OwnerKYC")

// documentRead is a document with what a list tells of its owner.
type documentRead struct {
	documentRow `bun:",extend"`

	OwnerName    string `bun:",scanonly"`
	OwnerSurname string `bun:",scanonly"`
	OwnerKYC     string `bun:"owner_kyc,scanonly"`
}

// documentList is a list of documents. The ids are those of creation, so both orders have the same indexes.
var documentList = record.Table[documentRead, document.Document]{
	Order: record.Keyset{Columns: "d.id", Descending: true},
	Join: func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ColumnExpr("d.*, COALESCE(u.name, '') AS owner_name, COALESCE(u.surname, '') AS owner_surname, " +
			"COALESCE(u.kyc_confirm, '') AS owner_kyc").Join("LEFT JOIN users AS u ON u.id = d.user_id")
	},
	Record: func(r documentRead) (document.Document, error) {
		d, err := documents.Record(r.documentRow)
		d.OwnerName, d.OwnerKYC = strings.TrimSpace(r.OwnerName+" "+r.OwnerSurname), r.OwnerKYC
		return d, err
	},
}

func documentFilters(q document.Query) []record.Filter {
	pictures := record.Filter{}
	if q.Pictures {
		pictures = record.Where("d.mime_type <> ?", document.PDF)
	}
	return []record.Filter{record.Sent("d.user_id", q.UserID), record.Sent("d.type", q.Type), record.Sent("d.status",
		q.Status),
		record.Sent("d.reason", q.Reason), record.Sent("u.kyc_confirm", q.OwnerKYC), pictures}
}

// The statement of the quota decides, so callers who come together cannot exceed it.
func (s Documents) Add(ctx context.Context, d document.Document, charge, quota int64) error {
	full := fault.New(fault.RecordLimitReached, "the documents of the user have reached their storage limit")
	if charge > quota {
		return full
	}
	row, use := documents.Row(d), quotaRow{UserID: d.UserID, Bytes: charge}
	return record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		err := record.OneRow(tx.NewInsert().Model(&use).On("CONFLICT (user_id) DO UPDATE").
			Set("bytes = q.bytes + EXCLUDED.bytes").Where("q.bytes + EXCLUDED.bytes <= ?", quota).Exec(ctx))
		if errors.Is(err, sql.ErrNoRows) {
			return full
		}
		if err == nil {
			_, err = tx.NewInsert().Model(&row).Exec(ctx)
		}
		return err
	})
}

func (s Documents) Used(ctx context.Context, userID string) (bytes int64, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("document_quota").ColumnExpr("COALESCE(MAX(bytes), 0)").
		Where("user_id = ?", userID), &bytes)
	return bytes, err
}

func (s Documents) Get(ctx context.Context, id string) (document.Document, error) {
	return documents.Find(ctx, s.db, record.Is("id", id))
}

func (s Documents) ByPath(ctx context.Context, path string) (document.Document, error) {
	return documents.Find(ctx, s.db, record.Is("path", path))
}

func (s Documents) Change(ctx context.Context, id string,
	f func(document.Document) (document.Document, error)) error {
	return documents.Change(ctx, s.db, f, record.Is("id", id))
}

func (s Documents) List(ctx context.Context, q document.Query,
	p page.Query[document.Place]) (page.Of[document.Document], error) {
	return record.ListPage(ctx, s.db, documentList, p, record.ByID, documentFilters(q))
}

func (s Documents) Owned(ctx context.Context, userID string, ids []string) (owned []string, err error) {
	err = s.db.Scan(ctx, s.db.Conn(ctx).NewSelect().Table("document").Column("id").Where("user_id = ?", userID).
		Where("id IN (?)", bun.List(ids)), &owned)
	return owned, err
}

func (s Documents) Decide(ctx context.Context, d document.Decision) (changed []string, err error) {
	which := record.Is("type", d.Type)
	if d.IDs != nil {
		which = record.Where("id IN (?)", bun.List(d.IDs))
	}
	err = record.Write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		q := tx.NewUpdate().Model((*documentRow)(nil)).Set("status = ?", d.Status).Set("reason = ?", d.Reason).
			Set("updated_at = ?", engine.Millis(s.db.Now())).Where("(status <> ? OR COALESCE(reason, '') <> ?)", d.Status,
			d.Reason)
		_, err := record.Filtered(q, []record.Filter{record.Is("user_id", d.UserID), which}).Returning("id").Exec(ctx,
			&changed)
		return err
	})
	return changed, err
}

func (s Documents) ReferencedPaths(ctx context.Context, paths []string) (named []string, err error) {
	q := s.db.Conn(ctx).NewSelect().Table("document").Column("path")
	err = s.db.Scan(ctx, record.Filtered(q, []record.Filter{record.Among("path", paths)}), &named)
	return named, err
}
