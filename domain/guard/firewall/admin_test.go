package firewall_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// ruleBook is a store of rules and its committer.
type ruleBook struct {
	firewall.Store
	rules []firewall.Rule
	fail  error
	rows  []audit.Record
}

func (b *ruleBook) Add(_ context.Context, r firewall.Rule) error {
	b.rules = append(b.rules, r)
	return b.fail
}

func (b *ruleBook) Change(_ context.Context, label string, change func(firewall.Rule) (firewall.Rule, error)) error {
	for i, r := range b.rules {
		if r.Label == label {
			next, err := change(r)
			if err == nil {
				b.rules[i] = next
			}
			return errors.Join(b.fail, err)
		}
	}
	return fault.New(fault.RecordNotFound, "there is no such rule")
}

func (b *ruleBook) InTx(ctx context.Context, fn func(context.Context) error) error {
	before := append([]firewall.Rule(nil), b.rules...)
	err := fn(ctx)
	if err != nil {
		b.rules = before
	}
	return err
}

func (b *ruleBook) Commit(_ context.Context, writes ...commit.Write) error {
	for _, w := range writes {
		if r, is := w.(audit.Record); is {
			b.rows = append(b.rows, r)
		}
	}
	return nil
}

// desk returns the administration of a rule book, and its author, who may be locked out.
func desk(rules ...firewall.Rule) (*firewall.Admin, *ruleBook, firewall.Author) {
	b := &ruleBook{rules: rules}
	a := &firewall.Admin{Store: b, App: "API", Changes: admin.Changes{Commit: b, Now: func() time.Time {
		return time.UnixMilli(1_700_000_000_000)
	}}}
	a.InForce = func(context.Context) ([]firewall.Rule, error) {
		return append([]firewall.Rule(nil), b.rules...), b.fail
	}
	by := firewall.Author{By: audit.By{UserID: "op"}, Client: firewall.Client{IP: netip.MustParseAddr("192.0.2.7")}}
	return a, b, by
}

// block is a rule that blocks an address everywhere.
func block(label, ip string) firewall.Rule {
	return firewall.Rule{AppID: "API", Label: label, Type: firewall.Blacklist, EntityType: firewall.IP,
		Entities: []string{ip}, AllResources: true, Status: firewall.Active}
}

// A change must not lock its author out, unless the author forces it or comes from a network without rules.
func TestAuthorIsNotLockedOut(t *testing.T) {
	a, b, by := desk(block("first", "192.0.2.8"))
	own := block("own", "192.0.2.7")
	change := firewall.Change{Label: "first", Entities: &[]string{"192.0.2.7"}}
	storetest.WantsFields(t, a.Add(t.Context(), by, own), "force")
	storetest.WantsFields(t, a.Change(t.Context(), by, change), "force")
	if len(b.rules) != 1 || b.rules[0].Entities[0] != "192.0.2.8" || len(b.rows) != 0 {
		t.Fatalf("%+v, %+v", b.rules, b.rows)
	}
	a.Bypass = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("192.0.2.0/24")}
	storetest.Must(t, a.Add(t.Context(), by, own))
	a.Bypass = a.Bypass[:1]
	// The author is locked out already, so that another rule takes nothing away.
	storetest.Must(t, a.Add(t.Context(), by, block("again", "192.0.2.7")))
	storetest.Must(t, a.Change(t.Context(), by, firewall.Change{Label: "own", Status: new(firewall.Inactive)}))

	a, b, by = desk(block("first", "192.0.2.8"))
	by.Force = true
	storetest.Must(t, a.Change(t.Context(), by, change))
	if b.rules[0].Entities[0] != "192.0.2.7" || len(b.rows) != 1 ||
		b.rows[0].Detail != `entities -["192.0.2.8"] +["192.0.2.7"]` {
		t.Errorf("%+v, %+v", b.rules, b.rows)
	}
}

