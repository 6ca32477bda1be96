package policy_test

import (
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
)

// chance makes rules and facts from few values, so that they often meet.
type chance struct{ *rand.Rand }

func pick[T any](c chance, all ...T) T { return all[c.IntN(len(all))] }

func some[T any](c chance, all ...T) (list []T) {
	for _, v := range all {
		if c.IntN(10) == 0 {
			list = append(list, v)
		}
	}
	return list
}

func maybe[T any](c chance, v T) *T {
	if c.IntN(8) > 0 {
		return nil
	}
	return &v
}

var (
	now      = time.Date(2026, 3, 9, 23, 30, 0, 0, time.UTC)
	amounts  = []string{"0", "1", "1.5", "9.000000000000000001", "100", "1000000000000"}
	spans    = []policy.Span{0, 0, 0, 0, 0, 0, policy.Span(time.Hour), policy.Span(48 * time.Hour)}
	networks = []string{"", "TRX", "ETH"}
)

func (c chance) amount() amount.Amount { return amount.Must(pick(c, amounts...)) }

func (c chance) rule(n int) policy.Rule {
	r := policy.Rule{Label: fmt.Sprint("rule ", n), Version: int64(n), Status: pick(c, policy.Active, policy.Active,
		policy.Active, policy.Trial, policy.Inactive), Kinds: []policy.Kind{policy.Withdrawal}}
	m := &r.Match
	for range c.IntN(3) * c.IntN(2) {
		m.Assets = append(m.Assets, policy.Asset{CurrencyCode: pick(c, "USDT", "BTC"), Network: pick(c, networks...)})
	}
	if c.IntN(5) == 0 {
		m.Direction = pick(c, policy.Out, policy.In)
	}
	m.Amount = maybe(c, policy.Over{Over: c.amount(), Unit: policy.InTRY})
	one := len(m.Assets) == 1 || len(m.Assets) == 2 && m.Assets[0].CurrencyCode == m.Assets[1].CurrencyCode
	if m.Amount != nil && one {
		m.Amount.Unit = pick(c, policy.InTRY, policy.InAsset)
	}
	for range c.IntN(3) * c.IntN(2) {
		x := policy.Sum{Per: pick(c, policy.PerAccount, policy.PerDestination, policy.PerPlatform),
			Window: pick(c, spans[6:]...), Of: pick(c, policy.Value, policy.Count), Over: amount.Must(pick(c, "1", "100"))}
		if one && c.IntN(2) == 0 {
			x.Of = policy.Amount
		}
		m.Sums = append(m.Sums, x)
	}
	m.Destination = policy.Destination{InBook: maybe(c, true), FirstUse: maybe(c, false), BookAgeBelow: pick(c, spans...)}
	m.Account = policy.Account{Levels: some(c, 1, 2), AML: some(c, "risky"), AgeBelow: pick(c, spans...),
		CredentialAgeBelow: pick(c, spans...), FirstWithdrawal: maybe(c, true)}
	m.Device, m.Initiator.Types = some(c, policy.NewDevice, policy.NoDevice), some(c, policy.User, policy.Service)
	m.Initiator.Roles = some(c, "support")
	m.Hours = maybe(c, pick(c, policy.Hours{From: "22:00", To: "07:00", Zone: "Europe/Istanbul"},
		policy.Hours{From: "09:00", To: "23:31", Zone: "UTC"}))
	r.Except.Accounts, r.Except.Initiators = some(c, "u1"), some(c, "SERVICE:shop", "USER")
	r.Effect = pick(c, policy.Effect{Type: policy.Deny}, policy.Effect{Type: policy.Owner, Required: c.IntN(3),
		PhishingResistant: c.IntN(2) == 0}, policy.Effect{Type: policy.Approval, Group: pick(c, "admin", "treasury"),
		Required: 1 + c.IntN(5), Expires: pick(c, spans...)}, policy.Effect{Type: policy.Wait, For: spans[6+c.IntN(2)],
		After: pick(c, policy.AfterRequest, policy.AfterCredentials, policy.AfterCredit, policy.AfterDestination)})
	if c.IntN(8) == 0 {
		r.ExpiresAt = now.Add(pick(c, -time.Millisecond, 0, time.Millisecond))
	}
	return r
}

