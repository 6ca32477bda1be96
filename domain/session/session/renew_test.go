package session_test

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/proof/dpop"
	"castellan/domain/session/session"
	sessionstore "castellan/persistence/session"
)

const origin = "https://accounts.example.com"

// browser is a client with a key and its last token, in the plain text of signer.
type browser struct {
	b   *bench
	key crypto.Signer
	raw string
}

// proving gives the service a verifier of proofs.
func (b *bench) proving() *bench {
	b.now = b.now.Truncate(time.Second)
	b.svc.SessionTTL, b.svc.Idle = 12*time.Hour, time.Hour
	b.svc.Proofs = &dpop.Verifier{Ring: keyringtest.Keeper(b.t, b.svc.Now).Ring(), Commit: b.db, PublicURL: origin,
		Now: b.svc.Now}
	return b
}

func (b *bench) browser() *browser {
	_, key, err := ed25519.GenerateKey(nil)
	storetest.Must(b.t, err)
	return &browser{b: b, key: key}
}

// proof signs a request of the browser, changed by change.
func (w *browser) proof(path string, change ...func(*dpop.Claims)) dpop.Request {
	c := dpop.Claims{Method: "POST", Target: origin + path, IssuedAt: w.b.now.Unix(), TokenHash: dpop.TokenHash(w.raw)}
	for _, f := range change {
		f(&c)
	}
	raw := storetest.Value(dpop.Sign(w.key, c))(w.b.t)
	return dpop.Request{Proof: raw, Method: "POST", Path: path, Token: w.raw}
}

// login logs the n-th account in with the key of the browser.
func (w *browser) login(n int) *browser {
	w.b.t.Helper()
	w.raw = ""
	r := request(n, secret)
	r.Proof = w.proof("/auth/login")
	started := storetest.Value(w.b.svc.Login(w.b.t.Context(), r))(w.b.t)
	w.raw = w.b.complete(started, w.b.starts[len(w.b.starts)-1].Command).Headers["x-auth"]
	return w
}

func (w *browser) claims() (c token.Claims) {
	storetest.Must(w.b.t, json.Unmarshal([]byte(w.raw), &c))
	return c
}

func (w *browser) request(change ...func(*dpop.Claims)) session.RenewRequest {
	return session.RenewRequest{Claims: w.claims(), Proof: w.proof("/auth/sessions/renew", change...),
		Starter: challenge.Starter{IP: here.String(), Country: "TR"}}
}

// renew renews and keeps the new token.
func (w *browser) renew() (session.Renewal, error) {
	r, err := w.b.svc.RenewBound(w.b.t.Context(), w.request())
	if err == nil {
		w.raw = r.Token
	}
	return r, err
}

// One login is enough for twelve hours, and not for longer; its tokens name the key and are good for half an hour.
func TestTwelveHoursOnOneLogin(t *testing.T) {
	b := newBench(t).proving()
	u := b.add(1, nil)
	w := b.browser().login(1)
	first, end := w.claims(), b.now.Add(12*time.Hour)
	renewals := 0
	for b.now.Add(25 * time.Minute).Before(end) {
		b.now = b.now.Add(25 * time.Minute)
		r := storetest.Value(w.renew())(t)
		c := w.claims()
		want := b.now.Add(30 * time.Minute)
		if want.After(end) {
			want = end
		}
		if !c.ExpiresAt.Equal(want) || !r.EndsAt.Equal(end) || c.SessionID != first.SessionID || c.Subject != u.ID ||
			c.Thumbprint != first.Thumbprint || c.Thumbprint == "" || !c.AuthTime.Equal(first.AuthTime) {
			t.Fatalf("at %v: %+v, %+v", b.now, r, c)
		}
		renewals++
	}
	if renewals != 28 || len(b.starts) != 1 {
		t.Errorf("%d renewals, %d logins", renewals, len(b.starts))
	}
	all, err := b.svc.List(t.Context(), session.Caller{By: session.Caller{}.By})
	if err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	b.now = end.Add(-time.Millisecond)
	_, err = w.renew()
	storetest.Must(t, err)
	b.now = end
	_, err = w.renew()
	storetest.Wants(t, err, fault.TokenExpired)
}

