package auth_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/factor/challenge"
	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/session/geofilter"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
)

// elsewhere is a login service whose tokens are "elsewhere:" and the account.
func elsewhere(_ context.Context, raw string) (u auth.ForeignUser, ok bool, err error) {
	u.Session, u.Login = "elsewhere", "login"
	if u.UserID, ok = strings.CutPrefix(raw, "elsewhere:"); u.UserID == "inactive" {
		err = fault.New(fault.TokenRevoked, "the account is not active")
	}
	return u, ok, err
}

// Every credential of an account meets every judge: the block of the account or its session, the country filter, and
// the firewall's rules about users. An exemption has its decision.
func TestEveryCredentialMeetsEveryJudge(t *testing.T) {
	p := places{filters: []geofilter.Held{{UserID: "elder", CV: 1, Filter: "TR"}}, holders: map[string]challenge.Holder{
		"of elder": {UserID: "elder"}, "of barred": {UserID: "barred"}, "of free": {UserID: "free"}}}
	tokens := token.NewIssuer(keyringtest.Ring(t, nil), "castellan", "default", time.Now, 100)
	g := p.guards(t, node{})
	g.Tokens, g.Foreign = tokens, elsewhere
	rules := firewall.Compile([]firewall.Rule{{Label: "barred", Type: firewall.Blacklist, EntityType: firewall.UserID,
		Entities: []string{"barred"}, AppID: "API", Status: firewall.Active, AllResources: true}}, "API",
		time.Now().UnixMilli())
	wall := &firewall.Evaluator{Rules: func() *firewall.Snapshot { return rules }, Limiter: &meter{}, Now: time.Now}
	g.Blocked = func(key, userID string) bool { return wall.Blacklisted(key, firewall.Client{UserID: userID}) }
	f := auth.Firewall{Evaluator: wall, Tokens: tokens, Live: g.Live, Feed: g.Feed, Foreign: elsewhere,
		Bears: func(key string) bool { return key == "GET /check" }}
	var got error
	site := apitest.Serve(t, edge.Options{Guards: g.Table(), Authorize: g.Authorize, Firewall: f.Judge,
		CountryHeader: "x-country", TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")},
		Observe: func(_ context.Context, a edge.Answered) { got = fault.New(a.Code, "") }},
		apitest.Endpoints{rest.Get("/user", "", rest.User, nothing[rest.None]),
			rest.Get("/pauth", "", rest.PAuth, nothing[rest.None])}).As("anonymous")
	site.Server.Raw("GET", "/check", func(c *fiber.Ctx) error {
		r := edge.RequestOf(c)
		_, err := g.Bearer(c.Context(), r, auth.Signing{})
		return err
	})
	xAuth := func(user string) string {
		session := "s"
		if user == "inactive" {
			session = "ended"
		}
		text, err := tokens.Sign(token.Claims{Class: token.XAuth, ID: "1", Subject: user, SessionID: session, SV: 1,
			AuthTime: time.Now(), IssuedAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour)})
		storetest.Must(t, err)
		return text
	}
	send := func(path, name, value string) fault.Code {
		got = nil
		site.Send("GET "+path, "", "X-Forwarded-For", "192.0.2.7", "x-country", "DE", name, value)
		return fault.CodeOf(got)
	}
	service := func(user string, from *auth.Origin) fault.Code {
		return fault.CodeOf(g.Represented(rest.Caller{Method: "POST", Path: "/guard/challenges"}, user, from))
	}
	german := &auth.Origin{IP: netip.MustParseAddr("192.0.2.7"), Country: "DE"}
	for name, c := range map[string]struct {
		send                     func(user string) fault.Code
		blocked, country, barred fault.Code
	}{
		"x-auth": {func(u string) fault.Code { return send("/user", "x-auth", xAuth(u)) }, fault.TokenRevoked,
			fault.GeoBlocked, fault.AccessDenied},
		"x-auth at a gateway": {func(u string) fault.Code { return send("/check", "x-auth", xAuth(u)) }, fault.TokenRevoked,
			fault.GeoBlocked, fault.AccessDenied},
		"a token of another login service": {func(u string) fault.Code {
			return send("/check", "authorization", "Bearer elsewhere:"+u)
		}, fault.TokenRevoked, fault.GeoBlocked, fault.AccessDenied},
		"userToken, an x-auth": {func(u string) fault.Code {
			if _, err := g.Session(t.Context(), xAuth(u)); err != nil {
				return fault.CodeOf(err)
			}
			return service(u, german)
		}, fault.TokenRevoked, fault.GeoBlocked, fault.AccessDenied},
		// The address of the user is unknown to this service (D-EXT-12).
		"userToken of another login service": {func(u string) fault.Code {
			if _, _, err := elsewhere(t.Context(), "elsewhere:"+u); err != nil {
				return fault.CodeOf(err)
			}
			return service(u, nil)
		}, fault.TokenRevoked, "", fault.AccessDenied},
		// The firewall's user is that of a session (D-GEN-19); a challenge of a blocked account has ended.
		"p-auth": {func(u string) fault.Code {
			text, err := tokens.Sign(token.Claims{Class: token.PAuth, ID: "1", ChallengeID: "of " + u, IssuedAt: time.Now(),
				ExpiresAt: time.Now().Add(time.Hour)})
			storetest.Must(t, err)
			return send("/pauth", "p-auth", text)
		}, "", fault.GeoBlocked, ""},
	} {
		for user, want := range map[string]fault.Code{"free": "", "inactive": c.blocked, "elder": c.country,
			"barred": c.barred} {
			storetest.Equal(t, c.send(user), want, name, "of", user)
		}
	}
	if got := send("/user", "authorization", "Bearer elsewhere:free"); got != fault.Unauthenticated {
		t.Errorf("a foreign token elsewhere: %q", got)
	}
}
