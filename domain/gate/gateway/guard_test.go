package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	gatestore "castellan/persistence/gate"
	"castellan/persistence/persistencetest"
)

var errDown = errors.New("the database is down")

// statements are signed by their type in front of them.
type statements struct{ fail error }

func (s statements) SignStatement(typ string, claims any) (string, error) {
	b, err := json.Marshal(claims)
	return typ + " " + string(b), errors.Join(err, s.fail)
}

func (s statements) ReadStatement(typ, raw string, claims any) error {
	text, is := strings.CutPrefix(raw, typ+" ")
	if !is {
		return errors.New("another type")
	}
	return json.Unmarshal([]byte(text), claims)
}

// gate is a guard over a database, its engine and its bearer.
type gate struct {
	*gateway.Guard
	t       *testing.T
	store   gateway.Store
	now     time.Time
	user    gateway.User
	started []challenge.StartRequest
	again   []string
	fenced  int   // how many starts a change of the account still overtakes
	refuse  error // the answer to a start
	gone    bool  // whether the open challenge has ended
	open    []challenge.Insert
	lost    error // the answer to a commit, which takes effect
	fail    error // the answer to a commit, which does not
}

func (g *gate) Start(_ context.Context, r challenge.StartRequest) (challenge.Started, error) {
	if g.fenced--; g.fenced >= 0 {
		return challenge.Started{}, fmt.Errorf("start: %w", commit.ErrFenced)
	}
	g.started = append(g.started, r)
	return challenge.Started{PAuth: "token"}, g.refuse
}

func (g *gate) Again(_ context.Context, id string) (challenge.Started, error) {
	g.again = append(g.again, id)
	if g.gone {
		return challenge.Started{}, fault.New(fault.ChallengeNotFound, "none")
	}
	return challenge.Started{PAuth: "again"}, nil
}

func (g *gate) Pending(context.Context, string, time.Time) ([]challenge.Insert, error) {
	return g.open, g.refuse
}

type unit struct {
	commit.Committer
	g *gate
}

func (u unit) Commit(ctx context.Context, writes ...commit.Write) error {
	if u.g.fail != nil {
		return u.g.fail
	}
	return errors.Join(u.Committer.Commit(ctx, writes...), u.g.lost)
}

func newGate(t *testing.T, routes ...gateway.Route) *gate {
	t.Helper()
	db := persistencetest.SQLite(t)
	table := gateway.NewTable(routes)
	g := &gate{t: t, store: gatestore.NewGateways(db), now: time.UnixMilli(1_700_000_000_000),
		user: gateway.User{ID: "u", Session: "s"}}
	g.Guard = &gateway.Guard{Routes: func() *gateway.Table { return table }, Engine: g, Challenges: g, Store: g.store,
		Fresh: func(_ context.Context, judge func() error) error { return judge() },
		Account: func(_ context.Context, id string) (challenge.Account, error) {
			return challenge.Account{UserID: id}, nil
		},
		Open: func(sealed, _ []byte) ([]byte, error) { return sealed, nil }, Now: func() time.Time { return g.now },
		BuiltIn:    func(code string) bool { return code == "LOGIN" },
		Statements: statements{}, Issuer: "https://id.example.com"}
	g.Commit = unit{db, g}
	return g
}

func payment() gateway.Route {
	return gateway.Route{ID: 1, Method: "POST", Path: "/pay/*", Mode: gateway.Guarded, ActionCode: "PAYOUT",
		Status: gateway.Active, Rows: []gateway.Row{{Key: "k", Label: "Order", From: gateway.FromPath, Index: 1}}}
}

func paid(edit func(*gateway.Request)) gateway.Request {
	q := gateway.Request{Host: "shop.example", Method: "POST", Path: "/pay/7", Query: "b=2&a=1", Digest: "sha-256=:x:"}
	edit(&q)
	return q
}

func asSent(*gateway.Request) {}

var starter = challenge.Starter{IP: "203.0.113.9"}

func (g *gate) check(q gateway.Request, grant string) (gateway.Decision, error) {
	return g.Check(g.t.Context(), q, grant, func(context.Context) (gateway.User, challenge.Starter, audit.By, error) {
		return g.user, starter, audit.By{UserID: g.user.ID, IP: starter.IP}, nil
	})
}

