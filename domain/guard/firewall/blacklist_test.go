package firewall_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/guard/firewall"
)

// A health check is blocked by a blacklist alone, unless a whitelist_force targets its client, and counted then.
func TestBlacklistedClients(t *testing.T) {
	rule := func(label string, kind firewall.Type, ips ...string) firewall.Rule {
		return firewall.Rule{Label: label, AppID: "API", Status: firewall.Active, Type: kind, EntityType: firewall.IP,
			Entities: ips, AllResources: true}
	}
	w := evaluator(&clock{}, rule("black", firewall.Blacklist, "192.0.2.1", "192.0.2.2"),
		rule("force", firewall.WhitelistForce, "192.0.2.2", "192.0.2.4"), rule("white", firewall.Whitelist, "192.0.2.3"))
	denied := int64(0)
	for ip, want := range map[string]bool{"192.0.2.1": true, "192.0.2.2": false, "192.0.2.3": false, "192.0.2.4": false,
		"192.0.2.5": false} {
		if want {
			denied++
		}
		if got := w.Blacklisted("GET /health", firewall.Client{IP: netip.MustParseAddr(ip)}); got != want {
			t.Errorf("%s: %t", ip, got)
		}
	}
	if got := int64(w.Denied.Load()); got != denied {
		t.Errorf("%d denied, want %d", got, denied)
	}
}

// The audit of a rule says what the rule does, in bounded length.
func TestAuditOfRules(t *testing.T) {
	expires := time.UnixMilli(1_900_000_000_000).UnixMilli()
	for want, edit := range map[string]func(*firewall.Rule){
		`, type "blacklist", entityType "IP", entities ["192.0.2.9"], allResources true, status`: func(*firewall.Rule) {},
		", expireAt 1900000000000": func(r *firewall.Rule) { r.ExpireAt = expires },
		", dryRun true":            func(r *firewall.Rule) { r.DryRun = true },
		`, type "rate_limit", periodMs 60000, limit 7, entityType "IP", allEntities true, `: func(r *firewall.Rule) {
			r.Type, r.AllEntities, r.Entities = firewall.RateLimit, true, nil
			r.Limit, r.PeriodMs = new(int64(7)), new(int64(60_000))
		},
	} {
		a, book, author := desk()
		r := block("one", "192.0.2.9")
		edit(&r)
		if err := a.Add(t.Context(), author, r); err != nil {
			t.Fatal(err)
		}
		detail := book.rows[len(book.rows)-1].Detail
		for _, part := range []string{want, ", expireAt", ", dryRun", ", limit 7"} {
			if strings.Contains(detail, part) != strings.Contains(want, part) {
				t.Errorf("%q, want %q", detail, want)
			}
		}
	}
}

// The acts of the audit that a rehearsal can place name a method and a path.
func TestPlacedActs(t *testing.T) {
	all := firewall.Placed()
	if len(all) == 0 {
		t.Error("no act is placed")
	}
	for act, at := range all {
		if method, path, ok := strings.Cut(at, " "); !ok || method == "" || !strings.HasPrefix(path, "/") {
			t.Errorf("%s at %q", act, at)
		}
	}
}
