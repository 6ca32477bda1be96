package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
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
	"castellan/domain/kit/admin"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/client"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/richtext"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/office/contract"
	"castellan/domain/people/registration"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/device"
	"castellan/domain/proof/stepup"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpchallenge "castellan/http/factor/challenge"
	httpregistration "castellan/http/people/registration"
	"castellan/internal/apidoc"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/office"
	"castellan/persistence/proof"
	sessionstore "castellan/persistence/session"
)

const secret = "kedi7şeker"

// world is the section over a real database, with the engine, its actors and the tokens of the
// program. A mailbox replaces the delivery, and a test can advance the clock.
type world struct {
	t         *testing.T
	db        *persistence.DB
	ring      *keyring.Ring
	users     account.Users
	contracts office.Contracts
	began     time.Time
	ahead     atomic.Int64

	node    *cluster.Node
	client  actors.Client
	starter *stepup.Starter
	issuer  *token.Issuer
	signups *registration.SignUps
	hasher  *password.Hasher
	srv     *edge.Server
	enabled bool

	mu        sync.Mutex
	codes     map[string]string // method id → last code
	discarded []outbox.Message
	traced    []string
	tracing   bool
}

func (w *world) now() time.Time { return w.began.Add(time.Duration(w.ahead.Load())) }

func (w *world) skip(d time.Duration) { w.ahead.Add(int64(d)) }

// Deliver takes the messages of the engine.
func (w *world) Deliver(m outbox.Message, r message.Rendered) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.State == outbox.Discarded {
		w.discarded = append(w.discarded, m)
		return
	}
	w.codes[m.MethodID] = r.Code
}

// Offers says that every channel has a sender.
func (w *world) Offers(message.Channel) bool { return true }

// PAuth signs the token of a challenge.
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

func registrationBoth(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, dsn := range apitest.Databases {
		t.Run(name, func(t *testing.T) { test(t, open(t, dsn(t))) })
	}
}

func open(t *testing.T, dsn string) *world {
	t.Helper()
	w := &world{t: t, began: time.Now().Truncate(time.Hour), codes: map[string]string{}, enabled: true}
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
	w.users, w.contracts = account.NewUsers(w.db), office.NewContracts(w.db)
	storetest.Must(t, w.db.InTx(t.Context(), func(ctx context.Context) error { return contract.Seed(ctx, w.contracts) }))
	w.ring = keyringtest.Keeper(t, w.now).Ring()
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
	revoked := session.NewRevocations(30*time.Minute, w.now)
	w.issuer = token.NewIssuer(w.ring, "castellan", "default", w.now, 1000)
	actions, commit := challenge.Actions{}, session.Revoking{Committer: db, Revocations: revoked}
	w.node = cluster.Solo(log)
	book, err := message.NewBook("Castellan", nil)
	storetest.Must(w.t, err)
	catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), nil)
	messenger := &stepup.Messenger{
		Config: stepup.Config{TTL: 600 * time.Second, Grace: 120 * time.Second, ExecWait: 10 * time.Second, MaxOpen: 5,
			Lease: 30 * time.Second, Language: "en",
			Caps: stepup.Caps{DestinationHour: 20, DestinationDay: 50, UserDay: 60}, PrefixHour: 200,
			DialDay: map[string]int{"90": 1000}},
		Catalog: func() *mfa.Catalog { return catalog }, Book: book, Ring: w.ring, Store: challenges,
		Outbox: delivery.NewOutbox(db), Dispatch: w, Now: w.now,
	}
	rules, warm := challenge.DefaultRules(), new(actors.WarmCache)
	w.node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: challenges, Outbox: delivery.NewOutbox(db),
		Commit: commit, Actions: actions, Rules: rules, Guessed: messenger.Guessed(rules),
		Accounts: accounts{w.users}, Sessions: revoked, Seal: w.ring.Seal, Open: w.ring.Open, Grace: 120 * time.Second,
		Now: w.now, Log: log})...)
	w.client = actors.Client{Node: w.node, WarmCache: warm, Now: w.now}
	messenger.UserGate = w.client
	w.starter = &stepup.Starter{Messenger: messenger, Actions: actions, Accounts: accounts{w.users}, Tokens: w,
		Challenges: w.client, Commit: db}
	answers := &stepup.Answerer{Messenger: messenger, Actions: actions, Accounts: accounts{w.users}, Sessions: revoked,
		Challenges: w.client}
	logins := &session.Service{Users: w.users, Sessions: sessions, Commit: db, Tokens: w.issuer, Notices: w.starter,
		TokenTTL: 30 * time.Minute, Now: w.now}
	bound := func(n int) *password.Guards {
		return password.NewGuards(guards, db, password.Limit(n, 10*time.Minute), w.now)
	}
	w.signups = &registration.SignUps{Users: w.users, Contracts: w.contracts, Engine: w.starter, First: logins.First,
		Hasher: w.hasher, Policy: password.DefaultPolicy(), Commit: commit,
		Starts: &registration.Bounds{Networks: bound(30), Phones: bound(5), Mails: bound(5)},
		Place:  func(client.Origin) string { return "" }, Now: w.now}
	actions.Register(w.signups.Action())
	group := httpregistration.Group{Service: w.signups, Enabled: w.enabled, Contracts: &contract.Service{
		Store: w.contracts, HTML: richtext.New(""), Changes: admin.Changes{Commit: db, Now: w.now, Lock: w.contracts.Lock}}}
	devices := &device.Service{Store: proof.NewDevices(db), Users: w.users, Commit: db, Ring: w.ring,
		Audience: "https://id.example.com", Now: w.now, Log: log}
	g := auth.Guards{Tokens: w.issuer, Devices: devices, Geo: &auth.Geo{Filter: func(string) geo.Filter { return "" },
		Holder: w.client.Holder}, Tenant: "default", Feed: &changetest.Feed{}, Live: revoked.Live,
		Judge: func(string, string, string) resource.Verdict { return resource.Verdict{} }}
	w.srv, err = edge.New(edge.Options{Guards: g.Table(), Authorize: g.Authorize, Now: w.now, Logger: log,
		Dev: true, Timeout: time.Minute, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")},
		Starter: auth.Starter{Starts: w.starter, Accounts: accounts{w.users}, Public: group.Public()}},
		slices.Concat(group.Endpoints(), httpchallenge.Group{Answers: answers, Now: w.now}.Endpoints()))
	storetest.Must(w.t, err)
}

