package account_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/actors"
	"castellan/cluster"
	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/device"
	"castellan/domain/proof/stepup"
	"castellan/domain/session/replace"
	"castellan/domain/session/session"
	httppassword "castellan/http/account/password"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpchallenge "castellan/http/factor/challenge"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/proof"
	sessionstore "castellan/persistence/session"
)

// The passwords that change hands.
const (
	passwordA = "kedi7şeker"
	passwordB = "köpek8limon"
	passwordC = "fare9armut"
)

// world is the section over a real database, with the engine, its actors, the guards and the
// tokens of the program. A mailbox replaces the delivery, and a test can advance the clock.
type world struct {
	t        *testing.T
	db       *persistence.DB
	ring     *keyring.Ring
	keys     *keyring.Keeper
	users    account.Users
	filter   geo.Filter // of every account
	policies []mfa.Policy
	began    time.Time
	ahead    atomic.Int64 // the clock moves only by this
	hasher   *password.Hasher

	node    *cluster.Node
	client  actors.Client
	starter *stepup.Starter
	answers *stepup.Answerer
	svc     *replace.Service
	revoked *session.Revocations
	issuer  *token.Issuer
	srv     *edge.Server

	mu      sync.Mutex
	codes   map[string]string // method id → last code
	settled []outbox.Message  // born discarded
	traced  []string
	tracing bool
}

func (w *world) now() time.Time { return w.began.Add(time.Duration(w.ahead.Load())) }

func (w *world) skip(d time.Duration) { w.ahead.Add(int64(d)) }

func (w *world) Deliver(m outbox.Message, r message.Rendered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.State == outbox.Discarded {
		if r != (message.Rendered{}) {
			w.t.Error("a discarded message came with its text")
		}
		w.settled = append(w.settled, m)
		return
	}
	w.codes[m.MethodID] = r.Code
}

// filterOf is the geographic filter of an account; a decoy has none.
func (w *world) filterOf(userID string) geo.Filter {
	if userID == "" {
		return ""
	}
	return w.filter
}

func (w *world) Offers(message.Channel) bool { return true }

func (w *world) PAuth(challengeID string, until time.Time) (string, error) {
	return w.issuer.Sign(token.Claims{Class: token.PAuth, ID: id.New(w.now()), ChallengeID: challengeID, IssuedAt: w.now(),
		ExpiresAt: until})
}

type accounts struct{ account.Users }

func (a accounts) Account(ctx context.Context, id string) (challenge.Account, error) {
	u, err := a.Get(ctx, id)
	if err == nil && !u.Active() {
		return challenge.Account{}, fault.New(fault.RecordNotFound, "not active")
	}
	return u.Account(), err
}

func both(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, dsn := range apitest.Databases {
		t.Run(name, func(t *testing.T) { test(t, open(t, dsn(t))) })
	}
}

func open(t *testing.T, dsn string) *world {
	t.Helper()
	w := &world{t: t, began: time.Now().Truncate(time.Second), codes: map[string]string{}}
	var err error
	w.db, err = persistence.Open(t.Context(), dsn, persistence.Options{Now: w.now, Timeout: 20 * time.Second,
		Trace: func(_ context.Context, statement string) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.tracing {
				w.traced = append(w.traced, statement)
			}
			return false
		}})
	storetest.Must(t, err)
	_, err = persistence.Migrate(t.Context(), w.db)
	storetest.Must(t, err)
	persistence.Start(w.db, []byte("audit key of the test"), "test")
	w.users = account.NewUsers(w.db)
	w.keys = keyringtest.Keeper(t, w.now)
	w.ring = w.keys.Ring()
	w.hasher, err = password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Slots: 2, Queue: 500, Wait: time.Minute})
	storetest.Must(t, err)
	w.start()
	t.Cleanup(func() {
		w.node.Stop(context.Background())
		storetest.Must(t, w.db.Close())
	})
	return w
}

