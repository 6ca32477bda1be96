package geofilter

import (
	"context"

	"castellan/domain/kit/geo"
)

// Add inserts a country; its ID is ignored and made by the store. The unit is
// refused with RECORD_ALREADY_EXIST when the account has the country.
// user.SetCountries goes beside it.
type Add struct{ Country }

func (Add) Table() string { return "geofilter_country" }

// Remove removes a country from an account's filter; one that is not in it
// changes nothing. user.SetCountries goes beside it.
type Remove struct{ UserID, Code string }

func (Remove) Table() string { return "geofilter_country" }

// Held is the filter in the row of an account, and the credential version under
// which it was read: of two, that of the higher one is newer.
type Held struct {
	UserID string
	CV     int64
	Filter geo.Filter
}

// Store reads filters. Writes go through commit.Committer as the values above.
// It is safe for concurrent use.
type Store interface {
	// Countries lists the countries of an account, oldest first; none for an
	// account that does not exist.
	Countries(ctx context.Context, userID string) ([]Country, error)
	// All lists the accounts that have a filter.
	All(ctx context.Context) ([]Held, error)
	// Get reads the filter of one account; an empty one of version 0 when there
	// is no such account.
	Get(ctx context.Context, userID string) (Held, error)
}
