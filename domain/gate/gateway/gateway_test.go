package gateway_test

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

func route(id int64, host, method, path string, s gateway.Status) gateway.Route {
	return gateway.Route{ID: id, Host: host, Method: method, Path: path, Mode: gateway.Session, Status: s}
}

// The most specific active route decides, and a route on trial never does.
func TestMatch(t *testing.T) {
	table := gateway.NewTable([]gateway.Route{
		route(1, "", "*", "/a/*", gateway.Active), route(2, "", "GET", "/a/*", gateway.Active),
		route(3, "", "*", "/a/b", gateway.Active), route(4, "h", "*", "/*/*", gateway.Active),
		route(5, "", "POST", "/a/c", gateway.Trial), route(6, "", "*", "/d", gateway.Inactive),
		route(7, "", "*", "/é x", gateway.Active), route(8, "", "*", "/", gateway.Active),
	})
	for request, want := range map[string][2]int64{"POST x /a/z": {1, 0}, "GET x /a/z": {2, 0}, "HEAD x /a/z": {2, 0},
		"GET x /a/b": {3, 0}, "GET h /a/b": {4, 0}, "POST x /a/c": {1, 5}, "POST x /d": {0, 0}, "GET x /a": {0, 0},
		"GET x /a/b/c": {0, 0}, "GET x /%C3%A9%20x/": {7, 0}, "GET x /": {8, 0}, "GET x /A": {0, 0}} {
		f := strings.Fields(request)
		m := table.Match(gateway.Request{Method: f[0], Host: f[1], Path: f[2]})
		var got [2]int64
		for i, r := range []*gateway.Route{m.Route, m.Tried} {
			if r != nil {
				got[i] = r.ID
			}
		}
		if got != want || m.Ambiguous {
			t.Errorf("%s: routes %v, want %v", request, got, want)
		}
	}
	for _, path := range []string{"", "a", "//", "/a//b", "/a/./b", "/a/..", "/a/%2e", "/a/%2E%2e/b", "/a%2fb", "/a%5cb",
		`/a\b`, "/a;b", "/a%3bb", "/a%00", "/a%zz", "/a%", "/a%2523", "/\xff", "/a%3fb"} {
		if !table.Match(gateway.Request{Method: "GET", Host: "x", Path: path}).Ambiguous {
			t.Errorf("%q is not refused", path)
		}
	}
	// Many servers ignore the case of a path or of a method, so a request that differs from a route by nothing else is
	// refused. One with a route of its own is not.
	guarded := func(r gateway.Route) gateway.Route {
		r.Mode, r.ActionCode = gateway.Guarded, "PAY"
		return r
	}
	own := gateway.NewTable([]gateway.Route{route(10, "", "*", "/pay/*", gateway.Active),
		guarded(route(1, "", "POST", "/pay/*", gateway.Active)), route(2, "", "*", "/*/*", gateway.Active),
		guarded(route(3, "", "GET", "/Pay/x", gateway.Active)), guarded(route(4, "", "GET", "/pay/x", gateway.Active)),
		route(5, "h", "PUT", "/put", gateway.Active), route(6, "", "PUT", "/tried", gateway.Trial),
		route(7, "", "*", "/users/*", gateway.Active), route(8, "", "*", "/users/me", gateway.Active),
		guarded(route(9, "h", "POST", "/Pay/*", gateway.Active))})
	for request, refused := range map[string]bool{"POST x /users/Me": false, "POST h /pay/1": true, "POST h /Pay/1": false,
		"GET h /PAY/2": false, "GET x /USERS": false, "PUT h. /put": true, "PUT .h /put": true, "PUT h..x /put": true,
		"POST x /PAY/1": true, "post x /pay/1": true, "Post x /Pay/1": true,
		"POST x /pay/1": false, "POST x /PAID/1": false, "GET x /Pay/x": false, "GET x /pay/x": false, "GET x /pAy/x": true,
		"put h /put": true, "put x /put": false, "PUT h /PUT/": true, "PUT x /TRIED": false,
		"PUT h:80 /put": true, "PUT [h] /put": true, "PUT [::1] /put": false, "PUT h,x /put": true, "PUT a_b /put": false} {
		f := strings.Fields(request)
		if m := own.Match(gateway.Request{Method: f[0], Host: f[1], Path: f[2]}); m.Ambiguous != refused {
			t.Errorf("%s: %+v", request, m)
		}
	}
	if gateway.NewTable([]gateway.Route{route(1, "h", "*", "/", gateway.Active), route(2, "", "*", "/", gateway.Trial)}).
		Match(gateway.Request{Method: "GET", Host: "x", Path: "//"}).Ambiguous {
		t.Error("an ambiguous path is refused on a host without active routes")
	}
	for authority, want := range map[string]string{"H.Example:443": "h.example", "h.": "h", "[::1]:80": "[::1]",
		"[::1]": "[::1]", "": "", "h:": "h", "other:,h": "other:,h", "h:80:80": "h:80", ".": "", ":80": ""} {
		storetest.Equal(t, gateway.HostOf(authority), want, "host", authority)
	}
}