func (c chance) rules(n int) []policy.Rule {
	all := make([]policy.Rule, n)
	for i := range all {
		all[i] = c.rule(i)
	}
	return all
}

func (c chance) instant() time.Time {
	return pick(c, time.Time{}, now, now.Add(-time.Hour), now.Add(time.Millisecond-48*time.Hour), now.Add(-48*time.Hour))
}

func (c chance) facts() policy.Facts {
	return policy.Facts{Kind: pick(c, policy.Withdrawal, policy.Withdrawal, policy.Deposit), At: now,
		Requested: pick(c, now, now.Add(-time.Hour)), Asset: policy.Asset{CurrencyCode: pick(c, "USDT", "BTC", "XRP"),
			Network: pick(c, networks[1:]...)}, Direction: pick(c, policy.Out, policy.In), Amount: c.amount(),
		Value: c.amount(), Rated: c.IntN(5) > 0, Device: pick(c, policy.NewDevice, policy.KnownDevice),
		Destination: policy.DestinationFacts{Key: "k", BookedAt: c.instant(), Used: c.IntN(2) == 0},
		Account: policy.AccountFacts{ID: pick(c, "u1", "u2"), Level: 1 + c.IntN(3), AML: pick(c, "notRisky", "risky"),
			CreatedAt: c.instant(), CredentialsAt: c.instant(), CreditedAt: c.instant(), Withdrew: c.IntN(2) == 0},
		Initiator: pick(c, policy.Initiator{Type: policy.User}, policy.Initiator{Type: policy.Service, Name: "shop",
			Roles: []string{"support"}}, policy.Initiator{Type: policy.Operator, Name: "u9"})}
}

func (c chance) totals(s *policy.Set) []policy.Total {
	all := make([]policy.Total, len(s.Sums()))
	for i := range all {
		all[i] = policy.Total{Sum: c.amount().Sum(), Number: int64(c.IntN(3))}
	}
	return all
}

// scaled is an amount in parts of 10⁻¹⁸.
func scaled(s string) *big.Int {
	whole, part, _ := strings.Cut(s, ".")
	n, _ := new(big.Int).SetString(whole+part+strings.Repeat("0", amount.Decimals-len(part)), 10)
	return n
}

func above(a, b fmt.Stringer) bool { return scaled(a.String()).Cmp(scaled(b.String())) > 0 }

