package app

import (
	"context"
	"sync/atomic"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/cmd/app/metrics"
	"castellan/domain/kit/change"
	"castellan/domain/kit/job"
	"castellan/domain/money/currency"
	"castellan/domain/money/provider"
	"castellan/domain/money/rate"
	httpcurrency "castellan/http/money/currency"
	httpprovider "castellan/http/money/provider"
	"castellan/persistence/money"
)

// assets builds the catalogue of assets, networks and rates.
func (s *service) assets() error {
	store := money.NewCurrencies(s.DB)
	s.currencies = currency.NewCache(store)
	s.join(part{
		groups: groups(httpcurrency.Group{
			Service: &currency.Service{Store: store, Changes: s.changes(change.Currencies, s.currencies)},
			Live:    s.currencies,
			Rates:   &rate.Service{Store: money.NewRates(s.DB), Now: time.Now},
			Ledger:  money.NewLedger(s.DB),
		}),
		snapshots: []snapshot{copyOf(s.currencies, change.Currencies)},
	})
	if err := s.providers(); err != nil || s.cfg.Rates.URL == "" {
		return err
	}
	provider, err := adapters.Rates(s.cfg.Rates)
	if err != nil {
		return err
	}
	kind, schedule := rate.Fetching(provider, provider.Host(), s.cfg.Rates.Every)
	s.join(part{kinds: []job.Kind{kind}, schedules: []job.Schedule{schedule}})
	return nil
}

// providers builds the readers of the house's accounts at other platforms.
func (s *service) providers() error {
	store := money.NewProviders(s.DB)
	s.join(part{groups: groups(httpprovider.Group{Store: store}),
		purge: func(ctx context.Context, old expiry) error {
			return store.Purge(ctx, old.now.Add(-s.cfg.Providers.Keep))
		}})
	sources, err := adapters.Balances(s.cfg.Providers)
	if err != nil || len(sources) == 0 {
		return err
	}
	failed := map[provider.Name]*atomic.Int64{}
	reads := map[string]func() int64{}
	for n := range sources {
		failed[n] = new(atomic.Int64)
		reads[n.String()] = failed[n].Load
	}
	kind, schedule := provider.Fetching(sources, func(n provider.Name, slot time.Time, leftOut int, err error) {
		switch {
		case err != nil:
			failed[n].Add(1)
			s.log.Warn("the balances at a provider cannot be read", "source", n.String(), "slot", slot, "err", err)
		case leftOut > 0:
			s.log.Warn("a provider sent invalid balances", "source", n.String(), "slot", slot, "left_out", leftOut)
		}
	})
	s.join(part{kinds: []job.Kind{kind}, schedules: []job.Schedule{schedule}, metrics: func(m *metrics.Registry) {
		m.Counters("castellan_provider_failures_total", "Readings of balances at a provider that failed, by its name in "+
			"the settings; each is tried three times in five minutes.", "source", reads)
	}})
	return nil
}
