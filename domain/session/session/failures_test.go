package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/session/session"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

// alarms is the service of alarms over the rows of a bench.
func (b *bench) alarms() *session.Alarms {
	return &session.Alarms{Sessions: b.svc, Challenges: factor.NewChallenges(b.db),
		Hold: persistencetest.HoldQueued(b.svc.Now)}
}

// An alarm of a device ends all sessions of its owner, and its audit row names the challenge and the device.
func TestAlarm(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	b.login(1)
	who := b.login(1).By
	c := challenge.Challenge{ID: "c1", UserID: u.ID, Action: "WITHDRAW", Flow: challenge.FlowSession,
		Body: challenge.Body{Subject: u.ID}}
	storetest.Must(t, b.db.Commit(t.Context(), challenge.Insert{Challenge: c}))
	b.take()
	if ended, err := b.alarms().Raise(t.Context(), who, "d1", "c1"); ended != 2 || err != nil {
		t.Errorf("%d sessions ended, %v", ended, err)
	}
	if told := b.take(); !strings.Contains(told, "tell "+u.Email+" ") {
		t.Errorf("the owner is not told: %s", told)
	}
	left, err := b.svc.List(t.Context(), session.Caller{By: who})
	if err != nil || len(left) != 0 {
		t.Errorf("%+v, %v", left, err)
	}
	row := persistencetest.Did(t, b.db, "DEVICE_ALARM")[0]
	if row.Target != "c1" || row.ActorID != u.ID || row.UserID != u.ID ||
		row.Detail != "WITHDRAW was not started by the owner, says device d1" {
		t.Errorf("%+v", row)
	}
	foreign := challenge.Insert{Challenge: challenge.Challenge{ID: "c2", UserID: "another", Action: "LOGIN"}}
	storetest.Must(t, b.db.Commit(t.Context(), foreign))
	for _, id := range []string{"unknown", "c2"} {
		n, err := b.alarms().Raise(t.Context(), who, "d1", id)
		if storetest.Wants(t, err, fault.ChallengeNotFound); n != 0 {
			t.Errorf("%d sessions ended", n)
		}
	}
}

// fencing is a committer whose first units meet a changed row.
type fencing struct {
	commit.Committer
	times int
	tries int
}

func (f *fencing) Commit(ctx context.Context, ws ...commit.Write) error {
	if f.tries++; f.tries <= f.times {
		return commit.ErrFenced
	}
	return f.Committer.Commit(ctx, ws...)
}

// The end of all sessions is decided again while the account changes, at most five times.
func TestEndAllOfChangingAccount(t *testing.T) {
	for times, want := range map[int]fault.Code{4: "", 5: fault.Unavailable} {
		b := newBench(t)
		b.add(1, nil)
		who := b.login(1)
		f := &fencing{Committer: b.db, times: times}
		b.svc.Commit = f
		ended, err := b.svc.EndAll(t.Context(), who)
		if storetest.Wants(t, err, want); f.tries != 5 || (ended == 1) != (want == "") {
			t.Errorf("%d ended after %d tries", ended, f.tries)
		}
		if e := (*fault.Error)(nil); errors.As(err, &e) && e.RetryAfter != time.Second {
			t.Errorf("retry after %v", e.RetryAfter)
		}
	}
}

// awayUsers is a store of accounts that answers a call with an error.
type awayUsers struct {
	user.Store
	login, get error
	logins     int // that are answered first
}

func (u *awayUsers) Login(ctx context.Context, who user.Identifier, guard string) (user.Entrance, error) {
	if u.logins--; u.logins < 0 && u.login != nil {
		return user.Entrance{}, u.login
	}
	return u.Store.Login(ctx, who, guard)
}

func (u *awayUsers) Get(ctx context.Context, id string) (user.User, error) {
	if u.get != nil {
		return user.User{}, u.get
	}
	return u.Store.Get(ctx, id)
}

// awaySessions is a store of sessions that answers a call with an error.
type awaySessions struct {
	session.Store
	proved, bound error
}

func (s *awaySessions) Proved(ctx context.Context, uses []commit.Write, now time.Time) (bool, error) {
	if s.proved != nil {
		return false, s.proved
	}
	return s.Store.Proved(ctx, uses, now)
}

func (s *awaySessions) Bound(ctx context.Context, userID, sessionID string, now time.Time) (session.Session, error) {
	if s.bound != nil {
		return session.Session{}, s.bound
	}
	return s.Store.Bound(ctx, userID, sessionID, now)
}

