package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/change"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/domain/proof/device"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
)

var until = time.UnixMilli(1_900_000_000_000).UTC()

// issuer takes "class:name" for a token of that class.
type issuer struct{}

func (issuer) Verify(class token.Class, raw string) (token.Claims, error) {
	is, name, _ := strings.Cut(raw, ":")
	if is != string(class) {
		return token.Claims{}, fault.New(fault.Unauthenticated, "not a token of the class")
	}
	return token.Claims{Subject: name, SessionID: "session of " + name, ChallengeID: name, ID: "id of " + name, SV: 3,
		Roles: []string{"user"}, ExpiresAt: until}, nil
}

// phones are registered devices: a proof is the id of one.
type phones struct{ asked []device.Request }

func (p *phones) Present(_ context.Context, r device.Request) (device.Device, error) {
	p.asked = append(p.asked, r)
	if r.Proof != "d1" {
		return device.Device{ID: "wrong", UserID: "wrong"}, fault.New(fault.Unauthenticated, "no such device")
	}
	return device.Device{ID: "d1", UserID: "u1"}, nil
}

// door serves one endpoint of each credential, which answers with its caller.
type door struct {
	*apitest.Site
	feed    *changetest.Feed
	phones  *phones
	cron    func(header string) (string, bool)
	service func(header string, from netip.Addr) (servicekey.Client, error)
	sv      int64 // of live sessions
	who     rest.Caller
	seen    edge.Answered
}

func newDoor(t *testing.T) *door {
	d := &door{feed: &changetest.Feed{}, phones: &phones{}, sv: 3}
	d.cron = func(header string) (string, bool) { return strings.CutPrefix(header, "key of ") }
	d.service = func(header string, _ netip.Addr) (servicekey.Client, error) {
		name, ok := d.cron(header)
		if !ok {
			return servicekey.Client{Name: "wrong", Role: "wrong"}, fault.New(fault.Unauthenticated, "not a key")
		}
		return servicekey.Client{Name: name, Role: "wallet"}, nil
	}
	g := auth.Guards{Tokens: issuer{}, Feed: d.feed, Tenant: "t1", Devices: d.phones,
		Live:    func(userID, sessionID string, sv int64) bool { return sv == d.sv && sessionID == "session of "+userID },
		Cron:    func(header string) (string, bool) { return d.cron(header) },
		Service: func(header string, from netip.Addr) (servicekey.Client, error) { return d.service(header, from) }}
	run := func(_ context.Context, who rest.Caller, _ rest.None) (rest.None, error) {
		d.who = who
		return rest.None{}, nil
	}
	var endpoints apitest.Endpoints
	for path, c := range map[string]rest.Credential{"/user": rest.User, "/tenant": rest.Tenant, "/pauth": rest.PAuth,
		"/either": rest.PAuthOrDevice, "/otauth": rest.OTAuth, "/cron": rest.TenantOrCron, "/device": rest.Device,
		"/service": rest.Service, "/moves": rest.TenantOrService} {
		e := rest.Get(path, "", c, run).For(rest.SelfUser)
		if c == rest.Device {
			e = rest.Get(path, "", c, run).For(rest.DeviceOwner)
		}
		endpoints = append(endpoints, e)
	}
	d.Site = apitest.Serve(t, edge.Options{Guards: g.Table(), Authorize: anybody,
		ActsAsAdmin: func(rest.Caller, *rest.Endpoint) bool { return false },
		Observe:     func(_ context.Context, a edge.Answered) { d.seen = a }}, endpoints).As("anonymous")
	return d
}

// ask sends headers, as pairs, and returns the code of the refusal; "" for none.
func (d *door) ask(path string, headers ...string) string {
	d.who = rest.Caller{}
	_, answer := d.Call("GET "+path, "", headers...)
	return refusal(answer)
}

// refusal is the code of an answer; "" for none.
func refusal(answer string) string {
	var p struct{ Code string }
	json.Unmarshal([]byte(answer), &p)
	return p.Code
}

