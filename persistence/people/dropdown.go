package people

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/people/dropdown"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Dropdowns struct{ db *engine.DB }

var _ dropdown.Store = Dropdowns{}

func NewDropdowns(db *engine.DB) Dropdowns { return Dropdowns{db} }

type optionRow struct {
	bun.BaseModel `bun:"table:dropdown_option,alias:o"`

	ID               int64 `bun:",pk,autoincrement"`
	GroupCode        string
	Code             string
	NameEN           string `bun:"name_en"`
	NameTR           string `bun:"name_tr"`
	NameAR           string `bun:"name_ar"`
	ExplainMandatory bool
	OrderNo          int64
	Active           bool
	record.Stamps
}

var options = record.Of(record.Table[optionRow, dropdown.Option]{
	Order:  record.Keyset{Columns: "order_no, id"},
	Fixed:  []string{"id", "group_code", "code", "created_at"},
	Absent: "there is no such option",
	Reads:  func(r optionRow, o *dropdown.Option) error { o.Inactive = !r.Active; return nil },
	Writes: func(o dropdown.Option, r *optionRow) { r.Active = !o.Inactive },
}, record.Names{"GroupCode": "Group", "NameEN": "English", "NameTR": "Turkish", "NameAR": "Arabic", "Active": ""},
	"Inactive")

func (s Dropdowns) List(ctx context.Context, q dropdown.Query) ([]dropdown.Option, error) {
	fs := []record.Filter{record.Sent("group_code", q.Group)}
	if q.Code != nil {
		fs = append(fs, record.Where("(group_code = ? OR code = ?)", *q.Code, *q.Code))
	}
	if !q.Inactive {
		fs = append(fs, record.Is("active", true))
	}
	return options.List(ctx, s.db, record.Part{Where: fs})
}

func (s Dropdowns) Add(ctx context.Context, o dropdown.Option) (int64, error) {
	return options.Add(ctx, s.db, o)
}

func (s Dropdowns) Change(ctx context.Context, id int64, f func(dropdown.Option) (dropdown.Option, error)) error {
	return options.Change(ctx, s.db, f, record.Is("id", id))
}
