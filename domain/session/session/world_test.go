package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/session/session"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

// bench is the service over a real database, with an engine that only writes rows and a record of the database calls
// in order.
type bench struct {
	t      *testing.T
	db     *persistence.DB
	users  account.Users
	hasher *password.Hasher
	svc    *session.Service
	now    time.Time
	exempt []netip.Prefix

	mu    sync.Mutex
	trace []string

	starts []challenge.StartRequest
	refuse error           // the engine's answer instead
	before func(calls int) // called before the engine commits
	after  func()          // called after a commit
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db := persistencetest.SQLite(t)
	b := &bench{t: t, db: db, users: account.NewUsers(db), now: time.Now()}
	var err error
	b.hasher, err = password.NewHasher(password.HasherOptions{Params: cheap, Slots: 2, Queue: 500})
	storetest.Must(t, err)
	b.svc = b.service()
	return b
}

// service is another node on the same database.
func (b *bench) service() *session.Service {
	clock := func() time.Time { return b.now }
	return &session.Service{Users: users{b.users, b}, Sessions: sessionstore.NewSessions(b.db), Hasher: b.hasher,
		Guards: password.NewGuards(guards{account.NewPasswordGuards(b.db), b}, committer{b}, password.DefaultGuardRules(),
			clock),
		Spray:  password.NewSpray(ratelimit.NewTable(clock), 120, b.exempt, clock),
		Starts: engine{b}, Notices: notices{b}, Commit: committer{b}, Tokens: signer{},
		Revocations: session.NewRevocations(30*time.Minute, clock),
		Conceal:     func(s string) string { return "hmac(" + s + ")" }, Former: func(string) []string { return nil },
		Place:  func(from client.Origin) string { return from.Site },
		Admits: func(user.User, challenge.Starter) bool { return true }, TokenTTL: 30 * time.Minute, Now: clock}
}

// add creates an account with the password, modified by change.
func (b *bench) add(n int, change func(*user.Add)) user.User {
	b.t.Helper()
	hash := storetest.Value(b.hasher.Hash(b.t.Context(), secret))(b.t)
	u := user.New(id.New(b.now), b.now)
	u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90532%07d", n), fmt.Sprintf("user%d@example.com", n)
	a := user.Add{User: u, PasswordHash: hash}
	if change != nil {
		change(&a)
	}
	storetest.Must(b.t, b.db.Commit(b.t.Context(), a))
	return a.User
}

func (b *bench) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trace = append(b.trace, fmt.Sprintf(format, args...))
}

func (b *bench) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := strings.Join(b.trace, " · ")
	b.trace = nil
	return s
}

type users struct {
	account.Users
	b *bench
}

func (u users) Login(ctx context.Context, who user.Identifier, nobody string) (user.Entrance, error) {
	u.b.note("select user and guard")
	return u.Users.Login(ctx, who, nobody)
}

type guards struct {
	account.PasswordGuards
	b *bench
}

func (g guards) Guard(ctx context.Context, key string) (password.Guard, error) {
	g.b.note("select guard")
	return g.PasswordGuards.Guard(ctx, key)
}

type committer struct{ b *bench }

func (c committer) Commit(ctx context.Context, ws ...commit.Write) error {
	var names []string
	for _, w := range ws {
		names = append(names, w.Table())
	}
	c.b.note("commit %s", strings.Join(names, "+"))
	err := c.b.db.Commit(ctx, ws...)
	if c.b.after != nil {
		c.b.after()
	}
	return err
}

func (c committer) InTx(ctx context.Context, fn func(context.Context) error) error {
	return c.b.db.InTx(ctx, fn)
}

// engine starts challenges like the real one, as far as a login can see: guarded by the given credentials, and with
// the given writes.
type engine struct{ b *bench }

func (e engine) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	b := e.b
	b.mu.Lock()
	b.starts = append(b.starts, r)
	calls := len(b.starts)
	b.mu.Unlock()
	if b.refuse != nil {
		b.note("engine refuses")
		return challenge.Started{}, b.refuse
	}
	if b.before != nil {
		b.before(calls)
	}
	c := challenge.Challenge{ID: id.New(b.now), UserID: r.Account.UserID, Action: r.Action, Flow: challenge.FlowLogin,
		CreatedAt: b.now.UnixMilli(),
		ExpiresAt: b.now.Add(10 * time.Minute).UnixMilli(), Body: challenge.Body{CV: r.Account.CV, SV: r.Account.SV,
			Starter: r.Starter,
			Methods: []challenge.Method{{ID: "m1", Name: challenge.SMS, Order: 1}, {ID: "m2", Name: challenge.MAIL}}}}
	ws := append([]commit.Write{commit.Guard{On: commit.UserCredentials, Key: r.Account.UserID, Version: r.Account.CV},
		challenge.Insert{Challenge: c, Command: r.Command}}, r.With...)
	b.note("engine commits")
	return challenge.Started{Challenge: c, PAuth: "p-auth of " + c.ID}, b.db.Commit(ctx, ws...)
}

// notices records the notices of tries; for logins it creates rows.
type notices struct{ b *bench }

func (n notices) Notice(to challenge.Account, k message.Kind, v message.Values, ip string) []commit.Write {
	if k == message.NewNetwork {
		return challengetest.Notices{Now: n.b.svc.Now}.Notice(to, k, v, ip)
	}
	n.b.note("tell %s %s", to.Mail, k)
	return nil
}

// signer writes claims in plain text.
type signer struct{}

func (signer) Sign(c token.Claims) (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

var here = netip.MustParseAddr("203.0.113.9")

// by and mailed are the two ways to identify a user at login.
func by(countryCode, phone string) user.Identifier {
	who, _ := user.Identify(&countryCode, &phone, nil)
	return who
}

func mailed(address string) user.Identifier {
	who, _ := user.Identify(nil, nil, &address)
	return who
}

func request(n int, pass string) session.LoginRequest {
	return session.LoginRequest{Who: by("90", fmt.Sprintf("532%07d", n)), Password: pass, Origin: client.From(here),
		Starter: challenge.Starter{IP: here.String(), Country: "TR", Brand: "Acme", Model: "X", Description: "phone",
			RequestID: "r1", Language: "tr"}}
}

func (b *bench) guard(key string) password.Guard {
	b.t.Helper()
	return storetest.Value(account.NewPasswordGuards(b.db).Guard(b.t.Context(), key))(b.t)
}

func (b *bench) history(u user.User) []session.Login {
	b.t.Helper()
	l, err := sessionstore.NewSessions(b.db).Logins(b.t.Context(), u.ID, page.Query[session.LoginPlace]{})
	storetest.Must(b.t, err)
	return l.Records
}