// add makes an account, changed as asked.
func (w *world) add(n int, change func(*user.User)) user.User {
	w.t.Helper()
	u := user.New(id.New(w.now()), w.now())
	u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90532%07d", n), mail(n)
	if change != nil {
		change(&u)
	}
	storetest.Must(w.t, w.db.Commit(w.t.Context(), user.Add{User: u}))
	return u
}

// mail is as long as the address that is sealed in the place of an owner's.
func mail(n int) string { return fmt.Sprintf("user%05d@example.invalid", n) }

// answer is what a request came to.
type answer struct {
	status int
	header http.Header
	body   string
}

// is checks status and error code; "" is a success.
func (a answer) is(t *testing.T, status int, code string) answer {
	t.Helper()
	var m struct{ Code string }
	json.Unmarshal([]byte(a.body), &m)
	if a.status != status || m.Code != code {
		t.Fatalf("%d %s, want %d %q", a.status, a.body, status, code)
	}
	return a
}

// call makes a request; headers are pairs.
func (w *world) call(method, path string, body any, headers ...string) answer {
	w.skip(time.Millisecond)
	var text []byte
	if body != nil {
		text, _ = json.Marshal(body)
	}
	r := httptest.NewRequest(method, path, strings.NewReader(string(text)))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := apidoc.Test(w.srv.App, r)
	if err != nil {
		w.t.Error(err)
		return answer{}
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b)}
}

// form is a sign-up with the phone number p and the mail address m.
func form(p, m int) map[string]any {
	return map[string]any{"countryCode": "90", "phoneNumber": fmt.Sprintf("532%07d", p), "email": mail(m),
		"name": "Ece", "surname": "Kaya", "password": secret, "passwordVerify": secret, "contracts": []int{1, 2}}
}

func (w *world) register(body any, headers ...string) answer {
	return w.call("POST", "/auth/register", body, headers...)
}

// flow is a challenge as the client knows it.
type flow struct {
	ChallengeID string
	pauth       string
	methods     map[string]method
}

type method struct{ ID, Name, Hint string }

func (w *world) flow(a answer) flow {
	w.t.Helper()
	a.is(w.t, 200, "")
	var in struct {
		Challenge struct {
			ChallengeID string
			MethodList  []method
		}
	}
	storetest.Must(w.t, json.Unmarshal([]byte(a.body), &in))
	f := flow{in.Challenge.ChallengeID, a.header.Get("p-auth"), map[string]method{}}
	for _, m := range in.Challenge.MethodList {
		f.methods[m.Name] = m
	}
	return f
}

func (w *world) code(f flow, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.codes[f.methods[name].ID]
}

func (w *world) complete(f flow, name, value string) answer {
	return w.call("POST", "/auth/2fa/challenge/complete", map[string]string{"methodId": f.methods[name].ID, "method": name,
		"value": value}, "p-auth", f.pauth)
}

func (w *world) renew(f flow, name string) answer {
	return w.call("POST", "/auth/2fa/challenge/renew", map[string]string{"methodId": f.methods[name].ID, "method": name},
		"p-auth", f.pauth)
}

func (w *world) result(f flow) answer {
	return w.call("GET", "/auth/2fa/challenge/result", nil, "p-auth", f.pauth)
}

func (w *world) wrong(f flow, name string) answer {
	value := "000000"
	if w.code(f, name) == value {
		value = "000001"
	}
	return w.complete(f, name, value)
}

// tracedSoFar is the number of statements of the running trace; actors of earlier steps may add to it.
func (w *world) tracedSoFar() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.traced)
}

// trace is every statement made by do.
func (w *world) trace(do func()) []string {
	w.mu.Lock()
	w.tracing, w.traced = true, nil
	w.mu.Unlock()
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tracing = false
	return w.traced
}
