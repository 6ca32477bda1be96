// Package flowtest runs challenges as a client meets them: the engine with its actors, guards and tokens over a real
// database. A mailbox replaces the delivery of messages, and the test moves the clock.
//
// Start reading at Both and Engine.Start.
package flowtest

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
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpchallenge "castellan/http/factor/challenge"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
	sessionstore "castellan/persistence/session"
)

// Engine is the engine of challenges, and a client of the sections that it serves.
type Engine struct {
	T          *testing.T
	DB         *persistence.DB
	Keys       *keyring.Keeper
	Ring       *keyring.Ring
	Users      account.Users
	Challenges factor.Challenges
	Hasher     *password.Hasher

	// A test may change these before Start.
	Config   stepup.Config
	Rules    challenge.Rules
	Policies []mfa.Policy
	Filter   geo.Filter // of every account; a decoy has none
	// Section makes the section under test and registers its actions. Its public actions need no session.
	Section func() (section rest.Group, public Public)

	// Start makes these.
	Client  actors.Client
	Starter *stepup.Starter
	Answers *stepup.Answerer
	Actions challenge.Actions
	Commit  session.Revoking
	Revoked *session.Revocations
	Issuer  *token.Issuer
	node    *cluster.Node
	server  *edge.Server

	began     time.Time
	ahead     atomic.Int64 // the clock moves only by this
	mu        sync.Mutex
	codes     map[string]string // method id → last code
	discarded []outbox.Message
	traced    []string
	tracing   bool
}

// Public are actions that start without a session.
type Public = map[string]func(context.Context, challenge.Starter, []byte) (challenge.Started, error)

// Both runs a test with an engine on each database, which counts statements. The test sets Section and calls Start.
func Both(t *testing.T, test func(t *testing.T, e *Engine)) {
	t.Helper()
	for name, dsn := range apitest.Databases {
		t.Run(name, func(t *testing.T) {
			e := &Engine{began: time.Now().Truncate(time.Hour)}
			e.over(t, persistencetest.OpenWith(t, dsn(t), persistence.Options{Now: e.Now,
				Trace: func(_ context.Context, statement string) bool {
					e.mu.Lock()
					defer e.mu.Unlock()
					if e.tracing {
						e.traced = append(e.traced, statement)
					}
					return false
				}}))
			test(t, e)
		})
	}
}

// Over is an engine over a database, at an instant.
func Over(t *testing.T, db *persistence.DB, began time.Time) *Engine {
	e := &Engine{began: began}
	e.over(t, db)
	return e
}

func (e *Engine) over(t *testing.T, db *persistence.DB) {
	t.Helper()
	e.T, e.DB, e.codes = t, db, map[string]string{}
	e.Users, e.Challenges = account.NewUsers(db), factor.NewChallenges(db)
	e.Keys = keyringtest.Keeper(t, e.Now)
	e.Ring = e.Keys.Ring()
	var err error
	e.Hasher, err = password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Slots: 2, Queue: 500, Wait: time.Minute})
	storetest.Must(t, err)
	e.Config = stepup.Config{TTL: 600 * time.Second, Grace: 120 * time.Second, ExecWait: 20 * time.Second, MaxOpen: 5,
		Lease: 30 * time.Second, Language: "en",
		Caps: stepup.Caps{DestinationHour: 20, DestinationDay: 50, UserDay: 60}, PrefixHour: 200,
		DialDay: map[string]int{"90": 1000}}
	e.Rules = challenge.DefaultRules()
	t.Cleanup(e.stop)
}

func (e *Engine) stop() {
	if e.node != nil {
		e.node.Stop(context.Background())
	}
}

func (e *Engine) Now() time.Time { return e.began.Add(time.Duration(e.ahead.Load())) }

// Skip moves the clock.
func (e *Engine) Skip(d time.Duration) { e.ahead.Add(int64(d)) }

