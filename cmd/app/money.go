package app

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"castellan/cmd/app/adapters"
	"castellan/cmd/app/metrics"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/balance"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/limit"
	"castellan/domain/money/policy"
	"castellan/domain/money/provider"
	"castellan/domain/money/rate"
	"castellan/domain/money/transaction"
	"castellan/domain/permit/resource"
	httpbalance "castellan/http/money/balance"
	httpcurrency "castellan/http/money/currency"
	httplimit "castellan/http/money/limit"
	httpprovider "castellan/http/money/provider"
	httptransaction "castellan/http/money/transaction"
	httpintegration "castellan/http/people/integration"
	"castellan/http/wire"
	"castellan/persistence/money"
	"castellan/persistence/proof"
)

// verifyLedger is how often days are closed and the ledger is verified.
const verifyLedger = 24 * time.Hour

// updateWait is how long an update of 20 transactions, which takes ten seconds, may block its client.
const updateWait = 30 * time.Second

// money builds the ledger and its movements.
func (s *service) money() error {
	books := money.NewLedger(s.DB)
	s.ledger = &ledger.Ledger{Store: books, Commit: s.revoking(), Now: time.Now,
		Decimals: func(_ context.Context, asset int64) (int, error) { return s.currencies.Catalog().Decimals(asset) },
		Full: func(m ledger.Movement) {
			t := m.Transfers[0]
			s.full.Add(1)
			s.log.Error("an account of the operator is full", "asset", t.Debit.Asset, "kind", t.Kind, "ref", t.Ref)
		}}
	limits := &limit.Service{Users: s.users,
		Levels: money.NewLevels(s.DB), Store: money.NewLimits(s.DB), Rates: money.NewRates(s.DB),
		Catalog: s.currencies.Catalog, Now: time.Now}
	addresses, err := address.NewRules(s.cfg.AddressBook.AddressRules)
	if err != nil {
		return err
	}
	movements := money.NewTransactions(s.DB)
	judge := s.judge(limits.Rates)
	s.judges = judge
	withdrawals := &transaction.Withdrawals{Judge: judge, Ledger: s.ledger,
		Store: movements, Users: s.users,
		Currencies: s.currencies, Parameters: s.parameters, Limits: limits, Rules: addresses,
		Tags:  s.cfg.AddressBook.TagRules,
		Books: money.NewAddressBooks(s.DB), Waiting: s.cfg.AddressBook.WaitingTime, Claims: s.external, Now: time.Now,
		Statements: s.tokens, Issuer: s.cfg.Tokens.Issuer, Notices: s.starter.Messenger, Altered: func(id string) {
			s.altered.Add(1)
			s.log.Error("a queued withdrawal was altered in the database", "id", id)
		}}
	numbers := wire.Numbers(s.cfg.Transactions)
	requests := httpintegration.Withdrawals{Service: withdrawals, Owner: s.owner, Numbers: numbers,
		Approvals: &transaction.Approvals{Withdrawals: withdrawals, Engine: s.starter,
			Account: accounts{s.users}.Account, Known: s.knownClient}}
	s.join(part{groups: groups(httplimit.Group{Service: limits}, requests),
		actions: []challenge.Action{requests.Action()}, kinds: []job.Kind{withdrawals.Holding()},
		tasks: []task{{endHolds, "the holds of the money policy could not be ended", withdrawals.EndHolds},
			{keepTotals, "the totals of the money policy could not be kept",
				func(ctx context.Context) error { return judge.KeepTotals(ctx, time.Now()) }}},
		purge: after(transaction.FlowKept, movements.PurgeTotals)})
	transactions := &transaction.Service{Judge: judge, Ledger: s.ledger, Users: s.users, Currencies: s.currencies,
		Parameters: s.parameters, Now: time.Now, Store: movements, Changes: s.changes("", nil),
		Jobs: s.jobs, Messenger: s.starter.Messenger,
		Await: func(ctx context.Context, id string) (job.Job, error) {
			return s.jobs.Await(ctx, id, updateWait, func(j job.Job) bool { return j.State.Over() })
		},
		MayMove: func(caller, userID string) error { return s.roles.MayWrite(caller, userID, resource.Standing) }}
	transactions.Claims = s.external
	s.join(part{groups: groups(httpintegration.Deposits{Service: transactions, Numbers: numbers})})
	var here, everywhere atomic.Int64
	s.join(part{
		groups: groups(httptransaction.Group{Service: transactions, Numbers: numbers, Shows: s.shows}),
		kinds: []job.Kind{transactions.Kind(), s.nightly(&here, func(ctx context.Context) ledger.Night {
			n := ledger.Nightly(ctx, books, books, s.commit, time.Now())
			if n.Verification == nil {
				n.Verification = movements.VerifyTotals(ctx)
			}
			return n
		})},
		schedules: []job.Schedule{{Kind: nightlyJob, Every: verifyLedger}},
		tasks: []task{{censusEvery, "the alarms of the ledger could not be read", func(ctx context.Context) error {
			n, err := lastNight(ctx, s.jobs.Store, here.Load())
			if err == nil {
				everywhere.Store(n)
			}
			return err
		}}},
		metrics: func(m *metrics.Registry) {
			m.Gauge("castellan_ledger_unexplained", "Assets with money in suspense, plus 1 for a fault or a failure of "+
				"the last nightly verification of any node and 1 for days that it could not close; alert on any value but 0.",
				func() float64 { return float64(everywhere.Load()) })
			m.Counter("castellan_withdrawals_altered_total", "Claims of withdrawals whose rows differ from their orders; "+
				"each is held with the reason DIGEST. Alert if it grows.", s.altered.Load)
			m.Counter("castellan_ledger_full_total", "Movements refused because an account of the operator would exceed the "+
				"largest amount of the ledger; each is repeated by its client. Alert if it grows.", s.full.Load)
		},
	})
	s.balances(books)
	return nil
}