// A refusal is answered only after it was recorded.
func TestRefusalIsRecordedFirst(t *testing.T) {
	k := newKeys(t)
	k.add(1, nil)
	blocked := k.add(2, func(a *user.Add) { a.Status = user.Blocked })
	refused := func(err error) error {
		if fault.CodeOf(err) == fault.InvalidCredentials {
			return nil
		}
		return errors.Join(errors.New("not refused"), err)
	}
	persistencetest.Fails(t, k.db, "login_history audit", func(ctx context.Context) error {
		_, err := k.svc.Login(ctx, request(1, "wrong"))
		if err == nil {
			t.Error("a wrong password was accepted")
		}
		return refused(err)
	})
	persistencetest.Fails(t, k.db, "login_history audit", func(ctx context.Context) error {
		_, _, err := k.svc.LoginByPasskey(ctx, passkeyRequest(blocked.ID))
		if err == nil {
			t.Error("the passkey of a blocked account was accepted")
		}
		return refused(err)
	})
}

// A proof that was used up meanwhile refuses a login by its own name, and a failure to find that out is reported.
func TestProofUsedMeanwhile(t *testing.T) {
	k := newKeys(t)
	k.proving()
	u := k.add(1, nil)
	w := k.browser()
	login := request(1, secret)
	login.Proof = w.proof("/auth/login")
	entry := passkeyRequest(u.ID)
	entry.Proof = w.proof("/auth/passkey/login")
	logins := map[string]func() error{
		"password": func() error { _, err := k.svc.Login(t.Context(), login); return err },
		"passkey":  func() error { _, _, err := k.svc.LoginByPasskey(t.Context(), entry); return err },
	}
	stored := k.svc.Sessions
	for name, do := range logins {
		storetest.Must(t, do())
		k.starts = nil
		storetest.Wants(t, do(), fault.DPoPInvalid)
		storetest.Equal(t, len(k.starts), 1, name, "starts")
		k.svc.Sessions = &awaySessions{Store: stored, proved: errDown}
		storetest.Is(t, do(), errDown, name)
		k.svc.Sessions = stored
	}
	if g := k.guard(u.ID); len(g.Tries) != 0 {
		t.Errorf("right passwords count as wrong: %+v", g)
	}
	login.Proof.Proof, entry.Proof.Proof, k.starts = "x", "x", nil
	for name, do := range logins {
		if err := do(); fault.CodeOf(err) != fault.DPoPInvalid || len(k.starts) != 0 {
			t.Errorf("a bad proof with a %s: %v after %d starts", name, err, len(k.starts))
		}
	}
}

