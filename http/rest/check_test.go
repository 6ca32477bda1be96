package rest

import (
	"context"
	"strings"
	"testing"
)

// TestStart: whatever is missing stops the program before it serves anything.
func TestStart(t *testing.T) {
	user := Get("/x", "", User, nothing)
	starts := Start2FA("POST", "/s", "", User, "A", func(context.Context, Caller, None) (None, error) { return None{}, nil })
	for _, c := range []struct {
		name      string
		change    func(*Options)
		endpoints []Endpoint
		want      string
	}{
		{"no guard", func(o *Options) { o.Guards = nil }, []Endpoint{user}, `no guard for the credential "x-auth"`},
		{"nil guard", func(o *Options) { o.Guards[User] = nil }, []Endpoint{user}, "no guard"},
		{"unknown credential", nil, []Endpoint{Get("/x", "", "magic", nothing)}, "unknown credential"},
		{"no credential at all", nil, []Endpoint{Get("/x", "", "", nothing)}, "unknown credential"},
		{"twice", nil, []Endpoint{user, user}, "defined twice"},
		{"no authorize", func(o *Options) { o.Authorize = nil }, []Endpoint{user}, "needs Authorize"},
		{"closed audience without a credential", nil, []Endpoint{Get("/x", "", NoAuth, nothing).For(Admin)}, "does not fit"},
		{"no audience", nil, []Endpoint{user.For("")}, "does not fit"},
		{"nobody to say who acts for others", nil, []Endpoint{user.For(SelfOrAdmin)}, "needs ActsAsAdmin"},
		{"reserved for everybody", nil, []Endpoint{user.Reserve()}, "can be reserved"},
		{"no verify", nil, []Endpoint{user.Verified()}, "needs Verify"},
		{"no idempotency", nil, []Endpoint{user.Idempotent()}, "needs Idempotency"},
		{"no starter", nil, []Endpoint{starts}, "needs Starter"},
		{"guarded nothing", func(o *Options) { o.Guarded = map[string]string{"GET /y": "A"}; o.Starter = &starter{} }, []Endpoint{user}, `"GET /y" is no endpoint`},
		{"guarded starter", func(o *Options) { o.Guarded = map[string]string{"POST /s": "A"}; o.Starter = &starter{} }, []Endpoint{starts}, "starts a challenge itself"},
		{"guarded without x-auth", func(o *Options) { o.Guarded = map[string]string{"GET /x": "A"}; o.Starter = &starter{} }, []Endpoint{Get("/x", "", NoAuth, nothing)}, "does not take x-auth"},
		{"guarded for cron", func(o *Options) { o.Guarded = map[string]string{"GET /x": "A"}; o.Starter = &starter{} }, []Endpoint{Get("/x", "", TenantOrCron, nothing)}, "does not take x-auth"},
		{"guarded without a starter", func(o *Options) { o.Guarded = map[string]string{"GET /x": "A"} }, []Endpoint{user}, "needs Starter"},
		{"guarded without an action", func(o *Options) { o.Guarded = map[string]string{"GET /x": ""}; o.Starter = &starter{} }, []Endpoint{user}, "no action"},
		{"any origin with credentials", func(o *Options) { o.CORSOrigins, o.CORSCredentials = []string{"*"}, true }, nil, "cannot be used together"},
		{"any origin and another", func(o *Options) { o.CORSOrigins = []string{"*", "https://a.example"} }, nil, "must stand alone"},
		{"origin with a path", func(o *Options) { o.CORSOrigins = []string{"https://a.example/"} }, nil, "is not scheme://host"},
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
	if _, err := New(opts, []Endpoint{user, starts}); err == nil || strings.Count(err.Error(), "\n") < 4 {
		t.Errorf("not everything is listed: %v", err)
	}
}