// grant completes a challenge for a request and returns the grant.
func (g *gate) grant(id string, q gateway.Request) string {
	g.t.Helper()
	d := storetest.Value(g.check(q, ""))(g.t)
	if d.Challenge == nil {
		g.t.Fatalf("%+v", d)
	}
	r, writes, err := g.Action().Build(g.t.Context(), g.execution(id))
	storetest.Must(g.t, err)
	storetest.Must(g.t, g.Commit.Commit(g.t.Context(), writes...))
	return r.Headers[gateway.Header]
}

// execution is that of the last challenge.
func (g *gate) execution(id string) challenge.Execution {
	return challenge.Execution{Now: g.now, Command: g.started[len(g.started)-1].Command,
		Challenge: challenge.Challenge{ID: id, UserID: "u", Action: "PAYOUT", Body: challenge.Body{IntentDigest: "digest",
			Methods: []challenge.Method{{Name: challenge.SMS}, {Name: challenge.PUSH, Order: 1}}}}}
}

// A guarded request needs a challenge. Its grant lets the same request pass once, with an assertion for the upstream.
func TestGrantPassesOnce(t *testing.T) {
	g := newGate(t, payment())
	grant := g.grant("c1", paid(asSent))
	r := g.started[0]
	if r.Action != "PAYOUT" || r.Service != challenge.Gateway || !r.Proven || r.Starter != starter ||
		r.Account.UserID != "u" || r.Brief != "Order 7" ||
		!slices.Equal(r.Details, []challenge.Detail{{Key: "k", Value: "7", Label: "Order"}}) {
		t.Errorf("%+v", r)
	}
	var result struct{ Grant string }
	made, _, err := g.Action().Build(t.Context(), g.execution("c2"))
	if err != nil || !made.Success || json.Unmarshal(made.Data, &result) != nil ||
		result.Grant != made.Headers[gateway.Header] || !strings.HasPrefix(grant, gateway.GrantType+" {") {
		t.Errorf("%+v, %v", made, err)
	}
	g.now = g.now.Add(gateway.Life - time.Millisecond)
	d := storetest.Value(g.check(paid(func(q *gateway.Request) { q.Query = "a=1&b=2" }), grant))(t)
	want := `guard-assertion+jwt {"iss":"https://id.example.com","iat":1700000059,"exp":1700000119,"jti":"c1","rte":1,` +
		`"sub":"u","sid":"s","hst":"shop.example","htm":"POST","pth":"/pay/7","qry":"a=1\u0026b=2","dig":"sha-256=:x:",` +
		`"row":"`
	if !strings.HasPrefix(d.Assertion, want) || !strings.HasSuffix(d.Assertion,
		`","act":"PAYOUT","int":"digest","amr":["PUSH"]}`) || d.User != g.user || d.Challenge != nil {
		t.Errorf("%+v", d)
	}
	_, err = g.check(paid(asSent), grant)
	storetest.Wants(t, err, fault.GrantUsed)
	if s := &g.Stats; s.Challenged.Load() != 1 || s.Granted.Load() != 1 || s.Refused.Load() != 1 ||
		s.Sessions.Load() != 0 {
		t.Errorf("%d challenged, %d granted, %d refused", s.Challenged.Load(), s.Granted.Load(), s.Refused.Load())
	}
	row, err := g.store.Grant(t.Context(), "c1")
	if err != nil || row.Use == "" || !row.UsedAt.Equal(g.now) || row.UserID != "u" {
		t.Errorf("%+v, %v", row, err)
	}
}

