package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/session/session"
)

var errDown = errors.New("the database is down")

// keys verifies the passkey of an account of a bench: the assertion is its id. It starts and concludes challenges.
type keys struct {
	*bench
	entry     challenge.Entry
	fail      error // the answer of Entered or of Conclude
	concluded []string
}

func (k *keys) LoginOptions() (json.RawMessage, string) { return nil, "" }

func (k *keys) Entered(ctx context.Context, ticket string, answer []byte, by audit.By) (user.User, device.Asserted,
	error) {
	k.note("entered %s %s %s", ticket, by.IP, by.RequestID)
	u, err := k.users.Get(ctx, string(answer))
	if fault.CodeOf(err) == fault.RecordNotFound {
		err = device.Refused()
	}
	return u, device.Asserted{Passkey: passkey.Credential{DeviceID: "d1", UserID: u.ID}}, errors.Join(err, k.fail)
}

func (k *keys) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	s, err := engine{k.bench}.Start(ctx, r)
	s.Challenge.Entry = k.entry
	return s, err
}

func (k *keys) Conclude(_ context.Context, c challenge.Challenge, by device.Asserted, who audit.By) (*challenge.Result,
	error) {
	k.concluded = append(k.concluded, c.UserID+" "+by.Passkey.DeviceID+" "+who.IP)
	return &challenge.Result{Success: true}, k.fail
}

func newKeys(t *testing.T) *keys {
	t.Helper()
	k := &keys{bench: newBench(t), entry: challenge.Key}
	k.svc.Passkeys, k.svc.Starts, k.svc.Concludes = k, k, k
	return k
}

func passkeyRequest(id string) session.PasskeyRequest {
	return session.PasskeyRequest{Ticket: "t1", Assertion: []byte(id), DeviceID: "dev-1", Origin: client.From(here),
		Starter: challenge.Starter{IP: here.String(), Country: "TR", Brand: "Acme", RequestID: "r1"}}
}

// A passkey starts the challenge of a login. If the policy lets it suffice, the challenge is completed at once.
func TestLoginByPasskey(t *testing.T) {
	k := newKeys(t)
	u := k.add(1, func(a *user.Add) { a.Roles = []string{"auditor"} })
	started, result, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID))
	if err != nil || result != nil || started.Challenge.UserID != u.ID || started.Challenge.State != challenge.Pending ||
		len(k.concluded) != 0 {
		t.Errorf("%+v, %+v, %v", started, result, err)
	}
	storetest.Equal(t, k.take(), "entered t1 203.0.113.9 r1 · engine commits", "it costs")
	r := k.starts[0]
	if r.Action != session.ActionLogin || !r.Proven || r.Entry != challenge.Key || r.Account != u.Account() ||
		len(r.With) != 0 || !strings.Contains(string(r.Command), "dev-1") || !strings.Contains(string(r.Command), "auditor") {
		t.Errorf("%+v", r)
	}
	k.entry = challenge.Alone
	started, result, err = k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID))
	if err != nil || result == nil || started.Challenge.State != challenge.Done ||
		len(k.concluded) != 1 || k.concluded[0] != u.ID+" d1 203.0.113.9" {
		t.Errorf("alone: %+v, %+v, %v, %q", started, result, err, k.concluded)
	}
}

// All refusals of a passkey get one answer. An account is named in the audit only if the assertion was its own.
func TestRefusedLoginByPasskey(t *testing.T) {
	k := newKeys(t)
	k.svc.Admits = func(u user.User, from challenge.Starter) bool { return u.Language != "ar" || from.Country != "TR" }
	for n, c := range []struct {
		name   string
		change func(*user.Add)
		reason session.Reason
	}{
		{"inactive", func(a *user.Add) { a.Status = user.Blocked }, session.Inactive},
		{"demo", func(a *user.Add) { a.Demo = true }, session.Inactive},
		{"must reset", func(a *user.Add) { a.MustReset = true }, session.MustReset},
		{"country", func(a *user.Add) { a.Language = "ar" }, session.NotAdmitted},
	} {
		u := k.add(1+n, c.change)
		k.take()
		_, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID))
		if fault.CodeOf(err) != fault.InvalidCredentials {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := k.take(); !strings.HasSuffix(got, " · commit audit+login_history") {
			t.Errorf("%s costs %s", c.name, got)
		}
		if l := k.history(u); len(l) != 1 || l[0].Success || l[0].Refusal.Reason != c.reason || l[0].Brand != "Acme" {
			t.Errorf("%s: %+v", c.name, l)
		}
	}
	_, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest("unknown"))
	if got := k.take(); fault.CodeOf(err) != fault.InvalidCredentials ||
		!strings.HasSuffix(got, " · commit refused_login") {
		t.Errorf("a refused assertion costs %s, %v", got, err)
	}
	storetest.Equal(t, len(k.starts), 0, "challenges")
	u := k.add(9, nil)
	k.fail = errDown
	for _, k.entry = range []challenge.Entry{challenge.Key, challenge.Alone} {
		if _, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID)); !errors.Is(err, errDown) {
			t.Errorf("a failure: %v", err)
		}
	}
}

// A login is decided again if the account changed meanwhile, three times at most, and refused if its credentials did.
func TestAccountChangesDuringLoginByPasskey(t *testing.T) {
	k := newKeys(t)
	u := k.add(1, nil)
	k.refuse = commit.ErrFenced
	_, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID))
	var busy *fault.Error
	if !errors.As(err, &busy) || busy.Code != fault.Unavailable || busy.RetryAfter != time.Second || len(k.starts) != 3 {
		t.Errorf("%v after %d starts", err, len(k.starts))
	}
	k.refuse, k.starts = errDown, nil
	if _, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID)); !errors.Is(err, errDown) ||
		len(k.starts) != 1 {
		t.Errorf("%v after %d starts", err, len(k.starts))
	}
	k.refuse, k.starts = nil, nil
	k.before = func(calls int) {
		if calls == 1 {
			storetest.Must(t, k.db.Commit(t.Context(), user.Touch{UserID: u.ID}))
		}
	}
	_, _, err = k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID))
	if got := k.take(); fault.CodeOf(err) != fault.InvalidCredentials || len(k.starts) != 1 ||
		!strings.HasSuffix(got, " · commit refused_login") {
		t.Errorf("other credentials: %s, %v after %d starts", got, err, len(k.starts))
	}
}

// Refused passkeys count against the network of their client, as refused passwords do.
func TestRefusedPasskeysAreLimited(t *testing.T) {
	k := newKeys(t)
	u := k.add(1, nil)
	limited := 0
	for range 130 {
		if _, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest("unknown")); fault.CodeOf(err) ==
			fault.RateLimited {
			limited++
		}
	}
	_, _, err := k.svc.LoginByPasskey(t.Context(), passkeyRequest(u.ID))
	if storetest.Wants(t, err, fault.RateLimited); limited == 0 || limited > 10 {
		t.Errorf("%d of 130 were limited", limited)
	}
}
