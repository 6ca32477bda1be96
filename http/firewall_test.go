package httpapi_test

import (
	"context"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"castellan/domain/guard/firewall"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	httpapi "castellan/http"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/http/socket"
	"castellan/http/system"
	"castellan/web"
)

// SEC-31: the firewall checks every endpoint, extension, page and the socket under its own key
// before anything else runs. A rule can name it by that key.
func TestEverythingIsBehindTheFirewall(t *testing.T) {
	var judged []string
	never := func(context.Context, *edge.Request) (rest.Caller, error) {
		t.Error("a credential was looked at")
		return rest.Caller{}, nil
	}
	guards := map[rest.Credential]edge.Guard{}
	for _, c := range []rest.Credential{rest.User, rest.Tenant, rest.PAuth, rest.PAuthOrDevice, rest.OTAuth, rest.Device,
		rest.TenantOrCron, rest.TenantOrService, rest.Service} {
		guards[c] = never
	}
	endpoints := httpapi.Endpoints()
	s, err := edge.New(edge.Options{Guards: guards, Starter: starter{}, Idempotency: idempotency{},
		SecondPerson: auth.SecondPerson{},
		Authorize:    func(context.Context, rest.Caller, *rest.Endpoint) error { t.Error("authorized"); return nil },
		ActsAsAdmin:  func(rest.Caller, *rest.Endpoint) bool { return false },
		MayName:      func(context.Context, rest.Caller, *rest.Endpoint, any) error { t.Error("named"); return nil },
		Verify:       func(context.Context, rest.Caller, *rest.Endpoint, any) error { t.Error("verified"); return nil },
		Firewall: func(_ context.Context, _ *edge.Request, key string) error {
			judged = append(judged, key)
			return fault.New(fault.AccessDenied, "denied")
		}}, endpoints)
	storetest.Must(t, err)
	system.Mount(s, system.Options{Ready: func(context.Context) error { return nil },
		Draining: func() bool { return false }, OpenAPI: func(string) []byte { return nil }})
	socket.Mount(s, socket.Options{})
	var keys []string
	for _, e := range endpoints {
		keys = append(keys, e.Key())
	}
	known := firewall.NewResources("", keys)
	for _, key := range append(keys, "GET "+socket.Path, "GET /openapi.json", "GET /asyncapi.json", "GET /docs",
		"GET /authenticator", "GET /authenticator/service",
		"GET /static/:file", "GET /static/"+web.Version+"/:file", "GET /flags/:file",
		"GET /health/live", "GET /health/ready") {
		method, path, _ := strings.Cut(key, " ")
		if got, err := known.Canonical(strings.ToLower(method) + " " + path + "/"); err != nil || got != key {
			t.Errorf("%s is called %q, %v", key, got, err)
		}
		path = params.ReplaceAllString(path, "7")
		methods := []string{method}
		if method == fiber.MethodGet {
			methods = append(methods, fiber.MethodHead)
		}
		for _, method := range methods {
			judged = nil
			res := storetest.Value(s.App.Test(httptest.NewRequest(method, path+"?a=b", nil), -1))(t)
			if res.Body.Close(); res.StatusCode != 403 || len(judged) != 1 || judged[0] != key {
				t.Errorf("%s %s: %d, judged as %q, want %q", method, path, res.StatusCode, judged, key)
			}
		}
	}
}

var params = regexp.MustCompile(`\{\w+\}|:\w+`)

type starter struct{}

func (starter) Start(context.Context, rest.Caller, string, []byte) (any, []rest.Header, error) {
	return nil, nil, nil
}

type idempotency struct{}

func (idempotency) Run(context.Context, rest.Caller, string, string, string, [32]byte, func(context.Context) error,
	func(context.Context) (int, []byte, []rest.Header, error)) (int, []byte, []rest.Header, bool, error) {
	return 0, nil, nil, false, nil
}

// The endpoints by which a rehearsal says that acts of the audit come are served.
func TestPlacedActs(t *testing.T) {
	served := map[string]bool{}
	for _, e := range httpapi.Endpoints() {
		served[e.Key()] = true
	}
	for action, resource := range firewall.Placed() {
		if !served[resource] {
			t.Errorf("%s comes by %q, which has no endpoint", action, resource)
		}
	}
}
