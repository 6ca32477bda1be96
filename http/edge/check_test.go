package edge

import (
	"context"
	"strings"
	"testing"

	"castellan/http/rest"
)

// TestStart: a missing part stops the program before it serves anything.
func TestStart(t *testing.T) {
	user := rest.Get("/x", "", rest.User, nothing)
	starts := rest.Start2FA("POST", "/s", "", rest.User, "A",
		func(context.Context, rest.Caller, rest.None) (rest.None, error) {
			return rest.None{}, nil
		})
	post := rest.Post("/x", "", rest.Tenant, echo)
	some := rest.PairIf(post, func(context.Context, rest.Caller, echoRequest) (bool, error) { return false, nil })
	fourEyes := func(key string, store SecondPerson) func(*Options) {
		return func(o *Options) { o.FourEyes, o.SecondPerson = map[string]bool{key: true}, store }
	}
	for _, c := range []struct {
		name      string
		change    func(*Options)
		endpoints []rest.Endpoint
		want      string
	}{
		{"no guard", func(o *Options) { o.Guards = nil }, []rest.Endpoint{user}, `no guard for the credential "x-auth"`},
		{"nil guard", func(o *Options) { o.Guards[rest.User] = nil }, []rest.Endpoint{user}, "no guard"},
		{"unknown credential", nil, []rest.Endpoint{rest.Get("/x", "", "magic", nothing)}, "unknown credential"},
		{"no credential at all", nil, []rest.Endpoint{rest.Get("/x", "", "", nothing)}, "unknown credential"},
		{"twice", nil, []rest.Endpoint{user, user}, "defined twice"},
		{"no authorize", func(o *Options) { o.Authorize = nil }, []rest.Endpoint{user}, "needs Authorize"},
		{"closed audience without a credential", nil,
			[]rest.Endpoint{rest.Get("/x", "", rest.NoAuth, nothing).For(rest.Admin)}, "does not fit"},
		{"no audience", nil, []rest.Endpoint{user.For("")}, "does not fit"},
		{"nobody to say who acts for others", nil, []rest.Endpoint{user.For(rest.SelfOrAdmin)}, "needs ActsAsAdmin"},
		{"reserved for everybody", nil, rest.Section("", user).Reserve(), "can be reserved"},
		{"no verify", nil, []rest.Endpoint{user.Verified()}, "needs Verify"},
		{"no idempotency", nil, []rest.Endpoint{user.Idempotent()}, "needs Idempotency"},
		{"no starter", nil, []rest.Endpoint{starts}, "needs Starter"},
		{"guarded nothing", func(o *Options) { o.Guarded = map[string]string{"GET /y": "A"}; o.Starter = &starter{} },
			[]rest.Endpoint{user}, `"GET /y" is no endpoint`},
		{"guarded starter", func(o *Options) { o.Guarded = map[string]string{"POST /s": "A"}; o.Starter = &starter{} },
			[]rest.Endpoint{starts}, "starts a challenge itself"},
		{"guarded without x-auth", func(o *Options) { o.Guarded = map[string]string{"GET /x": "A"}; o.Starter = &starter{} },
			[]rest.Endpoint{rest.Get("/x", "", rest.NoAuth, nothing)}, "does not take x-auth"},
		{"guarded for cron", func(o *Options) { o.Guarded = map[string]string{"GET /x": "A"}; o.Starter = &starter{} },
			[]rest.Endpoint{rest.Get("/x", "", rest.TenantOrCron, nothing)}, "does not take x-auth"},
		{"guarded without a starter", func(o *Options) { o.Guarded = map[string]string{"GET /x": "A"} },
			[]rest.Endpoint{user}, "needs Starter"},
		{"guarded without an action", func(o *Options) {
			o.Guarded = map[string]string{"GET " +
				"/x": ""}
			o.Starter = &starter{}
		}, []rest.Endpoint{user}, "no action"},
		{"paired without a store", nil, []rest.Endpoint{post.Pair()}, "needs SecondPerson"},
		{"paired at times without a store", nil, []rest.Endpoint{some}, "needs SecondPerson"},
		{"four eyes without a store", fourEyes("POST /x", nil), []rest.Endpoint{post}, "needs SecondPerson"},
		{"four eyes of others", fourEyes("POST /x", &second{}), []rest.Endpoint{post.For(rest.Public)},
			"is not for administrators alone"},
		{"four eyes of nothing", fourEyes("POST /y", &second{}), []rest.Endpoint{post}, `"POST /y" is no endpoint`},
		{"named users without a judge", nil, []rest.Endpoint{post.Names(rest.General, "text")}, "needs MayName"},
		{"any origin with credentials", func(o *Options) { o.CORSOrigins, o.CORSCredentials = []string{"*"}, true }, nil,
			"cannot be used together"},
		{"any origin and another", func(o *Options) { o.CORSOrigins = []string{"*", "https://a.example"} }, nil,
			"must be the only origin"},
		{"origin with a path", func(o *Options) { o.CORSOrigins = []string{"https://a.example/"} }, nil,
			"is not scheme://host"},
		{"language", func(o *Options) { o.DefaultLanguage = "de" }, nil, "default language"},
		{"base path", func(o *Options) { o.BasePath = "api" }, nil, "base path"},
	} {
		opts := allow()
		if c.change != nil {
			c.change(&opts)
		}
		if _, err := New(opts, c.endpoints); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	opts := allow()
	opts.Guards, opts.Authorize = nil, nil
	if _, err := New(opts, []rest.Endpoint{user, starts}); err == nil || strings.Count(err.Error(), "\n") < 4 {
		t.Errorf("not everything is listed: %v", err)
	}
}
