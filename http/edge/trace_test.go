package edge

import (
	"context"
	"math"
	"net/http"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/http/rest"

	"github.com/valyala/fasthttp"
)

// Each request is followed once, from when it came, under the template that
// served it, and ends with its answer; health checks are not followed.
func TestTrace(t *testing.T) {
	type followed struct {
		Traceable
		status int
		code   fault.Code
	}
	var got []followed
	type key struct{}
	opts := allow()
	opts.Firewall = func(context.Context, *Request, string) error { return nil }
	opts.Trace = func(ctx context.Context, q Traceable) (context.Context, func(int, fault.Code)) {
		got = append(got, followed{Traceable: q})
		i := len(got) - 1
		return context.WithValue(ctx, key{}, i), func(status int, code fault.Code) {
			got[i].status, got[i].code = status, code
		}
	}
	s := serve(t, opts, rest.Get("/things/{id}", "x", rest.NoAuth, func(ctx context.Context, _ rest.Caller,
		_ rest.None) (rest.None, error) {
		if ctx.Value(key{}) == nil {
			t.Error("a handler works outside of the trace")
		}
		return rest.None{}, fault.New(fault.RecordNotFound, "no such thing")
	}))
	do(t, s, "GET", "/things/secret?q=secret", "", "traceparent: 00-a-b-01", "tracestate: x=1")
	do(t, s, "GET", "/nowhere/secret", "")
	if len(got) != 2 || got[0].Key != "GET /things/{id}" || got[0].Parent != "00-a-b-01" || got[0].State != "x=1" ||
		got[0].Trusted || got[0].Start.IsZero() || got[0].status != http.StatusNotFound ||
		got[0].code != fault.RecordNotFound || got[1].Key != "GET *" || got[1].code != fault.NotFound {
		t.Errorf("%+v", got)
	}
}

// A server that follows nothing makes nothing for it: a request allocates what
// it did before there were traces.
func TestUntracedRequestsCostNothing(t *testing.T) {
	const before = 11 + instrumented
	opts := allow()
	s := serve(t, opts, rest.Get("/x", "x", rest.NoAuth,
		func(context.Context, rest.Caller, rest.None) (rest.None, error) {
			return rest.None{}, nil
		}))
	s.App.Handler() // builds the router's tree
	web := s.App.Server().Handler
	var c fasthttp.RequestCtx
	c.Init(&fasthttp.Request{}, loopAddr, nil)
	c.Request.SetRequestURI("/x")
	c.Request.Header.SetHost("id.example.com")
	least := math.Inf(1) // of many: a pool may give nothing, as it does by chance under the race detector
	for range 300 {
		least = min(least, testing.AllocsPerRun(1, func() {
			c.Response.Reset()
			web(&c)
		}))
	}
	if c.Response.StatusCode() != 200 {
		t.Fatalf("%s", c.Response.Body())
	}
	if least > before {
		t.Errorf("%v allocations, want at most %d", least, before)
	}
}