// endHolds is how often the holds whose time is over are judged again.
const endHolds = 30 * time.Second

// keepTotals is how often a node looks for movements whose totals the sums of the money policy lack.
const keepTotals = 30 * time.Second

// judge builds the judge of movements, with the rules in force on this node.
func (s *service) judge(rates rate.Store) *transaction.Judge {
	s.rules = policy.NewCache(money.NewRules(s.DB))
	s.join(part{snapshots: []snapshot{copyOf(s.rules, change.Policy)}})
	return &transaction.Judge{Rules: s.rules.Current, Past: money.NewTransactions(s.DB), Rates: rates,
		Books: money.NewAddressBooks(s.DB), Users: s.users, Catalog: s.currencies.Catalog,
		ServiceRoles: func(name string) []string {
			if key, known := s.services.Key(name); known && key.Role != "" {
				return []string{key.Role}
			}
			return nil
		},
		Shared: proof.NewDevices(s.DB).Shared, Hits: new(policy.Hits)}
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

// nightlyJob is the kind of the job that closes the past days and verifies the ledger.
const nightlyJob = "verify-ledger"

// nightly returns that job. It stores the alarms of every run, also of a failed one, except if its node leaves: then
// the next node repeats the run. The result of the job begins with the alarms, if there are any.
func (s *service) nightly(alarms *atomic.Int64, run func(context.Context) ledger.Night) job.Kind {
	return job.Kind{Name: nightlyJob, Step: func(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
		night := run(ctx)
		if err := ctx.Err(); err != nil {
			return j, nil, err
		}
		alarms.Store(night.Alarms())
		if err := night.Closing; err != nil {
			s.log.Log(ctx, nightLevel(err), "the days of the ledger cannot be closed", "err", err)
		}
		if err := night.Verification; err != nil {
			s.log.Log(ctx, nightLevel(err), "the ledger is broken or cannot be verified", "fault", err)
		}
		found, err := night.Result()
		if n := night.Alarms(); n > 0 {
			found = strings.TrimSuffix(fmt.Sprintf("%d alarms: %s", n, found), ": ")
		}
		return j.Finish(found), nil, err
	}}
}

// nightLevel is the level of a failure of that job. A database that cannot be reached is no fault of the ledger.
func nightLevel(err error) slog.Level {
	if fault.CodeOf(err) == fault.Unavailable {
		return slog.LevelWarn
	}
	return slog.LevelError
}

type nightLister interface {
	List(context.Context, job.Query, page.Query[job.Place]) (page.Of[job.Job], error)
}

// lastNight returns the alarms of the last run on any node. After a failure, they are those of the last run here, and
// at least 1.
func lastNight(ctx context.Context, jobs nightLister, here int64) (alarms int64, err error) {
	last, err := jobs.List(ctx, job.Query{Kind: nightlyJob}, page.Query[job.Place]{Limit: 3})
	for _, j := range last.Records {
		switch {
		case j.State == job.Done && j.Result == "":
			return 0, nil
		case j.State == job.Done:
			if n, _ := fmt.Sscan(j.Result, &alarms); n == 1 {
				return alarms, nil
			}
			return 1, nil // a fault, as earlier versions store it
		case j.State == job.Failed || j.Attempts > 0 && !j.State.Over():
			return max(1, here), nil
		}
	}
	return 0, err
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
		purge: after(s.cfg.Providers.Keep, store.Purge)})
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
