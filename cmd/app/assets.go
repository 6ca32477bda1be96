package app

import (
	"time"

	"castellan/config"
	"castellan/domain/change"
	"castellan/domain/currency"
	"castellan/domain/job"
	"castellan/domain/rate"
	httpcurrency "castellan/http/currency"
	outboundrate "castellan/outbound/rate"
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
	if s.cfg.Rates.URL == "" {
		return nil
	}
	provider, err := rateProvider(s.cfg.Rates)
	if err != nil {
		return err
	}
	kind, schedule := rate.Fetching(provider, provider.Host(), s.cfg.Rates.Every)
	s.join(part{kinds: []job.Kind{kind}, schedules: []job.Schedule{schedule}})
	return nil
}

func rateProvider(c config.Rates) (*outboundrate.Provider, error) {
	return outboundrate.New(outboundrate.Config{URL: c.URL.Reveal(), Header: c.KeyHeader, Key: c.Key.Reveal(),
		Codes: c.Currencies, CAFile: c.CAFile, Timeout: c.Timeout, Now: time.Now})
}
