package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
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
	"castellan/domain/kit/fault"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/money/transaction"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/domain/proof/stepup"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpchallenge "castellan/http/factor/challenge"
	httpintegration "castellan/http/people/integration"
	"castellan/http/rest"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
)

// integrationOffice is the site with the engine of challenges and its actors: owners approve
// withdrawals. Its clock can be put forward.
type integrationOffice struct {
	*integrationSite
	ahead   atomic.Int64
	ring    *keyring.Ring
	issuer  *token.Issuer
	revoked *session.Revocations
	starter *stepup.Starter
	store   factor.Challenges

	mu    sync.Mutex
	codes map[string]string // method id → last code
}

func (o *integrationOffice) skip(d time.Duration) { o.ahead.Add(int64(d)) }

// Deliver takes the messages of the engine.
func (o *integrationOffice) Deliver(m outbox.Message, r message.Rendered) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if m.State != outbox.Discarded {
		o.codes[m.MethodID] = r.Code
	}
}

// Offers says that every channel has a sender.
func (o *integrationOffice) Offers(message.Channel) bool { return true }

// PAuth signs the token of a challenge.
func (o *integrationOffice) PAuth(challengeID string, until time.Time) (string, error) {
	now := o.service.Now()
	return o.issuer.Sign(token.Claims{Class: token.PAuth, ID: id.New(now), ChallengeID: challengeID, IssuedAt: now,
		ExpiresAt: until})
}

// Verify accepts the tokens of the issuer beside those of apitest.
func (o *integrationOffice) Verify(class token.Class, raw string) (token.Claims, error) {
	c, err := apitest.Tokens{}.Verify(class, raw)
	if class != token.XAuth || len(raw) > 40 {
		return o.issuer.Verify(class, raw)
	}
	return c, err
}

type owners struct{ account.Users }

func (a owners) Account(ctx context.Context, id string) (challenge.Account, error) {
	u, err := a.Get(ctx, id)
	if err == nil && !u.Active() {
		return challenge.Account{}, fault.New(fault.RecordNotFound, "not active")
	}
	return u.Account(), err
}

// completion is the endpoint that completes challenges.
type completion []rest.Endpoint

func (all completion) Endpoints() []rest.Endpoint {
	return slices.DeleteFunc(slices.Clone(all), func(e rest.Endpoint) bool {
		return e.Path != "/auth/2fa/challenge/complete"
	})
}

// approvals runs a test with owners who approve: kim has 2 BTC, a phone and a mail address.
func approvals(t *testing.T, test func(t *testing.T, o *integrationOffice)) {
	t.Helper()
	withdrawals(t, func(s *integrationSite) {
		s.user("kim", func(u *user.User) {
			u.CountryCode, u.Phone, u.Email = "90", "+905320000001", "kim@example.invalid"
		})
		began := s.service.Now()
		o := &integrationOffice{integrationSite: s, codes: map[string]string{}, store: factor.NewChallenges(s.db)}
		now := func() time.Time { return began.Add(time.Duration(o.ahead.Load())) }
		s.service.Now, s.service.Ledger.Now, s.service.Limits.Now = now, now, now
		o.ring = keyringtest.Keeper(s.t, now).Ring()
		o.issuer = token.NewIssuer(o.ring, "castellan", "t1", now, 100)
		o.revoked = session.NewRevocations(30*time.Minute, now)
		node, log := cluster.Solo(slog.New(slog.DiscardHandler)), slog.New(slog.DiscardHandler)
		book, err := message.NewBook("Castellan", nil)
		storetest.Must(s.t, err)
		catalog := mfa.NewCatalog(mfa.SeedMethods(), mfa.SeedActions(), nil)
		messenger := &stepup.Messenger{
			Config: stepup.Config{TTL: 600 * time.Second, Grace: 120 * time.Second, ExecWait: 20 * time.Second, MaxOpen: 5,
				Lease: 30 * time.Second, Language: "en"},
			Catalog: func() *mfa.Catalog { return catalog }, Book: book, Ring: o.ring, Store: o.store,
			Outbox: delivery.NewOutbox(s.db), Dispatch: o, Now: now}
		actions, warm, accounts := challenge.Actions{}, new(actors.WarmCache), owners{account.NewUsers(s.db)}
		node.Register(actors.Kinds(actors.Deps{WarmCache: warm, Store: o.store, Outbox: delivery.NewOutbox(s.db),
			Commit: session.Revoking{Committer: s.db, Revocations: o.revoked}, Actions: actions,
			Rules: challenge.DefaultRules(), Guessed: messenger.Guessed(challenge.DefaultRules()), Accounts: accounts,
			Sessions: o.revoked, Seal: o.ring.Seal, Open: o.ring.Open, Grace: 120 * time.Second, Now: now, Log: log})...)
		defer func() { node.Stop(context.Background()) }()
		client := actors.Client{Node: node, WarmCache: warm, Now: now}
		messenger.UserGate = client
		o.starter = &stepup.Starter{Messenger: messenger, Actions: actions, Accounts: accounts, Tokens: o,
			Challenges: client, Commit: s.db}
		answers := &stepup.Answerer{Messenger: messenger, Actions: actions, Accounts: accounts, Sessions: o.revoked,
			Challenges: client}
		g := apitest.Guards()
		g.Tokens, g.Live = o, o.revoked.Live
		g.Geo = &auth.Geo{Filter: func(string) geo.Filter { return "" }, Holder: client.Holder}
		g.Service = func(header string, _ netip.Addr) (servicekey.Client, error) {
			if header != "wallet.secret" {
				return servicekey.Client{}, fault.New(fault.Unauthenticated, "no key")
			}
			return servicekey.Client{Name: "wallet", Role: "wallet"}, nil
		}
		g.JudgeRole = func(string, string, string) resource.Verdict { return resource.Verdict{Permission: resource.Allow} }
		group := httpintegration.Withdrawals{Service: s.service, HotWallet: 6, TimeOut: 7,
			Approvals: &transaction.Approvals{Withdrawals: s.service, Engine: o.starter, Account: accounts.Account},
			Owner: func(ctx context.Context, who rest.Caller, raw string) (string, challenge.Starter, error) {
				c, err := g.Session(ctx, raw)
				from := auth.From(who)
				from.SessionID, from.IP = c.SessionID, "203.0.113.7"
				return c.Subject, from, err
			}}
		actions.Register(group.Action())
		repeats := &auth.Idempotent{Store: kit.NewIdempotency(s.db), Commit: s.db, Now: now, Ring: o.ring}
		s.Site = apitest.Serve(s.t, edge.Options{Guards: g.Table(), Authorize: g.Authorize, Now: now, Logger: log,
			Idempotency: repeats, Timeout: time.Minute}, group,
			completion(httpchallenge.Group{Answers: answers, Now: now}.Endpoints())).As("nobody")
		test(s.t, o)
	})
}

