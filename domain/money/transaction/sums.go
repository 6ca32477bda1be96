package transaction

import (
	"context"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/policy"
)

// Flow are the movements of a kind in a direction. They have the instant at which the money was asked for or credited;
// with Left, withdrawals have that of their last claim.
type Flow struct {
	Kind      policy.Kind
	Direction policy.Direction
	Left      bool
}

// String returns the key of the flow in the database: "WITHDRAWAL/OUT", with Left "WITHDRAWAL/OUT/LEFT".
func (f Flow) String() string {
	key := string(f.Kind) + "/" + string(f.Direction)
	if f.Left {
		key += "/LEFT"
	}
	return key
}

// Flows returns every flow that is counted.
func Flows() []Flow {
	return []Flow{{policy.Withdrawal, policy.Out, false}, {policy.Withdrawal, policy.Out, true},
		{policy.Deposit, policy.In, false}, {policy.Adjustment, policy.In, false},
		{policy.Adjustment, policy.Out, false}}
}

// CountedQuery selects the movements of a flow, but Except, after After and no later than Until; zero: also later ones.
// UserID, Destination and Initiator select those of an account, to a destination and by an initiator; "": all.
type CountedQuery struct {
	Flow
	UserID, Destination, Initiator string
	Except                         string
	After, Until                   time.Time
}

// selects reports whether a new movement counts in a sum.
func (q CountedQuery) selects(m movement) bool {
	f := m.facts
	return q.Flow == Flow{f.Kind, f.Direction, m.left} && (q.UserID == "" || q.UserID == f.Account.ID) &&
		(q.Destination == "" || q.Destination == f.Destination.Key) &&
		(q.Initiator == "" || q.Initiator == f.Initiator.String())
}

// Counted are movements of an asset. UserID is set in those to a destination.
type Counted struct {
	UserID string
	Asset  int64
	Number int64
	Sum    amount.Sum
}

// wide reports whether a sum has movements of many accounts.
func wide(per policy.Per) bool {
	return per == policy.PerInitiator || per == policy.PerAsset || per == policy.PerPlatform
}

// FlowKept is how long totals are kept; a window has at most 31 days.
const FlowKept = 32 * policy.Day

// KeepTotals keeps the totals of the flows that rules count for many accounts (Past.KeepTotals). It may run on several
// nodes at once, or not at all: then a sum takes longer.
func (j *Judge) KeepTotals(ctx context.Context, now time.Time) error {
	flows := slices.DeleteFunc(Flows(), func(f Flow) bool { return !slices.ContainsFunc(j.Rules().Counts(f.Kind), wide) })
	return j.Past.KeepTotals(ctx, flows, now.Add(-FlowKept), now)
}

// query returns the query of a sum of a movement. One per asset is that of the platform.
func (m movement) query(key policy.SumKey) CountedQuery {
	f, at := m.facts, m.facts.At
	if !m.since.IsZero() {
		at = m.since
	}
	q := CountedQuery{Flow: Flow{f.Kind, f.Direction, m.left}, Except: m.id, After: at.Add(-time.Duration(key.Window))}
	if m.id != "" && !m.left { // as at its request
		q.After, q.Until = f.Requested.Add(-time.Duration(key.Window)), f.Requested
	}
	switch key.Per {
	case policy.PerAccount:
		q.UserID = f.Account.ID
	case policy.PerDestination:
		q.Destination = f.Destination.Key
	case policy.PerInitiator:
		if q.Initiator = f.Initiator.String(); f.Initiator.Type == policy.User {
			q.UserID = f.Account.ID
		}
	}
	return q
}

// Stored returns the facts by which a withdrawal or a deposit was judged at its request or its report, and the totals
// that the rules of a set need then. Facts that no rule asked for are unknown. RECORD_NOT_FOUND; INVALID_STATE for a
// movement that no rule was asked about.
func (j *Judge) Stored(ctx context.Context, set *policy.Set, movementID string) (policy.Facts, []policy.Total, error) {
	f, known, err := j.Past.Judged(ctx, movementID)
	if err == nil && !known {
		err = fault.New(fault.InvalidState, "the facts of the movement were not stored")
	}
	if err != nil {
		return f, nil, err
	}
	m := movement{facts: f, id: movementID}
	_, sums, err := j.counted(ctx, nil, m.queries(set, true))
	if err != nil {
		return f, nil, err
	}
	totals, err := j.totals(ctx, set, m, true, past{sums, j.prices})
	return f, totals, err
}

// MaxRehearsed is how many movements Rehearse judges at most.
const MaxRehearsed = 100_000

