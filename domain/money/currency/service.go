package currency

import (
	"context"
	"fmt"
	"strings"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Service applies changes made by administrators. It is safe for concurrent use.
type Service struct {
	Store   Store
	Changes admin.Changes // of topic change.Currencies
}

// Setup adds or changes several records at once (D-CUR-02, D-CUR-04). A section that is not enabled is not changed; its
// codes still identify the records that the response names.
type Setup struct {
	Currency Section[Currency]
	Network  Section[Network]
	Pair     Section[Link]
}

// Section is one record of a Setup.
type Section[T any] struct {
	Enabled bool
	Record  T
}

// Link is a pair by the codes of its currency and network.
type Link struct {
	Pair
	CurrencyCode, NetworkCode string
}

func (s Setup) check() error {
	var ps []fault.Problem
	if s.Currency.Enabled {
		ps = append(ps, s.Currency.Record.check()...)
	}
	if s.Network.Enabled {
		ps = append(ps, s.Network.Record.check()...)
	}
	if s.Pair.Enabled {
		ps = append(ps, s.Pair.Record.check()...)
	}
	return fault.All(ps)
}

// Result is the result of a Setup: each record's id, 0 if there is none, and whether it was added or changed.
type Result struct{ Currency, Network, Pair Outcome }

// Outcome is the result of one section.
type Outcome struct {
	ID   int64
	Done bool
}

// done returns the content of the audit row; empty if nothing was changed.
func (r Result) done() admin.Done {
	var parts []string
	for _, o := range []struct {
		name string
		Outcome
	}{{"currency", r.Currency}, {"network", r.Network}, {"pair", r.Pair}} {
		if o.Done {
			parts = append(parts, fmt.Sprint(o.name, " ", o.ID))
		}
	}
	if len(parts) == 0 {
		return admin.Done{}
	}
	return admin.Done{Target: parts[0], Detail: strings.Join(parts, ", ")}
}

// Setup adds the enabled records as active, all or none. INVALID_FIELD, also for a pair with unknown codes;
// RECORD_ALREADY_EXIST (D-CUR-10).
func (s *Service) Setup(ctx context.Context, by audit.By, in Setup) (r Result, err error) {
	if err := in.check(); err != nil {
		return r, err
	}
	err = s.Changes.Do(ctx, by, "ASSETS_SETUP", func(ctx context.Context) (admin.Done, error) {
		r = Result{}
		if r.Currency.Done = in.Currency.Enabled; r.Currency.Done {
			c := in.Currency.Record
			c.Active = true
			r.Currency.ID, err = s.Store.AddCurrency(ctx, c)
		} else {
			r.Currency.ID, err = s.currency(ctx, in.Currency.Record.Code)
		}
		if err != nil {
			return admin.Done{}, err
		}
		if r.Network.Done = in.Network.Enabled; r.Network.Done {
			n := in.Network.Record
			n.Active = true
			r.Network.ID, err = s.Store.AddNetwork(ctx, n)
		} else {
			r.Network.ID, err = s.network(ctx, in.Network.Record.Code)
		}
		if err != nil {
			return admin.Done{}, err
		}
		r.Pair, err = s.link(ctx, in.Pair)
		return r.done(), err
	})
	return r, err
}

// link adds a pair, or finds the pair named by its codes.
func (s *Service) link(ctx context.Context, in Section[Link]) (o Outcome, err error) {
	p := in.Record.Pair
	if p.CurrencyID, err = s.currency(ctx, in.Record.CurrencyCode); err != nil {
		return o, err
	}
	if p.NetworkID, err = s.network(ctx, in.Record.NetworkCode); err != nil {
		return o, err
	}
	if !in.Enabled {
		all, err := s.Store.Pairs(ctx)
		for _, have := range all {
			if have.CurrencyID == p.CurrencyID && have.NetworkID == p.NetworkID {
				o.ID = have.ID
			}
		}
		return o, err
	}
	f := faults{section: "currencyOfNetwork"}
	f.wants(p.CurrencyID != 0, "currencyCode", "is not a known currency code")
	f.wants(p.NetworkID != 0, "networkCode", "is not a known network code")
	if err := fault.All(f.problems); err != nil {
		return o, err
	}
	p.Active = true
	o.ID, err = s.Store.AddPair(ctx, p)
	o.Done = true
	return o, err
}

// currency returns the id of a currency by its code, 0 if there is none.
func (s *Service) currency(ctx context.Context, code string) (int64, error) {
	all, err := s.Store.Currencies(ctx, Query{Code: &code})
	if len(all) == 0 {
		return 0, err
	}
	return all[0].ID, err
}

func (s *Service) network(ctx context.Context, code string) (int64, error) {
	all, err := s.Store.Networks(ctx, Query{Code: &code})
	if len(all) == 0 {
		return 0, err
	}
	return all[0].ID, err
}

// Update changes the enabled records, all or none, without activating or deactivating them (D-CUR-04). A pair keeps its
// currency and its network, and its decimals may not decrease, because balances are stored with them. INVALID_FIELD;
// RECORD_NOT_FOUND for an id of any section; RECORD_ALREADY_EXIST for a code that is taken.
func (s *Service) Update(ctx context.Context, by audit.By, in Setup) (r Result, err error) {
	if err := in.check(); err != nil {
		return r, err
	}
	r = Result{Outcome{in.Currency.Record.ID, in.Currency.Enabled}, Outcome{in.Network.Record.ID, in.Network.Enabled},
		Outcome{in.Pair.Record.ID, in.Pair.Enabled}}
	err = s.Changes.Do(ctx, by, "ASSETS_UPDATE", func(ctx context.Context) (admin.Done, error) {
		err := s.Store.ChangeCurrency(ctx, r.Currency.ID, func(have Currency) (Currency, error) {
			if !in.Currency.Enabled {
				return have, nil
			}
			next := in.Currency.Record
			next.Active = have.Active
			return next, nil
		})
		if err != nil {
			return admin.Done{}, err
		}
		err = s.Store.ChangeNetwork(ctx, r.Network.ID, func(have Network) (Network, error) {
			if !in.Network.Enabled {
				return have, nil
			}
			next := in.Network.Record
			next.Active = have.Active
			return next, nil
		})
		if err != nil {
			return admin.Done{}, err
		}
		err = s.Store.ChangePair(ctx, r.Pair.ID, func(have Pair) (Pair, error) {
			if !in.Pair.Enabled {
				return have, nil
			}
			return s.relink(ctx, have, in.Pair.Record)
		})
		return r.done(), err
	})
	return r, err
}

func (s *Service) relink(ctx context.Context, have Pair, in Link) (Pair, error) {
	next := in.Pair
	next.CurrencyID, next.NetworkID, next.Active = have.CurrencyID, have.NetworkID, have.Active
	cur, err := s.currency(ctx, in.CurrencyCode)
	if err != nil {
		return have, err
	}
	net, err := s.network(ctx, in.NetworkCode)
	if err != nil {
		return have, err
	}
	f := faults{section: "currencyOfNetwork"}
	f.wants(cur == have.CurrencyID, "currencyCode", "is not the currency of this pair")
	f.wants(net == have.NetworkID, "networkCode", "is not the network of this pair")
	f.wants(next.Decimals() >= have.Decimals(), "formatPrecision", "must not have fewer decimals than before")
	return next, fault.All(f.problems)
}

// Activate activates or deactivates a currency and one of its pairs, both or none (D-CUR-05). RECORD_NOT_FOUND for an
// unknown id and for a pair of another currency.
func (s *Service) Activate(ctx context.Context, by audit.By, currencyID int64, active bool, pairID int64,
	pairActive bool) error {
	return s.Changes.Do(ctx, by, "CURRENCY_ACTIVATE", func(ctx context.Context) (admin.Done, error) {
		err := s.Store.ChangeCurrency(ctx, currencyID, func(c Currency) (Currency, error) {
			c.Active = active
			return c, nil
		})
		if err != nil {
			return admin.Done{}, err
		}
		err = s.Store.ChangePair(ctx, pairID, func(p Pair) (Pair, error) {
			if p.CurrencyID != currencyID {
				return p, fault.New(fault.RecordNotFound, "no such pair of this currency")
			}
			p.Active = pairActive
			return p, nil
		})
		return admin.Done{Target: fmt.Sprint("currency ", currencyID),
			Detail: fmt.Sprintf("currency %d active=%t, pair %d active=%t", currencyID, active, pairID, pairActive)}, err
	})
}