// start brings up a node; calling it again is a restart of the process.
func (w *world) start() {
	if w.node != nil {
		w.node.Stop(context.Background())
	}
	db, log := w.db, slog.New(slog.DiscardHandler)
	challenges, guards := factor.NewChallenges(db), account.NewPasswordGuards(db)
	sessions := sessionstore.NewSessions(db)
	w.revoked = session.NewRevocations(30*time.Minute, w.now)
	storetest.Must(w.t, w.revoked.Load(w.t.Context(), sessions))
	w.issuer = token.NewIssuer(w.ring, "castellan", "default", w.now, 1000)
	actions := challenge.Actions{}
	commit := session.Revoking{Committer: db, Revocations: w.revoked}
	w.node = cluster.Solo(log)
	book, err := message.NewBook("Castellan", nil)
	storetest.Must(w.t, err)
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), w.policies)
	messenger := &stepup.Messenger{
		Config: stepup.Config{TTL: 600 * time.Second, Grace: 120 * time.Second, ExecWait: 10 * time.Second, MaxOpen: 5,
			Lease: 30 * time.Second, Language: "en",
			Caps: stepup.Caps{DestinationHour: 20, DestinationDay: 50, UserDay: 60}, PrefixHour: 200,
			DialDay: map[string]int{"90": 1000}},
		Catalog: func() *mfa.Catalog { return catalog }, Book: book, Ring: w.ring, Store: challenges,
		Outbox: delivery.NewOutbox(db), Dispatch: w, Now: w.now,
	}
	rules := challenge.DefaultRules()
	rules.FactorAttempts = 15 // which the windows let a stranger reach
	warm := new(actors.WarmCache)
	w.node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: challenges, Outbox: delivery.NewOutbox(db),
		Commit: commit, Actions: actions, Rules: rules, Guessed: messenger.Guessed(rules),
		Accounts: accounts{w.users}, Sessions: w.revoked, Seal: w.ring.Seal, Open: w.ring.Open, Grace: 120 * time.Second,
		Now: w.now, Log: log})...)
	w.client = actors.Client{Node: w.node, WarmCache: warm, Now: w.now}
	messenger.UserGate = w.client
	w.starter = &stepup.Starter{Messenger: messenger, Actions: actions, Accounts: accounts{w.users}, Tokens: w,
		Challenges: w.client, Commit: db}
	w.answers = &stepup.Answerer{Messenger: messenger, Actions: actions, Accounts: accounts{w.users}, Sessions: w.revoked,
		Challenges: w.client}
	w.svc = &replace.Service{Users: w.users, Sessions: sessions, Tokens: sessionstore.NewResetTokens(db), Signer: w.issuer,
		Engine: w.starter, Hasher: w.hasher,
		Policy: password.DefaultPolicy(), Wrong: password.NewGuards(guards, db, replace.WrongRules(), w.now),
		Phones:   password.NewGuards(guards, db, password.Limit(5, 10*time.Minute), w.now),
		Networks: password.NewGuards(guards, db, password.Limit(30, 10*time.Minute), w.now),
		Place:    func(client.Origin) string { return "" }, // all accounts have one address here
		Commit:   commit, Ring: w.ring, TokenTTL: 10 * time.Minute, Now: w.now}
	actions.Register(w.svc.ResetAction())
	actions.Register(w.svc.ChangeAction())
	group := httppassword.Group{Service: w.svc}
	devices := &device.Service{Store: proof.NewDevices(db), Users: w.users, Commit: db, Ring: w.ring,
		Audience: "https://id.example.com", Now: w.now, Log: log}
	w.starter.Devices, w.answers.Devices = devices, devices
	g := auth.Guards{Tokens: w.issuer, Devices: devices, Tenant: "default", Feed: &changetest.Feed{},
		Geo:  &auth.Geo{Filter: w.filterOf, Holder: w.client.Holder},
		Live: w.revoked.Live, Judge: func(string, string, string) resource.Verdict { return resource.Verdict{} }}
	w.srv, err = edge.New(edge.Options{Guards: g.Table(), Authorize: g.Authorize, Now: w.now, Logger: log,
		Dev: true, Timeout: time.Minute, CountryHeader: "x-country",
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")},
		Starter:        auth.Starter{Starts: w.starter, Accounts: accounts{w.users}, Public: group.Public()}},
		slices.Concat(group.Endpoints(), httpchallenge.Group{Answers: w.answers, Now: w.now}.Endpoints()))
	storetest.Must(w.t, err)
}

// add makes an account with password A, changed as asked.
func (w *world) add(n int, change func(*user.Add)) user.User {
	w.t.Helper()
	hash, err := w.hasher.Hash(w.t.Context(), passwordA)
	storetest.Must(w.t, err)
	u := user.New(id.New(w.now()), w.now())
	u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90532%07d", n), fmt.Sprintf("user%06d@gmail.com", n)
	a := user.Add{User: u, PasswordHash: hash}
	if change != nil {
		change(&a)
	}
	storetest.Must(w.t, w.db.Commit(w.t.Context(), a))
	return a.User
}

// login makes a session without further ado and returns its token and its id.
func (w *world) login(u user.User) (xauth, sessionID string) {
	w.t.Helper()
	now := w.now()
	u, err := w.users.Get(w.t.Context(), u.ID)
	storetest.Must(w.t, err)
	s := session.Session{ID: id.New(now), UserID: u.ID, CreatedAt: now, LastSeenAt: now,
		ExpiresAt: now.Add(30 * time.Minute), SV: u.SV}
	storetest.Must(w.t, w.db.Commit(w.t.Context(), session.Add{CV: u.CV, Session: s}))
	xauth, err = w.issuer.Sign(token.Claims{Class: token.XAuth, ID: id.New(now), Subject: u.ID, SessionID: s.ID, SV: u.SV,
		AuthTime: now, IssuedAt: now, ExpiresAt: s.ExpiresAt})
	storetest.Must(w.t, err)
	return xauth, s.ID
}
