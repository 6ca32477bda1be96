package session

import (
	"context"

	"github.com/uptrace/bun"

	"castellan/domain/kit/fault"
	"castellan/domain/session/geofilter"
	"castellan/persistence/engine"
	"castellan/persistence/record"
)

type Geofilters struct{ db *engine.DB }

func NewGeofilters(db *engine.DB) geofilter.Store { return Geofilters{db} }

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

var GeofilterWrites = []engine.Kind{
	engine.Insert(func(w geofilter.Add) countryRow { return filterCountries.Row(w.Country) }),
	engine.Update("DELETE FROM geofilter_country {USING v} "+
		"WHERE geofilter_country.user_id = v.user_id AND geofilter_country.code = v.code",
		func(w geofilter.Remove) countryRow { return countryRow{UserID: w.UserID, Code: w.Code} }),
}

var (
	filterCountries = record.Of(record.Table[countryRow, geofilter.Country]{}, nil)
	filters         = record.Of(record.Table[filterRow, geofilter.Held]{},
		record.Names{"ID": "UserID", "Countries": "Filter"})
)

func (s Geofilters) Countries(ctx context.Context, userID string) ([]geofilter.Country, error) {
	return filterCountries.List(ctx, s.db, record.Part{Where: []record.Filter{record.Is("user_id", userID)}})
}

func (s Geofilters) All(ctx context.Context) ([]geofilter.Held, error) {
	return filters.List(ctx, s.db, record.Part{Where: []record.Filter{record.Where("countries <> ''")}})
}

func (s Geofilters) Get(ctx context.Context, userID string) (geofilter.Held, error) {
	held, err := filters.Find(ctx, s.db, record.Is("id", userID))
	if fault.CodeOf(err) == fault.RecordNotFound {
		return geofilter.Held{UserID: userID}, nil
	}
	return held, err
}
