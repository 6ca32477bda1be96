package rest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"castellan/domain/fault"
)

// allow is a set of options under which every endpoint can be mounted: each
// credential is the user id in the header x-auth.
func allow() Options {
	guard := func(_ context.Context, r *Request) (Caller, error) {
		who := r.Caller
		if who.UserID = r.Header("x-auth"); who.UserID == "" {
			return who, fault.New(fault.Unauthenticated, "x-auth is missing")
		}
		return who, nil
	}
	return Options{
		Guards: map[Credential]Guard{User: guard, Tenant: guard, PAuth: guard, PAuthOrDevice: guard, OTAuth: guard,
			Device: guard, TenantOrCron: guard},
		Authorize: func(context.Context, Caller, *Endpoint) error { return nil },
	}
}

func serve(t testing.TB, opts Options, endpoints ...Endpoint) *Server {
	t.Helper()
	s, err := New(opts, endpoints)
	if err != nil {
		t.Fatal(err)
	}
	return s
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
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(text)}
}

// echo answers with what it was asked, as the handler saw it.
type echoRequest struct {
	Text string `json:"text"`
	N    *int   `json:"n"`
}

func echo(_ context.Context, _ Caller, in echoRequest) (Data[echoRequest], error) {
	return Data[echoRequest]{in}, nil
}

func fails(err error) func(context.Context, Caller, None) (None, error) {
	return func(context.Context, Caller, None) (None, error) { return None{}, err }
}

func nothing(context.Context, Caller, None) (None, error) { return None{}, nil }

// whoami answers with the caller.
func whoami(_ context.Context, who Caller, _ None) (Caller, error) { return who, nil }
