package guard_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/guard/firewall/firewalltest"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/guard"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

func TestFirewallStore(t *testing.T) {
	persistencetest.RunBoth(t, firewalltest.Run, func(db *persistence.DB) firewall.Store { return guard.NewFirewall(db) },
		"firewall_rule")
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

		// Refusals leave no trace: neither a rule, nor a row, nor a note.
		own := blacklist
		own.Label, own.Entities = "own", []string{"192.0.2.0/24"}
		for want, do := range map[fault.Code]func() error{
			fault.RecordAlreadyExist: func() error { return rules.Add(ctx, by, blacklist) },
			fault.RecordNotFound:     func() error { return rules.Change(ctx, by, firewall.Change{Label: "none"}) },
			fault.InvalidField:       func() error { return rules.Add(ctx, by, own) },
		} {
			if err := do(); fault.CodeOf(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if again, _ := kit.NewAudit(db).Verify(ctx, []byte("audit key of the test")); again != rows {
			t.Errorf("%d audit rows after refusals, %d before", again, rows)
		}
		refusing := &firewall.Admin{Store: guard.NewFirewall(db), App: "API", InForce: stored(db),
			Changes: admin.Changes{Commit: persistencetest.Unaudited(db), Now: time.Now, Topic: change.Firewall,
				Follow: live.Follow}}
		unseen := blacklist
		unseen.Label = "unseen"
		if err := refusing.Add(ctx, by, unseen); !errors.Is(err, persistencetest.ErrNoAudit) {
			t.Errorf("got %v", err)
		}
		storetest.Must(t, live.Reload(ctx))
		if n := len(live.Current().Rules()); n != 1 {
			t.Errorf("%d rules", n)
		}

		// The node judges by a write also when its caller has gone away.
		gone, cancel := context.WithCancel(ctx)
		rules.Changes.Commit = persistencetest.Afterwards(db, cancel)
		storetest.Must(t, rules.Change(gone, by, firewall.Change{Label: "b", Status: new(firewall.Active)}))
		if judge("203.0.113.1") != firewall.Deny {
			t.Error("the change was not read back")
		}
	})
}

// stored are the rules of the database.
func stored(db *persistence.DB) func(context.Context) ([]firewall.Rule, error) {
	return func(ctx context.Context) ([]firewall.Rule, error) {
		return guard.NewFirewall(db).Rules(ctx, firewall.Query{})
	}
}

// D-WAF-12: a write that would shut its own author out needs force.
func TestFirewallLockout(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		live := firewall.NewCache(guard.NewFirewall(db), "API", time.Now)
		rules := &firewall.Admin{Store: guard.NewFirewall(db), App: "API", InForce: stored(db),
			Changes: admin.Changes{Commit: db,
				Now: time.Now, Topic: change.Firewall, Follow: live.Follow}}
		by := firewall.Author{Client: firewall.Client{UserID: "admin1", IP: netip.MustParseAddr("192.0.2.9"),
			Country: "TR"}}
		n := 0
		make := func(change func(*firewall.Rule)) firewall.Rule {
			n++
			r := firewall.Rule{AppID: "API", Label: string(rune('a' + n)), Type: firewall.Blacklist,
				EntityType: firewall.IP, AllEntities: true, AllResources: true, Status: firewall.Active}
			change(&r)
			return r
		}
		for name, c := range map[string]struct {
			shut   bool
			change func(*firewall.Rule)
		}{
			"everybody": {true, func(*firewall.Rule) {}},
			"his country": {true, func(r *firewall.Rule) {
				r.EntityType, r.AllEntities, r.Entities = firewall.CountryCode, false, []string{"TR"}
			}},
			"his user": {true, func(r *firewall.Rule) {
				r.EntityType, r.AllEntities, r.Entities = firewall.UserID, false, []string{"admin1"}
			}},
			"all but another": {true, func(r *firewall.Rule) {
				r.Type, r.AllEntities, r.Entities = firewall.WhitelistForce, false, []string{"203.0.113.1"}
			}},
			"reading": {true, func(r *firewall.Rule) {
				r.AllResources, r.Resources = false,
					[]string{"GET " + firewall.RulesPath}
			}},
			"changing": {true, func(r *firewall.Rule) {
				r.AllResources, r.Resources = false, []string{"patch " + firewall.RulesPath + "/"}
			}},
			"only himself": {false, func(r *firewall.Rule) {
				r.Type, r.AllEntities, r.Entities = firewall.WhitelistForce, false, []string{"192.0.2.8/31"}
			}},
			"another country": {false, func(r *firewall.Rule) {
				r.EntityType, r.AllEntities, r.Entities = firewall.CountryCode, false, []string{"DE"}
			}},
			"elsewhere":   {false, func(r *firewall.Rule) { r.AllResources, r.Resources = false, []string{"GET /x"} }},
			"inactive":    {false, func(r *firewall.Rule) { r.Status = firewall.Inactive }},
			"expired":     {false, func(r *firewall.Rule) { r.ExpireAt = 1 }},
			"another app": {false, func(r *firewall.Rule) { r.AppID = "WEB" }},
			"on trial":    {false, func(r *firewall.Rule) { r.DryRun = true }},
			"a plain whitelist": {false, func(r *firewall.Rule) {
				r.Type, r.AllEntities, r.Entities = firewall.Whitelist, false, []string{"203.0.113.1"}
			}},
			"a very small limit": {false, func(r *firewall.Rule) {
				r.Type, r.PeriodMs, r.Limit = firewall.RateLimit,
					new(int64(1)), new(int64(1))
			}},
		} {
			persistencetest.Empty(t, db, "firewall_rule")
			r := make(c.change)
			err := rules.Add(ctx, by, r)
			var f *fault.Error
			if shut := errors.As(err, &f) && f.Code == fault.InvalidField && f.Field == "force"; shut != c.shut ||
				err != nil && !shut {
				t.Errorf("%s: %v", name, err)
			}
			if !c.shut {
				continue
			}
			// The same by a change of status, and the three ways past it.
			r.Status = firewall.Inactive
			storetest.Must(t, rules.Add(ctx, by, r))
			on := firewall.Change{Label: r.Label, Status: new(firewall.Active)}
			if err := rules.Change(ctx, by, on); fault.CodeOf(err) != fault.InvalidField {
				t.Errorf("%s, activated: %v", name, err)
			}
			bypassed := *rules
			bypassed.Bypass = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
			storetest.Must(t, bypassed.Change(ctx, by, on))
			again := r
			again.Label, again.Status = "again", firewall.Active
			storetest.Must(t, bypassed.Add(ctx, by, again))
			storetest.Must(t, rules.Change(ctx, by, firewall.Change{Label: r.Label})) // already shut out: no worse than before
			storetest.Must(t, rules.Change(ctx, by, firewall.Change{Label: r.Label, Status: new(firewall.Inactive)}))
			force := by
			force.Force = true
			storetest.Must(t, rules.Change(ctx, force, on))
		}
	})
}
