package firewall_test

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
)

func valid() firewall.Rule {
	return firewall.Rule{AppID: "API", Label: "l", Type: firewall.RateLimit, PeriodMs: new(int64(1)),
		Limit: new(int64(1)), EntityType: firewall.IP, Status: firewall.Active}
}

// The bounds of D-WAF-03, 09, 14 and the forms of D-WAF-08, SEC-30 report the faulty fields.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*firewall.Rule)
		fields string
	}{
		{func(*firewall.Rule) {}, ""},
		{func(r *firewall.Rule) { *r.PeriodMs, *r.Limit = 2_678_400_000, 1_000_000_000 }, ""},
		{func(r *firewall.Rule) { *r.PeriodMs, *r.Limit = 2_678_400_001, 1_000_000_001 },
			"period limit"},
		{func(r *firewall.Rule) { r.ExpireAt = 9_007_199_254_740_991 }, ""},
		{func(r *firewall.Rule) { r.Label = strings.Repeat("ğ", 200) }, ""},
		{func(r *firewall.Rule) { r.Label = strings.Repeat("ğ", 201) }, "label"},
		{func(r *firewall.Rule) { r.Label = "a\x00" }, "label"},
		{func(r *firewall.Rule) { r.AppID = strings.Repeat("a", 64) }, ""},
		{func(r *firewall.Rule) { r.AppID = strings.Repeat("a", 65) }, "appId"},
		{func(r *firewall.Rule) { r.Entities = []string{"::1", "0.0.0.0/0", "::/0", "1.2.3.4"} }, ""},
		{func(r *firewall.Rule) { r.Entities = []string{"1.2.3.4/-1"} }, "targetEntities"},
		{func(r *firewall.Rule) { r.Entities = []string{"fe80::%eth0/64"} }, "targetEntities"},
		{func(r *firewall.Rule) { r.EntityType, r.Entities = firewall.UserID, []string{"any id", "7"} }, ""},
		{func(r *firewall.Rule) { r.EntityType, r.Entities = firewall.UserID, []string{strings.Repeat("u", 128)} }, ""},
		{func(r *firewall.Rule) { r.EntityType, r.Entities = firewall.UserID, []string{strings.Repeat("u", 129)} },
			"targetEntities"},
		{func(r *firewall.Rule) { r.EntityType, r.Entities = firewall.UserID, []string{"a\x00"} }, "targetEntities"},
		{func(r *firewall.Rule) { r.EntityType, r.Entities = firewall.AppID, []string{"shop-1"} }, ""},
		{func(r *firewall.Rule) { r.EntityType, r.Entities = firewall.AppID, []string{"a shop"} }, "targetEntities"},
	} {
		r := valid()
		c.change(&r)
		r.Canonical(firewall.Resources{})
		err := r.Check()
		var f *fault.Error
		var fields []string
		if errors.As(err, &f) {
			for _, p := range f.Fields {
				fields = append(fields, p.Field)
			}
		}
		if got := strings.Join(fields, " "); got != c.fields || (err == nil) != (c.fields == "") {
			t.Errorf("%+v: %v, want faults in %q", r, err, c.fields)
		}
	}
}

// Each value has one spelling and is stored once (D-WAF-08, SEC-32).
func TestCanonicalEntities(t *testing.T) {
	r := valid()
	r.Entities = []string{"::ffff:1.2.3.4", "1.2.3.4", "::ffff:1.2.3.0/120", "1.2.3.9/24", "2001:DB8:0::1",
		"2001:db8::1", "2001:db8::1/128", "2001:db8::5/64", "fe80::1%lo", "1.2.3.4/32", "::ffff:1.2.3.4/96",
		"::ffff:1.2.3.4/90"}
	r.Canonical(firewall.Resources{})
	if got := strings.Join(r.Entities, " "); got != "1.2.3.4 1.2.3.0/24 2001:db8::1 2001:db8::1/128 2001:db8::/64 "+
		"fe80::1 0.0.0.0/0 ::ffc0:0:0/90" {
		t.Errorf("got %s", got)
	}
}

var served = []string{"GET /a", "POST /a/b", "GET /p/{id}", "GET /api/x"}

