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
		Rows: []errand.Row{{Key: "amount", Label: "Amount", Value: "1 EUR"}}, Payload: json.RawMessage(`{"order":7}`)}
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
	e, err := g.Get(t.Context(), "shop", id, 0)
	storetest.Must(t, err)
	text, err := g.Grant(t.Context(), e)
	storetest.Must(t, err)
	return text
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
	ms, err := delivery.NewOutbox(g.db).Recent(t.Context(), nil, 0)
	storetest.Must(t, err)
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

// Reads give one grant for 30 s, each valid for 60 s after its iat, and one redemption succeeds.
func TestGrant(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	g.wants(t, c.ID, errand.Pending)
	if g.grant(t, c.ID) != "" {
		t.Error("a grant before the approval")
	}
	g.complete(t, c)
	first := g.grant(t, c.ID)
	g.now = g.now.Add(29 * time.Second)
	if g.grant(t, c.ID) != first {
		t.Error("another grant within 30 s")
	}
	g.now = g.now.Add(30 * time.Second)
	second := g.grant(t, c.ID)
	g.now = g.now.Add(600 * time.Millisecond) // 60 s after the completion, in whole seconds
	redeem := func(service, grant string, want fault.Code) errand.Redeemed {
		t.Helper()
		r, err := g.Redeem(t.Context(), by, service, grant)
		storetest.Wants(t, err, want)
		return r
	}
	redeem("shop", first, fault.TokenExpired)
	redeem("shop", "x", fault.Unauthenticated)
	redeem("other", second, fault.RecordNotFound)
	if r := redeem("shop", second, ""); string(r.Content) != `{"order":7}` || !r.RedeemedAt.Equal(g.now) {
		t.Errorf("%+v", r)
	}
	at := g.now
	g.now = g.now.Add(time.Hour)
	for _, grant := range []string{first, second} { // also after its end: the first redemption is the reason
		_, err := g.Redeem(t.Context(), by, "shop", grant)
		if f := (*fault.Error)(nil); !errors.As(err, &f) || f.Code != fault.GrantUsed || !f.RedeemedAt.Equal(at) {
			t.Errorf("again: %v", err)
		}
	}
	if e, err := g.Store.Get(t.Context(), c.ID); err != nil || e.Payload != nil || g.grant(t, c.ID) != "" {
		t.Errorf("after the redemption: %+v, %v", e, err)
	}
}

// unknown is a committer whose outcomes are unknown; does says whether the unit was committed.
type unknown struct {
	commit.Committer
	does bool
}

func (u unknown) Commit(ctx context.Context, ws ...commit.Write) error {
	if u.does {
		if err := u.Committer.Commit(ctx, ws...); err != nil {
			return err
		}
	}
	return commit.ErrUnknown
}

// An unknown commit is read before it is answered.
func TestRedemptionOfUnknownOutcome(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	g.complete(t, c)
	g.Service.Commit = unknown{g.db, false}
	if _, err := g.Redeem(t.Context(), by, "shop", g.grant(t, c.ID)); !errors.Is(err, commit.ErrUnknown) {
		t.Errorf("not committed: %v", err)
	}
	g.Service.Commit = unknown{g.db, true}
	r, err := g.Redeem(t.Context(), by, "shop", g.grant(t, c.ID))
	if err != nil || string(r.Content) != `{"order":7}` {
		t.Errorf("committed: %+v, %v", r, err)
	}
}

// A challenge that ends by time or for a newer one is settled once, by whichever node sweeps first.
func TestSweep(t *testing.T) {
	g := newGuard(t)
	open, closed, done := g.start(t, "open"), g.start(t, "closed"), g.start(t, "done")
	g.complete(t, done)
	storetest.Must(t, g.db.Commit(t.Context(), challenge.Supersede{ID: closed.ID}))
	g.wants(t, closed.ID, errand.Failed)
	g.now = g.now.Add(3 * time.Minute)
	g.wants(t, open.ID, errand.Expired)
	storetest.Must(t, g.Sweep(t.Context()))
	if n := g.callbacks(t); n != 1 {
		t.Errorf("%d callbacks at the deadline; want that of the completion", n)
	}
	g.now = g.now.Add(5 * time.Second)
	for range 2 {
		storetest.Must(t, g.Sweep(t.Context()))
	}
	if n := g.callbacks(t); n != 3 {
		t.Errorf("%d callbacks, want 3", n)
	}
	for id, want := range map[string]errand.Status{open.ID: errand.Expired, closed.ID: errand.Failed,
		done.ID: errand.Completed} {
		if e, err := g.Store.Get(t.Context(), id); err != nil || e.Status != want {
			t.Errorf("%+v, %v; want %s", e, err, want)
		}
	}
}

// The approver sees the rows of the service, and an SMS its title.
func TestActionDescribesTheCommand(t *testing.T) {
	g := newGuard(t)
	c := g.start(t, "a")
	command, _, err := g.Challenges.Sealed(t.Context(), c.ID)
	storetest.Must(t, err)
	a := g.Action()
	if d := a.Describe(command); len(d) != 1 || d[0] != (challenge.Detail{Key: "amount", Label: "Amount",
		Value: "1 EUR"}) || a.Brief(command) != "Pay out" {
		t.Errorf("%+v, %q", d, a.Brief(command))
	}
	if a.Describe([]byte("x")) != nil {
		t.Error("no command is described")
	}
}

// The limits of a request are those of the interface.
func TestLimitsOfRequest(t *testing.T) {
	for name, c := range map[string][2]int{"bytes of a reference": {errand.MaxReference, 128},
		"characters of a title": {errand.MaxTitle, 200}, "rows": {errand.MaxRows, 20},
		"characters of a key": {errand.MaxKey, 64}, "characters of a label": {errand.MaxLabel, 100},
		"characters of a value": {errand.MaxValue, 1000}, "bytes of a payload": {errand.MaxPayloadBytes, 16_384}} {
		if c[0] != c[1] {
			t.Errorf("%d %s, want %d", c[0], name, c[1])
		}
	}
}
