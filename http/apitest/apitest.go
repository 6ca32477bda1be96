// Package apitest serves groups of endpoints over a real database, the edge server and the
// guards of the program. A test of a section is a table of request, status and answer.
//
// Start reading at Site.Wants.
package apitest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/internal/apidoc"
)

// Main is the TestMain of an area. It adds the phrases of slices, as package http does in the service, and lets the
// tests share databases (DSN).
func Main(m *testing.M, slices ...string) {
	for _, slice := range slices {
		phrases, err := os.ReadFile(slice + "/phrases.tsv")
		if err == nil {
			err = rest.AddPhrases(string(phrases))
		}
		if err != nil {
			panic(err)
		}
	}
	databases.shared = true
	code := m.Run()
	for _, d := range databases.free {
		d.drop()
	}
	os.Exit(code)
}

// Site serves endpoints to one caller, whose requests it checks.
type Site struct {
	Server *edge.Server
	prefix string // of every path
	caller string
	t      *testing.T
}

// Serve serves groups. Options without guards get those of the program. A caller is a name:
// "admin" is an administrator, and "clerk" is granted every endpoint that is not reserved.
// "anonymous" sends no token, "nonsense" an invalid one, and "cron:rates" is the scheduled client
// rates. Every other name is a user of that id.
func Serve(t *testing.T, o edge.Options, groups ...rest.Group) *Site {
	t.Helper()
	if o.Guards == nil {
		guards := Guards()
		o.Guards, o.Authorize, o.ActsAsAdmin = guards.Table(), guards.Authorize, guards.ActsAsAdmin
	}
	if o.MayName == nil {
		o.MayName = Guards().MayName
	}
	var all []rest.Endpoint
	for _, g := range groups {
		all = append(all, g.Endpoints()...)
	}
	server := storetest.Value(edge.New(o, all))(t)
	return &Site{Server: server, caller: "admin", t: t}
}

// Endpoints is a group of endpoints that a test makes.
type Endpoints []rest.Endpoint

func (e Endpoints) Endpoints() []rest.Endpoint { return e }

// Guards are the guards of the program for callers that are names.
func Guards() auth.Guards {
	return auth.Guards{
		Tokens: Tokens{}, Tenant: "t1", Feed: &changetest.Feed{},
		Live: func(string, string, int64) bool { return true },
		Cron: func(header string) (string, bool) { return header, header != "" },
		Judge: func(caller, _, _ string) resource.Verdict {
			v := resource.Verdict{Admin: caller == "admin"}
			if caller == "clerk" {
				v.Permission = resource.Allow
			}
			return v
		},
		MayWrite: MayWrite,
	}
}

// MayWrite checks like the program, with "admin" as the only holder of a role.
func MayWrite(caller, userID string, m resource.Matter) error {
	return roles().MayWrite(caller, userID, m)
}

var roles = sync.OnceValue(func() *resource.Cache {
	live := resource.NewCache(noGrants{}, oneAdmin{}, nil)
	if err := live.Reload(context.Background()); err != nil {
		panic(err)
	}
	return live
})

type noGrants struct{ resource.Store }

func (noGrants) Grants(context.Context, resource.GrantQuery) ([]resource.Grant, error) {
	return nil, nil
}

type oneAdmin struct{ resource.Accounts }

func (oneAdmin) Holders(context.Context) (map[string][]string, error) {
	return map[string][]string{user.RoleAdmin: {"admin"}}, nil
}

// Tokens accepts a name as its own token.
type Tokens struct{}

// Verify is that of the issuer of tokens.
func (Tokens) Verify(class token.Class, raw string) (token.Claims, error) {
	if class != token.XAuth || raw == "" || raw == "nonsense" {
		return token.Claims{}, fault.New(fault.Unauthenticated, "not a token")
	}
	return token.Claims{Subject: raw, SessionID: raw}, nil
}

// As is the site for another caller.
func (s *Site) As(caller string) *Site {
	other := *s
	other.caller = caller
	return &other
}

// Below is the site with a path before every path that a test writes.
func (s *Site) Below(prefix string) *Site {
	other := *s
	other.prefix = prefix
	return &other
}

// Send makes a request; line is "<METHOD> <path>", headers are pairs.
func (s *Site) Send(line, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	method, path, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, s.prefix+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	switch name, cron := strings.CutPrefix(s.caller, "cron:"); {
	case cron:
		r.Header.Set("cron-auth", name)
	case s.caller != "anonymous":
		r.Header.Set("x-auth", s.caller)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res := storetest.Value(apidoc.Test(s.Server.App, r))(s.t)
	defer res.Body.Close()
	b := storetest.Value(io.ReadAll(res.Body))(s.t)
	return res, string(b)
}

// Call is Send for a test that needs status and answer alone.
func (s *Site) Call(line, body string, headers ...string) (status int, answer string) {
	s.t.Helper()
	res, answer := s.Send(line, body, headers...)
	return res.StatusCode, answer
}

// Wants makes a request and checks the answer: for 200 the body, for a refusal
// its code and its fields, "INVALID_FIELD name code".
func (s *Site) Wants(line, body string, status int, want string) {
	s.t.Helper()
	got, answer := s.Call(line, body)
	shown := answer
	if got != 200 {
		shown = Refusal(answer)
	}
	if got != status || shown != want {
		s.t.Errorf("%s as %s %s:\n got %d %s\nwant %d %s", line, s.caller, body, got, answer, status, want)
	}
}

// Gets is Wants for a table: want is the status, and for a refusal its code and its fields, "400 INVALID_FIELD name".
func (s *Site) Gets(line, body, want string) {
	s.t.Helper()
	status, answer := s.Call(line, body)
	got := strconv.Itoa(status)
	if status != 200 {
		got += " " + Refusal(answer)
	}
	storetest.Equal(s.t, got, want, line, "as", s.caller, body, status, answer)
}

// Try makes a request for storetest.Race: its error has the code of the refusal.
func (s *Site) Try(line, body string) error {
	status, answer := s.Call(line, body)
	if status == 200 {
		return nil
	}
	return fault.New(fault.Code(Refusal(answer)), "%s", answer)
}

// Refusal is the code of a problem and its fields.
func Refusal(answer string) string {
	var p struct {
		Code   string
		Errors []struct{ Field string }
	}
	if json.Unmarshal([]byte(answer), &p) != nil {
		return answer
	}
	for _, e := range p.Errors {
		p.Code += " " + e.Field
	}
	return p.Code
}
