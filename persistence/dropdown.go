package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/people/dropdown"
)

type Dropdowns struct{ db *DB }

var _ dropdown.Store = Dropdowns{}

// NewDropdowns returns the options kept in db.
func NewDropdowns(db *DB) Dropdowns { return Dropdowns{db} }

type optionRow struct {
	bun.BaseModel `bun:"table:dropdown_option,alias:o"`

	ID               int64 `bun:",pk,autoincrement"`
	GroupCode        string
	Code             string
	NameEN           string `bun:"name_en"`
	NameTR           string `bun:"name_tr"`
	NameAR           string `bun:"name_ar"`
	ExplainMandatory bool
	created
}

var options = table[optionRow, dropdown.Option]{
	record: func(r optionRow) (dropdown.Option, error) {
		return dropdown.Option{ID: r.ID, Group: r.GroupCode, Code: r.Code, English: r.NameEN, Turkish: r.NameTR,
			Arabic: r.NameAR, ExplainMandatory: r.ExplainMandatory}, nil
	},
	row: func(o dropdown.Option) optionRow {
		return optionRow{GroupCode: o.Group, Code: o.Code, NameEN: o.English, NameTR: o.Turkish, NameAR: o.Arabic,
			ExplainMandatory: o.ExplainMandatory}
	},
}

func (s Dropdowns) List(ctx context.Context, q dropdown.Query) ([]dropdown.Option, error) {
	fs := []filter{sent("group_code", q.Group)}
	if q.Code != nil {
		fs = append(fs, where("(group_code = ? OR code = ?)", *q.Code, *q.Code))
	}
	return options.list(ctx, s.db, part{where: fs})
}

func (s Dropdowns) Add(ctx context.Context, o dropdown.Option) (int64, error) {
	return options.add(ctx, s.db, o)
}