// Rehearse judges the stored facts of movements from an instant on by each of some rules alone; those in the longest
// window before that count in sums. A value that was not stored is that of the rates of its hour. truncated says that
// there are more movements than MaxRehearsed; the last ones are left out.
func (j *Judge) Rehearse(ctx context.Context, from time.Time, rules ...policy.Rule) (found []policy.Rehearsal,
	truncated bool, err error) {
	begin, all := from, []*policy.Rehearser{}
	for _, r := range rules {
		all = append(all, policy.NewRehearser(r))
		for _, x := range r.Match.Sums {
			if at := from.Add(-time.Duration(x.Window)); at.Before(begin) {
				begin = at
			}
		}
	}
	type hour struct {
		code string
		at   time.Time
	}
	known := map[hour]prices{}
	n := 0
	err = j.Past.Facts(ctx, begin, func(movementID string, f policy.Facts, counts bool) (more bool, err error) {
		if !f.Read.Value {
			at := hour{f.Asset.CurrencyCode, f.At.Truncate(time.Hour)}
			if known[at] == nil {
				if known[at], err = j.prices(ctx, at.at, at.code); err != nil {
					return false, err
				}
			}
			f.Value, f.Rated = known[at](at.code, f.Amount.Sum())
			f.Read.Value = true
		}
		if n++; n > MaxRehearsed {
			truncated = true
			return false, nil
		}
		for _, h := range all {
			h.Add(movementID, f, !f.At.Before(from), counts)
		}
		return true, nil
	})
	for _, h := range all {
		found = append(found, h.Found())
	}
	return found, truncated, err
}

// sums are earlier movements, by the query that counts them.
type sums map[CountedQuery][]Counted

// counted reads the versions of gates, and sums, at one instant.
func (j *Judge) counted(ctx context.Context, gates []string, queries []CountedQuery) (map[string]int64, sums, error) {
	found, once := sums{}, []CountedQuery(nil)
	for _, q := range queries {
		if _, known := found[q]; !known {
			found[q], once = nil, append(once, q)
		}
	}
	versions, all, err := j.Past.Counted(ctx, gates, once...)
	for i := range all {
		found[once[i]] = all[i]
	}
	return versions, found, err
}

// past is what totals need: earlier movements and the rates of their values.
type past struct {
	sums
	prices func(ctx context.Context, now time.Time, codes ...string) (prices, error)
}

// queries returns the queries of the sums that the rules of a movement need, with trial also of those on trial.
func (m movement) queries(set *policy.Set, trial bool) (all []CountedQuery) {
	for _, i := range set.Needs(m.facts, trial) {
		all = append(all, m.query(set.Sums()[i]))
	}
	return all
}

// totals returns the totals of the sums that the rules of a movement need, with trial also of those on trial. Earlier
// movements have the values of now; a currency without a rate has none.
func (j *Judge) totals(ctx context.Context, set *policy.Set, m movement, trial bool, from past) ([]policy.Total,
	error) {
	f, totals, needed := m.facts, make([]policy.Total, len(set.Sums())), set.Needs(m.facts, trial)
	var codes []string
	for _, i := range needed {
		for _, c := range from.sums[m.query(set.Sums()[i])] {
			codes = append(codes, j.code(c.Asset))
		}
	}
	price := prices(func(string, amount.Sum) (amount.Amount, bool) { return amount.Amount{}, false })
	if f.Read.Value && len(codes) > 0 {
		slices.Sort(codes)
		var err error
		if price, err = from.prices(ctx, f.At, slices.Compact(codes)...); err != nil {
			return nil, err
		}
	}
	for _, i := range needed {
		key := set.Sums()[i]
		totals[i] = j.total(key, f, from.sums[m.query(key)], price)
	}
	return totals, nil
}

func (j *Judge) code(asset int64) string {
	pair, _ := j.Catalog().Pair(asset)
	return pair.Currency.Code
}

// total adds a movement to those before it.
func (j *Judge) total(key policy.SumKey, f policy.Facts, before []Counted, price prices) (t policy.Total) {
	accounts := map[string]bool{f.Account.ID: true}
	t.Number, t.Sum = 1, key.Term(f)
	for _, c := range before {
		code := j.code(c.Asset)
		if key.Per == policy.PerAsset && code != f.Asset.CurrencyCode {
			continue
		}
		accounts[c.UserID] = true
		t.Number += c.Number
		switch {
		case key.Of == policy.Value:
			value, _ := price(code, c.Sum)
			t.Sum = t.Sum.Add(value.Sum())
		case key.Of == policy.Amount && strings.EqualFold(code, key.Currency):
			t.Sum = t.Sum.Add(c.Sum)
		}
	}
	if key.Of == policy.Accounts {
		t.Number = int64(len(accounts))
	}
	return t
}
