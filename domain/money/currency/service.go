package currency

import (
	"cmp"
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
	KeepMaxDeposit            bool // an update does not change MaxDeposit
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

// Outcome is the result of one section; did describes what happened to its record.
type Outcome struct {
	ID   int64
	Done bool
	did  string
}

// done returns the content of the audit row; empty if nothing was changed.
func (r Result) done() admin.Done {
	var done admin.Done
	var parts []string
	for _, o := range []struct {
		name string
		Outcome
	}{{"currency", r.Currency}, {"network", r.Network}, {"pair", r.Pair}} {
		if o.Done {
			target := fmt.Sprint(o.name, " ", o.ID)
			done.Target = cmp.Or(done.Target, target)
			parts = append(parts, target+": "+o.did)
		}
	}
	done.Detail = strings.Join(parts, "; ")
	return done
}

// Setup adds the enabled records as active, all or none. INVALID_FIELD, also for a pair with unknown codes;
// RECORD_ALREADY_EXIST (D-CUR-10).
func (s *Service) Setup(ctx context.Context, by audit.By, in Setup) (r Result, err error) {
	if err := in.check(); err != nil {
		return r, err
	}
	err = s.Changes.Do(ctx, by, "ASSETS_SETUP", func(ctx context.Context) (admin.Done, error) {
		known, err := in.load(ctx, s.Store)
		if err != nil {
			return admin.Done{}, err
		}
		c, n := in.Currency.Record, in.Network.Record
		if c.Active = true; in.Currency.Enabled {
			known.byCode[c.Code], err = s.Store.AddCurrency(ctx, c)
		}
		if n.Active = true; in.Network.Enabled && err == nil {
			known.netByCode[n.Code], err = s.Store.AddNetwork(ctx, n)
		}
		if err != nil {
			return admin.Done{}, err
		}
		r = Result{Currency: Outcome{known.byCode[c.Code], in.Currency.Enabled, admin.Values(c)},
			Network: Outcome{known.netByCode[n.Code], in.Network.Enabled, admin.Values(n)}}
		r.Pair, err = s.link(ctx, &in.Pair, known)
		return r.done(), err
	})
	return r, err
}

// load reads the records. RECORD_ALREADY_EXIST for a new code that another record has in another case, because requests
// name currencies in any case (D-CUR-10).
func (s *Setup) load(ctx context.Context, store Store) (*Catalog, error) {
	known, err := Load(ctx, store)
	if err == nil && (s.Currency.Enabled && variant(known.byCode, s.Currency.Record.Code, s.Currency.Record.ID) ||
		s.Network.Enabled && variant(known.netByCode, s.Network.Record.Code, s.Network.Record.ID)) {
		err = fault.New(fault.RecordAlreadyExist, "the record exists already")
	}
	return known, err
}

// variant reports whether a code that no record has differs from that of a record other than id in its case alone.
func variant(ids map[string]int64, code string, id int64) bool {
	for other, of := range ids {
		if of != id && ids[code] == 0 && strings.EqualFold(other, code) {
			return true
		}
	}
	return false
}

// link adds a pair, or finds the pair named by its codes.
func (s *Service) link(ctx context.Context, in *Section[Link], known *Catalog) (o Outcome, err error) {
	p := in.Record.Pair
	p.CurrencyID, p.NetworkID = known.byCode[in.Record.CurrencyCode], known.netByCode[in.Record.NetworkCode]
	if !in.Enabled {
		return Outcome{ID: known.pairs[[2]int64{p.CurrencyID, p.NetworkID}].ID}, nil
	}
	f := faults{section: "currencyOfNetwork"}
	f.wants(p.CurrencyID != 0, "currencyCode", "is not a known currency code")
	f.wants(p.NetworkID != 0, "networkCode", "is not a known network code")
	if err := fault.All(f.Problems); err != nil {
		return o, err
	}
	p.Active = true
	id, err := s.Store.AddPair(ctx, p)
	return Outcome{id, true, admin.Values(p)}, err
}

// Update changes the enabled records, all or none, without activating or deactivating them (D-CUR-04). A pair keeps its
// currency and its network, and its decimals may not decrease, because balances are stored with them. INVALID_FIELD;
// RECORD_NOT_FOUND for an id of any section; RECORD_ALREADY_EXIST for a code that is taken.
func (s *Service) Update(ctx context.Context, by audit.By, in Setup) (r Result, err error) {
	if err := in.check(); err != nil {
		return r, err
	}
	r = Result{Outcome{ID: in.Currency.Record.ID, Done: in.Currency.Enabled},
		Outcome{ID: in.Network.Record.ID, Done: in.Network.Enabled}, Outcome{ID: in.Pair.Record.ID, Done: in.Pair.Enabled}}
	err = s.Changes.Do(ctx, by, "ASSETS_UPDATE", func(ctx context.Context) (admin.Done, error) {
		if _, err := in.load(ctx, s.Store); err != nil {
			return admin.Done{}, err
		}
		err := s.Store.ChangeCurrency(ctx, r.Currency.ID, edited(&r.Currency,
			func(have Currency) (Currency, error) {
				next := in.Currency.Record
				next.Active = have.Active
				return next, nil
			}))
		if err == nil {
			err = s.Store.ChangeNetwork(ctx, r.Network.ID, edited(&r.Network,
				func(have Network) (Network, error) {
					next := in.Network.Record
					next.Active = have.Active
					return next, nil
				}))
		}
		if err == nil {
			err = s.Store.ChangePair(ctx, r.Pair.ID, edited(&r.Pair,
				func(have Pair) (Pair, error) { return s.relink(ctx, have, in.Pair.Record) }))
		}
		return r.done(), err
	})
	return r, err
}

// edited is a change of a record that describes itself; none if its section is not enabled.
func edited[T any](o *Outcome, change func(have T) (T, error)) func(T) (T, error) {
	return func(have T) (T, error) {
		if !o.Done {
			return have, nil
		}
		next, err := change(have)
		o.did = admin.Difference(have, next)
		return next, err
	}
}

func (s *Service) relink(ctx context.Context, have Pair, in Link) (Pair, error) {
	next := in.Pair
	next.CurrencyID, next.NetworkID, next.Active = have.CurrencyID, have.NetworkID, have.Active
	if in.KeepMaxDeposit {
		next.MaxDeposit = have.MaxDeposit
	}
	known, err := Load(ctx, s.Store)
	if err != nil {
		return have, err
	}
	f := faults{section: "currencyOfNetwork"}
	f.wants(known.byCode[in.CurrencyCode] == have.CurrencyID, "currencyCode", "is not the currency of this pair")
	f.wants(known.netByCode[in.NetworkCode] == have.NetworkID, "networkCode", "is not the network of this pair")
	f.wants(next.Decimals() >= have.Decimals(), "formatPrecision", "must not have fewer decimals than before")
	return next, fault.All(f.Problems)
}

// Activate activates or deactivates a currency and one of its pairs, both or none (D-CUR-05). RECORD_NOT_FOUND for an
// unknown id and for a pair of another currency.
func (s *Service) Activate(ctx context.Context, by audit.By, currencyID int64, active bool, pairID int64,
	pairActive bool) error {
	return s.Changes.Do(ctx, by, "CURRENCY_ACTIVATE", func(ctx context.Context) (admin.Done, error) {
		was := [2]bool{}
		err := s.Store.ChangeCurrency(ctx, currencyID, func(c Currency) (Currency, error) {
			was[0], c.Active = c.Active, active
			return c, nil
		})
		if err != nil {
			return admin.Done{}, err
		}
		err = s.Store.ChangePair(ctx, pairID, func(p Pair) (Pair, error) {
			if p.CurrencyID != currencyID {
				return p, fault.New(fault.RecordNotFound, "no such pair of this currency")
			}
			was[1], p.Active = p.Active, pairActive
			return p, nil
		})
		return admin.Done{Target: fmt.Sprint("currency ", currencyID),
			Detail: fmt.Sprintf("currency %d active %t -> %t, pair %d active %t -> %t", currencyID, was[0], active, pairID,
				was[1], pairActive)}, err
	})
}
