package geofilter

import (
	"context"

	"castellan/domain/kit/geo"
)

// Add inserts a country; the store ignores its ID and assigns one. The unit fails with RECORD_ALREADY_EXIST when the
// account has the country. user.SetCountries accompanies it.
type Add struct{ Country }

func (Add) Table() string { return "geofilter_country" }

// Remove removes a country from an account's filter; a missing one changes nothing. user.SetCountries accompanies it.
type Remove struct{ UserID, Code string }

func (Remove) Table() string { return "geofilter_country" }

// Held is the filter in the row of an account, and the credential version at the read. Of two, the one with the
// higher version is newer.
type Held struct {
	UserID string
	CV     int64
	Filter geo.Filter
}

// Store reads filters. Writes go through commit.Committer as the values above.
// It is safe for concurrent use.
type Store interface {
	// Countries lists the countries of an account, oldest first; none if the account does not exist.
	Countries(ctx context.Context, userID string) ([]Country, error)
	// All lists the accounts that have a filter.
	All(ctx context.Context) ([]Held, error)
	// Get reads the filter of one account; an empty one of version 0 if the account does not exist.
	Get(ctx context.Context, userID string) (Held, error)
}
