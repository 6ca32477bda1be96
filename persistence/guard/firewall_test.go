package guard_test

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/guard"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestFirewallStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) firewall.Store { return guard.NewFirewall(db) },
		storetest.Cases[firewall.Store]{
			"RoundTrip":           firewallRoundTrip,
			"Labelled":            firewallLabelled,
			"LabelsAreUnique":     firewallLabelsAreUnique,
			"Change":              firewallChange,
			"ChangesDoNotOverlap": firewallChangesDoNotOverlap,
		}, "firewall_rule")
}

func limitRule(label string) firewall.Rule {
	return firewall.Rule{AppID: "API", Label: label, Type: firewall.RateLimit, PeriodMs: new(int64(1000)),
		Limit: new(int64(3)), EntityType: firewall.IP,
		Entities: []string{}, Resources: []string{"GET /a"}, AllEntities: true, Status: firewall.Active}
}

func firewallLabelled(t *testing.T, s firewall.Store, _ commit.Committer) {
	for _, label := range []string{"c", "a?'", "b"} {
		storetest.Must(t, s.Add(t.Context(), limitRule(label)))
	}
	for _, c := range []struct{ ask, want []string }{
		{[]string{"b", "a?'", "nobody's"}, []string{"a?'", "b"}},
		{[]string{"B", ""}, []string{}},
	} {
		found, err := s.Rules(t.Context(), firewall.Query{Labels: c.ask})
		storetest.Must(t, err)
		got := []string{}
		for _, r := range found {
			got = append(got, r.Label)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("labelled %q: %q, want %q", c.ask, got, c.want)
		}
	}
}

func listRules(t *testing.T, s firewall.Store) []firewall.Rule {
	t.Helper()
	all, err := s.Rules(t.Context(), firewall.Query{})
	storetest.Must(t, err)
	return all
}

func firewallRoundTrip(t *testing.T, s firewall.Store, _ commit.Committer) {
	if all := listRules(t, s); all == nil || len(all) != 0 {
		t.Errorf("an empty store holds %#v", all)
	}
	all := []firewall.Rule{
		limitRule("zz"),
		persistencetest.Whole(t, func(r *firewall.Rule) {
			r.AppID, r.ExpireAt, r.Status, r.Entities = "Ü'?", firewall.MaxInstantMs, firewall.Inactive, []string{"b", "a'?"}
		}),
		{AppID: "API", Label: "aa", Type: firewall.Blacklist, Limit: new(int64(firewall.MaxLimit)),
			EntityType: firewall.CountryCode, Entities: []string{"TR"}, Resources: []string{"GET /b", "GET /a"},
			Status: firewall.Active},
	}
	for _, r := range all {
		storetest.Must(t, s.Add(t.Context(), r))
	}
	for _, c := range []struct {
		q    firewall.Query
		want []firewall.Rule
	}{
		{firewall.Query{}, all},
		{firewall.Query{AppID: new("API")}, []firewall.Rule{all[0], all[2]}},
		{firewall.Query{AppID: new("Ü'?"), Status: new(firewall.Inactive)}, all[1:2]},
		{firewall.Query{Status: new(firewall.Active)}, []firewall.Rule{all[0], all[2]}},
		{firewall.Query{AppID: new("")}, []firewall.Rule{}},
	} {
		got, err := s.Rules(t.Context(), c.q)
		storetest.Must(t, err)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v:\n got %+v\nwant %+v", c.q, got, c.want)
		}
	}
}

const racers = 8

func firewallLabelsAreUnique(t *testing.T, s firewall.Store, _ commit.Committer) {
	apps := []string{"API", "WEB"}
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist, func(i int) error {
		r := limitRule("same")
		r.AppID = apps[i%2] // one label over all applications (D-WAF-09)
		return s.Add(t.Context(), r)
	}); n != 1 {
		t.Errorf("%d of %d rules were added", n, racers)
	}
	storetest.Must(t, s.Add(t.Context(), limitRule("Same")))
	if n := len(listRules(t, s)); n != 2 {
		t.Errorf("%d rules", n)
	}
}

func firewallChange(t *testing.T, s firewall.Store, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.Add(ctx, limitRule("a")))
	storetest.Must(t, s.Add(ctx, limitRule("b")))
	storetest.Wants(t, s.Change(ctx, "c", func(r firewall.Rule) (firewall.Rule, error) {
		t.Error("called")
		return r, nil
	}), fault.RecordNotFound)
	refusal := errors.New("no")
	if err := s.Change(ctx, "a", func(r firewall.Rule) (firewall.Rule, error) {
		r.Status = firewall.Inactive
		return r, refusal
	}); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	if got := listRules(t, s)[0]; !got.Equal(limitRule("a")) {
		t.Errorf("a refused change was saved: %+v", got)
	}
	next := persistencetest.Whole(t, func(r *firewall.Rule) { r.AllEntities = false })
	storetest.Must(t, s.Change(ctx, "a", func(r firewall.Rule) (firewall.Rule, error) {
		if !r.Equal(limitRule("a")) {
			t.Errorf("change got %+v", r)
		}
		return next, nil
	}))
	want := next
	want.AppID, want.Label, want.Type, want.EntityType = "API", "a", firewall.RateLimit, firewall.IP
	if got := listRules(t, s); len(got) != 2 || !reflect.DeepEqual(got[0], want) || !got[1].Equal(limitRule("b")) {
		t.Errorf("got %+v", got)
	}
}

