package actors_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/actors"
	"castellan/cluster"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/stepup"
	"castellan/domain/proof/totp"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

// world is one node over a real database: engine, actors, and a mailbox instead of the external providers.
type world struct {
	rules   *challenge.Rules // nil: the defaults
	t       *testing.T
	db      *persistence.DB
	node    *cluster.Node
	engine  *engine
	client  actors.Client
	user    user.User
	catalog *mfa.Catalog
	actions challenge.Actions
	totps   *totp.Service
	clock   atomic.Int64 // of authenticators, in seconds; it does not run by itself

	mu      sync.Mutex
	codes   map[string]string // method id → last code
	sent    int
	dead    map[string]bool // sessions that have ended
	news    []stepup.News
	effects int
}

// engine combines both parts of the challenge engine. They share a Messenger.
type engine struct {
	*stepup.Starter
	*stepup.Answerer
}

type accounts struct{ users user.Store }

func (a accounts) Account(ctx context.Context, id string) (challenge.Account, error) {
	u, err := a.users.Get(ctx, id)
	if err == nil && !u.Active() {
		err = fault.New(fault.RecordNotFound, "not active")
	}
	return u.Account(), err
}

func (w *world) Deliver(m outbox.Message, r message.Rendered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.State == outbox.Discarded {
		return
	}
	w.codes[m.MethodID] = r.Code
	w.sent++
}

func (w *world) Offers(message.Channel) bool { return true }

func (w *world) Live(_, sessionID string, _ int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.dead[sessionID]
}

func (w *world) PAuth(id string, _ time.Time) (string, error) { return "token-of-" + id, nil }

var errTrouble = errors.New("trouble")

func open(t *testing.T) *world {
	t.Helper()
	return openOn(t, persistencetest.File(t))
}

func openOn(t *testing.T, dsn string) *world {
	t.Helper()
	w := &world{t: t, codes: map[string]string{}, dead: map[string]bool{}, actions: challenge.Actions{}}
	db := storetest.Value(persistence.Open(t.Context(), dsn, persistence.Options{Timeout: time.Minute}))(t)
	w.db = db
	storetest.Must(t, db.Exclusive(t.Context(), func(ctx context.Context) error {
		return storetest.Err(persistence.Migrate(ctx, db))
	}))
	persistence.Start(db, []byte("audit key"), "test")
	w.user = user.New(id.New(time.Now()), time.Now())
	w.user.CountryCode, w.user.Phone, w.user.Email = "90", "+905320000001", "a@example.com"
	storetest.Must(t, db.Commit(t.Context(), user.Add{User: w.user, PasswordHash: ""}))
	w.catalog = mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), nil)
	w.actions.Register(challenge.Action{Code: "LOGIN", Flow: challenge.FlowLogin,
		Build: func(_ context.Context, x challenge.Execution) (challenge.Result, []commit.Write, error) {
			return challenge.Result{Success: true, Data: json.RawMessage(`{"sessionKey":"s1"}`),
				Headers: map[string]string{"x-auth": "t"}}, nil, nil
		}})
	w.actions.Register(challenge.Action{Code: "VERIFY_EMAIL", Exec: func(ctx context.Context,
		x challenge.Execution) (challenge.Result, error) {
		switch string(x.Command) {
		case "refuse":
			return challenge.Result{}, fault.New(fault.InvalidState, "not now")
		case "trouble":
			return challenge.Result{}, errTrouble
		case "panic":
			panic("told to")
		}
		w.mu.Lock()
		w.effects++
		w.mu.Unlock()
		return challenge.Result{Success: true, Data: json.RawMessage(`{"n":1}`)}, nil
	}})
	w.clock.Store(time.Now().Unix())
	w.start()
	w.actions.Register(w.totps.SetupAction())
	w.actions.Register(w.totps.DeactivateAction())
	t.Cleanup(func() {
		w.node.Stop(context.Background())
		db.Close()
	})
	return w
}

