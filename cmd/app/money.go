package app

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/cmd/app/metrics"
	"castellan/domain/access/challenge"
	"castellan/domain/access/resource"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/job"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/balance"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/limit"
	"castellan/domain/money/provider"
	"castellan/domain/money/rate"
	"castellan/domain/money/transaction"
	httpbalance "castellan/http/money/balance"
	httpcurrency "castellan/http/money/currency"
	httplimit "castellan/http/money/limit"
	httpprovider "castellan/http/money/provider"
	httptransaction "castellan/http/money/transaction"
	httpintegration "castellan/http/people/integration"
	"castellan/persistence/money"
)

// verifyLedger is how often days are closed and the ledger is verified.
const verifyLedger = 24 * time.Hour

// updateWait is how long an update of 20 transactions, which takes ten seconds, may block its client.
const updateWait = 30 * time.Second

// money builds the ledger and its movements.
func (s *service) money() error {
	books := money.NewLedger(s.DB)
	s.ledger = &ledger.Ledger{Store: books, Commit: s.revoking(), Now: time.Now,
		Decimals: func(_ context.Context, asset int64) (int, error) { return s.currencies.Catalog().Decimals(asset) }}
	limits := &limit.Service{Users: s.users,
		Levels: money.NewLevels(s.DB), Store: money.NewLimits(s.DB), Rates: money.NewRates(s.DB),
		Catalog: s.currencies.Catalog, Now: time.Now}
	addresses, err := address.NewRules(s.cfg.AddressBook.AddressRules)
	if err != nil {
		return err
	}
	withdrawals := &transaction.Withdrawals{Ledger: s.ledger, Store: money.NewTransactions(s.DB), Users: s.users,
		Currencies: s.currencies, Parameters: s.parameters, Limits: limits, Rules: addresses,
		Books: money.NewAddressBooks(s.DB), Waiting: s.cfg.AddressBook.WaitingTime, Claims: s.external, Now: time.Now}
	requests := httpintegration.Withdrawals{Service: withdrawals, Owner: s.owner,
		HotWallet: s.cfg.Transactions.HotWallet, TimeOut: s.cfg.Transactions.TimeOut,
		Approvals: &transaction.Approvals{Withdrawals: withdrawals, Engine: s.starter,
			Account: accounts{s.users}.Account}}
	s.join(part{groups: groups(httplimit.Group{Service: limits}, requests),
		actions: []challenge.Action{requests.Action()}})
	transactions := &transaction.Service{Ledger: s.ledger, Users: s.users, Currencies: s.currencies,
		Parameters: s.parameters, Now: time.Now, Store: money.NewTransactions(s.DB), Changes: s.changes("", nil),
		Jobs: s.jobs, Messenger: s.starter.Messenger,
		Await: func(ctx context.Context, id string) (job.Job, error) {
			return s.jobs.Await(ctx, id, updateWait, func(j job.Job) bool { return j.State.Over() })
		},
		MayMove: func(caller, userID string) error { return s.roles.MayWrite(caller, userID, resource.Standing) }}
	transactions.Claims = s.external
	numbers := s.cfg.Transactions
	s.join(part{groups: groups(httpintegration.Deposits{Service: transactions,
		FinalizedDeposit: numbers.FinalizedDeposit})})
	var unexplained atomic.Int64
	s.join(part{
		groups: groups(httptransaction.Group{Service: transactions, Numbers: httptransaction.Numbers{
			FinalizedDeposit: numbers.FinalizedDeposit, HotWallet: numbers.HotWallet, TimeOut: numbers.TimeOut},
			Shows: s.shows}),
		kinds: []job.Kind{transactions.Kind(), {Name: "verify-ledger",
			Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
				found, n, err := s.verifyLedger(ctx, books)
				if err == nil {
					unexplained.Store(n)
				}
				return j.Finish(found), nil, err
			}}},
		schedules: []job.Schedule{{Kind: "verify-ledger", Every: verifyLedger}},
		metrics: func(m *metrics.Registry) {
			m.Gauge("castellan_ledger_unexplained", "Assets with money in suspense, plus 1 for a fault, at the last "+
				"nightly verification on this node; alert on any value but 0.",
				func() float64 { return float64(unexplained.Load()) })
		},
	})
	s.balances(books)
	return nil
}

// balances builds the administrators' view of the users' money.
func (s *service) balances(books money.Ledger) {
	store := money.NewBalances(s.DB)
	kind, schedule := balance.Summing(store, time.Now)
	code := func(asset int64) (string, error) { code, _, err := s.codes(asset); return code, err }
	s.join(part{
		groups: groups(httpbalance.Group{Ledger: books, Live: s.currencies, User: s.users.Get,
			Service: &balance.Service{Store: store, Code: code, Now: time.Now}}),
		kinds: []job.Kind{kind}, schedules: []job.Schedule{schedule},
	})
}

// verifyLedger closes the past days and verifies the ledger. It returns the first fault, and the unexplained amount.
func (s *service) verifyLedger(ctx context.Context, books money.Ledger) (found string, n int64, err error) {
	if err := ledger.CloseDays(ctx, books, s.commit, time.Now()); err != nil {
		return "", 0, err
	}
	totals, err := ledger.Verify(ctx, books)
	if errors.Is(err, ledger.ErrBroken) {
		s.log.Error("the ledger is broken", "fault", err)
		return err.Error(), 1, nil
	}
	for _, t := range totals {
		if t.Unexplained.Sign() != 0 {
			n++
		}
	}
	return "", n, err
}

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
		m.Counters("castellan_provider_failures_total", "Failed readings of provider balances, by the name in the "+
			"settings; each is tried three times in five minutes.", "source", reads)
	}})
	return nil
}
