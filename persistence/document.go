package persistence

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
)

type Documents struct{ db *DB }

var _ document.Store = Documents{}

// NewDocuments returns the documents kept in db.
func NewDocuments(db *DB) Documents { return Documents{db} }

type documentRow struct {
	bun.BaseModel `bun:"table:document,alias:d"`

	ID               string `bun:",pk"`
	UserID           string
	Name             string
	MimeType         string
	Type             int64
	Description      *string
	NameTexts        string
	DescriptionTexts string
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

var documents = table[documentRow, document.Document]{
	fixed:  []string{"id", "user_id", "mime_type", "path", "size", "created_at", "updated_at"},
	absent: "no such document",
	record: func(r documentRow) (document.Document, error) {
		d := document.Document{ID: r.ID, UserID: r.UserID, Name: r.Name, MimeType: r.MimeType, Type: r.Type,
			Description: r.Description, Status: r.Status, Reason: r.Reason, Path: r.Path, Size: r.Size,
			CreatedAt: at(r.CreatedAt)}
		err := engine.ReadJSON(r.NameTexts, &d.NameTexts)
		if err == nil {
			err = engine.ReadJSON(r.DescriptionTexts, &d.DescriptionTexts)
		}
		return d, err
	},
	row: func(d document.Document) documentRow {
		return documentRow{ID: d.ID, UserID: d.UserID, Name: d.Name, MimeType: d.MimeType, Type: d.Type,
			Description: d.Description, NameTexts: body(d.NameTexts), DescriptionTexts: body(d.DescriptionTexts),
			Status: d.Status, Reason: d.Reason, Path: d.Path, Size: d.Size, CreatedAt: ms(d.CreatedAt),
			UpdatedAt: ms(d.CreatedAt)}
	},
}

// documentRead is a document with what a list tells of its owner.
type documentRead struct {
	documentRow `bun:",extend"`

	OwnerName    string `bun:",scanonly"`
	OwnerSurname string `bun:",scanonly"`
	OwnerKYC     string `bun:"owner_kyc,scanonly"`
}

// documentList is a list of documents. The ids are those of creation, so both orders have the same indexes.
func documentList(oldest bool) table[documentRead, document.Document] {
	return table[documentRead, document.Document]{
		order: keyset{columns: "d.id", descending: !oldest},
		join: func(q *bun.SelectQuery) *bun.SelectQuery {
			return q.ColumnExpr("d.*, COALESCE(u.name, '') AS owner_name, COALESCE(u.surname, '') AS owner_surname, " +
				"COALESCE(u.kyc_confirm, '') AS owner_kyc").Join("LEFT JOIN users AS u ON u.id = d.user_id")
		},
		record: func(r documentRead) (document.Document, error) {
			d, err := documents.record(r.documentRow)
			d.OwnerName, d.OwnerKYC = strings.TrimSpace(r.OwnerName+" "+r.OwnerSurname), r.OwnerKYC
			return d, err
		},
	}
}

func documentFilters(q document.Query) []filter {
	pictures := filter{}
	if q.Pictures {
		pictures = where("d.mime_type <> ?", document.PDF)
	}
	return []filter{sent("d.user_id", q.UserID), sent("d.type", q.Type), sent("d.status", q.Status),
		sent("d.reason", q.Reason), sent("u.kyc_confirm", q.OwnerKYC), pictures}
}

func documentOrder(p document.Place) []any { return []any{p.ID} }

// Add implements document.Store. The statement of the quota decides, so callers who come together cannot exceed it.
func (s Documents) Add(ctx context.Context, d document.Document, charge, quota int64) error {
	full := fault.New(fault.RecordLimitReached, "the documents of the user take all of the room that there is for them")
	if charge > quota {
		return full
	}
	row, use := documents.row(d), quotaRow{UserID: d.UserID, Bytes: charge}
	return write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		err := oneRow(tx.NewInsert().Model(&use).On("CONFLICT (user_id) DO UPDATE").
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

func (s Documents) Used(ctx context.Context, userID string) (int64, error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	var rows []quotaRow
	err := s.db.Conn(ctx).NewSelect().Model(&rows).Where("user_id = ?", userID).Scan(ctx)
	if err != nil || len(rows) == 0 {
		return 0, translate(err)
	}
	return rows[0].Bytes, nil
}

func (s Documents) Get(ctx context.Context, id string) (document.Document, error) {
	return documents.find(ctx, s.db, is("id", id))
}

func (s Documents) ByPath(ctx context.Context, path string) (document.Document, error) {
	return documents.find(ctx, s.db, is("path", path))
}

func (s Documents) Change(ctx context.Context, id string,
	f func(document.Document) (document.Document, error)) error {
	return documents.change(ctx, s.db, f, is("id", id))
}

func (s Documents) List(ctx context.Context, q document.Query,
	p page.Query[document.Place]) (page.Of[document.Document], error) {
	return listPage(ctx, s.db, documentList(q.Oldest), p, documentOrder, documentFilters(q))
}

func (s Documents) Owned(ctx context.Context, userID string, ids []string) (owned []string, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	err = s.db.Conn(ctx).NewSelect().Model((*documentRow)(nil)).Column("id").Where("user_id = ?", userID).
		Where("id IN (?)", bun.List(ids)).Scan(ctx, &owned)
	return owned, translate(err)
}

func (s Documents) Decide(ctx context.Context, d document.Decision) (changed []string, err error) {
	which := is("type", d.Type)
	if d.IDs != nil {
		which = where("id IN (?)", bun.List(d.IDs))
	}
	err = write(ctx, s.db, func(ctx context.Context, tx bun.IDB) error {
		q := tx.NewUpdate().Model((*documentRow)(nil)).Set("status = ?", d.Status).Set("reason = ?", d.Reason).
			Set("updated_at = ?", ms(s.db.Now())).Where("(status <> ? OR COALESCE(reason, '') <> ?)", d.Status, d.Reason)
		_, err := filtered(q, []filter{is("user_id", d.UserID), which}).Returning("id").Exec(ctx, &changed)
		return err
	})
	return changed, err
}

func (s Documents) ReferencedPaths(ctx context.Context, paths []string) (named []string, err error) {
	ctx, cancel := s.db.Bound(ctx)
	defer cancel()
	q := s.db.Conn(ctx).NewSelect().Model((*documentRow)(nil)).Column("path")
	err = filtered(q, []filter{among("path", paths)}).Scan(ctx, &named)
	return named, translate(err)
}