// start starts a node; a further call restarts the process.
func (w *world) start() {
	ring := keyringtest.Ring(w.t, time.Now)
	if w.engine != nil {
		ring = w.engine.Starter.Ring
		w.node.Stop(context.Background())
	}
	users := accounts{account.NewUsers(w.db)}
	book := storetest.Value(message.NewBook("Castellan", nil))(w.t)
	messenger := &stepup.Messenger{
		Config: stepup.Config{TTL: 600 * time.Second, Grace: 120 * time.Second, ExecWait: 10 * time.Second, MaxOpen: 5,
			Lease: 30 * time.Second},
		Catalog: func() *mfa.Catalog { return w.catalog }, Book: book, Ring: ring,
		Store: factor.NewChallenges(w.db), Outbox: delivery.NewOutbox(w.db), Dispatch: w, Now: time.Now,
	}
	w.node, w.client = w.boot(ring, messenger)
	messenger.UserGate = w.client
	w.client.Listen(func(n stepup.News) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.news = append(w.news, n)
	})
	judge := func(ctx context.Context, userID string, a stepup.Answer) (challenge.Verdict, *challenge.Use, error) {
		return w.totps.Judge(ctx, userID, a.Value)
	}
	w.engine = &engine{
		&stepup.Starter{Messenger: messenger, Actions: w.actions, Accounts: users, Tokens: w, Challenges: w.client,
			Commit: w.db},
		&stepup.Answerer{Messenger: messenger, Actions: w.actions, Accounts: users, Sessions: w, Challenges: w.client,
			Judges: map[challenge.Name]stepup.Judge{challenge.TOTP: judge}},
	}
	if w.totps == nil { // its actions outlive a restart of the node
		w.totps = &totp.Service{Store: proof.NewTOTP(w.db), Users: account.NewUsers(w.db),
			Budgets: factor.NewChallenges(w.db), Commit: w.db, Ring: ring,
			Notices: w.engine.Starter, Rules: challenge.DefaultRules(), Issuer: "Castellan",
			Recovery: totp.Limit{Attempts: 5, Window: 15 * time.Minute},
			Now:      func() time.Time { return time.Unix(w.clock.Load(), 0) }}
	}
}

// boot creates a node over the rows. It is the only member, so it owns everything.
func (w *world) boot(ring *keyring.Ring, messenger *stepup.Messenger) (*cluster.Node, actors.Client) {
	rules := challenge.DefaultRules()
	if w.rules != nil {
		rules = *w.rules
	}
	log := slog.New(slog.DiscardHandler)
	node, warm := cluster.Solo(log), new(actors.WarmCache)
	node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: factor.NewChallenges(w.db),
		Outbox: delivery.NewOutbox(w.db), Commit: w.db, Actions: w.actions,
		Rules: rules, Guessed: messenger.Guessed(rules), Accounts: accounts{account.NewUsers(w.db)}, Sessions: w,
		Seal: ring.Seal, Open: ring.Open, Grace: 120 * time.Second, Now: time.Now, Log: log,
		Uses: map[challenge.Name]actors.Uses{challenge.TOTP: totp.Use, challenge.PUSH: stepup.Use}})...)
	return node, actors.Client{Node: node, WarmCache: warm, Now: time.Now}
}

func (w *world) begin(action, command string) challenge.Challenge {
	w.t.Helper()
	r := challenge.StartRequest{Action: action, Account: w.user.Account(), Starter: challenge.Starter{IP: "203.0.113.9"},
		Proven: true}
	if command != "" {
		r.Command = []byte(command)
	}
	s := storetest.Value(w.engine.Start(w.t.Context(), r))(w.t)
	return s.Challenge
}

func (w *world) method(c challenge.Challenge, n challenge.Name) challenge.Method {
	w.t.Helper()
	for _, m := range c.Methods {
		if m.Name == n {
			return m
		}
	}
	w.t.Fatalf("no %s among %+v", n, c.Methods)
	return challenge.Method{}
}

func (w *world) code(methodID string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[methodID]
}

func (w *world) answer(c challenge.Challenge, n challenge.Name, value string) (stepup.Completion, error) {
	return w.engine.Complete(context.Background(), stepup.Answer{ChallengeID: c.ID, MethodID: w.method(c, n).ID, Method: n,
		Value: value})
}

func (w *world) right(c challenge.Challenge, n challenge.Name) (stepup.Completion, error) {
	return w.answer(c, n, w.code(w.method(c, n).ID))
}

func wrongOf(code string) string {
	if code == "000000" {
		return "000001"
	}
	return "000000"
}
