package kit

import (
	"context"
	"encoding/json"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Parameters struct{ db *engine.DB }

func NewParameters(db *engine.DB) parameter.Store { return Parameters{db} }

type parameterRow struct {
	bun.BaseModel `bun:"table:parameter,alias:p"`

	ID        int64 `bun:",pk,autoincrement"`
	Code      string
	Name      string
	JSON      string `bun:"json"`
	Editable  bool
	CreatedAt int64
	UpdatedAt int64
}

var parameters = record.Of(record.Table[parameterRow, parameter.Parameter]{
	Fixed: []string{"id", "code", "name", "editable", "created_at"},
}, nil)

func (s Parameters) List(ctx context.Context, q parameter.Query) ([]parameter.Parameter, error) {
	return parameters.List(ctx, s.db,
		record.Part{Where: []record.Filter{record.Sent("id", q.ID), record.Sent("code", q.Code), record.Sent("editable",
			q.Editable)}})
}

func (s Parameters) Add(ctx context.Context, p parameter.Parameter) (int64, error) {
	p.CreatedAt = s.db.Now()
	p.UpdatedAt = p.CreatedAt
	return parameters.Add(ctx, s.db, p)
}

func (s Parameters) Save(ctx context.Context, read parameter.Parameter, object json.RawMessage) (parameter.Parameter,
	error) {
	next := read
	next.JSON, next.UpdatedAt = object, engine.Time(max(engine.Millis(s.db.Now()), engine.Millis(read.UpdatedAt)+1))
	err := parameters.Save(ctx, s.db, next, record.Is("id", read.ID), record.Is("updated_at",
		engine.Millis(read.UpdatedAt)))
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = parameter.Changed()
	}
	return next, err
}