// Only active rules for the author's application and client lock the author out. A forced whitelist that names the
// author admits in spite of a blacklist.
func TestRulesThatLockOut(t *testing.T) {
	for name, c := range map[string]struct {
		present []firewall.Rule
		edit    func(*firewall.Rule)
		locks   bool
	}{
		"a blacklist":            {nil, func(*firewall.Rule) {}, true},
		"on trial":               {nil, func(r *firewall.Rule) { r.DryRun = true }, false},
		"switched off":           {nil, func(r *firewall.Rule) { r.Status = firewall.Inactive }, false},
		"of another application": {nil, func(r *firewall.Rule) { r.AppID = "WEB" }, false},
		"a plain whitelist":      {nil, func(r *firewall.Rule) { r.Type = firewall.Whitelist }, false},
		"of all clients":         {nil, func(r *firewall.Rule) { r.AllEntities, r.Entities = true, nil }, true},
		"forced, for others": {nil, func(r *firewall.Rule) {
			r.Type, r.Entities = firewall.WhitelistForce, []string{"192.0.2.8"}
		}, true},
		"forced, for the author": {nil, func(r *firewall.Rule) { r.Type = firewall.WhitelistForce }, false},
		"forced before": {[]firewall.Rule{{AppID: "API", Label: "f", Type: firewall.WhitelistForce,
			EntityType: firewall.IP, Entities: []string{"192.0.2.7"}, AllResources: true, Status: firewall.Active}},
			func(*firewall.Rule) {}, false},
		"of the login only": {nil, func(r *firewall.Rule) {
			r.AllResources, r.Resources = false, []string{"POST /auth/login"}
		}, true},
		"of the codes": {nil, func(r *firewall.Rule) {
			r.AllResources, r.Resources = false, []string{"POST /auth/2fa/challenge/complete"}
		}, true},
		"of the reading of rules": {nil, func(r *firewall.Rule) {
			r.AllResources, r.Resources = false, []string{"GET " + firewall.RulesPath}
		}, true},
		"of the changing of rules": {nil, func(r *firewall.Rule) {
			r.AllResources, r.Resources = false, []string{"patch " + firewall.RulesPath + "/"}
		}, true},
		"of the author's account": {nil, func(r *firewall.Rule) {
			r.EntityType, r.Entities = firewall.UserID, []string{"op"}
		}, true},
		"expired": {nil, func(r *firewall.Rule) { r.ExpireAt = 1 }, false},
		"a very small limit": {nil, func(r *firewall.Rule) {
			r.Type, r.PeriodMs, r.Limit = firewall.RateLimit, new(int64(1)), new(int64(1))
		}, false},
		"of another endpoint": {nil, func(r *firewall.Rule) {
			r.AllResources, r.Resources = false, []string{"GET /admin/audit"}
		}, false},
		"the author's login, by the account": {nil, func(r *firewall.Rule) { // which has no session yet
			r.Type, r.EntityType, r.Entities = firewall.WhitelistForce, firewall.UserID, []string{"boss"}
		}, true},
		"another country": {nil, func(r *firewall.Rule) {
			r.EntityType, r.Entities = firewall.CountryCode, []string{"DE"}
		}, false},
		"the country": {nil, func(r *firewall.Rule) {
			r.EntityType, r.Entities = firewall.CountryCode, []string{"FR", "TR"}
		}, true},
	} {
		a, b, by := desk(c.present...)
		by.Client.Country, by.Client.UserID = "TR", "op"
		r := block("new", "192.0.2.7")
		c.edit(&r)
		if err := a.Add(t.Context(), by, r); (err != nil) != c.locks || c.locks && fault.CodeOf(err) != fault.InvalidField ||
			(len(b.rules) == len(c.present)) != c.locks {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A rule with a label of an earlier version can be switched off, and a number that was not sent stays.
func TestChangeOfEarlierRule(t *testing.T) {
	limit := rate("one\ufe0f", firewall.IP, 5, 1000)
	got, err := firewall.Change{Status: new(firewall.Inactive), Period: firewall.Number{Value: new(int64(9))}}.Apply(limit,
		firewall.Resources{})
	if err != nil || got.Status != firewall.Inactive || *got.PeriodMs != 1000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A list in the audit has at most 500 bytes, and ends with a whole character.
func TestLongListsAreCut(t *testing.T) {
	for n, cut := range map[int]bool{84: false, 85: true} { // beside 400 others, quotes, commas and brackets
		a, b, by := desk()
		r := block("one", "")
		r.EntityType = firewall.UserID
		r.Entities = []string{strings.Repeat("u", n), strings.Repeat("v", 100), strings.Repeat("w", 100),
			strings.Repeat("x", 100), strings.Repeat("y", 100)}
		storetest.Must(t, a.Add(t.Context(), by, r))
		if got := b.rows[0].Detail; strings.Contains(got, "…") != cut {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// A wrong value is quoted up to 60 bytes, and ends with a whole character.
func TestLongValuesAreCut(t *testing.T) {
	for value, quoted := range map[string]string{strings.Repeat("x", 60): `"` + strings.Repeat("x", 60) + `" `,
		strings.Repeat("x", 61):       `"` + strings.Repeat("x", 60) + `…" `,
		strings.Repeat("x", 59) + "ü": `"` + strings.Repeat("x", 59) + `…" `} {
		a, _, by := desk()
		err := a.Add(t.Context(), by, block("one", value))
		if err == nil || !strings.Contains(err.Error(), quoted) {
			t.Errorf("%d bytes: %v", len(value), err)
		}
	}
}
