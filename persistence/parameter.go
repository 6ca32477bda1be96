package persistence

import (
	"context"
	"encoding/json"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
)

type Parameters struct{ db *DB }

var _ parameter.Store = Parameters{}

// NewParameters returns the system parameters kept in db.
func NewParameters(db *DB) Parameters { return Parameters{db} }

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

var parameters = table[parameterRow, parameter.Parameter]{
	fixed: []string{"id", "code", "name", "editable", "created_at"},
	record: func(r parameterRow) (parameter.Parameter, error) {
		return parameter.Parameter{ID: r.ID, Code: r.Code, Name: r.Name, JSON: json.RawMessage(r.JSON),
			Editable: r.Editable, CreatedAt: at(r.CreatedAt), UpdatedAt: at(r.UpdatedAt)}, nil
	},
	row: func(p parameter.Parameter) parameterRow {
		return parameterRow{Code: p.Code, Name: p.Name, JSON: string(p.JSON), Editable: p.Editable,
			CreatedAt: ms(p.CreatedAt), UpdatedAt: ms(p.UpdatedAt)}
	},
}

func (s Parameters) List(ctx context.Context, q parameter.Query) ([]parameter.Parameter, error) {
	return parameters.list(ctx, s.db,
		part{where: []filter{sent("id", q.ID), sent("code", q.Code), sent("editable", q.Editable)}})
}

func (s Parameters) Add(ctx context.Context, p parameter.Parameter) (int64, error) {
	p.CreatedAt = s.db.Now()
	p.UpdatedAt = p.CreatedAt
	return parameters.add(ctx, s.db, p)
}

func (s Parameters) Save(ctx context.Context, read parameter.Parameter, object json.RawMessage) (parameter.Parameter,
	error) {
	next := read
	next.JSON, next.UpdatedAt = object, at(max(ms(s.db.Now()), ms(read.UpdatedAt)+1))
	err := parameters.save(ctx, s.db, next, is("id", read.ID), is("updated_at", ms(read.UpdatedAt)))
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = parameter.Changed()
	}
	return next, err
}