// A session that was not used for an hour cannot be renewed; its token may have expired meanwhile.
func TestIdle(t *testing.T) {
	b := newBench(t).proving()
	b.add(1, nil)
	w := b.browser().login(1)
	b.now = b.now.Add(time.Hour - time.Second)
	_, err := w.renew()
	storetest.Must(t, err)
	b.now = b.now.Add(20 * time.Minute) // a request in it
	storetest.Must(t, b.db.Commit(t.Context(), session.Seen{SessionID: w.claims().SessionID, At: b.now}))
	b.now = b.now.Add(time.Hour - time.Second)
	if all, err := b.svc.Sessions.List(t.Context(), w.claims().Subject, b.now, 9); err != nil || len(all) != 1 {
		t.Errorf("a session that can be renewed is not active: %v, %v", all, err)
	}
	_, err = w.renew()
	storetest.Must(t, err)
	b.now = b.now.Add(time.Hour)
	_, err = w.renew()
	storetest.Wants(t, err, fault.TokenExpired)
}

// A session without a key stays as it was: half an hour, and no renewal.
func TestNoKeyNoRenewal(t *testing.T) {
	b := newBench(t).proving()
	u := b.add(1, nil)
	b.login(1)
	all, err := b.svc.Sessions.List(t.Context(), u.ID, b.now, 9)
	if err != nil || len(all) != 1 || !all[0].ExpiresAt.Equal(b.now.Add(30*time.Minute).Truncate(time.Millisecond)) {
		t.Fatalf("%+v, %v", all, err)
	}
	w := b.browser().login(1)
	r := w.request()
	r.Claims.SessionID, r.Claims.Thumbprint = all[0].ID, ""
	_, err = b.svc.RenewBound(t.Context(), r)
	storetest.Wants(t, err, fault.DPoPInvalid)
	r = w.request()
	r.Claims.SessionID = all[0].ID // a token that names a key its session does not have
	_, err = b.svc.RenewBound(t.Context(), r)
	storetest.Wants(t, err, fault.TokenRevoked)
}

// Every end of a session ends its renewals.
func TestEndedSessionsAreNotRenewed(t *testing.T) {
	for name, end := range map[string]func(b *bench, w *browser, u user.User) error{
		"all": func(b *bench, w *browser, u user.User) error {
			_, err := b.svc.EndAll(b.t.Context(), w.caller())
			return err
		},
		"blocked": func(b *bench, w *browser, u user.User) error {
			return b.change("UPDATE users SET status = 'BLOCKED' WHERE id = ?", u.ID)
		},
		"must reset": func(b *bench, w *browser, u user.User) error {
			return b.change("UPDATE users SET must_reset = TRUE WHERE id = ?", u.ID)
		},
		"country": func(b *bench, w *browser, u user.User) error {
			b.svc.Admits = func(user.User, challenge.Starter) bool { return false }
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t).proving()
			u := b.add(1, nil)
			w := b.browser().login(1)
			_, err := w.renew()
			storetest.Must(t, err)
			storetest.Must(t, end(b, w, u))
			_, err = w.renew()
			storetest.Wants(t, err, fault.TokenRevoked)
		})
	}
}

func (b *bench) change(statement, id string) error {
	return b.db.InTx(b.t.Context(), func(ctx context.Context) error {
		_, err := b.db.Conn(ctx).ExecContext(ctx, statement, id)
		return err
	})
}

func (w *browser) caller() session.Caller {
	c := w.claims()
	who := session.Caller{SessionID: c.SessionID}
	who.UserID = c.Subject
	return who
}

