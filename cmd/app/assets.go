package app

import (
	"time"

	"castellan/domain/change"
	"castellan/domain/currency"
	"castellan/domain/rate"
	httpcurrency "castellan/http/currency"
	"castellan/persistence"
)

// assets builds what can be moved, where, and what it is worth.
func (s *service) assets() error {
	store := persistence.NewCurrencies(s.DB)
	s.currencies = currency.NewLive(store)
	s.join(part{
		groups: groups(httpcurrency.Group{
			Service: &currency.Service{Store: store, Changes: s.changes(change.Currencies, s.currencies)},
			Live:    s.currencies,
			Rates:   &rate.Service{Store: persistence.NewRates(s.DB), Now: time.Now},
			Ledger:  persistence.NewLedger(s.DB),
		}),
		snapshots: []snapshot{copyOf(s.currencies, change.Currencies)},
	})
	return nil
}