func has[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// holds is the condition of a rule in words as plain as possible, over all rules in turn.
func holds(r policy.Rule, f policy.Facts, total func(policy.Sum) policy.Total) bool {
	m := r.Match
	if r.Status == policy.Inactive || !slices.Contains(r.Kinds, f.Kind) ||
		!r.ExpiresAt.IsZero() && !f.At.Before(r.ExpiresAt) {
		return false
	}
	asset := len(m.Assets) == 0
	for _, a := range m.Assets {
		asset = asset || a == f.Asset || a == policy.Asset{CurrencyCode: f.Asset.CurrencyCode}
	}
	over := m.Amount == nil || m.Amount.Unit == policy.InAsset && above(f.Amount, m.Amount.Over) ||
		m.Amount.Unit == policy.InTRY && (!f.Rated || above(f.Value, m.Amount.Over))
	for _, x := range m.Sums {
		t := total(x)
		if x.Of == policy.Count {
			over = over && above(policy.Number(t.Number), x.Over)
		} else {
			over = over && (above(t.Sum, x.Over) || x.Of == policy.Value && !f.Rated)
		}
	}
	recent := func(s policy.Span, at time.Time) bool {
		return s == 0 || !at.IsZero() && at.Add(time.Duration(s)).After(f.At)
	}
	d, a := f.Destination, f.Account
	where := (m.Destination.InBook == nil || *m.Destination.InBook != d.BookedAt.IsZero()) &&
		(m.Destination.FirstUse == nil || *m.Destination.FirstUse != d.Used) &&
		(d.BookedAt.IsZero() || recent(m.Destination.BookAgeBelow, d.BookedAt))
	who := has(m.Account.Levels, a.Level) && has(m.Account.AML, a.AML) && recent(m.Account.AgeBelow, a.CreatedAt) &&
		recent(m.Account.CredentialAgeBelow, a.CredentialsAt) &&
		(m.Account.FirstWithdrawal == nil || *m.Account.FirstWithdrawal != a.Withdrew)
	asks := has(m.Device, f.Device) && has(m.Initiator.Types, f.Initiator.Type) &&
		(len(m.Initiator.Roles) == 0 || slices.Contains(f.Initiator.Roles, "support"))
	// 23:30 in UTC is 02:30 in Istanbul, so both hours of the rules hold.
	excepted := slices.Contains(r.Except.Accounts, a.ID) || slices.Contains(r.Except.Initiators, f.Initiator.String())
	return asset && (m.Direction == "" || m.Direction == f.Direction) && over && where && who && asks && !excepted
}

// expected joins the effects of the rules that hold.
func expected(rules []policy.Rule, f policy.Facts,
	total func(policy.Rule, policy.Sum) policy.Total) (v policy.Verdict) {
	quorums := map[string]policy.Quorum{}
	for _, r := range rules {
		if !holds(r, f, func(x policy.Sum) policy.Total { return total(r, x) }) {
			continue
		}
		name, e := policy.Named{Label: r.Label, Version: r.Version}, r.Effect
		from := map[policy.After]time.Time{policy.AfterRequest: f.Requested,
			policy.AfterCredentials: f.Account.CredentialsAt, policy.AfterCredit: f.Account.CreditedAt,
			policy.AfterDestination: f.Destination.BookedAt}[e.After]
		if e.After == policy.AfterDestination && from.IsZero() {
			from = f.Requested
		}
		until := from.Add(time.Duration(e.For))
		if e.Type == policy.Wait && (from.IsZero() || !until.After(f.At)) {
			continue
		}
		if r.Status == policy.Trial {
			v.Trial = append(v.Trial, name)
			continue
		}
		v.Rules = append(v.Rules, name)
		switch e.Type {
		case policy.Deny:
			v.Deny = true
		case policy.Wait:
			if until.After(v.Until) {
				v.Until = until
			}
		case policy.Owner:
			v.Owner.Asked, v.Owner.Required = true, max(v.Owner.Required, e.Required)
			v.Owner.PhishingResistant = v.Owner.PhishingResistant || e.PhishingResistant
		case policy.Approval:
			if e.Expires == 0 {
				e.Expires = policy.Span(72 * time.Hour)
			}
			q, known := quorums[e.Group]
			if !known || e.Expires < q.Expires {
				q.Expires = e.Expires
			}
			quorums[e.Group] = policy.Quorum{Group: e.Group, Required: max(q.Required, e.Required), Expires: q.Expires}
		}
	}
	for _, group := range []string{"admin", "treasury"} {
		if q, is := quorums[group]; is {
			v.Approvals = append(v.Approvals, q)
		}
	}
	byLabel := func(a, b policy.Named) int { return strings.Compare(a.Label, b.Label) }
	slices.SortFunc(v.Rules, byLabel)
	slices.SortFunc(v.Trial, byLabel)
	return v
}

// totalOf finds the total of a sum of a rule.
func totalOf(s *policy.Set, totals []policy.Total) func(policy.Rule, policy.Sum) policy.Total {
	return func(r policy.Rule, x policy.Sum) policy.Total {
		k := policy.SumKey{Per: x.Per, Window: x.Window, Of: x.Of}
		if x.Of == policy.Amount {
			k.Currency = r.Match.Assets[0].CurrencyCode
		}
		return totals[slices.Index(s.Sums(), k)]
	}
}

var policies = flag.Int("policies", 40_000, "random sets of rules that are compared with the model")

// The verdict is that of a plain reading of the rules, in every order of them, and a further rule never loosens it.
func TestJudgeIsTheJoinOfAllRules(t *testing.T) {
	t.Parallel()
	c := chance{rand.New(rand.NewPCG(45, 1))}
	met := map[bool]int{}
	for range *policies {
		rules, f := c.rules(c.IntN(7)), c.facts()
		for _, r := range rules {
			storetest.Must(t, r.Check())
		}
		s := policy.Compile(rules)
		totals := c.totals(s)
		v := s.Judge(f, totals)
		if want := expected(rules, f, totalOf(s, totals)); !reflect.DeepEqual(v, want) {
			t.Fatalf("%+v\nrules %+v\nfacts %+v\ntotals %+v\nwant %+v", v, rules, f, totals, want)
		}
		met[v.Passes()]++
		explained, all := s.Explain(f, totals)
		if matched := count(all, func(k policy.Considered) bool { return k.Matched }); !reflect.DeepEqual(explained, v) ||
			matched != len(v.Rules)+len(v.Trial) {
			t.Fatalf("explained %+v with %+v\njudged %+v", explained, all, v)
		}
		// Sums that no rule of the movement needs may be missing; without those of rules on trial, only these differ.
		for _, trial := range []bool{true, false} {
			needed := s.Needs(f, trial)
			if !slices.IsSorted(needed) {
				t.Fatalf("needs the sums %v", needed)
			}
			for i := range totals {
				if !slices.Contains(needed, i) {
					totals[i] = policy.Total{}
				}
			}
			less := s.Judge(f, totals)
			if !trial {
				less.Trial = v.Trial
			}
			if !reflect.DeepEqual(less, v) {
				t.Fatalf("%+v without the other sums, want %+v", less, v)
			}
		}
		stays(t, c, rules, f)
	}
	if met[true] < 1000 || met[false] < 1000 {
		t.Errorf("%v: the rules and facts do not meet", met)
	}
}

func count[T any](all []T, is func(T) bool) (n int) {
	for _, v := range all {
		if is(v) {
			n++
		}
	}
	return n
}

// stays judges a permutation of the rules, and the rules with a further one.
func stays(t *testing.T, c chance, rules []policy.Rule, f policy.Facts) {
	t.Helper()
	s := policy.Compile(append(rules[:len(rules):len(rules)], c.rule(9)))
	totals := c.totals(s)
	total := totalOf(s, totals)
	judge := func(rules []policy.Rule) policy.Verdict {
		s := policy.Compile(rules)
		mine := make([]policy.Total, len(s.Sums()))
		for _, r := range rules {
			for _, x := range r.Match.Sums {
				k := policy.SumKey{Per: x.Per, Window: x.Window, Of: x.Of}
				if x.Of == policy.Amount {
					k.Currency = r.Match.Assets[0].CurrencyCode
				}
				mine[slices.Index(s.Sums(), k)] = total(r, x)
			}
		}
		return s.Judge(f, mine)
	}
	first, more := judge(rules), s.Judge(f, totals)
	mixed := slices.Clone(rules)
	c.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	if v := judge(mixed); !reflect.DeepEqual(v, first) {
		t.Fatalf("%+v in another order, want %+v", v, first)
	}
	looser := first.Deny && !more.Deny || more.Until.Before(first.Until) || first.Owner.Asked && !more.Owner.Asked ||
		first.Owner.Required > more.Owner.Required || first.Owner.PhishingResistant && !more.Owner.PhishingResistant
	for _, q := range first.Approvals {
		i := slices.IndexFunc(more.Approvals, func(p policy.Quorum) bool { return p.Group == q.Group })
		looser = looser || i < 0 || more.Approvals[i].Required < q.Required || more.Approvals[i].Expires > q.Expires
	}
	if looser {
		t.Fatalf("%+v with a further rule, %+v without", more, first)
	}
}

func BenchmarkJudge(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := chance{rand.New(rand.NewPCG(45, 2))}
			rules := c.rules(n)
			for i := range rules {
				if i%25 > 0 {
					rules[i].Match.Assets, rules[i].Match.Sums = []policy.Asset{{CurrencyCode: fmt.Sprint("C", i%200)}}, nil
				}
				rules[i].Match.Direction = policy.In // none matches
			}
			s, f := policy.Compile(rules), c.facts()
			f.Kind, f.Direction, f.Asset = policy.Withdrawal, policy.Out, policy.Asset{CurrencyCode: "C7", Network: "ETH"}
			totals := make([]policy.Total, len(s.Sums()))
			b.ReportAllocs()
			for b.Loop() {
				s.Judge(f, totals)
			}
		})
	}
}