// A renewal that was fenced says why: its session was idle for the whole time or ended.
func TestFencedRenewalSaysWhy(t *testing.T) {
	for _, c := range []struct {
		name string
		seen time.Duration // the last use after the login
		want fault.Code
	}{{"used since", 21 * time.Minute, fault.TokenRevoked}, {"idle", 20 * time.Minute, fault.TokenExpired}} {
		b := newBench(t).proving()
		b.add(1, nil)
		w := b.browser().login(1)
		id := w.claims().SessionID
		storetest.Must(t, b.db.Commit(t.Context(), session.Seen{SessionID: id, At: b.now.Add(c.seen)},
			session.Unbind{SessionID: id}))
		b.now = b.now.Add(80 * time.Minute)
		if _, err := w.renew(); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A session that has ended is not refreshed.
func TestRefreshOfEndedSession(t *testing.T) {
	b := newBench(t)
	u := b.add(1, nil)
	who := b.login(1)
	refresh := func(id string) (string, error) {
		return b.svc.Refresh(t.Context(), u, session.Presented{SessionID: id, ExpiresAt: b.now.Add(time.Minute)})
	}
	_, err := refresh(who.SessionID)
	storetest.Must(t, err)
	storetest.Must(t, b.svc.Logout(t.Context(), who))
	for _, id := range []string{who.SessionID, "unknown"} {
		raw, err := refresh(id)
		if storetest.Wants(t, err, fault.TokenRevoked); raw != "" {
			t.Errorf("%s: %q", id, raw)
		}
	}
}

// The token of a login says how the user was authenticated. A passkey takes the place of the password, and the key of a
// remembered client that of a method.
func TestAMR(t *testing.T) {
	b := newBench(t)
	b.add(1, nil)
	started := storetest.Value(b.svc.Login(t.Context(), request(1, secret)))(t)
	for _, c := range []struct {
		entry   challenge.Entry
		methods []challenge.Method
		want    []string
	}{
		{challenge.Password, []challenge.Method{{Name: challenge.PUSH}, {Name: challenge.SMS}}, []string{"pwd"}}, // offered
		{challenge.Password, []challenge.Method{{Name: challenge.MAIL, Order: 1}, {Name: challenge.TOTP, Order: 2}},
			[]string{"pwd", "otp", "mfa"}},
		{challenge.Password, []challenge.Method{{Name: challenge.PUSH, Order: 2}, {Name: challenge.SMS, Order: 1},
			{Name: challenge.TOTP, Order: 3}}, []string{"pwd", "sms", "otp", "hwk", "mfa"}},
		{challenge.Password, []challenge.Method{{Name: challenge.SMS, Order: 1, Remembered: "c1"}},
			[]string{"pwd", "swk", "mfa"}},
		{challenge.Key, []challenge.Method{}, []string{"hwk", "mfa"}},
		{challenge.Alone, []challenge.Method{{Name: challenge.PUSH, Order: 1}}, []string{"hwk", "mfa"}},
		{challenge.Key, []challenge.Method{{Name: challenge.SMS, Order: 1}}, []string{"hwk", "mfa", "sms", "otp"}},
	} {
		started.Challenge.Entry = c.entry
		var claims token.Claims
		storetest.Must(t, json.Unmarshal([]byte(b.complete(started, b.starts[0].Command, c.methods...).Headers["x-auth"]),
			&claims))
		if !slices.Equal(claims.AMR, c.want) {
			t.Errorf("%v with %+v: %q", c.entry, c.methods, claims.AMR)
		}
	}
}

// Tries for an unknown identifier count on after its key was replaced.
func TestTriesOutliveTheirKey(t *testing.T) {
	b := newBench(t)
	for range 5 {
		_, err := b.svc.Login(t.Context(), request(1, secret))
		storetest.Wants(t, err, fault.InvalidCredentials)
	}
	b.svc.Conceal = func(who string) string { return "new(" + who + ")" }
	b.svc.Former = func(who string) []string { return []string{"hmac(" + who + ")"} }
	who := request(1, secret).Who.String()
	_, err := b.svc.Login(t.Context(), request(1, secret))
	if g := b.guard("?new(" + who + ")"); len(g.Tries) != 6 {
		t.Errorf("%d tries count after a further one: %v", len(g.Tries), err)
	}
}

// The unit that shares places in the queue of hashes is the one that Place names.
func TestPlaceNamesTheUnit(t *testing.T) {
	b := newBench(t)
	b.add(1, nil)
	var asked []netip.Addr
	b.svc.Place = func(from client.Origin) string { asked = append(asked, from.Addr); return "one" }
	_, err := b.svc.Login(t.Context(), request(1, secret))
	if storetest.Must(t, err); !slices.Equal(asked, []netip.Addr{here}) {
		t.Errorf("asked for %v", asked)
	}
}

// A login whose account always changes gives up after twenty decisions.
func TestLoginToABusyAccount(t *testing.T) {
	b := newBench(t)
	b.add(1, nil)
	b.refuse = commit.ErrFenced
	_, err := b.svc.Login(t.Context(), request(1, secret))
	var busy *fault.Error
	if !errors.As(err, &busy) || busy.Code != fault.Unavailable || busy.RetryAfter != time.Second || len(b.starts) != 20 {
		t.Errorf("%v after %d starts", err, len(b.starts))
	}
}

// A login whose account changed meanwhile fails as its second look at the account does. An account that is gone is
// refused like a wrong password.
func TestSecondLookFails(t *testing.T) {
	for want, fails := range map[fault.Code]error{fault.InvalidCredentials: fault.New(fault.RecordNotFound, "gone"),
		fault.Internal: errDown} {
		b := newBench(t)
		b.add(1, nil)
		b.refuse = commit.ErrFenced
		b.svc.Users = &awayUsers{Store: b.svc.Users, login: fails, logins: 1}
		_, err := b.svc.Login(t.Context(), request(1, secret))
		if fault.CodeOf(err) != want || len(b.starts) != 1 || want == fault.Internal && !errors.Is(err, errDown) {
			t.Errorf("%v: %v after %d starts", fails, err, len(b.starts))
		}
	}
	k := newKeys(t)
	u := k.add(1, nil)
	k.refuse = commit.ErrFenced
	k.svc.Users = &awayUsers{Store: k.svc.Users, get: errDown}
	if _, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID)); !errors.Is(err, errDown) ||
		len(k.starts) != 1 {
		t.Errorf("with a passkey: %v after %d starts", err, len(k.starts))
	}
}
