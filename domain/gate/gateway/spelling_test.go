package gateway_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/gate/gateway"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func routes(modes map[string]gateway.Mode, paths ...string) *gateway.Table {
	var all []gateway.Route
	for i, path := range paths {
		r := route(int64(i+1), "", "*", path, gateway.Active)
		if mode := modes[path]; mode != "" {
			r.Mode = mode
		}
		if r.Mode == gateway.Guarded {
			r.ActionCode = "PAYOUT"
		}
		all = append(all, r)
	}
	return gateway.NewTable(all)
}

// A path that some server takes for that of a guarded literal is refused, and the servers are named.
func TestOtherSpellingsAreRefused(t *testing.T) {
	table := routes(map[string]gateway.Mode{"/orders/*/payout": gateway.Guarded, "/admin/pay.php": gateway.Guarded,
		"/home/index.html": gateway.Guarded, "/café": gateway.Guarded, "/closed/**": gateway.Refuse,
		"/withdrawals": gateway.Guarded, "/v/1.2": gateway.Guarded, "/files/report.pdf": gateway.Guarded},
		"/orders/*/payout", "/admin/pay.php", "/home/index.html", "/café", "/closed/**", "/withdrawals", "/v/1.2",
		"/files/report.pdf")
	for reader, paths := range map[string][]string{
		"Rails": {"/orders/7/payout.json", "/orders/7/payout.tar.gz", "/orders/7/PAYOUT.Json",
			"/orders/7/payout%2ejson", "/orders/7/payout.json/", "/orders/7/payout%20.xml", "/admin/pay.json", "/admin/pay",
			"/orders/7/payout%EF%BC%8Ejson", "/orders/7/payout%E3%80%82json", "/closed.html", "/v/1.2.json",
			"/orders/7/payout%E2%80%8B.json"},
		"Windows": {"/orders/7/payout.", "/orders/7/payout..", "/orders/7/payout%20", "/orders/7/payout.%20.",
			"/orders/7/payout+", "/orders/7/%20payout", "/orders/7/payout%C2%A0", "/orders/7/payout%E3%80%80",
			"/orders./7/payout", "/orders/7/payout.", "/orders%20/7/payout", "/closed./x", "/orders/7/payout::$DATA",
			"/orders/7/payout%3A%3a$data", "/orders/7/payout:x",
			"/orders/7/payout.:x", "/orders::$INDEX_ALLOCATION/7/payout", "/WITHDR~1", "/withdr~2.",
			"/WIA3F0~1", "/admin/PAY~1.PHP"},
		"macOS": {"/orders/7/pay%E2%80%8Bout", "/orders/7/%EF%BD%90ayout", "/cafe%CC%81", "/orders/7/payout%C2%AD"},
		"CGI": {"/admin/pay.php/x", "/admin/pay.php/x/y", "/ADMIN/pay.PHP/x", "/index.php/orders/7/payout",
			"/App.PHP5/ORDERS/7/payout", "/default.aspx/orders/7/payout.json", "/a/b/index%EF%BC%8Ephp/orders/7/payout",
			"/a.php/b.jsp/withdrawals", "/app.php./withdrawals", "/app.php::$DATA/withdrawals", "/index.php/closed/x",
			"/orders/7/payout.php/x", "/orders/7/payout.php/x/y", "/closed.cgi/x", "/index.php/admin/pay.php"},
		"ASP.NET": {"/withdrawals/index", "/withdrawals/Index.cshtml", "/withdrawals/default.aspx", "/home", "/home/"},
	} {
		for _, path := range paths {
			m := table.Match(gateway.Request{Method: "POST", Host: "x", Path: path})
			if !m.Ambiguous || m.Route != nil || m.Respelled == nil ||
				!strings.Contains(m.Reader, reader) && !strings.Contains(m.Reader, "Windows") {
				t.Errorf("%s: %+v", path, m)
			}
		}
	}
	for _, path := range []string{"/orders/7/payouts", "/orders/7/payout-x", "/orders/7/xpayout.json",
		"/orders/7/pay.json",
		"/orders/7/.payout", "/orders.json/7/payout", "/orders/7/payout/x", "/admin/pays.php", "/admin/pays", "/v/1.3",
		"/v/1", "/withdrawals/7", "/withdrawals/indexes", "/~withdrawals", "/home/x", "/homes", "/cafe", "/wi~x",
		"/orders/7/payout~1x", "/closedown", "/static/app.js", "/index.html", "/a.b", "/x/index",
		"/files/report.pdf/preview", "/example.com/withdrawals", "/v/1.2/x", "/index.php/orders/7", "/index.php/x",
		"/orders/7/payouts.php/x", "/index.php"} {
		if m := table.Match(gateway.Request{Method: "POST", Host: "x", Path: path}); m.Ambiguous || m.Route != nil ||
			m.Respelled != nil {
			t.Errorf("%s: %+v", path, m)
		}
	}
	for _, path := range []string{"/x/.../y", "/x/%20", "/(S(abc))/orders/7/payout", "/x/.%20"} {
		if !table.Match(gateway.Request{Method: "POST", Host: "x", Path: path}).Ambiguous {
			t.Errorf("%s is not refused", path)
		}
	}
	if m := routes(nil, "/").Match(gateway.Request{Method: "GET", Path: "/index.php"}); !m.Ambiguous {
		t.Errorf("the index of the root: %+v", m)
	}
	if m := routes(nil, "/index.php").Match(gateway.Request{Method: "GET", Path: "/"}); !m.Ambiguous {
		t.Errorf("the root of an index: %+v", m)
	}
}

