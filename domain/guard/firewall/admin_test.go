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

var errDown = errors.New("the database is down")

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

// A rule is added with an audit row that names its effect.
func TestAddRule(t *testing.T) {
	a, b, by := desk()
	storetest.Must(t, a.Add(t.Context(), by, block("other", "192.0.2.8")))
	if len(b.rules) != 1 || len(b.rows) != 1 || b.rows[0].Target != "other" || b.rows[0].Action != "FIREWALL_RULE_ADD" ||
		!strings.Contains(b.rows[0].Detail, "blacklist for [\"192.0.2.8\"] of IP on all") {
		t.Errorf("%+v, %+v", b.rules, b.rows)
	}
	storetest.Wants(t, a.Add(t.Context(), by, firewall.Rule{}), fault.InvalidField)
	if len(b.rules) != 1 {
		t.Errorf("an invalid rule was added: %+v", b.rules)
	}
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

	a, b, by = desk(block("first", "192.0.2.8"))
	by.Force = true
	storetest.Must(t, a.Change(t.Context(), by, change))
	if b.rules[0].Entities[0] != "192.0.2.7" || len(b.rows) != 1 || !strings.Contains(b.rows[0].Detail, " -> ") {
		t.Errorf("%+v, %+v", b.rules, b.rows)
	}
}

// An error of the store is returned, and nothing is recorded.
func TestRulesCannotBeStored(t *testing.T) {
	for _, force := range []bool{false, true} { // with and without a read of the rules in force
		a, b, by := desk(block("first", "192.0.2.8"))
		by.Force, b.fail = force, errDown
		if err := a.Add(t.Context(), by, block("other", "192.0.2.9")); !errors.Is(err, errDown) {
			t.Errorf("add: %v", err)
		}
		err := a.Change(t.Context(), by, firewall.Change{Label: "first", Entities: &[]string{"192.0.2.9"}})
		if !errors.Is(err, errDown) || len(b.rows) != 0 {
			t.Errorf("change: %v, %+v", err, b.rows)
		}
	}
	a, _, by := desk()
	storetest.Wants(t, a.Change(t.Context(), by, firewall.Change{Label: "none"}), fault.RecordNotFound)
}
