package firewall_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
)

// remembered is an audit of some rows, newest first, possibly with more rows beyond them.
type remembered struct {
	rows []audit.Stored
	more bool
	from time.Time
	fail error
}

func (r *remembered) List(_ context.Context, q audit.Query, _ page.Query[audit.Place]) (page.Of[audit.Stored], error) {
	r.from = q.From
	return page.Of[audit.Stored]{Records: r.rows, More: r.more}, r.fail
}

// D-WAF-19: a rule is applied to the requests in the audit, together with the current rules.
func TestRehearse(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds-3600) * time.Second) }
	row := func(seconds int, request, action, ip, actor, user, target string) audit.Stored {
		return audit.Stored{Record: audit.Record{At: at(seconds), RequestID: request, Action: action, IP: ip, ActorID: actor,
			UserID: user, Target: target, Outcome: audit.Success}}
	}
	store := &remembered{rows: []audit.Stored{ // newest first
		row(9, "", "KEYS_ROTATE", "", "operator", "", "k"), // no request
		row(8, "r8", "SOMETHING", "192.0.2.1", "u1", "u1", "x"),
		row(7, "r7", "DENIED", "192.0.2.2", "u2", "u2", "GET /admin/audit"),
		row(6, "r6", "LEDGER_TRANSFER", "192.0.2.2", "u2", "u3", "t"),
		row(6, "r6", "ADJUST_BALANCE", "192.0.2.2", "u2", "u3", "t"), // of the same request
		row(5, "r5", "LOGIN", "198.51.100.9", "", "u4", "c5"),
		row(4, "r4", "LOGIN", "192.0.2.1", "", "u1", "c4"),
		row(3, "r3", "LOGIN", "192.0.2.1", "", "u1", "u1"),
		row(2, "r2", "LOGIN", "192.0.2.2", "", "u2", "c2"),
		row(1, "r1", "LOGIN", "192.0.2.1", "", "u1", "c1"),
	}}
	present := []firewall.Rule{{AppID: "API", Label: "old", Type: firewall.Blacklist, EntityType: firewall.IP,
		Entities: []string{"192.0.2.2"}, Resources: []string{"GET /admin/audit"}, Status: firewall.Active}}
	snapshot := firewall.Compile(present, "API", now.UnixMilli())
	h := firewall.Rehearser{App: "API", Audit: store, CountryOf: func(a netip.Addr) string {
		return map[string]string{"192.0.2.1": "TR", "192.0.2.2": "DE"}[a.String()]
	}, Evaluator: &firewall.Evaluator{Rules: func() *firewall.Snapshot { return snapshot },
		Now: func() time.Time { return now }, Bypass: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}}}
	n := func(i int64) *int64 { return &i }
	login := []string{"post /auth/login/"}
	for name, c := range map[string]struct {
		rule firewall.Rule
		want string // considered, stopped, users: examples
	}{
		"an address": {firewall.Rule{Type: firewall.Blacklist, EntityType: firewall.IP, Entities: []string{"192.0.2.0/31"},
			Resources: login}, "4 3 1: r4 r3 r1"},
		"everywhere": {firewall.Rule{Type: firewall.Blacklist, EntityType: firewall.IP, Entities: []string{"192.0.2.2"},
			AllResources: true}, "7 2 2: r6 r2"}, // r7 is refused by another rule
		"a country": {firewall.Rule{Type: firewall.Blacklist, EntityType: firewall.CountryCode, Entities: []string{"TR"},
			AllResources: true}, "7 4 1: r8 r4 r3 r1"},
		"a user, who has no session at the login": {firewall.Rule{Type: firewall.Blacklist, EntityType: firewall.UserID,
			Entities: []string{"u1"}, AllResources: true}, "7 1 1: r8"},
		"only others": {firewall.Rule{Type: firewall.WhitelistForce, EntityType: firewall.IP, Entities: []string{"192.0.2.1"},
			Resources: login}, "4 1 1: r2"},
		"let in": {firewall.Rule{Type: firewall.Whitelist, EntityType: firewall.IP, AllEntities: true, Resources: login},
			"4 0 0:"},
		"a limit": {firewall.Rule{Type: firewall.RateLimit, EntityType: firewall.IP, AllEntities: true, Resources: login,
			Limit: n(1), PeriodMs: n(60_000)}, "4 2 1: r4 r3"},
		"a limit of two seconds: refused ones do not count": {firewall.Rule{Type: firewall.RateLimit,
			EntityType: firewall.IP, AllEntities: true, Resources: login, Limit: n(1), PeriodMs: n(2_000)}, "4 1 1: r4"},
		"in the place of the one with its label": {firewall.Rule{Label: "old", Type: firewall.Blacklist,
			EntityType: firewall.IP, Entities: []string{"192.0.2.2"}, AllResources: true}, "7 3 2: r7 r6 r2"},
		"on trial, ended and switched off": {firewall.Rule{Type: firewall.Blacklist, EntityType: firewall.IP, DryRun: true,
			Status: firewall.Inactive, ExpireAt: 1, Entities: []string{"192.0.2.2"}, Resources: login}, "4 1 1: r2"},
		"of another application": {firewall.Rule{AppID: "WEB", Type: firewall.Blacklist, EntityType: firewall.IP,
			AllEntities: true, AllResources: true}, "0 0 0:"},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.rule
			if r.AppID == "" {
				r.AppID = "API"
			}
			if r.Label == "" {
				r.Label = "new"
			}
			if r.Status == "" {
				r.Status = firewall.Active
			}
			x := storetest.Value(h.Rehearse(t.Context(), firewall.Client{}, r))(t)
			got := fmt.Sprintf("%d %d %d:", x.Considered, x.Stopped, x.Users)
			for _, e := range x.Examples {
				got += " " + e.RequestID
			}
			if got != c.want || x.Truncated {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	author := firewall.Client{UserID: "u1", IP: netip.MustParseAddr("192.0.2.7")}
	for entity, want := range map[string]string{"192.0.2.1": "2 true", "192.0.2.2": "2 false", "192.0.2.7": "2 true"} {
		x, err := h.Rehearse(t.Context(), author, firewall.Rule{AppID: "API", Label: "new", Type: firewall.Blacklist,
			EntityType: firewall.IP, Entities: []string{entity}, Resources: login, Status: firewall.Active})
		if got := fmt.Sprint(x.Accounts, x.You); err != nil || got != want {
			t.Errorf("%s: of %s, want %s; %v", entity, got, want, err)
		}
	}
	if want := now.Add(-24 * time.Hour); !store.from.Equal(want) {
		t.Errorf("read from %s, want %s", store.from, want)
	}
	store.more = true
	x, err := h.Rehearse(t.Context(), firewall.Client{}, firewall.Rule{AppID: "API", Label: "new",
		Type: firewall.Whitelist, EntityType: firewall.IP, AllEntities: true, Status: firewall.Active})
	if err != nil || !x.Truncated {
		t.Errorf("%+v, %v; want truncated", x, err)
	}
	_, err = h.Rehearse(t.Context(), firewall.Client{}, firewall.Rule{Label: "new"})
	if fault.CodeOf(err) != fault.InvalidField {
		t.Errorf("a rule that is none: %v", err)
	}
}

// Rows of one request that do not name its resource take it from one that does.
func TestRehearseFindsTheResource(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	row := func(request, action, ip string) audit.Stored {
		return audit.Stored{Record: audit.Record{At: now.Add(-time.Minute), RequestID: request, Action: action, IP: ip,
			Outcome: audit.Success}}
	}
	snapshot := firewall.Compile(nil, "API", now.UnixMilli())
	store := &remembered{rows: []audit.Stored{row("r1", "LOGIN", "192.0.2.1"), row("r1", "SOMETHING", "192.0.2.1"),
		row("r2", "SOMETHING", "192.0.2.1"), row("r3", "LOGIN", "")}}
	h := firewall.Rehearser{App: "API", Audit: store, CountryOf: func(netip.Addr) string { return "" },
		Evaluator: &firewall.Evaluator{Rules: func() *firewall.Snapshot { return snapshot },
			Now: func() time.Time { return now }}}
	rule := firewall.Rule{AppID: "API", Label: "new", Type: firewall.Blacklist, EntityType: firewall.IP,
		Entities: []string{"192.0.2.1"}, Resources: []string{"POST /auth/login"}, Status: firewall.Active}
	x, err := h.Rehearse(t.Context(), firewall.Client{}, rule)
	if err != nil || x.Considered != 1 || x.Stopped != 1 || len(x.Examples) != 1 || x.Examples[0].RequestID != "r1" {
		t.Errorf("%+v, %v", x, err)
	}
	store.fail = errors.New("away")
	if _, err := h.Rehearse(t.Context(), firewall.Client{}, rule); !errors.Is(err, store.fail) {
		t.Errorf("an audit that cannot be read: %v", err)
	}
}
