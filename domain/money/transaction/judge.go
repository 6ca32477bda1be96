package transaction

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/turn"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/currency"
	"castellan/domain/money/policy"
	"castellan/domain/money/rate"
)

// Judge judges movements by the rules in force (D-POL-07). It reads only facts that the rules ask for; a nil Judge, and
// one without rules, lets everything pass. All fields but Hits are required. It is safe for concurrent use.
type Judge struct {
	Rules   func() *policy.Set
	Past    Past
	Rates   rate.Store
	Books   addressbook.Store
	Users   user.Store
	Catalog func() *currency.Catalog
	// ServiceRoles returns the roles of the key of a service.
	ServiceRoles func(name string) []string
	// Shared reports whether two accounts share a device.
	Shared func(ctx context.Context, userID, other string) (bool, error)
	// Hits counts the rules of new movements, of claims that they hold and of calls (D-POL-24); nil: not counted.
	Hits *policy.Hits

	turns  turn.Turns // at gates
	mu     sync.Mutex
	passes map[string][]*pass // that wait for turns, by their widest gate
}

// Past reads what rules ask about earlier movements. Every method joins the transaction of its context.
type Past interface {
	// Used reports whether an account has sent money to a destination, and Withdrew whether it has sent any.
	Used(ctx context.Context, userID string, d Destination) (bool, error)
	Withdrew(ctx context.Context, userID string) (bool, error)
	// Credited returns when one of the assets was last credited to an account; zero: never.
	Credited(ctx context.Context, userID string, assets ...int64) (time.Time, error)
	// Counted reads the versions of gates, without those that were never passed, and sums the movements of each query by
	// asset, those to a destination also by account. Cancelled and failed ones do not count. All are of one instant.
	Counted(ctx context.Context, gates []string, queries ...CountedQuery) (versions map[string]int64, sums [][]Counted,
		err error)
	// KeepTotals keeps what some flows add up to, from an instant on, so that Counted need not read their movements. It
	// ends the totals of other flows. UNAVAILABLE if the movements are written too busily: it continues in the next call.
	KeepTotals(ctx context.Context, flows []Flow, from, now time.Time) error
	// Judged returns the facts by which a withdrawal or a deposit was judged when it was requested or reported; false if
	// they were not stored. RECORD_NOT_FOUND.
	Judged(ctx context.Context, movementID string) (f policy.Facts, known bool, err error)
	// Facts reads the stored facts of movements from an instant on, from the oldest, until read wants no more. counts is
	// false for those that were cancelled, failed or not credited.
	Facts(ctx context.Context, from time.Time,
		read func(movementID string, f policy.Facts, counts bool) (more bool, err error)) error
	// LockGates returns the versions of gates, and locks them until the transaction of the context ends, in the order of
	// keys, which are not empty.
	LockGates(ctx context.Context, keys []string, now time.Time) (versions map[string]int64, err error)
	// Approved lists the approvals of withdrawals, in their order.
	Approved(ctx context.Context, withdrawalIDs ...string) ([]AddApproval, error)
	// Due lists entries of the queue whose HeldPolicy ends at or before an instant, at most a number of them, and none
	// that waits for the comparison after a restore.
	Due(ctx context.Context, now time.Time, most int) (ids []string, err error)
	// HeldBefore lists entries of the queue that are held for HeldPolicy since an instant or longer, at most a number of
	// them, the oldest first.
	HeldBefore(ctx context.Context, before time.Time, most int) (ids []string, err error)
}

// Destination is where a withdrawal goes. Rows of earlier versions have no key; they are found by the address, on the
// assets of its network.
type Destination struct {
	Key, Address, Tag string
	Assets            []int64
}

// AddApproval adds the approval of a withdrawal by an operator. Past.Approved does not read Signed.
type AddApproval struct {
	ID, UserID, OrderDigest string
	At                      time.Time
	Signed                  Signed
}

func (AddApproval) Table() string { return "withdrawal_approval" }

// maxRateAge is the age of a rate above which it counts as missing.
const maxRateAge = 72 * time.Hour

// lira is the currency of values, which have two decimals.
const (
	lira         = "TRY"
	liraDecimals = 2
)

// movement is what a judgement concerns.
type movement struct {
	facts policy.Facts
	to    Destination
	asset int64
	// id is that of a withdrawal in the queue, "" of a new one. left says that it is judged at its claim.
	id   string
	left bool
	// commits says that its unit is committed if it passes.
	commits bool
	// since is the instant from which its sums go back, if a unit has several movements; zero: that of its facts.
	since time.Time
	// device reads the device of an owner; nil if it is in the facts, or is not known yet.
	device func(context.Context) (policy.Device, error)
}

// ruling is a verdict with the facts it was made from, and the writes that it depends on.
type ruling struct {
	policy.Verdict
	facts policy.Facts
	gates []commit.Write
}

// judge judges a movement. The gates of the ruling belong into its unit.
func (j *Judge) judge(ctx context.Context, m movement) (r ruling, err error) {
	if r.facts = m.facts; j == nil {
		return r, nil
	}
	set := j.Rules()
	m.facts.Read = set.Wants(m.facts.Kind, m.facts.Asset.CurrencyCode)
	if m.facts.Read.Any {
		m.facts, err = j.read(ctx, m, m.facts)
	}
	if r.facts = m.facts; err != nil {
		return r, err
	}
	keys, is := gatesOf(set, m), false
	if r.Verdict, is = j.least(ctx, set, m, keys); is {
		return r, nil
	}
	r.Verdict = policy.Verdict{}
	var queries []CountedQuery
	if m.facts.Read.Any {
		queries = m.queries(set, false)
	}
	var sums sums
	if r.gates, sums, err = j.gates(ctx, keys, m.facts.At, queries); err != nil || !m.facts.Read.Any {
		return r, err
	}
	totals, err := j.totals(ctx, set, m, false, past{sums, j.prices})
	if err == nil {
		r.Verdict = set.Judge(m.facts, totals)
	}
	return r, err
}