// No change is lost between the read and the save of another.
func firewallChangesDoNotOverlap(t *testing.T, s firewall.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), limitRule("a")))
	if n := storetest.Race(t, racers, "", func(int) error {
		return s.Change(t.Context(), "a", func(r firewall.Rule) (firewall.Rule, error) {
			r.Limit = new(*r.Limit + 1)
			return r, nil
		})
	}); n != racers {
		t.Errorf("%d of %d changes were made", n, racers)
	}
	if got := *listRules(t, s)[0].Limit; got != 3+racers {
		t.Errorf("limit %d, want %d", got, 3+racers)
	}
}

// A write of rules commits with its audit row and its note, or not at all, and
// the node that made it judges by it at once (D-EXT-03, REQ-WAF-16).
func TestFirewallAdmin(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		live := firewall.NewCache(guard.NewFirewall(db), "API", time.Now)
		rules := &firewall.Admin{Store: guard.NewFirewall(db), App: "API", InForce: stored(db),
			Changes: admin.Changes{Commit: db,
				Now: time.Now, Topic: change.Firewall, Follow: live.Follow}}
		me := firewall.Client{UserID: "admin1", IP: netip.MustParseAddr("192.0.2.9"), Country: "TR"}
		by := firewall.Author{By: audit.By{UserID: "admin1", IP: "192.0.2.9", RequestID: "r1"}, Client: me}
		blacklist := firewall.Rule{AppID: "API", Label: "b", Type: firewall.Blacklist, EntityType: firewall.IP,
			Entities: []string{"::ffff:203.0.113.1"}, AllResources: true, Status: firewall.Active}
		judge := func(ip string) firewall.Verdict {
			v, _ := live.Current().Judge("GET /x", firewall.Client{IP: netip.MustParseAddr(ip)}, time.Now().
				UnixMilli(), nil)
			return v
		}
		storetest.Must(t, rules.Add(ctx, by, blacklist))
		if judge("203.0.113.1") != firewall.Deny || judge("203.0.113.2") != firewall.Allow {
			t.Error("a rule that was added does not hold")
		}
		storetest.Must(t, rules.Change(ctx, by, firewall.Change{Label: "b", Status: new(firewall.Inactive)}))
		if judge("203.0.113.1") != firewall.Allow {
			t.Error("a rule that was deactivated holds")
		}
		storetest.Must(t, rules.Change(ctx, firewall.Author{By: audit.Operator, Force: true},
			firewall.Change{Label: "b"})) // D-WAF-14
		acts, err := kit.NewAudit(db).List(ctx, audit.Query{Target: "b"}, page.Query[audit.Place]{})
		storetest.Must(t, err)
		slices.Reverse(acts.Records)
		for i, want := range []struct{ action, actor, ip string }{{"FIREWALL_RULE_ADD", "admin1", "192.0.2.9"},
			{"FIREWALL_RULE_UPDATE", "admin1", "192.0.2.9"}, {"FIREWALL_RULE_UPDATE", "operator", ""}} {
			if r := acts.Records[i]; len(acts.Records) != 3 || r.Action != want.action || r.ActorID != want.actor ||
				r.IP != want.ip ||
				r.Target != "b" || r.Detail == "" {
				t.Errorf("audit %+v, want %+v", r, want)
			}
		}
		notes, err := kit.NewChanges(db).Since(ctx, time.Now().Add(-time.Hour))
		storetest.Must(t, err)
		for _, n := range notes {
			if n.Topic != change.Firewall {
				t.Errorf("note %+v", n)
			}
		}
		rows, err := kit.NewAudit(db).Verify(ctx, []byte("audit key of the test"))
		storetest.Must(t, err)
		if len(notes) != 3 || rows != 3 {
			t.Errorf("%d notes and %d audit rows for 3 changes", len(notes), rows)
		}
	})
}

// stored are the rules of the database.
func stored(db *persistence.DB) func(context.Context) ([]firewall.Rule, error) {
	return func(ctx context.Context) ([]firewall.Rule, error) {
		return guard.NewFirewall(db).Rules(ctx, firewall.Query{})
	}
}
