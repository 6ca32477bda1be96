package persistence

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/access/geofilter"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/persistence/engine"
)

type Geofilters struct{ db *DB }

var _ geofilter.Store = Geofilters{}

// NewGeofilters returns the geographic filters kept in db.
func NewGeofilters(db *DB) Geofilters { return Geofilters{db} }

type countryRow struct {
	bun.BaseModel `bun:"table:geofilter_country,alias:g"`

	ID        int64 `bun:",pk,autoincrement"`
	UserID    string
	Code      string
	CreatedAt int64
	UpdatedAt int64
}

// filterRow is what the row of an account says of its filter.
type filterRow struct {
	bun.BaseModel `bun:"table:users,alias:u"`

	ID        string `bun:",pk"`
	CV        int64
	Countries string
}

var geofilterWrites = []engine.Kind{
	engine.Insert(func(w geofilter.Add) countryRow {
		return countryRow{UserID: w.UserID, Code: w.Code, CreatedAt: ms(w.CreatedAt), UpdatedAt: ms(w.UpdatedAt)}
	}),
	engine.Update("DELETE FROM geofilter_country {USING v} "+
		"WHERE geofilter_country.user_id = v.user_id AND geofilter_country.code = v.code",
		func(w geofilter.Remove) countryRow { return countryRow{UserID: w.UserID, Code: w.Code} }),
}

var (
	filterCountries = table[countryRow, geofilter.Country]{
		record: func(r countryRow) (geofilter.Country, error) {
			return geofilter.Country{ID: r.ID, UserID: r.UserID, Code: r.Code, CreatedAt: at(r.CreatedAt),
				UpdatedAt: at(r.UpdatedAt)}, nil
		},
	}
	filters = table[filterRow, geofilter.Held]{
		record: func(r filterRow) (geofilter.Held, error) {
			return geofilter.Held{UserID: r.ID, CV: r.CV, Filter: geo.Filter(r.Countries)}, nil
		},
	}
)

func (s Geofilters) Countries(ctx context.Context, userID string) ([]geofilter.Country, error) {
	return filterCountries.list(ctx, s.db, part{where: []filter{is("user_id", userID)}})
}

func (s Geofilters) All(ctx context.Context) ([]geofilter.Held, error) {
	return filters.list(ctx, s.db, part{where: []filter{where("countries <> ''")}})
}

func (s Geofilters) Get(ctx context.Context, userID string) (geofilter.Held, error) {
	held, err := filters.find(ctx, s.db, is("id", userID))
	if fault.CodeOf(err) == fault.RecordNotFound {
		return geofilter.Held{UserID: userID}, nil
	}
	return held, err
}