// The approver sees every value of a parameter. A second parameter that a server may take for it is refused.
func TestValuesOfTheQuery(t *testing.T) {
	rows := []gateway.Row{{Key: "a", Label: "Amount", From: gateway.FromQuery, Name: "amount"}}
	for query, want := range map[string]string{"amount=5": "5", "amount=5&amount=6": "5, 6", "": "—",
		"x=1&total=2": "—", "%61mount=5": "5", "amounts=7&amount=5": "5", "AMOUNT=500&amount=5": "",
		"amount[]=500": "", "amount%5B0%5D=1": "", "+amount=500": "", "amount%00x=5": "", "amount;b=1": "",
		"amount=%zz": ""} {
		got, err := gateway.Match{}.Values(gateway.Request{Query: query}, rows)
		if (err == nil) != (want != "") || err == nil && got[0].Value != want {
			t.Errorf("%q: %v, %v", query, got, err)
		}
	}
	nested := []gateway.Row{{Key: "a", From: gateway.FromQuery, Name: "items[0]"}}
	for query, good := range map[string]bool{"items[0]=1&items[1]=2": true, "items[0]=1&items[0]=2": true,
		"items[0]=1&ITEMS[0]=2": false, "items[0]=1&items.0=2": false} {
		if _, err := (gateway.Match{}).Values(gateway.Request{Query: query}, nested); (err == nil) != good {
			t.Errorf("%q: %v", query, err)
		}
	}
	header := []gateway.Row{{Key: "a", From: gateway.FromHeader, Name: "x-pay-amount"}}
	for name, good := range map[string]bool{"X-Pay-Amount": true, "x_pay_amount": false, "x-Pay_amount": false} {
		q := gateway.Request{Headers: maps.All(map[string]string{name: "5"})}
		if _, err := (gateway.Match{}).Values(q, header); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	dotted := []gateway.Row{{Key: "a", From: gateway.FromQuery, Name: "pay_out"}}
	if _, err := (gateway.Match{}).Values(gateway.Request{Query: "pay.out=5"}, dotted); err == nil {
		t.Error("a dot in place of _ is accepted")
	}
}

// A request without a route asks neither for its user nor for the database: the guard here has neither.
func TestUnguardedRequestCostsNothing(t *testing.T) {
	table := gateway.NewTable([]gateway.Route{route(1, "", "GET", "/me", gateway.Active)})
	g := &gateway.Guard{Routes: func() *gateway.Table { return table },
		Fresh: func(_ context.Context, judge func() error) error { return judge() }}
	caller := func(context.Context) (u gateway.User, s challenge.Starter, by audit.By, err error) {
		return u, s, by, fault.New(fault.Unauthenticated, "no session")
	}
	d, err := g.Check(t.Context(), gateway.Request{Method: "GET", Path: "/free"}, "any grant", caller)
	if err != nil || !reflect.DeepEqual(d, gateway.Decision{}) || g.Stats.Unguarded.Load() != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	_, err = g.Check(t.Context(), gateway.Request{Method: "GET", Path: "/me"}, "", caller)
	storetest.Wants(t, err, fault.Unauthenticated)
	_, err = g.Check(t.Context(), gateway.Request{Method: "GET", Path: "/me/../x"}, "", caller)
	storetest.Wants(t, err, fault.Forbidden)
	g.Fresh = func(context.Context, func() error) error { return fault.New(fault.Unavailable, "stale") }
	_, err = g.Check(t.Context(), gateway.Request{Method: "GET", Path: "/free"}, "", caller)
	storetest.Wants(t, err, fault.Unavailable)
}

// A value that cannot be shown in full refuses the request, and an absent one is shown as such.
func TestValues(t *testing.T) {
	rows := []gateway.Row{{Key: "p", From: gateway.FromPath, Index: 1}, {Key: "q", From: gateway.FromQuery, Name: "q"},
		{Key: "h", From: gateway.FromHeader, Name: "x"}}
	table := gateway.NewTable([]gateway.Route{route(1, "", "*", "/a/*", gateway.Active)})
	values := func(path, query, header string) (string, error) {
		q := gateway.Request{Method: "GET", Path: path, Query: query, Headers: func(yield func(string, string) bool) {
			_ = yield("x", header) && header == "twice" && yield("X", "")
		}}
		m := table.Match(q)
		all, err := m.Values(q, rows)
		var texts []string
		for _, v := range all {
			texts = append(texts, v.Value)
		}
		return strings.Join(texts, "|"), err
	}
	for query, want := range map[string]string{"": "7|—|x", "q=1": "7|1|x", "q=1&q=2": "7|1, 2|x",
		"%71=a+b%2F": "7|a b/|x"} {
		if got, err := values("/a/7", query, "x"); err != nil || got != want {
			t.Errorf("%q: %q, %v", query, got, err)
		}
	}
	for _, c := range [][3]string{{"/a/7", "q=%zz", "x"}, {"/a/7", "q=1;q=2", "x"}, {"/a/7", "q=%00", "x"},
		{"/a/7", "q=%e2%80%ae1", "x"}, {"/a/7", "q=" + strings.Repeat("1", 513), "x"}, {"/a/7", "", "twice"},
		{"/a/%e2%80%8b", "", "x"}, {"/a/7", "q=%ff", "x"}} {
		if got, err := values(c[0], c[1], c[2]); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%q: %q, %v", c, got, err)
		}
	}
}

