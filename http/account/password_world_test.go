package account_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/session/replace"
	"castellan/domain/session/session"
	httppassword "castellan/http/account/password"
	"castellan/http/apitest/flowtest"
	"castellan/http/rest"
	"castellan/persistence/account"
	sessionstore "castellan/persistence/session"
)

// The passwords that change hands.
const (
	passwordA = "kedi7şeker"
	passwordB = "köpek8limon"
	passwordC = "fare9armut"
)

type (
	answer = flowtest.Answer
	flow   = flowtest.Flow
)

// world is the section behind the engine of challenges.
type world struct {
	*flowtest.Engine
	svc *replace.Service
}

func both(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	flowtest.Both(t, func(t *testing.T, e *flowtest.Engine) {
		w := &world{Engine: e}
		e.Rules.FactorAttempts = 15 // which the windows let a stranger reach
		e.Section = w.section
		e.Start()
		test(t, w)
	})
}

func (w *world) section() (rest.Group, flowtest.Public) {
	w.svc = &replace.Service{Users: w.Users, Sessions: sessionstore.NewSessions(w.DB),
		Tokens: sessionstore.NewResetTokens(w.DB), Signer: w.Issuer, Engine: w.Starter, Hasher: w.Hasher,
		Policy: password.DefaultPolicy(),
		Wrong:  password.NewGuards(account.NewPasswordGuards(w.DB), w.DB, replace.WrongRules(), w.Now),
		Phones: w.Bound(5), Networks: w.Bound(30),
		Place:  func(client.Origin) string { return "" }, // all accounts have one address here
		Admits: func(user.User, challenge.Starter) bool { return true },
		Commit: w.Commit, Ring: w.Ring, TokenTTL: 10 * time.Minute, Now: w.Now}
	w.Actions.Register(w.svc.ResetAction())
	w.Actions.Register(w.svc.ChangeAction())
	group := httppassword.Group{Service: w.svc}
	return group, group.Public()
}

// add makes an account with password A, changed as asked.
func (w *world) add(n int, change func(*user.Add)) user.User {
	w.T.Helper()
	hash := storetest.Value(w.Hasher.Hash(w.T.Context(), passwordA))(w.T)
	return w.Add(n, fmt.Sprintf("user%06d@gmail.com", n), func(a *user.Add) {
		a.PasswordHash = hash
		if change != nil {
			change(a)
		}
	})
}

// login makes a session without further ado and returns its token and its id.
func (w *world) login(u user.User) (xauth, sessionID string) {
	w.T.Helper()
	now := w.Now()
	u, err := w.Users.Get(w.T.Context(), u.ID)
	storetest.Must(w.T, err)
	s := session.Session{ID: id.New(now), UserID: u.ID, CreatedAt: now, LastSeenAt: now,
		ExpiresAt: now.Add(30 * time.Minute), SV: u.SV}
	storetest.Must(w.T, w.DB.Commit(w.T.Context(), session.Add{CV: u.CV, Session: s}))
	xauth, err = w.Issuer.Sign(token.Claims{Class: token.XAuth, ID: id.New(now), Subject: u.ID, SessionID: s.ID, SV: u.SV,
		AuthTime: now, IssuedAt: now, ExpiresAt: s.ExpiresAt})
	storetest.Must(w.T, err)
	return xauth, s.ID
}

func phone(n int) map[string]string {
	return map[string]string{"countryCode": "90", "phoneNumber": fmt.Sprintf("532%07d", n)}
}

// ask asks for a reset.
func (w *world) ask(n int, headers ...string) answer {
	return w.Post("/auth/password/reset", phone(n), headers...)
}

func (w *world) reset(n int) flow {
	w.T.Helper()
	return w.Flow(w.ask(n))
}

// otauth goes through a whole reset.
func (w *world) otauth(n int) string {
	w.T.Helper()
	f := w.reset(n)
	w.Answer(f, "SMS")
	raw := w.Answer(f, "MAIL").Header.Get("ot-auth")
	if raw == "" {
		w.T.Fatal("no ot-auth after SMS and MAIL")
	}
	return raw
}

func (w *world) update(otauth, secret string) answer {
	return w.Post("/auth/password/update", map[string]string{"password": secret, "passwordVerify": secret},
		"ot-auth", otauth)
}

func (w *world) change(xauth, old, secret string) answer {
	return w.Post("/auth/password", map[string]string{"oldPassword": old, "password": secret, "passwordVerify": secret},
		"x-auth", xauth)
}

// finish completes a change by SMS.
func (w *world) finish(a answer) answer {
	w.T.Helper()
	return w.Answer(w.Flow(a), "SMS")
}

func (w *world) has(u user.User, secret string) bool {
	w.T.Helper()
	stored := storetest.Value(w.Users.Secret(w.T.Context(), u.ID))(w.T)
	right, _, err := w.Hasher.Verify(w.T.Context(), secret, stored.Hash)
	storetest.Must(w.T, err)
	return right
}

// live reports whether the service takes a session's token.
func (w *world) live(xauth string) bool {
	a := w.Post("/auth/password", map[string]string{"oldPassword": "x", "password": "y", "passwordVerify": "z"},
		"x-auth", xauth)
	return a.Status == 400
}