// hit counts the rules of a verdict.
func (j *Judge) hit(v policy.Verdict) {
	if j != nil {
		j.Hits.Add(v)
	}
}

// read reads the facts in f.Read.
func (j *Judge) read(ctx context.Context, m movement, f policy.Facts) (_ policy.Facts, err error) {
	w := f.Read
	if w.Value {
		price, err := j.prices(ctx, f.At, f.Asset.CurrencyCode)
		if err != nil {
			return f, err
		}
		f.Value, f.Rated = price(f.Asset.CurrencyCode, f.Amount.Sum())
	}
	if w.Booked {
		f.Destination.BookedAt, err = j.booked(ctx, m)
	}
	if err == nil && w.Used && m.to.Key != "" {
		f.Destination.Used, err = j.Past.Used(ctx, f.Account.ID, m.to)
	}
	if err == nil && w.Credited {
		assets := j.Catalog().IDs(func(l currency.Listed) bool { return l.Currency.Code == f.Asset.CurrencyCode })
		f.Account.CreditedAt, err = j.Past.Credited(ctx, f.Account.ID, assets...)
	}
	if err == nil && w.Withdrew {
		f.Account.Withdrew, err = j.Past.Withdrew(ctx, f.Account.ID)
	}
	if err == nil && w.Device && m.device != nil {
		f.Device, err = m.device(ctx)
	}
	if err == nil && w.Roles {
		f.Initiator.Roles, err = j.roles(ctx, f.Initiator)
	}
	return f, err
}

// roles returns the roles of an initiator; the owner's are of no interest.
func (j *Judge) roles(ctx context.Context, i policy.Initiator) ([]string, error) {
	switch i.Type {
	case policy.Service:
		return j.ServiceRoles(i.Name), nil
	case policy.Operator:
		of, err := j.Users.RolesOf(ctx, []string{i.Name})
		return of[i.Name], err
	}
	return nil, nil
}

// booked returns since when the destination is in the address book of the account; zero: it is not.
func (j *Judge) booked(ctx context.Context, m movement) (at time.Time, err error) {
	pair, _ := j.Catalog().Pair(m.asset)
	book, err := j.Books.Book(ctx, m.facts.Account.ID)
	for _, e := range book {
		if e.NetworkID == pair.NetworkID && e.To(m.to.Address, m.to.Tag) && (at.IsZero() || e.AddressAt.Before(at)) {
			at = e.AddressAt
		}
	}
	return at, err
}

// prices values amounts of some currencies in lira; false: there is no rate.
type prices func(code string, a amount.Sum) (amount.Amount, bool)

// prices returns the prices of some currencies.
func (j *Judge) prices(ctx context.Context, now time.Time, codes ...string) (prices, error) {
	all, err := rate.Into(ctx, j.Rates, lira, now, codes...)
	if err != nil {
		return nil, err
	}
	last := slices.DeleteFunc(all, func(q rate.Quote) bool { return now.Sub(q.At) > maxRateAge })
	return func(code string, s amount.Sum) (amount.Amount, bool) {
		a, err := s.Amount()
		if err != nil {
			a = amount.Most
		}
		c, _ := rate.Code(code)
		if c == lira {
			return a, true
		}
		price, known := rate.Find(rate.Pair{Base: c, Quote: lira}, last)
		if !known {
			return amount.Amount{}, false
		}
		value, err := price.Of(a, liraDecimals)
		if err != nil {
			value = amount.Most
		}
		return value, true
	}, nil
}

// approver returns the roles by which an operator may approve a movement now. There are none for the owner, the
// initiator and an account that is not active, or that shares a device with any of these or with another approver.
func (j *Judge) approver(ctx context.Context, userID, owner string, by Initiator, others []string) ([]string, error) {
	if strings.HasPrefix(userID, audit.ByService) {
		return nil, nil
	}
	others = append(slices.Clone(others), owner)
	if i := by.facts(); i.Type == policy.Operator {
		others = append(others, i.Name)
	}
	u, err := j.Users.Get(ctx, userID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case !u.Active() || slices.Contains(others, userID):
		return nil, nil
	}
	for _, other := range others {
		if shared, err := j.Shared(ctx, userID, other); shared || err != nil {
			return nil, err
		}
	}
	return u.Roles, nil
}

// factsOf returns the facts of an account that its row has.
func factsOf(u user.User) policy.AccountFacts {
	return policy.AccountFacts{ID: u.ID, Level: u.Level, AML: u.AMLStatus, CreatedAt: u.CreatedAt,
		CredentialsAt: u.CredentialsAt}
}

// facts returns the initiator as rules know it.
func (i Initiator) facts() policy.Initiator {
	kind, name, _ := strings.Cut(string(i), ":")
	return policy.Initiator{Type: policy.InitiatorType(kind), Name: name}
}

// maxFacts limits the stored facts, in bytes.
const maxFacts = 1 << 10

// stored returns the text of the facts that a row keeps; without roles, and then without a destination, if it is too
// long.
func stored(f policy.Facts) string {
	text, _ := json.Marshal(f) // cannot fail
	if len(text) > maxFacts {
		f.Initiator.Roles, f.Read.Roles = nil, false
		text, _ = json.Marshal(f)
	}
	if len(text) > maxFacts {
		f.Destination = policy.DestinationFacts{}
		text, _ = json.Marshal(f)
	}
	return string(text)
}
