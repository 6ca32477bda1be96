// Package firewalltest is the contract of firewall.Store as a test, including concurrent writers.
package firewalltest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// Run checks a store. open returns an empty one and the committer whose
// transactions it joins; both end with the test.
func Run(t *testing.T, open storetest.Open[firewall.Store]) {
	storetest.Run(t, open, storetest.Cases[firewall.Store]{
		"RoundTrip":           roundTrip,
		"Labelled":            labelled,
		"LabelsAreUnique":     labelsAreUnique,
		"Change":              change,
		"ChangesDoNotOverlap": changesDoNotOverlap,
		"JoinsTransactions":   joinsTransactions,
	})
}

func rule(label string) firewall.Rule {
	return firewall.Rule{AppID: "API", Label: label, Type: firewall.RateLimit, PeriodMs: new(int64(1000)),
		Limit: new(int64(3)), EntityType: firewall.IP,
		Entities: []string{}, Resources: []string{"GET /a"}, AllEntities: true, Status: firewall.Active}
}

func labelled(t *testing.T, s firewall.Store, _ commit.Committer) {
	for _, label := range []string{"c", "a?'", "b"} {
		storetest.Must(t, s.Add(t.Context(), rule(label)))
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

func rules(t *testing.T, s firewall.Store) []firewall.Rule {
	t.Helper()
	all, err := s.Rules(t.Context(), firewall.Query{})
	storetest.Must(t, err)
	return all
}

func roundTrip(t *testing.T, s firewall.Store, _ commit.Committer) {
	if all := rules(t, s); all == nil || len(all) != 0 {
		t.Errorf("an empty store holds %#v", all)
	}
	all := []firewall.Rule{
		rule("zz"),
		{AppID: "Ü'?", Label: `a "quoted" ? ğ`, Type: firewall.WhitelistForce, ExpireAt: firewall.MaxInstantMs,
			EntityType: firewall.UserID, Entities: []string{"b", "a'?"},
			Resources: []string{}, AllResources: true, Status: firewall.Inactive, DryRun: true},
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

func labelsAreUnique(t *testing.T, s firewall.Store, _ commit.Committer) {
	apps := []string{"API", "WEB"}
	if n := storetest.Race(t, racers, fault.RecordAlreadyExist, func(i int) error {
		r := rule("same")
		r.AppID = apps[i%2] // one label over all applications (D-WAF-09)
		return s.Add(t.Context(), r)
	}); n != 1 {
		t.Errorf("%d of %d rules were added", n, racers)
	}
	storetest.Must(t, s.Add(t.Context(), rule("Same")))
	if n := len(rules(t, s)); n != 2 {
		t.Errorf("%d rules", n)
	}
}

func change(t *testing.T, s firewall.Store, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.Add(ctx, rule("a")))
	storetest.Must(t, s.Add(ctx, rule("b")))
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
	if got := rules(t, s)[0]; !got.Equal(rule("a")) {
		t.Errorf("a refused change was saved: %+v", got)
	}
	next := firewall.Rule{AppID: "WEB", Label: "z", Type: firewall.Blacklist, ExpireAt: 7, EntityType: firewall.UserID,
		Entities: []string{"x"}, Resources: []string{},
		AllResources: true, Status: firewall.Inactive, DryRun: true, PeriodMs: new(int64(5)), Limit: new(int64(6))}
	storetest.Must(t, s.Change(ctx, "a", func(r firewall.Rule) (firewall.Rule, error) {
		if !r.Equal(rule("a")) {
			t.Errorf("change got %+v", r)
		}
		return next, nil
	}))
	want := next
	want.AppID, want.Label, want.Type, want.EntityType = "API", "a", firewall.RateLimit, firewall.IP
	if got := rules(t, s); len(got) != 2 || !reflect.DeepEqual(got[0], want) || !got[1].Equal(rule("b")) {
		t.Errorf("got %+v", got)
	}
}

// No change is lost between the read and the save of another.
func changesDoNotOverlap(t *testing.T, s firewall.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), rule("a")))
	if n := storetest.Race(t, racers, "", func(int) error {
		return s.Change(t.Context(), "a", func(r firewall.Rule) (firewall.Rule, error) {
			r.Limit = new(*r.Limit + 1)
			return r, nil
		})
	}); n != racers {
		t.Errorf("%d of %d changes were made", n, racers)
	}
	if got := *rules(t, s)[0].Limit; got != 3+racers {
		t.Errorf("limit %d, want %d", got, 3+racers)
	}
}

func joinsTransactions(t *testing.T, s firewall.Store, tx commit.Committer) {
	undone := errors.New("undone")
	storetest.Must(t, s.Add(t.Context(), rule("a")))
	err := tx.InTx(t.Context(), func(ctx context.Context) error {
		storetest.Must(t, s.Add(ctx, rule("b")))
		storetest.Must(t, s.Change(ctx, "a", func(r firewall.Rule) (firewall.Rule, error) {
			r.DryRun = true
			return r, nil
		}))
		if all, err := s.Rules(ctx, firewall.Query{}); err != nil || len(all) != 2 || !all[0].DryRun {
			t.Errorf("inside: %+v, %v", all, err)
		}
		return undone
	})
	if all := rules(t, s); !errors.Is(err, undone) || len(all) != 1 || all[0].DryRun {
		t.Errorf("after: %+v, %v", all, err)
	}
}
