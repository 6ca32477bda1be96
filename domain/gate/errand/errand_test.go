package errand_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/gate/errand"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/servicekey"
	"castellan/domain/proof/stepup"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/gate"
	"castellan/persistence/persistencetest"
)

var by = audit.By{UserID: "service:shop"}

// guard is the service over a database, and its clock.
type guard struct {
	errand.Service
	db     *persistence.DB
	now    time.Time
	starts int
}

func newGuard(t *testing.T) *guard {
	t.Helper()
	g := &guard{db: persistencetest.SQLite(t), now: time.UnixMilli(1_700_000_000_400).UTC()}
	clock, ring := func() time.Time { return g.now }, keyringtest.Ring(t, time.Now)
	g.Service = errand.Service{Store: gate.NewErrands(g.db), Commit: g.db, Challenges: factor.NewChallenges(g.db),
		Engine: g, Seals: ring, Statements: token.NewIssuer(ring, "castellan", "t", clock, 10), Issuer: "castellan",
		Now: clock, Own: func(code string) bool { return code == "LOGIN" },
		Account: func(_ context.Context, id string) (challenge.Account, error) {
			return challenge.Account{UserID: id}, nil
		},
		Result: func(context.Context, string, time.Duration) (stepup.Completion, error) {
			return stepup.Completion{}, errors.New("no owner")
		},
		Key: func(name string) (servicekey.Key, bool) {
			return servicekey.Key{Name: name, Actions: []string{"PAYOUT", "LOGIN"}, Callback: "https://shop.example/in"}, true
		}}
	return g
}

// Start stores a challenge of three minutes as the engine does.
func (g *guard) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	g.starts++
	c := challenge.Challenge{ID: id.New(g.now), UserID: r.Account.UserID, Action: r.Action, Flow: challenge.FlowSession,
		CreatedAt: g.now.UnixMilli(), ExpiresAt: g.now.Add(3 * time.Minute).UnixMilli(), Version: 1,
		Body: challenge.Body{Subject: r.Account.UserID, Service: r.Service, IntentDigest: "digest",
			Methods: []challenge.Method{{ID: "m", Name: challenge.SMS, Order: 1}}}}
	writes := append(r.Bind(c), challenge.Insert{Challenge: c, Command: r.Command, Intent: []byte("i")})
	return challenge.Started{Challenge: c, PAuth: "p"}, g.db.Commit(ctx, writes...)
}

func (g *guard) Again(ctx context.Context, id string) (challenge.Started, error) {
	c, err := g.Challenges.Load(ctx, id)
	return challenge.Started{Challenge: c, PAuth: "again"}, err
}

func request(reference string) errand.Request {
	return errand.Request{Service: "shop", Action: "PAYOUT", UserID: "u1", Title: "Pay out", Reference: reference,
		Rows: []challenge.Detail{{Key: "amount", Label: "Amount", Value: "1 EUR"}}, Payload: json.RawMessage(`{"order":7}`)}
}

// start starts the challenge of a reference; command is what the engine got.
func (g *guard) start(t *testing.T, reference string) challenge.Challenge {
	t.Helper()
	s, repeated, err := g.Service.Start(t.Context(), by, request(reference), challenge.Starter{})
	if err != nil || repeated {
		t.Fatalf("%v, repeated %v", err, repeated)
	}
	return s.Challenge
}

// complete commits what the action of a completed challenge writes.
func (g *guard) complete(t *testing.T, c challenge.Challenge) {
	t.Helper()
	command, _, err := g.Challenges.Sealed(t.Context(), c.ID)
	storetest.Must(t, err)
	result, writes, err := g.Action().Build(t.Context(), challenge.Execution{Challenge: c, Command: command, Now: g.now})
	if err != nil || !result.Success {
		t.Fatalf("%+v, %v", result, err)
	}
	storetest.Must(t, g.db.Commit(t.Context(), writes...))
}

func (g *guard) grant(t *testing.T, id string) string {
	t.Helper()
	e := storetest.Value(g.Get(t.Context(), "shop", id, 0))(t)
	return storetest.Value(g.Grant(t.Context(), e))(t)
}

func (g *guard) wants(t *testing.T, id string, want errand.Status) {
	t.Helper()
	if e, err := g.Get(t.Context(), "shop", id, time.Second); err != nil || e.Status != want {
		t.Errorf("%+v, %v; want %s", e, err, want)
	}
}

// callbacks counts the messages to the service.
func (g *guard) callbacks(t *testing.T) int {
	t.Helper()
	ms := storetest.Value(delivery.NewOutbox(g.db).Recent(t.Context(), nil, 0))(t)
	return len(ms)
}

// A reference starts one challenge, and a key starts its actions alone.
func TestStart(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	for _, other := range []func(*errand.Request){
		func(r *errand.Request) { r.Title = "x" }, func(r *errand.Request) { r.UserID = "u2" },
		func(r *errand.Request) { r.Rows = append(r.Rows, r.Rows[0]) }, func(r *errand.Request) { r.Payload = nil },
	} {
		r := request("a")
		other(&r)
		_, _, err := g.Service.Start(t.Context(), by, r, challenge.Starter{})
		storetest.Wants(t, err, fault.InvalidState)
	}
	s, repeated, err := g.Service.Start(t.Context(), by, request("a"), challenge.Starter{SessionID: "another"})
	if err != nil || !repeated || s.Challenge.ID != c.ID || g.starts != 1 {
		t.Errorf("%+v, %v, %v after %d starts", s, repeated, err, g.starts)
	}
	r := request("b")
	for _, r.Action = range []string{"WITHDRAW", "LOGIN"} { // out of the key's scope, and of this service itself
		_, _, err = g.Service.Start(t.Context(), by, r, challenge.Starter{})
		storetest.Wants(t, err, fault.Forbidden)
	}
	r = request("a")
	r.Service = "other"
	if s, repeated, err := g.Service.Start(t.Context(), by, r, challenge.Starter{}); err != nil || repeated ||
		s.Challenge.ID == c.ID {
		t.Errorf("another service: %+v, %v, %v", s, repeated, err)
	}
	_, err = g.Get(t.Context(), "other", c.ID, 0)
	storetest.Wants(t, err, fault.RecordNotFound)
}

// commits is a committer that is a function.
type commits func(ctx context.Context, ws ...commit.Write) error

func (c commits) Commit(ctx context.Context, ws ...commit.Write) error { return c(ctx, ws...) }

func (c commits) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// An unknown commit is read before it is answered.
func TestRedemptionOfUnknownOutcome(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	g.complete(t, c)
	g.Service.Commit = &storetest.Units{Fails: []error{commit.ErrUnknown}}
	if _, err := g.Redeem(t.Context(), by, "shop", g.grant(t, c.ID)); !errors.Is(err, commit.ErrUnknown) {
		t.Errorf("not committed: %v", err)
	}
	g.Service.Commit = commits(func(ctx context.Context, ws ...commit.Write) error {
		storetest.Must(t, g.db.Commit(ctx, ws...))
		return commit.ErrUnknown
	})
	r, err := g.Redeem(t.Context(), by, "shop", g.grant(t, c.ID))
	if err != nil || string(r.Content) != `{"order":7}` {
		t.Errorf("committed: %+v, %v", r, err)
	}
}