// token is an x-auth token of a session of a user.
func (o *integrationOffice) token(userID, sessionID string, edit ...func(*token.Claims)) string {
	o.t.Helper()
	now := o.service.Now()
	c := token.Claims{Class: token.XAuth, ID: id.New(now), Subject: userID, SessionID: sessionID, Roles: []string{"user"},
		AMR: []string{"pwd"}, AuthTime: now, IssuedAt: now, ExpiresAt: now.Add(30 * time.Minute)}
	for _, e := range edit {
		e(&c)
	}
	raw, err := o.issuer.Sign(c)
	storetest.Must(o.t, err)
	return raw
}

// owned is a request of kim under an external id, with fields replaced.
func (o *integrationOffice) owned(externalID string, with ...string) string {
	return withBody(externalID, append([]string{"userId", "", "userToken", `"` + o.token("kim", "s1") + `"`}, with...)...)
}

// approval is an answer of a request.
type approval struct {
	status int
	code   string
	header http.Header
	answer string

	Data      *struct{ ID, Status string }
	Challenge *struct {
		ChallengeID, Status string
		Expire              int64
		MethodList          []struct {
			ID, Name string
			Expire   int64
		}
	}
}

// ask sends a request as the wallet.
func (o *integrationOffice) ask(body string) (a approval) {
	res, answer := o.Send(requests, body, "service-auth", "wallet.secret")
	a.status, a.header, a.answer = res.StatusCode, res.Header, answer
	if a.status != 200 {
		a.code = apitest.Refusal(answer)
		return a
	}
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		o.t.Errorf("%s: %v", answer, err)
	}
	return a
}

// started is a request that starts a challenge.
func (o *integrationOffice) started(body string) approval {
	o.t.Helper()
	a := o.ask(body)
	if a.status != 200 || a.Challenge == nil || a.Data != nil || a.header.Get("p-auth") == "" {
		o.t.Fatalf("%d %s", a.status, a.answer)
	}
	return a
}

// outcome is the answer of the last completion.
type outcome struct {
	Action     string
	ExecResult struct {
		Success bool
		Code    string
		Data    json.RawMessage
	}
}

// complete answers the SMS of a challenge with its code.
func (o *integrationOffice) complete(a approval) (status int, got outcome, answer string) {
	for _, m := range a.Challenge.MethodList {
		if m.Name != "SMS" {
			continue
		}
		o.mu.Lock()
		code := o.codes[m.ID]
		o.mu.Unlock()
		res, answer := o.Send("POST /auth/2fa/challenge/complete", fmt.Sprintf(`{"methodId":%q,"method":"SMS","value":%q}`,
			m.ID, code), "p-auth", a.header.Get("p-auth"))
		if res.StatusCode == 200 {
			if err := json.Unmarshal([]byte(answer), &got); err != nil {
				o.t.Errorf("%s: %v", answer, err)
			}
		}
		return res.StatusCode, got, answer
	}
	o.t.Errorf("no SMS in %s", a.answer)
	return 0, got, ""
}

// ends completes a challenge whose execution ends with a code; "" is a success.
func (o *integrationOffice) ends(a approval, code string) outcome {
	o.t.Helper()
	status, got, answer := o.complete(a)
	if status != 200 || got.Action != "WITHDRAW" || got.ExecResult.Success != (code == "") || got.ExecResult.Code != code {
		o.t.Fatalf("%d %s, want %q", status, answer, code)
	}
	return got
}