// engine counts the challenges that a guard starts and repeats.
type engine struct{ started, again int }

func (e *engine) Start(context.Context, challenge.StartRequest) (challenge.Started, error) {
	e.started++
	return challenge.Started{}, nil
}

func (e *engine) Again(context.Context, string) (challenge.Started, error) {
	e.again++
	return challenge.Started{}, nil
}

// pending is the open challenge of a user.
type pending challenge.Insert

func (p *pending) Pending(context.Context, string, time.Time) ([]challenge.Insert, error) {
	return []challenge.Insert{challenge.Insert(*p)}, nil
}

// An equal request gets the open challenge while it can be answered, and another one after that.
func TestOpenChallengeIsRepeated(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	r := gateway.Route{ID: 1, Method: "POST", Path: "/pay", Mode: gateway.Guarded, ActionCode: "PAYOUT",
		Status: gateway.Active}
	table := gateway.NewTable([]gateway.Route{r})
	e, p := &engine{}, &pending{}
	var command []byte
	g := &gateway.Guard{Routes: func() *gateway.Table { return table }, Engine: e, Challenges: p,
		Fresh:   func(_ context.Context, judge func() error) error { return judge() },
		Account: func(context.Context, string) (a challenge.Account, err error) { return a, nil },
		BuiltIn: func(string) bool { return false },
		Open:    func([]byte, []byte) ([]byte, error) { return command, nil }, Now: func() time.Time { return now }}
	caller := func(context.Context) (gateway.User, challenge.Starter, audit.By, error) {
		return gateway.User{ID: "u", Session: "s"}, challenge.Starter{}, audit.By{}, nil
	}
	const left = 10_000 // ms
	for name, c := range map[string]struct {
		edit  func(*pending)
		again bool
	}{
		"equal":          {func(*pending) {}, true},
		"ends soon":      {func(p *pending) { p.Methods[0].ExpiresAt = now.UnixMilli() + left }, false},
		"ends later":     {func(p *pending) { p.Methods[0].ExpiresAt = now.UnixMilli() + left + 1 }, true},
		"wrong value":    {func(p *pending) { p.Methods[0].Wrong = 1 }, false},
		"completed":      {func(p *pending) { p.Methods[0].Order, p.Methods[0].ExpiresAt = 1, 0 }, true},
		"another action": {func(p *pending) { p.Action = "REFUND" }, false},
		"of a service":   {func(p *pending) { p.Service = "shop" }, false},
		"another body":   {func(*pending) { command = append(command, ' ') }, false},
	} {
		command = []byte(`{"rte":1,"sub":"u","sid":"s","hst":"","htm":"POST","pth":"/pay","qry":"",` +
			`"row":"T1PNoYwrqgwDVLtfmj7L5e0Sq02OEbqHPC8RFhICuUU"}`)
		p.Challenge = challenge.Challenge{ID: "c", Action: "PAYOUT", Body: challenge.Body{Service: challenge.Gateway,
			Methods: []challenge.Method{{ExpiresAt: now.UnixMilli() + 2*left}}}}
		c.edit(p)
		*e = engine{}
		_, err := g.Check(t.Context(), gateway.Request{Method: "POST", Path: "/pay"}, "", caller)
		if err != nil || (e.again == 1) != c.again || e.started+e.again != 1 {
			t.Errorf("%s: %+v, %v", name, *e, err)
		}
	}
}

// Only the hosts that active routes name, or routes on trial, are named.
func TestHostsOfRoutes(t *testing.T) {
	table := gateway.NewTable([]gateway.Route{{Host: "shop.example", Path: "/a", Status: gateway.Active}, {Path: "/b"},
		{Host: "old.example", Path: "/c", Status: gateway.Inactive}})
	for host, want := range map[string]bool{"shop.example": true, "old.example": false, "evil.example": false, "": false} {
		storetest.Equal(t, table.Names(host), want, host)
	}
}