// Another key, another token and a used proof renew nothing; a proof that is only stale gets a nonce.
func TestProofsOfRenewals(t *testing.T) {
	b := newBench(t).proving()
	b.add(1, nil)
	w, thief := b.browser().login(1), b.browser()
	thief.raw = w.raw
	other := b.browser().login(1)
	borrowed := w.request()
	borrowed.Proof = other.proof("/auth/sessions/renew") // names the token of another session
	borrowed.Proof.Token = w.raw
	wrongToken := w.request()
	wrongToken.Proof.Token = other.raw
	stale := w.request(func(c *dpop.Claims) { c.IssuedAt -= 301 })
	for name, r := range map[string]session.RenewRequest{"another key": thief.request(), "another session": borrowed,
		"token of another session": wrongToken, "no proof": {Claims: w.claims()}, "stale": stale,
		"login": {Claims: w.claims(), Proof: w.proof("/auth/login")}} {
		if name == "login" {
			r.Proof.Path = "/auth/sessions/renew"
		}
		_, err := b.svc.RenewBound(t.Context(), r)
		var f *fault.Error
		if !errors.As(err, &f) || f.Code != fault.DPoPInvalid || (f.Nonce != "") != (name == "stale") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if name == "stale" {
			_, err = b.svc.RenewBound(t.Context(), w.request(func(c *dpop.Claims) { c.IssuedAt, c.Nonce = 1, f.Nonce }))
			storetest.Must(t, err)
		}
	}
	once := w.request()
	_, err := b.svc.RenewBound(t.Context(), once)
	storetest.Must(t, err)
	for _, node := range []*session.Service{b.svc, b.twin()} {
		_, err = node.RenewBound(t.Context(), once)
		storetest.Wants(t, err, fault.DPoPInvalid)
	}
	_, err = w.renew() // the old token, whose answer was lost, renews again
	storetest.Must(t, err)
}

// twin is another node with the same keys.
func (b *bench) twin() *session.Service {
	twin := b.service()
	twin.Proofs, twin.SessionTTL, twin.Idle = b.svc.Proofs, b.svc.SessionTTL, b.svc.Idle
	return twin
}

// refreshed returns a token with current claims, as confirm-user-identity does.
func (w *browser) refreshed(u user.User) (string, error) {
	c := w.claims()
	return w.b.svc.Refresh(w.b.t.Context(), u, session.Presented{SessionID: c.SessionID, Thumbprint: c.Thumbprint,
		ExpiresAt: c.ExpiresAt})
}

// A refreshed token has the current roles of the user, the end of the token that was sent, and its key. That is so
// however often it is refreshed, and also after a change of the password, which ends the renewals (D-AUTH-15). The
// session does not live longer by it.
func TestRefreshKeepsKeyAndEnd(t *testing.T) {
	for name, bound := range map[string]bool{"with a key": true, "after it lost its key": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t).proving()
			u := b.add(1, nil)
			w := b.browser().login(1)
			before := w.claims()
			row, err := sessionstore.NewSessions(b.db).Bound(t.Context(), u.ID, before.SessionID, b.now)
			storetest.Must(t, err)
			if !bound {
				storetest.Must(t, b.db.Commit(t.Context(), session.Unbind{SessionID: before.SessionID}))
			}
			u.Roles = []string{"support"}
			for range 2 {
				b.now = b.now.Add(10 * time.Minute)
				w.raw, err = w.refreshed(u)
				storetest.Must(t, err)
				c := w.claims()
				if c.Thumbprint != before.Thumbprint || !c.ExpiresAt.Equal(before.ExpiresAt) || c.ID == before.ID ||
					c.SessionID != before.SessionID || !slices.Contains(c.Roles, "support") ||
					!c.AuthTime.Equal(before.AuthTime) || !slices.Equal(c.AMR, before.AMR) {
					t.Errorf("%+v, before %+v", c, before)
				}
			}
			kept, err := sessionstore.NewSessions(b.db).Get(t.Context(), u.ID, before.SessionID, b.now)
			if err != nil || !kept.ExpiresAt.Equal(row.ExpiresAt) {
				t.Errorf("%+v, before %+v, %v", kept, row, err)
			}
			_, err = w.renew()
			if bound {
				storetest.Must(t, err)
			} else {
				storetest.Wants(t, err, fault.TokenRevoked)
			}
		})
	}
}

// A session that has a key gives it to its token, also if the token that was sent has none.
func TestRefreshOfBoundSession(t *testing.T) {
	b := newBench(t).proving()
	u := b.add(1, nil)
	w := b.browser().login(1)
	c := w.claims()
	raw, err := b.svc.Refresh(t.Context(), u, session.Presented{SessionID: c.SessionID, ExpiresAt: c.ExpiresAt})
	storetest.Must(t, err)
	w.raw = raw
	if got := w.claims(); got.Thumbprint != c.Thumbprint || c.Thumbprint == "" {
		t.Errorf("%+v", got)
	}
}