// A spelling with a route of its own is not ambiguous, and neither is one whose route asks for the same session.
func TestSpellingWithItsOwnRoute(t *testing.T) {
	guarded, refuse := gateway.Guarded, gateway.Refuse
	for name, c := range map[string]struct {
		modes   map[string]gateway.Mode
		paths   []string
		request string
		want    int64 // the route that decides; 0: refused as ambiguous
	}{
		"its own route":       {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/pay.json"}, "/pay.json", 2},
		"another spelling":    {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/pay.json"}, "/pay.xml", 0},
		"a wildcard":          {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/*"}, "/pay.json", 0},
		"everything":          {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/**"}, "/pay.json", 0},
		"the same session":    {nil, []string{"/me", "/**"}, "/me.json", 2},
		"a stricter rest":     {map[string]gateway.Mode{"/**": refuse}, []string{"/me", "/**"}, "/me.json", 2},
		"a closed folder":     {map[string]gateway.Mode{"/admin/**": refuse}, []string{"/admin/**", "/**"}, "/admin.json", 0},
		"below a closed one":  {map[string]gateway.Mode{"/admin/**": refuse}, []string{"/admin/**", "/**"}, "/admin./x", 0},
		"beside a closed one": {map[string]gateway.Mode{"/admin/**": refuse}, []string{"/admin/**", "/**"}, "/admins/x", 2},
		"its own index":       {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/pay/index"}, "/pay/index", 2},
		"an index by *":       {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/pay/*"}, "/pay/index", 0},
		"its own folder":      {map[string]gateway.Mode{"/a/index.php": guarded}, []string{"/a", "/a/index.php"}, "/a", 1},
		"below a script":      {map[string]gateway.Mode{"/a.php": guarded}, []string{"/a.php", "/a.php/*"}, "/a.php/x", 0},
		"its own front":       {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/a.php/pay"}, "/a.php/pay", 2},
		"a script by *":       {map[string]gateway.Mode{"/pay": guarded}, []string{"/pay", "/*/pay"}, "/a.php/pay", 0},
		"all with a script":   {map[string]gateway.Mode{"/**": refuse}, []string{"/a.php/x", "/**"}, "/a.php/x", 1},
		"its own script path": {map[string]gateway.Mode{"/a.php": guarded}, []string{"/a.php", "/a.php/x"}, "/a.php/x", 2},
	} {
		m := routes(c.modes, c.paths...).Match(gateway.Request{Method: "GET", Host: "x", Path: c.request})
		if m.Ambiguous != (c.want == 0) || c.want != 0 && (m.Route == nil || m.Route.ID != c.want) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	// A route of the host decides about both spellings before one of every host.
	host := route(1, "h", "*", "/*", gateway.Active)
	literal := route(2, "", "*", "/pay", gateway.Active)
	literal.Mode, literal.ActionCode = guarded, "PAYOUT"
	both := gateway.NewTable([]gateway.Route{host, literal})
	if m := both.Match(gateway.Request{Method: "GET", Host: "h", Path: "/pay.json"}); m.Route == nil || m.Route.ID != 1 {
		t.Errorf("a route of the host: %+v", m)
	}
	literal.Status = gateway.Trial
	tried := gateway.NewTable([]gateway.Route{host, literal})
	all := gateway.NewTable([]gateway.Route{route(1, "", "*", "/**", gateway.Trial)})
	if m := all.Match(gateway.Request{Method: "GET", Path: "/a.php/x"}); m.Tried == nil || m.Respelled != nil {
		t.Errorf("a route on trial that is meant: %+v", m)
	}
	if m := tried.Match(gateway.Request{Method: "GET", Host: "x", Path: "/pay.json"}); m.Ambiguous || m.Route != nil ||
		m.Respelled == nil || m.Respelled.ID != 2 {
		t.Errorf("a route on trial: %+v", m)
	}
}

// A path that ends in /** is for everything below it and itself, after all other routes of its host.
func TestEverythingBelow(t *testing.T) {
	table := routes(map[string]gateway.Mode{"/a/b/**": gateway.Refuse}, "/**", "/a/**", "/a/b/**", "/a/b/c", "/*/x")
	for path, want := range map[string]int64{"/": 1, "/z": 1, "/z/y/x": 1, "/a": 2, "/a/": 2, "/a/z/y": 2, "/a/b": 3,
		"/a/b/d/e": 3, "/a/b/c": 4, "/a/x": 5} {
		if m := table.Match(gateway.Request{Method: "PUT", Host: "any", Path: path}); m.Route == nil || m.Route.ID != want {
			t.Errorf("%s: %+v, want %d", path, m, want)
		}
	}
	if m := table.Match(gateway.Request{Method: "PUT", Host: "any", Path: "/A/B/c"}); !m.Ambiguous {
		t.Errorf("another case of a closed path: %+v", m)
	}
	for path, mode := range map[string]gateway.Mode{"/**": gateway.Guarded, "/**/a": gateway.Session,
		"/a**": gateway.Refuse, "/*/**/**": gateway.Session} {
		r := route(1, "", "*", path, gateway.Active)
		if r.Mode = mode; mode == gateway.Guarded {
			r.ActionCode = "PAYOUT"
		}
		storetest.WantsFields(t, r.Check(), "path")
	}
	for _, path := range []string{"/**", "/a/*/**"} {
		r := route(1, "", "*", path, gateway.Active)
		storetest.Must(t, r.Check())
		r.Mode = gateway.Refuse
		storetest.Must(t, r.Check())
		r.ActionCode = "PAYOUT"
		storetest.WantsFields(t, r.Check(), "mode")
	}
}

// No user passes a route of mode refuse. A host that no route names passes unless the settings refuse it, or a route of
// every host decides.
func TestRefusedRequests(t *testing.T) {
	closed := route(2, "", "GET", "/closed", gateway.Active)
	closed.Mode = gateway.Refuse
	own := payment() // of an earlier version: its action is one of this service
	own.ActionCode = "LOGIN"
	g := newGate(t, route(1, "shop.example", "GET", "/me", gateway.Active), closed, route(3, "", "GET", "/open",
		gateway.Active), own)
	refused := func(host, path, reason string) {
		t.Helper()
		q := gateway.Request{Host: host, Method: "GET", Path: path}
		if strings.HasPrefix(path, "/pay") {
			q.Method = "POST"
		}
		_, err := g.check(q, "")
		x := g.Explain(q)
		if want := reason != ""; (fault.CodeOf(err) == fault.Forbidden) != want || want != (x.Decision == gateway.Deny) ||
			want && x.Reason != reason {
			t.Errorf("%s%s: %v, %+v", host, path, err, x)
		}
	}
	for _, refuse := range []bool{false, true} {
		g.RefuseUnknownHost = refuse
		unknown := map[bool]string{true: gateway.UnknownHost}[refuse]
		refused("shop.example", "/closed", gateway.OfRoute)
		refused("shop.example", "/pay/7", gateway.OfRoute)
		refused("shop.example", "/free", "")
		refused("other.example", "/free", unknown)
		refused("other.example", "/me", unknown)
		refused("other.example", "/open", "")
		refused("other.example", "/closed", gateway.OfRoute)
	}
	g = newGate(t, route(1, "", "GET", "/me", gateway.Active), route(2, "h", "GET", "/me", gateway.Trial))
	g.RefuseUnknownHost = true
	refused("other.example", "/free", "")
}

// counts is a store that may fail.
type counts struct {
	gateway.Store
	fails bool
	all   []gateway.Spelled
}

func (c *counts) Count(_ context.Context, s gateway.Spelled) error {
	if c.fails {
		return errDown
	}
	c.all = append(c.all, s)
	return nil
}

// Refused spellings are counted by route, servers and hour, with the first of them. None is lost by a failure.
func TestSpellingsAreCounted(t *testing.T) {
	g, store := newGate(t, payment()), &counts{fails: true}
	g.Store = store
	long := "7." + strings.Repeat("é", 40)
	send := func(paths ...string) {
		for _, path := range paths {
			_, err := g.check(gateway.Request{Host: "shop.example", Method: "POST", Path: path}, "")
			storetest.Wants(t, err, fault.Forbidden)
		}
	}
	send("/pay./7", "/pay./8")
	storetest.Is(t, g.Flush(t.Context()), errDown)
	send("/pay%20/7")
	g.now = g.now.Add(time.Hour)
	send("/pay:" + long + "/7")
	store.fails = false
	storetest.Must(t, g.Flush(t.Context()))
	storetest.Must(t, g.Flush(t.Context()))
	slices.SortFunc(store.all, func(a, b gateway.Spelled) int { return a.Hour.Compare(b.Hour) })
	if len(store.all) != 2 || store.all[0].Count != 3 || store.all[0].Sent != "pay." || store.all[0].RouteID != 1 ||
		store.all[0].Hour.Add(time.Hour) != store.all[1].Hour || store.all[1].Count != 1 ||
		!strings.HasPrefix(store.all[1].Sent, "pay:7.é") || len(store.all[1].Sent) != 64 {
		t.Errorf("%+v", store.all)
	}
}
