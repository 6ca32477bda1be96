package money

import (
	"context"
	"strings"

	"github.com/uptrace/bun"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/page"
	"castellan/domain/money/blockage"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Blockages struct{ db *engine.DB }

var _ blockage.Store = Blockages{}

func NewBlockages(db *engine.DB) Blockages { return Blockages{db} }

type blockageRow struct {
	bun.BaseModel `bun:"table:blockage,alias:b"`

	ID              int64 `bun:",pk"`
	UserID          string
	CurrencyID      int64
	TypeID          int64
	SourceID        int64 // 0 for none
	Hi              int64
	Lo              int64
	Status          string
	Description     string
	DescriptionJSON string // "" for none
	Comment         string
	Closure         bool
	Holds           int
	CreatedAt       int64
	UpdatedAt       int64 // 0: never
	DeletedAt       int64 // 0: it is not deleted
	Version         int64
}

// blockageRead is a blockage with the names of what it refers to.
type blockageRead struct {
	blockageRow `bun:",extend"`

	CurrencyCode string `bun:",scanonly"`
	Name         string `bun:",scanonly"`
	Surname      string `bun:",scanonly"`
}

var blockages = record.Of(record.Table[blockageRead, blockage.Blockage]{
	Order:  record.Keyset{Columns: "b.id", Descending: true},
	Absent: "there is no such blockage",
	Join: func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.ColumnExpr("b.*, c.code AS currency_code, u.name, u.surname").
			Join("JOIN currency AS c ON c.id = b.currency_id").Join("JOIN users AS u ON u.id = b.user_id")
	},
	Reads: func(r blockageRead, b *blockage.Blockage) (err error) {
		b.FullName = strings.TrimSpace(r.Name + " " + r.Surname)
		b.Amount, err = amount.Of(r.Hi, r.Lo)
		return err
	},
	Writes: func(b blockage.Blockage, r *blockageRead) { r.Hi, r.Lo = b.Amount.Parts() },
}, record.Names{"Hi": "", "Lo": "", "Name": "", "Surname": ""}, "Amount", "FullName")

var BlockageFences = []engine.Kind{
	engine.FencedByVersion(false, func(w blockage.Save) blockageRow { return blockages.Row(w.Blockage).blockageRow },
		"hi", "lo", "status", "comment", "closure", "holds", "updated_at", "deleted_at"),
}

var BlockageWrites = []engine.Kind{
	engine.Insert(func(w blockage.Add) blockageRow {
		w.Blockage.Version = 1
		return blockages.Row(w.Blockage).blockageRow
	}),
}

func blockageFilters(q blockage.Query) []record.Filter {
	return []record.Filter{record.Where("b.deleted_at = 0"), record.Sent("b.user_id", q.UserID),
		record.Sent("b.currency_id", q.CurrencyID), record.Among("b.type_id", q.TypeIDs), record.Sent("b.status", q.Status)}
}

func (s Blockages) Get(ctx context.Context, id int64) (blockage.Blockage, error) {
	return blockages.Find(ctx, s.db, append(blockageFilters(blockage.Query{}), record.Is("b.id", id))...)
}

func (s Blockages) List(ctx context.Context, q blockage.Query,
	p page.Query[blockage.Place]) (page.Of[blockage.Blockage], error) {
	return record.ListPage(ctx, s.db, blockages, p, record.ByID, blockageFilters(q))
}

func (s Blockages) Closures(ctx context.Context, userID string) ([]blockage.Blockage, error) {
	return blockages.List(ctx, s.db, record.Part{Where: []record.Filter{record.Is("b.user_id", userID),
		record.Where("b.closure"), record.Is("b.status", blockage.Active)}})
}
