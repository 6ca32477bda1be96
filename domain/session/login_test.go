package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/challenge"
	"castellan/domain/client"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/id"
	"castellan/domain/password"
	"castellan/domain/session"
	"castellan/domain/token"
	"castellan/domain/user"
	"castellan/persistence"
)

const secret = "kedi7şeker"

var cheap = password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}

// bench is the service over a real database, an engine that only writes rows,
// and a record of what was asked of the database in which order.
type bench struct {
	t      *testing.T
	db     *persistence.DB
	users  persistence.Users
	hasher *password.Hasher
	svc    *session.Service
	now    time.Time

	mu    sync.Mutex
	trace []string

	starts []challenge.StartRequest
	refuse error           // what the engine answers instead
	before func(calls int) // called before the engine commits
	after  func()          // called after a commit
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := persistence.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "test.db"), persistence.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	_, err = db.Migrate(t.Context())
	must(t, err)
	db.Start([]byte("audit key of the test"), "test")
	b := &bench{t: t, db: db, users: persistence.NewUsers(db), now: time.Now()}
	b.hasher, err = password.NewHasher(password.HasherOptions{Params: cheap, Slots: 2, Queue: 500})
	must(t, err)
	b.svc = b.service()
	return b
}

// service is another node on the same database.
func (b *bench) service() *session.Service {
	clock := func() time.Time { return b.now }
	return &session.Service{Users: users{b.users, b}, Sessions: persistence.NewSessions(b.db), Hasher: b.hasher,
		Guards: password.NewGuards(guards{persistence.NewPasswordGuards(b.db), b}, committer{b}, password.DefaultGuardRules(), clock),
		Starts: engine{b}, Commit: committer{b}, Tokens: signer{}, Revocations: session.NewRevocations(30*time.Minute, clock),
		Conceal: func(s string) string { return fmt.Sprintf("hmac(%d)", len(s)) }, TokenTTL: 30 * time.Minute, Now: clock}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// add makes an account with the password, changed as asked.
func (b *bench) add(n int, change func(*user.Add)) user.User {
	b.t.Helper()
	hash, err := b.hasher.Hash(b.t.Context(), secret)
	must(b.t, err)
	u := user.New(id.New(b.now), b.now)
	u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+90532%07d", n), fmt.Sprintf("user%d@example.com", n)
	a := user.Add{User: u, PasswordHash: hash}
	if change != nil {
		change(&a)
	}
	must(b.t, b.db.Commit(b.t.Context(), a))
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
	persistence.Users
	b *bench
}

func (u users) Login(ctx context.Context, who user.Identifier, nobody string) (user.Entrance, error) {
	u.b.note("select user and guard")
	return u.Users.Login(ctx, who, nobody)
}

type guards struct {
	persistence.PasswordGuards
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

// engine starts challenges as the real one does, as far as a login can see:
// guarded by the credentials it was told, and with the writes it was given.
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
	c := challenge.Challenge{ID: id.New(b.now), UserID: r.Account.UserID, Action: r.Action, Flow: challenge.FlowLogin, CreatedAt: b.now.UnixMilli(),
		ExpiresAt: b.now.Add(10 * time.Minute).UnixMilli(), Body: challenge.Body{CV: r.Account.CV, SV: r.Account.SV, Starter: r.Starter,
			Methods: []challenge.Method{{ID: "m1", Name: challenge.SMS, Order: 1}, {ID: "m2", Name: challenge.MAIL}}}}
	ws := append([]commit.Write{commit.Guard{On: commit.UserCredentials, Key: r.Account.UserID, Version: r.Account.CV},
		challenge.Insert{Challenge: c, Command: r.Command}}, r.With...)
	b.note("engine commits")
	return challenge.Started{Challenge: c, PAuth: "p-auth of " + c.ID}, b.db.Commit(ctx, ws...)
}

// signer writes claims down in the clear.
type signer struct{}

func (signer) Sign(c token.Claims) (string, error) {
	b, err := json.Marshal(c)
	return string(b), err
}

var here = netip.MustParseAddr("203.0.113.9")

// by and mailed are the two ways to say who logs in.
func by(countryCode, phone string) user.Identifier {
	who, _ := user.Identify(&countryCode, &phone, nil)
	return who
}

func mailed(address string) user.Identifier {
	who, _ := user.Identify(nil, nil, &address)
	return who
}

func request(n int, pass string) session.LoginRequest {
	return session.LoginRequest{Who: by("90", fmt.Sprintf("532%07d", n)), Password: pass, IP: here,
		Starter: challenge.Starter{IP: here.String(), Country: "TR", Brand: "Acme", Model: "X", Description: "phone", RequestID: "r1", Language: "tr"}}
}

func (b *bench) guard(key string) password.Guard {
	b.t.Helper()
	g, err := persistence.NewPasswordGuards(b.db).Guard(b.t.Context(), key)
	must(b.t, err)
	return g
}

func (b *bench) history(u user.User) []session.Login {
	b.t.Helper()
	l, err := persistence.NewSessions(b.db).Logins(b.t.Context(), u.ID, 1000)
	must(b.t, err)
	return l
}

func TestLoginStartsAChallenge(t *testing.T) {
	b := newBench(t)
	u := b.add(1, func(a *user.Add) { a.Roles = []string{"auditor"} })
	for i, spell := range []func(*session.LoginRequest){
		func(*session.LoginRequest) {},
		func(r *session.LoginRequest) { r.Who = by("+90", "5320000001") },
		func(r *session.LoginRequest) { r.Who = by("0090", "0532 000 00 01") },
		func(r *session.LoginRequest) { r.Who = by("090", "(532) 000-0001") },
		func(r *session.LoginRequest) { r.Who = mailed(" User1@Example.COM ") },
		func(r *session.LoginRequest) { r.Password = "kedi7s\u0327eker"; r.DeviceID = "dev-1" },
	} {
		r := request(1, secret)
		spell(&r)
		b.take()
		started, err := b.svc.Login(t.Context(), r)
		if err != nil || started.Challenge.UserID != u.ID || !strings.HasPrefix(started.PAuth, "p-auth") {
			t.Fatalf("spelling %d: %v", i, err)
		}
		if got, want := b.take(), "select user and guard · commit password_guard+unflushed · engine commits"; got != want {
			t.Errorf("spelling %d costs %s", i, got)
		}
		s := b.starts[i]
		if s.Action != "LOGIN" || !s.Proven || s.Account != u.Account() || s.Starter != r.Starter || len(s.With) != 1 {
			t.Errorf("spelling %d starts %+v", i, s)
		}
		if strings.Contains(string(s.Command), "kedi") {
			t.Errorf("the command holds the password: %s", s.Command)
		}
	}
	if g := b.guard(u.ID); len(g.Tries) != 0 || len(g.Good) != 1 || g.Good[0].Prefix != client.Prefix(here) {
		t.Errorf("guard after right passwords: %+v", g)
	}
	if l := b.history(u); len(l) != 0 {
		t.Errorf("a login is in the history before it is complete: %+v", l)
	}
}

// Nothing tells the kinds of refusal apart: not the answer, not what it costs.
func TestRefusalsAreAlike(t *testing.T) {
	b := newBench(t)
	b.add(1, nil)
	b.add(2, func(a *user.Add) { a.Status = user.Blocked })
	b.add(3, func(a *user.Add) { a.Demo = true })
	b.add(4, func(a *user.Add) { a.PasswordHash = "" })
	b.add(5, func(a *user.Add) { a.Language = "ar" })
	b.svc.Admits = func(u user.User, from challenge.Starter) bool { return u.Language != "ar" || from.Country != "TR" }
	unknownMail := request(9, secret)
	unknownMail.Who = mailed("nobody@example.com")
	for name, r := range map[string]session.LoginRequest{
		"wrong": request(1, "kedi7şekeR"), "unknown": request(9, secret), "unknown mail": unknownMail, "blocked": request(2, secret),
		"demo": request(3, secret), "no password": request(4, secret), "country": request(5, secret), "too long": request(1, strings.Repeat("x", 5000)),
	} {
		b.take()
		_, err := b.svc.Login(t.Context(), r)
		e, _ := err.(*fault.Error)
		if e == nil || e.Code != fault.InvalidCredentials || e.Message != "the identifier or the password is wrong" || e.Field != "" || e.RetryAfter != 0 {
			t.Errorf("%s: %v", name, err)
		}
		if got, want := b.take(), "select user and guard · commit password_guard+unflushed · commit audit+login_history"; got != want {
			t.Errorf("%s costs %s", name, got)
		}
	}
	if len(b.starts) != 0 {
		t.Errorf("%d challenges were started", len(b.starts))
	}
	rows, err := persistence.NewSessions(b.db).LoginsFrom(t.Context(), here.String(), 100)
	must(t, err)
	for _, l := range rows {
		if l.Success || l.Brand != "Acme" || l.Country != "TR" {
			t.Errorf("history %+v", l)
		}
	}
	if n, err := b.db.VerifyAudit(t.Context(), []byte("audit key of the test")); n != 8 || len(rows) != 8 || err != nil {
		t.Errorf("%d audit rows and %d lines of history, %v", n, len(rows), err)
	}
	b.svc.Dev = true
	if _, err := b.svc.Login(t.Context(), request(3, secret)); err != nil {
		t.Errorf("a demo account in development mode: %v", err)
	}
}

func TestWrongPasswordsAreCounted(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	spellings := []string{"90", "+90", "0090", "090"}
	for i := range 10 {
		r := request(1, "wrong password")
		r.Who = by(spellings[i%4], "5320000001")
		if _, err := b.svc.Login(t.Context(), r); fault.CodeOf(err) != fault.InvalidCredentials {
			t.Fatalf("try %d: %v", i+1, err)
		}
	}
	node := b.service() // a restart, or another node
	b.take()
	_, err := node.Login(t.Context(), request(1, secret))
	e, _ := err.(*fault.Error)
	if e == nil || e.Code != fault.RateLimited || e.RetryAfter != 15*time.Minute {
		t.Fatalf("the right password after ten wrong ones: %v", err)
	}
	if got := b.take(); got != "select user and guard · select guard" {
		t.Errorf("a refused try costs %s", got)
	}
	mail := request(1, secret)
	mail.Who = mailed(u.Email)
	if _, err := node.Login(t.Context(), mail); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("by the other identifier: %v", err)
	}
	elsewhere := request(1, secret)
	elsewhere.IP = netip.MustParseAddr("2001:db8::1")
	if _, err := node.Login(t.Context(), elsewhere); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	must(t, b.db.Commit(t.Context(), password.ClearGuard{Key: u.ID}))
	if _, err := node.Login(t.Context(), request(1, secret)); err != nil {
		t.Errorf("after the unlock: %v", err)
	}
	b.now = b.now.Add(15 * time.Minute)
	for i := range 11 { // nobody has this number; it is counted all the same
		_, err := node.Login(t.Context(), request(77, "wrong password"))
		if want := map[bool]fault.Code{true: fault.InvalidCredentials, false: fault.RateLimited}[i < 10]; fault.CodeOf(err) != want {
			t.Errorf("try %d for an unknown number: %v", i+1, err)
		}
	}
}

