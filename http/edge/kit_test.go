package edge

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/rest"
)

// allow is a set of options under which every endpoint can be mounted: each
// credential is the user id in the header x-auth.
func allow() Options {
	guard := func(_ context.Context, r *Request) (rest.Caller, error) {
		who := r.Caller
		if who.UserID = r.Header("x-auth"); who.UserID == "" {
			return who, fault.New(fault.Unauthenticated, "x-auth is missing")
		}
		return who, nil
	}
	return Options{
		Guards: map[rest.Credential]Guard{rest.User: guard, rest.Tenant: guard, rest.PAuth: guard, rest.PAuthOrDevice: guard,
			rest.OTAuth: guard,
			rest.Device: guard, rest.TenantOrCron: guard,
			rest.TenantOrService: func(ctx context.Context, r *Request) (rest.Caller, error) {
				if who := r.Caller; r.Header("service-auth") != "" {
					who.Service = r.Header("service-auth")
					return who, nil
				}
				return guard(ctx, r)
			}},
		Authorize: func(context.Context, rest.Caller, *rest.Endpoint) error { return nil },
	}
}

func serve(t testing.TB, opts Options, endpoints ...rest.Endpoint) *Server {
	t.Helper()
	return storetest.Value(New(opts, endpoints))(t)
}

type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) code() string {
	_, after, _ := strings.Cut(a.body, `"code":"`)
	code, _, _ := strings.Cut(after, `"`)
	return code
}

// is checks the status and the code; "" is the code of a success.
func (a answer) is(t testing.TB, status int, code fault.Code, labels ...any) {
	t.Helper()
	if a.status != status || a.code() != string(code) {
		t.Errorf("%v got %d %.300s, want %d %s", labels, a.status, a.body, status, code)
	}
}

// do sends one request; headers are "name: value".
func do(t testing.TB, s *Server, method, target, body string, headers ...string) answer {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req := httptest.NewRequest(method, target, reader)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if strings.EqualFold(name, "content-type") {
			req.Header.Del(name)
		}
		req.Header[http.CanonicalHeaderKey(name)] = append(req.Header[http.CanonicalHeaderKey(name)], value)
	}
	resp, err := s.App.Test(req, -1)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer resp.Body.Close()
	text := storetest.Value(io.ReadAll(resp.Body))(t)
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// echo answers with its request, as the handler saw it.
type echoRequest struct {
	Text string `json:"text"`
	N    *int   `json:"n"`
}

func echo(_ context.Context, _ rest.Caller, in echoRequest) (rest.Data[echoRequest], error) {
	return rest.Data[echoRequest]{Data: in}, nil
}

func fails(err error) func(context.Context, rest.Caller, rest.None) (rest.None, error) {
	return func(context.Context, rest.Caller, rest.None) (rest.None, error) { return rest.None{}, err }
}

func nothing(context.Context, rest.Caller, rest.None) (rest.None, error) { return rest.None{}, nil }

// whoami answers with the caller.
func whoami(_ context.Context, who rest.Caller, _ rest.None) (rest.Caller, error) { return who, nil }
