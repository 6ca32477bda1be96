package mfa_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/admin"
	"castellan/domain/change"
	"castellan/domain/change/changetest"
	"castellan/domain/fault"
	"castellan/domain/mfa"
	"castellan/domain/resource"
	"castellan/domain/token"
	"castellan/http/edge"
	"castellan/http/guard"
	httpmfa "castellan/http/mfa"
	"castellan/internal/apidoc"
	"castellan/internal/pgtest"
	"castellan/persistence"
)

// service is the section over a real database, with the guards of the program
// and tokens that are names.
type service struct {
	t    *testing.T
	srv  *edge.Server
	live *mfa.Live
	db   *persistence.DB
}

type tokens struct{}

func (tokens) Verify(class token.Class, raw string) (token.Claims, error) {
	if class != token.XAuth || raw != "admin" && raw != "user" {
		return token.Claims{}, fault.New(fault.Unauthenticated, "not a token")
	}
	return token.Claims{Subject: raw}, nil
}

// both runs a test on a fresh installation on each database.
func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	for name, dsn := range map[string]func() string{
		"sqlite":   func() string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": func() string { return pgtest.DSN(t) },
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t, dsn())) })
	}
}

func open(t *testing.T, dsn string) *service {
	t.Helper()
	ctx := t.Context()
	db, err := persistence.Open(ctx, dsn, persistence.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	must(t, db.Exclusive(ctx, func(ctx context.Context) error { _, err := db.Migrate(ctx); return err }))
	db.Start([]byte("audit key of the test"), "test")
	store := persistence.NewMFA(db)
	must(t, db.InTx(ctx, func(ctx context.Context) error { return mfa.Seed(ctx, store) }))
	live := mfa.NewLive(store)
	must(t, live.Reload(ctx))
	guards := guard.Guards{
		Tokens: tokens{}, Tenant: "t1", Feed: &changetest.Feed{},
		Live:  func(string, string, int64) bool { return true },
		Judge: func(user, _, _ string) resource.Verdict { return resource.Verdict{Admin: user == "admin"} },
	}
	srv, err := edge.New(edge.Options{Guards: guards.Table(), Authorize: guards.Authorize},
		httpmfa.Group{Admin: &mfa.Admin{Store: store,
			Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.MFA, Follow: live.Follow}}}.Endpoints())
	must(t, err)
	return &service{t, srv, live, db}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call makes a request as the administrator; headers are pairs.
func (s *service) call(line, body string, headers ...string) (status int, answer string) {
	s.t.Helper()
	method, path, _ := strings.Cut(line, " ")
	r := httptest.NewRequest(method, "/admin/system/mfa/"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("x-auth", "admin")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := apidoc.Test(s.srv.App, r)
	must(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	must(s.t, err)
	return res.StatusCode, string(b)
}

// wants makes a request and checks the answer: a body for 200, else
// "CODE field field".
func (s *service) wants(line, body string, status int, want string) {
	s.t.Helper()
	got, answer := s.call(line, body)
	if got != 200 {
		var p struct {
			Code   string
			Errors []struct{ Field string }
		}
		if err := json.Unmarshal([]byte(answer), &p); err != nil {
			s.t.Errorf("%s %s: %v", line, body, err)
		}
		answer = p.Code
		for _, e := range p.Errors {
			answer += " " + e.Field
		}
	}
	if got != status || answer != want {
		s.t.Errorf("%s %s:\n got %d %s\nwant %d %s", line, body, got, answer, status, want)
	}
}

// add adds a policy and returns its id.
func (s *service) add(body string) (id int64) {
	s.t.Helper()
	status, answer := s.call("POST policies/common", body)
	if _, err := fmt.Sscanf(answer, `{"id":%d}`, &id); err != nil || status != 200 || id < 1 {
		s.t.Fatalf("%s: %d %s", body, status, answer)
	}
	return id
}

// policy is what is listed of a policy: name, end, methods, numbers.
func (s *service) policy(id int64) string {
	s.t.Helper()
	var list []struct {
		ID       int64
		Name     string
		ExpireAt int64
		Detail   struct {
			Methods             json.RawMessage
			Required, Preffered int
		}
	}
	_, answer := s.call("GET policies", "")
	must(s.t, json.Unmarshal([]byte(answer), &list))
	for _, p := range list {
		if p.ID == id {
			return fmt.Sprintf("%s %d %s %d %d", p.Name, p.ExpireAt, p.Detail.Methods, p.Detail.Required, p.Detail.Preffered)
		}
	}
	return "not listed"
}
