package session_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
	"castellan/persistence/kit"
	sessionstore "castellan/persistence/session"
)

const secret = "kedi7şeker"

var cheap = password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}

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

// The kinds of refusal do not differ in their answer or their cost.
func TestRefusalsAreAlike(t *testing.T) {
	b := newBench(t)
	b.add(1, nil)
	b.add(2, func(a *user.Add) { a.Status = user.Blocked })
	b.add(3, func(a *user.Add) { a.Demo = true })
	b.add(4, func(a *user.Add) { a.PasswordHash = "" })
	b.add(5, func(a *user.Add) { a.Language = "ar" })
	b.add(6, func(a *user.Add) { a.MustReset = true })
	b.svc.Admits = func(u user.User, from challenge.Starter) bool { return u.Language != "ar" || from.Country != "TR" }
	unknownMail := request(9, secret)
	unknownMail.Who = mailed("nobody@example.com")
	for name, r := range map[string]session.LoginRequest{
		"wrong": request(1, "kedi7şekeR"), "unknown": request(9, secret), "unknown mail": unknownMail,
		"blocked": request(2, secret),
		"demo":    request(3, secret), "no password": request(4, secret), "country": request(5, secret),
		"must reset": request(6, secret),
		"too long":   request(1, strings.Repeat("x", 5000)),
	} {
		b.take()
		_, err := b.svc.Login(t.Context(), r)
		e, _ := err.(*fault.Error)
		if e == nil || e.Code != fault.InvalidCredentials || e.Message != "the identifier or the password is wrong" ||
			e.Field != "" || e.RetryAfter != 0 {
			t.Errorf("%s: %v", name, err)
		}
		want := "select user and guard · commit password_guard+unflushed · commit audit+login_history"
		if strings.HasPrefix(name, "unknown") { // as many waits for the disk, and no lasting row
			want = "select user and guard · commit password_guard+unflushed · commit refused_login"
		}
		storetest.Equal(t, b.take(), want, name, "costs")
	}
	storetest.Equal(t, len(b.starts), 0, "challenges were started")
	rows := storetest.Value(sessionstore.NewSessions(b.db).LoginsFrom(t.Context(), here.String(), 100))(t)
	reasons := map[session.Reason]int{}
	for _, l := range rows {
		reasons[l.Refusal.Reason]++
		if l.Success || l.Brand != "Acme" || l.Country != "TR" {
			t.Errorf("history %+v", l)
		}
	}
	if n, err := kit.NewAudit(b.db).Verify(t.Context(), []byte("audit key of the test")); n != 7 ||
		len(rows) != 7 || err != nil {
		t.Errorf("%d audit rows and %d lines of history, %v", n, len(rows), err)
	}
	if want := map[session.Reason]int{session.WrongPassword: 3, session.Inactive: 2, session.NotAdmitted: 1,
		session.MustReset: 1}; !maps.Equal(reasons, want) { // wrong, too long and no password; blocked and demo
		t.Errorf("reasons %v, want %v", reasons, want)
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
	tries := map[int]bool{}
	for _, l := range b.history(u) {
		got := l.Refusal.Standing
		tries[got.Tries] = true
		var until int64
		if got.Tries == 10 { // the last one locks
			until = b.now.Add(15 * time.Minute).UnixMilli()
		}
		if l.Refusal.Reason != session.WrongPassword || got.Limit != 10 || got.LockedUntil.IsZero() != (until == 0) ||
			until != 0 && got.LockedUntil.UnixMilli() != until {
			t.Errorf("refusal %+v", l.Refusal)
		}
	}
	storetest.Equal(t, len(tries), 10, "the tries have the numbers", tries)
	node := b.service() // a restart, or another node
	b.take()
	_, err := node.Login(t.Context(), request(1, secret))
	e, _ := err.(*fault.Error)
	if e == nil || e.Code != fault.RateLimited || e.RetryAfter != 15*time.Minute {
		t.Fatalf("the right password after ten wrong ones: %v", err)
	}
	storetest.Equal(t, b.take(), "select user and guard · select guard", "a refused try costs")
	mail := request(1, secret)
	mail.Who = mailed(u.Email)
	if _, err := node.Login(t.Context(), mail); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("by the other identifier: %v", err)
	}
	elsewhere := request(1, secret)
	elsewhere.Origin = client.From(netip.MustParseAddr("2001:db8::1"))
	if _, err := node.Login(t.Context(), elsewhere); err != nil {
		t.Errorf("from elsewhere: %v", err)
	}
	storetest.Must(t, b.db.Commit(t.Context(), password.ClearGuard{Key: u.ID}))
	if _, err := node.Login(t.Context(), request(1, secret)); err != nil {
		t.Errorf("after the unlock: %v", err)
	}
	b.now = b.now.Add(15 * time.Minute)
	for i := range 11 { // the number is unknown; it is counted all the same
		_, err := node.Login(t.Context(), request(77, "wrong password"))
		if want := map[bool]fault.Code{true: fault.InvalidCredentials,
			false: fault.RateLimited}[i < 10]; fault.CodeOf(err) != want {
			t.Errorf("try %d for an unknown number: %v", i+1, err)
		}
	}
}