// Two hundred guesses at once are ten guesses.
func TestGuessesUnderRace(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	nodes := []*session.Service{b.svc, b.service()}
	var wrong, limited atomic.Int32
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			_, err := nodes[i%2].Login(t.Context(), request(1, "wrong password"))
			switch fault.CodeOf(err) {
			case fault.InvalidCredentials:
				wrong.Add(1)
			case fault.RateLimited:
				limited.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if wrong.Load() != 10 || limited.Load() != 190 || len(b.history(u)) != 10 {
		t.Errorf("%d judged, %d refused, %d in the history", wrong.Load(), limited.Load(), len(b.history(u)))
	}
}

// An office logs in at once: right passwords count nothing.
func TestLoginsUnderRace(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := b.svc.Login(t.Context(), request(1, secret)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if g := b.guard(u.ID); len(g.Tries) != 0 || len(b.starts) != 40 {
		t.Errorf("%d tries are left, %d challenges", len(g.Tries), len(b.starts))
	}
}

func TestOverload(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	full, err := password.NewHasher(password.HasherOptions{Params: cheap, Slots: 1})
	must(t, err)
	place, err := full.Admit()
	must(t, err)
	b.svc.Hasher = full
	if _, err := b.svc.Login(t.Context(), request(1, secret)); fault.CodeOf(err) != fault.Overloaded || b.take() != "" {
		t.Errorf("no place: %v, or the database was asked", err)
	}
	place.Leave()
	ctx, cancel := context.WithCancel(t.Context())
	b.after = cancel // the client goes away between count and hash
	if _, err := b.svc.Login(ctx, request(1, secret)); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who went away: %v", err)
	}
	if g := b.guard(u.ID); len(g.Tries) != 0 || g.Version != 2 {
		t.Errorf("a try that was not judged counts: %+v", g)
	}
}

func TestEngineRefuses(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	for _, code := range []fault.Code{fault.MFANotAvailable, fault.RateLimited, fault.Unavailable} {
		b.refuse = fault.New(code, "no")
		for range 12 { // the password was right each time
			if _, err := b.svc.Login(t.Context(), request(1, secret)); !errors.Is(err, b.refuse) {
				t.Fatalf("%s: %v", code, err)
			}
		}
	}
	if g := b.guard(u.ID); len(g.Tries) != 0 || len(g.Good) != 1 {
		t.Errorf("right passwords were counted: %+v", g)
	}
}

func TestAccountMovesOnMeanwhile(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	b.before = func(calls int) {
		if calls == 1 { // a device was added: the password is the same
			must(t, b.db.Commit(t.Context(), user.Touch{UserID: u.ID}))
		}
	}
	if _, err := b.svc.Login(t.Context(), request(1, secret)); err != nil || len(b.starts) != 2 || b.starts[1].Account.CV != 2 {
		t.Fatalf("%v after %d starts", err, len(b.starts))
	}
	for n, change := range []func(u user.User) commit.Write{
		func(u user.User) commit.Write { return user.SetPassword{UserID: u.ID, CV: 1, Hash: "other"} },
		func(u user.User) commit.Write { return user.SetStatus{UserID: u.ID, Status: user.Blocked} },
		func(u user.User) commit.Write { return user.SetCountries{UserID: u.ID, CV: 1, Countries: "TR"} },
	} {
		u := b.add(2+n, nil)
		b.svc.Admits = func(u user.User, _ challenge.Starter) bool { return u.Countries == "" }
		b.starts = nil
		b.before = func(int) { must(t, b.db.Commit(t.Context(), change(u))) }
		if _, err := b.svc.Login(t.Context(), request(2+n, secret)); fault.CodeOf(err) != fault.InvalidCredentials || len(b.starts) != 1 {
			t.Errorf("%T: %v after %d starts", change(u), err, len(b.starts))
		}
		if g := b.guard(u.ID); len(g.Tries) != 1 {
			t.Errorf("%T: %d tries count", change(u), len(g.Tries))
		}
	}
}

func TestOldParametersAreReplaced(t *testing.T) {
	b := newBench(t)
	old, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 32, Passes: 1, Lanes: 1}})
	must(t, err)
	hash, err := old.Hash(t.Context(), secret)
	must(t, err)
	u := b.add(1, func(a *user.Add) { a.PasswordHash = hash })
	if _, err := b.svc.Login(t.Context(), request(1, "wrong password")); fault.CodeOf(err) != fault.InvalidCredentials {
		t.Fatal(err)
	}
	if s, _ := b.users.Secret(t.Context(), u.ID); s.Hash != hash {
		t.Error("a wrong password replaced the hash")
	}
	for i, want := range []int{2, 1} { // writes beside the challenge
		if _, err := b.svc.Login(t.Context(), request(1, secret)); err != nil || len(b.starts[i].With) != want {
			t.Errorf("login %d: %v, %d writes", i+1, err, len(b.starts[i].With))
		}
	}
	s, err := b.users.Secret(t.Context(), u.ID)
	must(t, err)
	if !strings.Contains(s.Hash, "m=64,") || s.Previous != "" {
		t.Errorf("hash %s, previous %q", s.Hash, s.Previous)
	}
	if fresh, _ := b.users.Get(t.Context(), u.ID); fresh.CV != u.CV {
		t.Error("a new hash of the same password changed the credentials")
	}
}
