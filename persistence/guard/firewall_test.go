package guard_test

import (
	"testing"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/persistence"
	"castellan/persistence/guard"
	"castellan/persistence/persistencetest"
)

func TestFirewallStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) firewall.Store { return guard.NewFirewall(db) },
		storetest.Cases[firewall.Store]{
			"RoundTrip":       firewallRoundTrip,
			"LabelsAreUnique": firewallLabelsAreUnique,
		}, "firewall_rule")
}

func limitRule(label string) firewall.Rule {
	return firewall.Rule{AppID: "API", Label: label, Type: firewall.RateLimit, PeriodMs: new(int64(1000)),
		Limit: new(int64(3)), EntityType: firewall.IP,
		Entities: []string{}, Resources: []string{"GET /a"}, AllEntities: true, Status: firewall.Active}
}

func listRules(t *testing.T, s firewall.Store) []firewall.Rule {
	t.Helper()
	all := storetest.Value(s.Rules(t.Context(), firewall.Query{}))(t)
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
	storetest.Same(t, listRules(t, s), all)
	next := persistencetest.Whole(t, func(r *firewall.Rule) { r.AllEntities = false })
	storetest.Must(t, s.Change(t.Context(), "zz", func(firewall.Rule) (firewall.Rule, error) { return next, nil }))
	next.AppID, next.Label, next.Type, next.EntityType = "API", "zz", firewall.RateLimit, firewall.IP
	storetest.Same(t, listRules(t, s)[0], next)
}

const racers = 8

func firewallLabelsAreUnique(t *testing.T, s firewall.Store, _ commit.Committer) {
	apps := []string{"API", "WEB"}
	storetest.OneWins(t, racers, fault.RecordAlreadyExist, func(i int) error {
		r := limitRule("same")
		r.AppID = apps[i%2] // one label over all applications (D-WAF-09)
		return s.Add(t.Context(), r)
	})
	storetest.Must(t, s.Add(t.Context(), limitRule("Same")))
	storetest.Equal(t, len(listRules(t, s)), 2)
}