func TestOverload(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	full := storetest.Value(password.NewHasher(password.HasherOptions{Params: cheap, Slots: 1}))(t)
	place := storetest.Value(full.Admit(password.Caller{}))(t)
	b.svc.Hasher = full
	if _, err := b.svc.Login(t.Context(), request(1, secret)); fault.CodeOf(err) != fault.Overloaded || b.take() != "" {
		t.Errorf("no place: %v, or the database was asked", err)
	}
	place.Leave()
	ctx, cancel := context.WithCancel(t.Context())
	b.after = cancel // the client disconnects between count and hash
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

func TestAccountChangesMeanwhile(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	b.before = func(calls int) {
		if calls == 1 { // a device was added: the password is the same
			storetest.Must(t, b.db.Commit(t.Context(), user.Touch{UserID: u.ID}))
		}
	}
	if _, err := b.svc.Login(t.Context(), request(1, secret)); err != nil || len(b.starts) != 2 ||
		b.starts[1].Account.CV != 2 {
		t.Fatalf("%v after %d starts", err, len(b.starts))
	}
	for n, change := range []func(u user.User) commit.Write{
		func(u user.User) commit.Write { return user.SetPassword{UserID: u.ID, CV: 1, Hash: "other"} },
		func(u user.User) commit.Write { return user.SetStatus{UserID: u.ID, CV: 1, Status: user.Blocked} },
		func(u user.User) commit.Write { return user.SetCountries{UserID: u.ID, CV: 1, Countries: "TR"} },
	} {
		u := b.add(2+n, nil)
		b.svc.Admits = func(u user.User, _ challenge.Starter) bool { return u.Countries == "" }
		b.starts = nil
		b.before = func(int) { storetest.Must(t, b.db.Commit(t.Context(), change(u))) }
		if _, err := b.svc.Login(t.Context(), request(2+n, secret)); fault.CodeOf(err) != fault.InvalidCredentials ||
			len(b.starts) != 1 {
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
	storetest.Must(t, err)
	hash := storetest.Value(old.Hash(t.Context(), secret))(t)
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
	s := storetest.Value(b.users.Secret(t.Context(), u.ID))(t)
	if !strings.Contains(s.Hash, "m=64,") || s.Previous != "" {
		t.Errorf("hash %s, previous %q", s.Hash, s.Previous)
	}
	if fresh, _ := b.users.Get(t.Context(), u.ID); fresh.CV != u.CV {
		t.Error("a new hash of the same password changed the credentials")
	}
}

// A login without an account takes the work of a kind that accounts have, always the same one for an identifier.
func TestStrangersTakeTheWorkOfAKind(t *testing.T) {
	b := newBench(t)
	former := password.Kind{Outer: password.Params{MemoryKiB: 128, Passes: 1, Lanes: 1}}
	present := password.Kind{Outer: cheap}
	b.hasher.SetKinds([]byte("seed"), []password.Portion{{Kind: former, Accounts: 10, Peak: 10},
		{Kind: present, Accounts: 10, Peak: 10}})
	seen := map[uint64]int{}
	for i := range 24 {
		var before uint64
		for range 2 {
			start := b.hasher.Work()
			_, err := b.svc.Login(t.Context(), request(100+i, secret))
			storetest.Wants(t, err, fault.InvalidCredentials)
			work := b.hasher.Work() - start
			if seen[work]++; before != 0 && work != before {
				t.Errorf("%d: %d units became %d", i, before, work)
			}
			before = work
		}
	}
	if len(seen) != 2 || seen[former.Work()] == 0 || seen[present.Work()] == 0 {
		t.Errorf("logins by their work: %v", seen)
	}
}