// Each credential lets in its own token alone, and says who comes.
func TestCredentials(t *testing.T) {
	d := newDoor(t)
	session := rest.Caller{UserID: "u1", SessionID: "session of u1", Roles: []string{"user"}, TokenExpires: until}
	challenge := rest.Caller{ChallengeID: "c1", TokenExpires: until}
	for _, c := range []struct {
		path    string
		headers []string
		code    string
		who     rest.Caller
	}{
		{"/user", []string{"x-auth", "p-auth:c1"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/user", []string{"cron-auth", "key of rates"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/tenant", []string{"cron-auth", "key of rates"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/tenant", []string{"service-auth", "key of shop"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/user", []string{"x-auth", "x-auth:u1"}, "", session},
		{"/user", []string{"x-auth", "x-auth:u1", "tenant-id", "t2"}, "", session},
		{"/tenant", []string{"x-auth", "x-auth:u1", "tenant-id", "t1"}, "", session},
		{"/tenant", []string{"x-auth", "x-auth:u1"}, "", session},
		{"/tenant", []string{"x-auth", "x-auth:u1", "tenant-id", "t2"}, "TENANT_MISMATCH", rest.Caller{}},
		{"/tenant", []string{"x-auth", "p-auth:u1", "tenant-id", "t1"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/pauth", []string{"p-auth", "x-auth:u1"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/pauth", []string{"p-auth", "p-auth:c1"}, "", challenge},
		{"/either", []string{"p-auth", "p-auth:c1"}, "", challenge},
		{"/either", []string{"p-auth", "x", "device-signature", "d1"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/either", []string{"device-signature", "d1"}, "", rest.Caller{}},
		{"/otauth", []string{"ot-auth", "x-auth:u1"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/otauth", []string{"ot-auth", "ot-auth:o1"}, "", rest.Caller{TokenID: "id of o1", TokenExpires: until}},
		{"/cron", []string{"cron-auth", "x"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/cron", []string{"cron-auth", "key of rates"}, "", rest.Caller{Cron: "rates"}},
		{"/cron", []string{"cron-auth", "key of rates", "tenant-id", "t2"}, "TENANT_MISMATCH", rest.Caller{}},
		{"/cron", []string{"cron-auth", "key of rates", "x-auth", "x-auth:u1"}, "", rest.Caller{Cron: "rates"}},
		{"/cron", []string{"cron-auth", "x", "x-auth", "x-auth:u1"}, "", session},
		{"/cron", []string{"x-auth", "x-auth:u1"}, "", session},
		{"/device", []string{"device-signature", "d2"}, "UNAUTHENTICATED", rest.Caller{}},
		{"/device", []string{"device-signature", "d1"}, "", rest.Caller{DeviceID: "d1", OwnerID: "u1"}},
	} {
		code := d.ask(c.path, c.headers...)
		who := rest.Caller{UserID: d.who.UserID, SessionID: d.who.SessionID, ChallengeID: d.who.ChallengeID,
			TokenID: d.who.TokenID, Cron: d.who.Cron, Roles: d.who.Roles, TokenExpires: d.who.TokenExpires,
			DeviceID: d.who.DeviceID, OwnerID: d.who.OwnerID}
		t.Run(c.path+" "+strings.Join(c.headers, " "), func(t *testing.T) {
			storetest.Equal(t, code, c.code)
			storetest.Same(t, who, c.who)
		})
	}
}

// Without its credential a request is told which header is needed.
func TestNeededHeader(t *testing.T) {
	d := newDoor(t)
	for path, want := range map[string]string{"/user": "x-auth is needed", "/tenant": "x-auth is needed",
		"/cron": "x-auth is needed", "/moves": "x-auth is needed", "/service": "service-auth is needed",
		"/pauth": "p-auth is needed", "/either": "p-auth is needed", "/otauth": "ot-auth is needed"} {
		if _, answer := d.Call("GET "+path, ""); refusal(answer) != "UNAUTHENTICATED" ||
			!strings.Contains(answer, `"message":"`+want) {
			t.Errorf("%s: %s, want %q", path, answer, want)
		}
	}
}

// An action has one author: a service client or a user.
func TestServiceOrSession(t *testing.T) {
	d := newDoor(t)
	for _, c := range []struct {
		path, service, session, code, who string
	}{
		{"/service", "key of shop", "", "", "shop wallet "}, {"/moves", "key of shop", "", "", "shop wallet "},
		{"/service", "x", "", "UNAUTHENTICATED", "  "}, {"/service", "", "x-auth:u1", "UNAUTHENTICATED", "  "},
		{"/moves", "", "x-auth:u1", "", "  u1"}, {"/moves", "key of shop", "x-auth:u1", "UNAUTHENTICATED", "  "},
	} {
		var headers []string
		if c.service != "" {
			headers = append(headers, "service-auth", c.service)
		}
		if c.session != "" {
			headers = append(headers, "x-auth", c.session)
		}
		code := d.ask(c.path, headers...)
		if who := d.who.Service + " " + d.who.ServiceRole + " " + d.who.UserID; code != c.code || who != c.who {
			t.Errorf("%+v: %s as %q", c, code, who)
		}
	}
	if got := d.ask("/service", "service-auth", "key of shop", "tenant-id", "t2"); got != "TENANT_MISMATCH" {
		t.Error(got)
	}
	if d.feed.Stale = true; d.ask("/service", "service-auth", "key of shop") != "UNAVAILABLE" {
		t.Error("a key is accepted that may have been removed")
	}
}

// unsettled is a feed that never holds, and counts how often it is read.
type unsettled struct {
	changetest.Feed
	reads int
	no    error
}

func (*unsettled) Holds(time.Time) bool { return false }

func (u *unsettled) CatchUp(context.Context) error { u.reads++; return u.no }

// A check is repeated once after the feed was read, and not at all if it cannot be read.
func TestCheckIsRepeatedOnce(t *testing.T) {
	for reads, no := range map[int]error{2: nil, 1: errors.New("away")} {
		feed, checks := &unsettled{no: no}, 0
		err := auth.Guards{Feed: feed}.Fresh(t.Context(), func() error { checks++; return nil })
		if storetest.Wants(t, err, fault.Unavailable); checks != reads || feed.reads != reads {
			t.Errorf("%d checks and %d reads with %v", checks, feed.reads, no)
		}
	}
	no, feed := errors.New("no"), &unsettled{}
	if err := (auth.Guards{Feed: feed}).Fresh(t.Context(), func() error { return no }); err != no || feed.reads != 0 {
		t.Errorf("%v after %d reads: a refusal needs no feed", err, feed.reads)
	}
}

// An ended session is refused, and a node that cannot catch up answers UNAVAILABLE.
func TestSessionsAreJudged(t *testing.T) {
	d := newDoor(t)
	d.sv = 4
	if got := d.ask("/user", "x-auth", "x-auth:u1"); got != "TOKEN_REVOKED" {
		t.Error(got)
	}
	for header, want := range map[string]string{"x": "TOKEN_REVOKED", "key of rates": ""} {
		got := d.ask("/cron", "x-auth", "x-auth:u1", "cron-auth", header)
		if got != want || (d.who.Cron != "") != (want == "") {
			t.Errorf("an ended session and the key %q: %q as %+v", header, got, d.who)
		}
	}
	d.sv, d.feed.Stale = 3, true
	for path, headers := range map[string][]string{"/user": {"x-auth", "x-auth:u1"}, "/tenant": {"x-auth", "x-auth:u1"},
		"/cron": {"cron-auth", "key of rates"}} {
		storetest.Equal(t, d.ask(path, headers...), "UNAVAILABLE", path)
	}
	// A refusal needs no feed.
	if got := d.ask("/user", "x-auth", "nonsense"); got != "UNAUTHENTICATED" {
		t.Error(got)
	}
	if got := d.ask("/cron", "cron-auth", "x"); got != "UNAUTHENTICATED" {
		t.Error(got)
	}
}

// A device signs the method, the target with its query, and the body.
func TestSigned(t *testing.T) {
	d := newDoor(t)
	d.ask("/device?a=b&c", "device-signature", "d1")
	d.ask("/device", "device-signature", "d1")
	var targets []string
	for _, r := range d.phones.asked {
		targets = append(targets, r.Method+" "+r.Target)
	}
	if want := []string{"GET /device?a=b&c", "GET /device"}; !slices.Equal(targets, want) {
		t.Errorf("%v, want %v", targets, want)
	}
	who := rest.Caller{DeviceSignature: "p", Method: "POST", Path: "/x", HasBody: true, BodyHash: [32]byte{1}}
	storetest.Same(t, auth.Signed(who), device.Request{Proof: "p", Method: "POST", Target: "/x", HasBody: true,
		BodyHash: [32]byte{1}})
	if _, served := (auth.Guards{}).Table()[rest.Device]; served {
		t.Error("a device is a credential without its registry")
	}
}

// poll is a feed whose last read was long ago. A read of it gives roles.
type poll struct {
	changetest.Feed
	mark  time.Time
	polls int
	read  func()
	no    error
}

func (p *poll) Mark() time.Time { return p.mark }

func (p *poll) Poll(context.Context) error {
	if p.polls++; p.no == nil {
		p.read()
	}
	return p.no
}

// A session that is newer than what the node knows has the feed read where it would get less than its token claims.
func TestNewSessionReadsTheFeed(t *testing.T) {
	mark := time.UnixMilli(1_700_000_000_000)
	at := func(d time.Duration) string { return id.Before(mark.Add(d)) }
	for name, c := range map[string]struct {
		audience rest.Audience
		session  string
		roles    []string
		verdict  resource.Verdict // before the read; after it the account is an administrator
		polls    int
		code     fault.Code
	}{
		"refused":        {rest.Admin, at(0), nil, resource.Verdict{}, 1, ""},
		"at the bound":   {rest.Admin, at(-change.Bound), nil, resource.Verdict{}, 1, ""},
		"older":          {rest.Admin, at(-change.Bound - time.Millisecond), nil, resource.Verdict{}, 0, fault.Forbidden},
		"no session":     {rest.Admin, "", nil, resource.Verdict{}, 0, fault.Forbidden},
		"let in":         {rest.Admin, at(0), []string{"clerk"}, resource.Verdict{Admin: true}, 0, ""},
		"claims more":    {rest.SelfOrAdmin, at(0), []string{"user", "clerk"}, resource.Verdict{}, 1, ""},
		"claims no more": {rest.SelfOrAdmin, at(0), []string{"user"}, resource.Verdict{}, 0, ""},
		"acts already":   {rest.SelfOrAdmin, at(0), []string{"clerk"}, resource.Verdict{Admin: true}, 0, ""},
		"for itself":     {rest.SelfUser, at(0), []string{"clerk"}, resource.Verdict{}, 0, ""},
	} {
		verdict := c.verdict
		feed := &poll{mark: mark, read: func() { verdict = resource.Verdict{Admin: true} }}
		g := auth.Guards{Feed: feed, Judge: func(string, string, string) resource.Verdict { return verdict }}
		who := rest.Caller{UserID: "u1", SessionID: c.session, Roles: c.roles}
		e := rest.Endpoint{Method: "GET", Path: "/x", Audience: c.audience}
		if err := g.Authorize(t.Context(), who, &e); fault.CodeOf(err) != c.code || feed.polls != c.polls {
			t.Errorf("%s: %v after %d reads, want %q after %d", name, err, feed.polls, c.code, c.polls)
		}
	}
	feed := &poll{mark: mark, no: errors.New("away")}
	g := auth.Guards{Feed: feed, Judge: func(string, string, string) resource.Verdict { return resource.Verdict{} }}
	e := rest.Endpoint{Method: "GET", Path: "/x", Audience: rest.Admin}
	err := g.Authorize(t.Context(), rest.Caller{UserID: "u1", SessionID: at(0)}, &e)
	var f *fault.Error
	if storetest.Wants(t, err, fault.Unavailable); errors.As(err, &f) && f.RetryAfter != time.Second {
		t.Errorf("retry after %v", f.RetryAfter)
	}
}

// Without a session only the bearer of another credential of the endpoint is accepted, and never as an
// administrator.
func TestCallersWithoutASession(t *testing.T) {
	g := auth.Guards{Judge: func(string, string, string) resource.Verdict { return resource.Verdict{Admin: true} }}
	for _, c := range []struct {
		name       string
		who        rest.Caller
		credential rest.Credential
		self       bool
	}{
		{"challenge", rest.Caller{ChallengeID: "c"}, rest.PAuth, true},
		{"one-time token", rest.Caller{TokenID: "t"}, rest.OTAuth, true},
		{"device", rest.Caller{}, rest.PAuthOrDevice, true},
		{"scheduled client", rest.Caller{Cron: "rates"}, rest.TenantOrCron, true},
		{"scheduled client elsewhere", rest.Caller{Cron: "rates"}, rest.Tenant, false},
		{"nobody", rest.Caller{}, rest.TenantOrCron, false},
	} {
		for audience, want := range map[rest.Audience]bool{rest.SelfUser: c.self, rest.SelfOrAdmin: c.self,
			rest.Admin: false, rest.Public: true} {
			e := rest.Endpoint{Method: "GET", Path: "/x", Audience: audience, Credential: c.credential}
			permitted, asAdmin := g.Permits(c.who, &e)
			if permitted != want || asAdmin || g.Audited(c.who, &e) {
				t.Errorf("%s, %s: permitted %t, as administrator %t", c.name, audience, permitted, asAdmin)
			}
		}
	}
	client := rest.Caller{Service: "shop", ServiceRole: "wallet"}
	g.JudgeRole = g.Judge
	for credential, want := range map[rest.Credential]bool{rest.TenantOrService: true, rest.Tenant: false} {
		e := rest.Endpoint{Method: "GET", Path: "/x", Audience: rest.Admin, Credential: credential}
		if permitted, _ := g.Permits(client, &e); permitted != want {
			t.Errorf("a service client at %s: %t", credential, permitted)
		}
	}
	for who, want := range map[*rest.Caller]bool{&client: true, {UserID: "u1", SessionID: "s1"}: false} {
		e := rest.Endpoint{Method: "GET", Path: "/x", Audience: rest.ServiceClient, Credential: rest.Service}
		if err := g.Authorize(t.Context(), *who, &e); (err == nil) != want {
			t.Errorf("%+v at an endpoint of service clients: %v", who, err)
		}
	}
	for who, want := range map[*rest.Caller]bool{&client: true, {UserID: "u1", SessionID: "s1"}: false,
		{Service: "shop"}: false} {
		e := rest.Endpoint{Method: "GET", Path: "/x", Audience: rest.ServiceRole, Credential: rest.Service}
		if permitted, _ := g.Permits(*who, &e); permitted != want {
			t.Errorf("%+v at an endpoint of service clients with a grant: %t", who, permitted)
		}
	}
	e := rest.Endpoint{Method: "GET", Path: "/x", Audience: rest.Admin}
	if permitted, asAdmin := g.Permits(rest.Caller{UserID: "u1"}, &e); !permitted || !asAdmin {
		t.Errorf("an administrator: permitted %t, as administrator %t", permitted, asAdmin)
	}
}