func TestCanonicalResources(t *testing.T) {
	known := firewall.NewResources("/api/", served)
	for entry, want := range map[string]string{
		"GET /a": "GET /a", "get /a": "GET /a", "HEAD /a": "GET /a", " GET  /a/ ": "GET /a", "GET //a//": "GET /a",
		"GET /./a": "GET /a", "GET /x/../a": "GET /a",
		"GET /A": "GET /a", "GET /%61": "GET /a", "GET /a?b=c": "GET /a", "GET /a#b": "GET /a", "GET /api/a": "GET /a",
		"post /API/../A/B": "POST /a/b",
		"GET /p/{id}":      "GET /p/{id}", "GET /p/%7Bid%7D": "GET /p/{id}", "GET /p/{ID}": "GET /p/{id}",
		"GET /p/7":   "GET /p/7",
		"GET /api/x": "GET /api/x", "GET /api/y": "GET /y", "GET /": "GET /", "PUT /Other/Path/": "PUT /Other/Path",
		"GET /a%2fb": "GET /a/b", "GET /a%3b": "GET /a%3B",
		"GET /a;x=1": "GET /a;x=1", "OPTIONS /a": "OPTIONS /a", "GET /apiary": "GET /apiary",
		"GET /%30%39%41%5A%61%7a%2d%6F%4f": "GET /09AZaz-oO", "GET /!~": "GET /!~",
		"GET /" + strings.Repeat("a", 2047):  "GET /" + strings.Repeat("a", 2047),
		"limit !" + strings.Repeat("~", 127): "LIMIT !" + strings.Repeat("~", 127),
	} {
		if got, err := known.Canonical(entry); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", entry, got, err, want)
		}
	}
	for _, entry := range []string{"", "GET", "/a", "GET a", "GET *", "* /a", "FETCH /a", "GET /a b", "GET /%",
		"GET /%2", "GET /%zz", "GET /\x7f", "GET /ğ", "GET /a\\b", "GET /a\"b", "GET /a<b", "GET /a>b", "GET /\x01",
		"LIMIT " + strings.Repeat("a", 129), "LIMIT \x7f",
		"GET http://x/a", "GET " + "/" + strings.Repeat("a", 2048), "GET\x00 /a"} {
		if got, err := known.Canonical(entry); err == nil {
			t.Errorf("%q is taken for %q", entry, got)
		}
	}
}

// FuzzPathRule: an entry has one spelling, which is stable, and every served route is matched by its key.
func FuzzPathRule(f *testing.F) {
	for _, seed := range []string{"GET /a", "get /A/", "HEAD /api//p/{id}?x", "POST /%61/./b/..", "GET /%2e%2E/%25",
		"GET /api/api/x", "PUT /a%2fb#c", "GET *"} {
		f.Add(seed)
	}
	known := firewall.NewResources("/api", served)
	f.Fuzz(func(t *testing.T, entry string) {
		got, err := known.Canonical(entry)
		if err != nil {
			return
		}
		method, path, ok := strings.Cut(got, " ")
		if !ok || method != strings.ToUpper(method) || method == "HEAD" || path == "" || path[0] != '/' ||
			strings.Contains(path, "//") || strings.ContainsAny(path, " ?#\\") {
			t.Fatalf("%q became %q", entry, got)
		}
		// Without a base path, which could be removed again, a second conversion changes nothing.
		plain := firewall.NewResources("", served)
		if once, err := plain.Canonical(got); err != nil || once != got {
			t.Fatalf("%q became %q and then %q, %v", entry, got, once, err)
		}
		for _, key := range served {
			if strings.EqualFold(got, key) && got != key {
				t.Fatalf("%q is called %q", key, got)
			}
		}
	})
}

// Random networks of every length agree at their edges with a linear search over the prefixes.
func TestNetworks(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		var list []netip.Prefix
		var rule firewall.Rule
		for range 1 + r.IntN(60) {
			p := randomPrefix(r)
			list = append(list, p)
			rule.Entities = append(rule.Entities, p.String())
		}
		rule.AppID, rule.Label, rule.Type, rule.EntityType, rule.AllResources, rule.Status = "API", "b",
			firewall.Blacklist, firewall.IP, true, firewall.Active
		s := firewall.Compile([]firewall.Rule{rule}, "API", 1)
		for range 200 {
			a := randomPrefix(r).Addr()
			if r.IntN(2) == 0 { // an edge of one of them
				p := list[r.IntN(len(list))]
				a = p.Addr()
				for r.IntN(3) > 0 && a.Next().IsValid() && p.Contains(a.Next()) {
					a = a.Next()
				}
				if r.IntN(3) == 0 && p.Addr().Prev().IsValid() {
					a = p.Addr().Prev()
				}
			}
			want := firewall.Allow
			for _, p := range list {
				if p.Contains(a) {
					want = firewall.Deny
				}
			}
			if got, _ := s.Judge("GET /x", firewall.Client{IP: a}, 1, nil); got != want {
				t.Fatalf("%v in %v: %v, want %v", a, list, got, want)
			}
		}
	}
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	if r.IntN(2) == 0 {
		a := netip.AddrFrom4([4]byte{byte(r.IntN(3)) + 191, byte(r.IntN(4)), byte(r.IntN(256)), byte(r.IntN(256))})
		p, _ := a.Prefix(r.IntN(33))
		return p
	}
	b := [16]byte{0x20, 0x01, 0x0d, 0xb8}
	for i := 4; i < 16; i++ {
		if r.IntN(2) == 0 {
			b[i] = byte(r.IntN(256))
		}
	}
	p, _ := netip.AddrFrom16(b).Prefix(r.IntN(129))
	return p
}