// A grant is bound to its request, user and session, and ends after a minute.
func TestGrantOfAnotherRequest(t *testing.T) {
	g := newGate(t, payment(), route(2, "", "GET", "/me", gateway.Active))
	grant := g.grant("c1", paid(asSent))
	for name, q := range map[string]gateway.Request{
		"another host": paid(func(q *gateway.Request) { q.Host = "x.example" }),
		"another path": paid(func(q *gateway.Request) { q.Path = "/pay/8" }),
		"no digest":    paid(func(q *gateway.Request) { q.Digest = "" }),
	} {
		if _, err := g.check(q, grant); fault.CodeOf(err) != fault.GrantMismatch {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, user := range []gateway.User{{ID: "v", Session: "s"}, {ID: "u", Session: "t"}} {
		g.user = user
		_, err := g.check(paid(asSent), grant)
		storetest.Wants(t, err, fault.GrantMismatch)
	}
	g.user = gateway.User{ID: "u", Session: "s"}
	for _, raw := range []string{"nonsense", strings.Replace(grant, gateway.GrantType, gateway.AssertionType, 1)} {
		_, err := g.check(paid(asSent), raw)
		storetest.Wants(t, err, fault.GrantMismatch)
	}
	g.Issuer = "https://other.example"
	_, err := g.check(paid(asSent), grant)
	storetest.Wants(t, err, fault.GrantMismatch)
	g.Issuer = "https://id.example.com"
	if d, err := g.check(gateway.Request{Method: "GET", Path: "/me"}, grant); err != nil || d.Assertion != "" ||
		d.User != g.user || g.Stats.Sessions.Load() != 1 {
		t.Errorf("a route that needs a session: %+v, %v", d, err)
	}
	without := g.grant("c2", paid(func(q *gateway.Request) { q.Digest = "" }))
	if _, err := g.check(paid(asSent), without); err != nil {
		t.Errorf("a digest that only the repetition has: %v", err)
	}
	g.now = g.now.Add(gateway.Life)
	_, err = g.check(paid(asSent), grant)
	storetest.Wants(t, err, fault.TokenExpired)
}

// A use whose commit is unknown counts if it took effect. Otherwise the grant stays unused.
func TestUseOfUnknownOutcome(t *testing.T) {
	g := newGate(t, payment())
	grant := g.grant("c1", paid(asSent))
	g.fail = commit.ErrUnknown
	if _, err := g.check(paid(asSent), grant); !errors.Is(err, commit.ErrUnknown) {
		t.Errorf("without effect: %v", err)
	}
	g.fail = errDown
	if d, err := g.check(paid(asSent), grant); !errors.Is(err, errDown) || !reflect.DeepEqual(d, gateway.Decision{}) {
		t.Errorf("a failure: %+v, %v", d, err)
	}
	g.fail, g.lost = nil, commit.ErrUnknown
	if d, err := g.check(paid(asSent), grant); err != nil || d.Assertion == "" {
		t.Errorf("with effect: %+v, %v", d, err)
	}
	g.lost = nil
	_, err := g.check(paid(asSent), grant)
	storetest.Wants(t, err, fault.GrantUsed)
	grant = g.grant(id.New(g.now.Add(-time.Hour)), paid(asSent))
	storetest.Must(t, g.store.Purge(t.Context(), g.now.Add(time.Millisecond)))
	_, err = g.check(paid(asSent), grant)
	storetest.Wants(t, err, fault.GrantUsed)
	grant = g.grant("c3", paid(asSent))
	g.Statements = statements{errDown}
	if _, err := g.check(paid(asSent), grant); !errors.Is(err, errDown) {
		t.Errorf("an unsigned assertion: %v", err)
	}
	if _, _, err := g.Action().Build(t.Context(), g.execution("c4")); !errors.Is(err, errDown) {
		t.Errorf("an unsigned grant: %v", err)
	}
	g.Statements = statements{}
	x := g.execution("c4")
	x.Challenge.UserID = "v"
	_, _, err = g.Action().Build(t.Context(), x)
	storetest.Wants(t, err, fault.InvalidState)
	x.Command = []byte("{")
	if _, _, err := g.Action().Build(t.Context(), x); err == nil {
		t.Error("a broken command")
	}
}

// A start is decided again after a change of the account, three times at most. Its refusals are those of the engine.
func TestChallengeOfGuardedRequest(t *testing.T) {
	g := newGate(t, payment())
	g.fenced = 3
	_, err := g.check(paid(asSent), "")
	var busy *fault.Error
	if !errors.As(err, &busy) || busy.Code != fault.Unavailable || busy.RetryAfter != time.Second {
		t.Errorf("%v", err)
	}
	g.fenced = 2
	if d, err := g.check(paid(asSent), ""); err != nil || d.Challenge.PAuth != "token" || d.Action != "PAYOUT" ||
		len(d.Rows) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
	g.open = []challenge.Insert{{Challenge: challenge.Challenge{ID: "c1", Action: "PAYOUT",
		Body: challenge.Body{Service: challenge.Gateway}}, Command: g.started[0].Command}}
	if d, err := g.check(paid(asSent), ""); err != nil || d.Challenge.PAuth != "again" ||
		!slices.Equal(g.again, []string{"c1"}) {
		t.Errorf("%+v, %v", d, err)
	}
	g.gone = true
	if d, err := g.check(paid(asSent), ""); err != nil || d.Challenge.PAuth != "token" {
		t.Errorf("an ended challenge: %+v, %v", d, err)
	}
	g.Open = func([]byte, []byte) ([]byte, error) { return nil, errDown }
	if _, err := g.check(paid(asSent), ""); !errors.Is(err, errDown) {
		t.Errorf("a sealed command: %v", err)
	}
	g.open, g.refuse = nil, errDown
	if _, err := g.check(paid(asSent), ""); !errors.Is(err, errDown) {
		t.Errorf("pending challenges: %v", err)
	}
	g.refuse = nil
	g.Account = func(context.Context, string) (a challenge.Account, err error) { return a, errDown }
	if _, err := g.check(paid(asSent), ""); !errors.Is(err, errDown) {
		t.Errorf("the account: %v", err)
	}
	if _, err := g.check(paid(func(q *gateway.Request) { q.Path = "/pay/%e2%80%8b" }), ""); fault.CodeOf(err) !=
		fault.Forbidden {
		t.Errorf("a hidden value: %v", err)
	}
}

// The message with a code repeats short rows whose characters cannot change its meaning.
func TestBriefOfRows(t *testing.T) {
	for value, want := range map[string]string{"a.b,c:d+e-f": "Order a.b,c:d+e-f", "%C3%A9%209": "Order é 9"} {
		g := newGate(t, payment())
		_, err := g.check(paid(func(q *gateway.Request) { q.Path = "/pay/" + value }), "")
		if storetest.Must(t, err); g.started[0].Brief != want {
			t.Errorf("%s: %q, want %q", value, g.started[0].Brief, want)
		}
	}
	r := payment()
	r.Rows = nil
	g := newGate(t, r)
	if _, err := g.check(paid(asSent), ""); err != nil || g.started[0].Brief != "" || len(g.started[0].Details) != 0 {
		t.Errorf("%+v, %v", g.started, err)
	}
}

// An explanation has the decision and its reason, without a user. A route on trial is explained and counted only.
func TestExplain(t *testing.T) {
	tried := payment()
	tried.ID, tried.Path, tried.Status = 3, "/tried/*", gateway.Trial
	both := route(5, "", "*", "/both/*", gateway.Active)
	trial := payment()
	trial.ID, trial.Path, trial.Status = 4, "/both/*", gateway.Trial
	g := newGate(t, payment(), route(2, "", "GET", "/me", gateway.Active), tried, both, trial)
	for target, want := range map[string]string{
		"POST /pay/7": "1 CHALLENGE ROUTE 1", "GET /me": "2 SESSION ROUTE 0", "GET /free": "0 ALLOW NO_ROUTE 0",
		"POST /tried/7": "3 ALLOW TRIAL 1", "POST /both/7": "4 SESSION TRIAL 1", "GET /both/7": "5 SESSION ROUTE 0",
		"GET //me": "0 DENY AMBIGUOUS_PATH 0", "POST /pay/%e2%80%8b": "1 DENY HIDDEN_VALUE 0",
	} {
		method, path, _ := strings.Cut(target, " ")
		x := g.Explain(gateway.Request{Host: "shop.example", Method: method, Path: path})
		if got := fmt.Sprint(x.RouteID, " ", x.Decision, " ", x.Reason, " ", len(x.Rows)); got != want || x.Rows == nil {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	storetest.Equal(t, g.Stats.Tried.Load(), 0, "were tried")
	for range 2 {
		_, err := g.check(gateway.Request{Host: "shop.example", Method: "POST", Path: "/tried/7"}, "")
		storetest.Must(t, err)
	}
	if g.Tried(3) != 2 || g.Tried(4) != 0 || g.Stats.Tried.Load() != 2 || g.Stats.Unguarded.Load() != 2 {
		t.Errorf("%d and %d, %d in all", g.Tried(3), g.Tried(4), g.Stats.Tried.Load())
	}
}
