package auth_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/domain/session/allowedip"
	"castellan/domain/session/geofilter"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/outbound/geoip"
)

// places is a node's copies of filters and lists, held in memory.
type places struct {
	geofilter.Store
	filters []geofilter.Held
	lists   map[string][]netip.Prefix
	holders map[string]challenge.Holder
}

func (p places) All(context.Context) ([]geofilter.Held, error) { return p.filters, nil }

func (p places) holder(_ context.Context, id string) (challenge.Holder, error) {
	switch h, ok := p.holders[id]; {
	case id == "unreachable":
		return h, fault.New(fault.Unavailable, "busy")
	case !ok:
		return h, fault.New(fault.ChallengeNotFound, "there is no such challenge")
	default:
		return h, nil
	}
}

type lists map[string][]netip.Prefix

func (l lists) Networks(context.Context, string) ([]netip.Prefix, error) {
	return nil, errors.New("not asked")
}
func (l lists) All(context.Context) (map[string][]netip.Prefix, error) { return l, nil }

// guards are those of a node with these copies.
func (p places) guards(t testing.TB, n node) auth.Guards {
	t.Helper()
	filters, allowed := geofilter.NewCache(p), allowedip.NewCache(lists(p.lists))
	storetest.Must(t, errors.Join(filters.Reload(t.Context()), allowed.Reload(t.Context())))
	return auth.Guards{Judge: n.live(t).Judge, Tenant: "default", Feed: &changetest.Feed{},
		Live: func(_, session string, _ int64) bool { return session != "ended" },
		Geo:  &auth.Geo{Filter: filters.Filter, Holder: p.holder}, AllowsIP: allowed.Allows}
}

// world serves one endpoint of each kind behind the guards, at any address.
type world struct {
	*apitest.Site
	t      *testing.T
	tokens *token.Issuer
	seen   *edge.Answered
}

type noted struct {
	Note string `json:"note"`
}

func serve(t *testing.T, p places, n node) *world {
	t.Helper()
	w := &world{t: t, seen: &edge.Answered{}, tokens: token.NewIssuer(keyringtest.Ring(t, nil), "castellan", "default",
		time.Now, 100)}
	g := p.guards(t, n)
	g.Tokens = w.tokens
	w.Site = apitest.Serve(t, edge.Options{Guards: g.Table(), Authorize: g.Authorize, ActsAsAdmin: g.ActsAsAdmin,
		CountryOf: geoip.Embedded{}.Country, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")},
		Observe: func(_ context.Context, a edge.Answered) { *w.seen = a }},
		apitest.Endpoints{
			rest.Post("/user", "", rest.User, nothing[noted]), rest.Post("/tenant", "", rest.Tenant, nothing[noted]),
			rest.Post("/pauth", "", rest.PAuth, nothing[noted]),
			rest.Post("/device", "", rest.PAuthOrDevice, nothing[noted]),
			rest.Post("/public", "", rest.NoAuth, nothing[noted]),
			rest.Post("/filtered", "", rest.User, nothing[noted]).IPFiltered(),
			rest.Post("/clerk", "", rest.User, nothing[noted]).For(rest.Admin).IPFiltered(),
		}).As("anonymous")
	return w
}

func (w *world) sign(c token.Claims) string {
	w.t.Helper()
	now := time.Now()
	c.ID, c.IssuedAt, c.ExpiresAt = id.New(now), now, now.Add(time.Hour)
	if c.Class == token.XAuth {
		c.SV, c.AuthTime = 1, now
	}
	return storetest.Value(w.tokens.Sign(c))(w.t)
}

func (w *world) xauth(user, session string) []string {
	return []string{"x-auth", w.sign(token.Claims{Class: token.XAuth, Subject: user, SessionID: session})}
}

func (w *world) pauth(challenge string) []string {
	return []string{"p-auth", w.sign(token.Claims{Class: token.PAuth, ChallengeID: challenge})}
}

// ask sends a body from an address and returns the code of the refusal, "" for
// none. The tests' connection is that of the proxy 0.0.0.0.
func (w *world) ask(path, body, ip string, headers ...string) string {
	w.t.Helper()
	_, answer := w.Call("POST "+path, body, append(headers, "X-Forwarded-For", ip)...)
	return refusal(answer)
}

const (
	turkey  = "78.160.0.1"
	states  = "8.8.8.8"
	unknown = "203.0.113.7"
	fine    = `{"note":"x"}`
)