// Start brings up a node. Calling it again is a restart of the process.
func (e *Engine) Start() {
	e.T.Helper()
	e.stop()
	log, outbox := slog.New(slog.DiscardHandler), delivery.NewOutbox(e.DB)
	e.Revoked = session.NewRevocations(30*time.Minute, e.Now)
	storetest.Must(e.T, e.Revoked.Load(e.T.Context(), sessionstore.NewSessions(e.DB)))
	e.Issuer = token.NewIssuer(e.Ring, "castellan", "default", e.Now, 1000)
	e.Actions, e.Commit = challenge.Actions{}, session.Revoking{Committer: e.DB, Revocations: e.Revoked}
	e.node = cluster.Solo(log)
	book, err := message.NewBook("Castellan", nil)
	storetest.Must(e.T, err)
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), e.Policies)
	messenger := &stepup.Messenger{Config: e.Config, Catalog: func() *mfa.Catalog { return catalog }, Book: book,
		Ring: e.Ring, Store: e.Challenges, Outbox: outbox, Dispatch: e, Now: e.Now}
	warm := new(actors.WarmCache)
	e.node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: e.Challenges, Outbox: outbox, Commit: e.Commit,
		Actions: e.Actions, Rules: e.Rules, Guessed: messenger.Guessed(e.Rules), Accounts: accounts{e.Users},
		Sessions: e.Revoked, Seal: e.Ring.Seal, Open: e.Ring.Open, Grace: e.Config.Grace, Now: e.Now, Log: log})...)
	e.Client = actors.Client{Node: e.node, WarmCache: warm, Now: e.Now}
	messenger.UserGate = e.Client
	devices := &device.Service{Store: proof.NewDevices(e.DB), Users: e.Users, Commit: e.DB, Ring: e.Ring,
		Audience: "https://id.example.com", Now: e.Now, Log: log}
	e.Starter = &stepup.Starter{Messenger: messenger, Actions: e.Actions, Accounts: accounts{e.Users}, Tokens: e,
		Challenges: e.Client, Commit: e.DB, Devices: devices}
	e.Answers = &stepup.Answerer{Messenger: messenger, Actions: e.Actions, Accounts: accounts{e.Users},
		Sessions: e.Revoked, Challenges: e.Client, Devices: devices}
	if e.Section == nil {
		return
	}
	section, public := e.Section()
	g := auth.Guards{Tokens: e.Issuer, Devices: devices, Geo: e.Geo(), Tenant: "default", Feed: &changetest.Feed{},
		Live: e.Revoked.Live, Judge: func(string, string, string) resource.Verdict { return resource.Verdict{} }}
	e.server, err = edge.New(edge.Options{Guards: g.Table(), Authorize: g.Authorize, Now: e.Now, Logger: log,
		Dev: true, Timeout: time.Minute, CountryHeader: "x-country",
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")},
		Starter:        auth.Starter{Starts: e.Starter, Accounts: accounts{e.Users}, Public: public}},
		slices.Concat(section.Endpoints(), httpchallenge.Group{Answers: e.Answers, Now: e.Now}.Endpoints()))
	storetest.Must(e.T, err)
}

// Geo are the country filters of the guards.
func (e *Engine) Geo() *auth.Geo {
	return &auth.Geo{Holder: e.Client.Holder, Filter: func(userID string) geo.Filter {
		if userID == "" {
			return ""
		}
		return e.Filter
	}}
}

// Bound counts starts: n in ten minutes.
func (e *Engine) Bound(n int) *password.Guards {
	return password.NewGuards(account.NewPasswordGuards(e.DB), e.DB, password.Limit(n, 10*time.Minute), e.Now)
}

// Add makes an account whose phone number ends in n, changed as asked.
func (e *Engine) Add(n int, mail string, change func(*user.Add)) user.User {
	e.T.Helper()
	a := user.Add{User: user.New(id.New(e.Now()), e.Now())}
	a.CountryCode, a.Phone, a.Email = "90", fmt.Sprintf("+90532%07d", n), mail
	if change != nil {
		change(&a)
	}
	storetest.Must(e.T, e.DB.Commit(e.T.Context(), a))
	return a.User
}

type accounts struct{ account.Users }

func (a accounts) Account(ctx context.Context, id string) (challenge.Account, error) {
	u, err := a.Get(ctx, id)
	if err == nil && !u.Active() {
		return challenge.Account{}, fault.New(fault.RecordNotFound, "not active")
	}
	return u.Account(), err
}

// Account is that of an active user.
func (e *Engine) Account(ctx context.Context, id string) (challenge.Account, error) {
	return accounts{e.Users}.Account(ctx, id)
}

// Deliver takes the messages of the engine.
func (e *Engine) Deliver(m outbox.Message, r message.Rendered) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if m.State != outbox.Discarded {
		e.codes[m.MethodID] = r.Code
		return
	}
	if r != (message.Rendered{}) {
		e.T.Error("a discarded message came with its text")
	}
	e.discarded = append(e.discarded, m)
}

// Offers says that every channel has a sender.
func (e *Engine) Offers(message.Channel) bool { return true }

// PAuth signs the token of a challenge.
func (e *Engine) PAuth(challengeID string, until time.Time) (string, error) {
	return e.Issuer.Sign(token.Claims{Class: token.PAuth, ID: id.New(e.Now()), ChallengeID: challengeID,
		IssuedAt: e.Now(), ExpiresAt: until})
}

// Sent is the last code of a method, "" if none was sent.
func (e *Engine) Sent(methodID string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.codes[methodID]
}

// SentAll counts the methods that a code was sent to.
func (e *Engine) SentAll() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.codes)
}

// Forget empties the mailbox.
func (e *Engine) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.codes)
}

// Discarded are the messages that were stored in place of ones that go out.
func (e *Engine) Discarded() []outbox.Message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.discarded)
}

// Trace is every statement made by do.
func (e *Engine) Trace(do func()) []string {
	e.mu.Lock()
	e.tracing, e.traced = true, nil
	e.mu.Unlock()
	do()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tracing = false
	return e.traced
}