// D-GEO-02 by credential, and the place of the country in the order of checks
// (D-GEN-19): after the credential, before tenant, role and fields.
func TestFilteredCredentials(t *testing.T) {
	p := places{filters: []geofilter.Held{{UserID: "u1", CV: 3, Filter: "TR"}, {UserID: "denied", CV: 1, Filter: "TR"}},
		holders: map[string]challenge.Holder{"c1": {UserID: "u1"}, "c2": {UserID: "u2"}, "decoy": {},
			"changed": {UserID: "u1", KeepsFilter: true, Filter: "DE,US"},
			"first":   {UserID: "u1", KeepsFilter: true}}}
	w := serve(t, p, node{grants: []resource.Grant{{RoleCode: "denied", ResourceCode: "POST /user", Context: resource.API,
		Permission: resource.Deny}}, held: map[string][]string{"denied": {"denied"}, "admin": {"root"}}})
	blocked := string(fault.GeoBlocked)
	for _, c := range []struct {
		name, path, body, ip string
		headers              []string
		want                 string
	}{
		{"at home", "/user", fine, turkey, w.xauth("u1", "s1"), ""},
		{"abroad", "/user", fine, states, w.xauth("u1", "s1"), blocked},
		{"nowhere", "/user", fine, unknown, w.xauth("u1", "s1"), blocked},
		{"mapped", "/user", fine, "::ffff:" + turkey, w.xauth("u1", "s1"), ""},
		{"another user", "/user", fine, states, w.xauth("u2", "s1"), ""},
		{"an ended session", "/user", fine, states, w.xauth("u1", "ended"), "TOKEN_REVOKED"},
		{"no token", "/user", fine, states, nil, "UNAUTHENTICATED"},
		{"before the role", "/user", fine, states, w.xauth("denied", "s1"), blocked},
		{"the role", "/user", fine, turkey, w.xauth("denied", "s1"), "FORBIDDEN"},
		{"before the fields", "/user", `{}`, states, w.xauth("u1", "s1"), blocked},
		{"the fields", "/user", `{}`, turkey, w.xauth("u1", "s1"), "INVALID_FIELD"},
		{"before the tenant", "/tenant", fine, states, append(w.xauth("u1", "s1"), "tenant-id", "another"), blocked},
		{"the tenant", "/tenant", fine, turkey, append(w.xauth("u1", "s1"), "tenant-id", "another"), "TENANT_MISMATCH"},
		{"nobody in particular", "/public", fine, states, w.xauth("u1", "s1"), ""},
		{"a challenge at home", "/pauth", fine, turkey, w.pauth("c1"), ""},
		{"a challenge abroad", "/pauth", fine, states, w.pauth("c1"), blocked},
		{"a challenge abroad, before the fields", "/pauth", `{}`, states, w.pauth("c1"), blocked},
		{"a challenge of another", "/pauth", fine, states, w.pauth("c2"), ""},
		{"a decoy", "/pauth", fine, states, w.pauth("decoy"), ""},
		{"a challenge that is gone", "/pauth", fine, states, w.pauth("c9"), ""},
		{"a challenge whose owner is not there", "/pauth", fine, turkey, w.pauth("unreachable"), "UNAVAILABLE"},
		{"a changed filter, from where it was", "/pauth", fine, states, w.pauth("changed"), ""},
		{"a changed filter, from where it is", "/pauth", fine, turkey, w.pauth("changed"), blocked},
		{"a first country", "/pauth", fine, unknown, w.pauth("first"), ""},
		{"a device with a token", "/device", fine, states, append(w.pauth("c1"), "device-signature", "signed"), blocked},
		{"a device alone", "/device", fine, states, []string{"device-signature", "signed"}, ""},
	} {
		storetest.Equal(t, w.ask(c.path, c.body, c.ip, c.headers...), c.want, c.name)
		if who := w.seen.Caller; c.path == "/pauth" && c.want == "" {
			if h, known := p.holders[who.ChallengeID]; known != (who.ChallengeUser != nil) || known &&
				*who.ChallengeUser != h.UserID {
				t.Errorf("%s: the endpoint would ask again for the user: %+v", c.name, who)
			}
		}
		if a := w.seen; c.want == blocked && (a.Caller.UserID == "" || a.Caller.RequestID == "" || a.Status != 403) {
			t.Errorf("%s: the audit would see %+v", c.name, a)
		}
	}
	if w.ask("/tenant", fine, turkey, append(w.xauth("u1", "s1"), "tenant-id",
		"another")...); w.seen.Caller.UserID != "u1" {
		t.Error("the audit would not see who named another tenant")
	}
}

// D-AUTH-09 and its place: after the role, before the fields.
func TestAllowedAddresses(t *testing.T) {
	p := places{filters: []geofilter.Held{{UserID: "u1", CV: 1, Filter: "TR"}}, lists: map[string][]netip.Prefix{
		"u1": {netip.MustParsePrefix(turkey + "/32"), netip.MustParsePrefix("10.0.0.0/8")},
		"u2": {netip.MustParsePrefix("2001:db8::/32")}, "root": {netip.MustParsePrefix("10.0.0.0/8")}}}
	w := serve(t, p, node{held: map[string][]string{"admin": {"root"}}})
	for _, c := range []struct{ name, path, body, ip, user, want string }{
		{"on the list", "/filtered", fine, turkey, "u1", ""},
		{"beside the list", "/filtered", fine, "78.160.0.2", "u1", "IP_NOT_ALLOWED"},
		{"mapped", "/filtered", fine, "::ffff:" + turkey, "u1", ""},
		{"before the fields", "/filtered", `{}`, "78.160.0.2", "u1", "IP_NOT_ALLOWED"},
		{"after the country", "/filtered", fine, states, "u1", "GEO_BLOCKED"},
		{"another endpoint", "/user", fine, "78.160.0.2", "u1", ""},
		{"IPv6", "/filtered", fine, "2001:db8:1::9", "u2", ""},
		{"IPv6 beside it", "/filtered", fine, "2001:db9::9", "u2", "IP_NOT_ALLOWED"},
		{"IPv4 beside it", "/filtered", fine, states, "u2", "IP_NOT_ALLOWED"},
		{"no list", "/filtered", fine, states, "u3", ""},
		{"after the role", "/clerk", fine, states, "u2", "FORBIDDEN"},
		{"administrators too", "/clerk", fine, states, "root", "IP_NOT_ALLOWED"},
		{"administrators from there", "/clerk", fine, "10.9.9.9", "root", ""},
	} {
		storetest.Equal(t, w.ask(c.path, c.body, c.ip, w.xauth(c.user, "s1")...), c.want, c.name)
	}
	var forgotten auth.Guards
	forgotten.Judge = node{}.live(t).Judge
	e := rest.Endpoint{Method: "GET", Path: "/x", Audience: rest.SelfUser, Credential: rest.User, IPFilter: true}
	if err := forgotten.Authorize(t.Context(), rest.Caller{UserID: "u3"}, &e); fault.CodeOf(err) != fault.IPNotAllowed {
		t.Errorf("without lists: %v", err)
	}
}
