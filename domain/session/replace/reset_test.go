package replace_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/session/replace"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

var from = challenge.Starter{IP: "192.0.2.7", RequestID: "r1", Country: "TR"}

func (w *world) reset(phone string) (challenge.Started, error) {
	return w.StartReset(w.t.Context(), replace.ResetRequest{CountryCode: "090", Phone: phone}, from)
}

func (w *world) update(tokenID, next string) error {
	return w.Update(w.t.Context(), replace.UpdateRequest{TokenID: tokenID, Password: next, Verify: next, From: from})
}

// A reset of an account starts its challenge. An unknown phone and an account that may not be used get a decoy with
// the same steps.
func TestStartReset(t *testing.T) {
	w := newWorld(t)
	decoys := map[string]string{"5329000000": "subject of +905329000000"}
	for n, edit := range []func(*user.User){
		func(u *user.User) { u.Status = user.Passive },
		func(u *user.User) { u.Demo = true },
		func(u *user.User) { u.Email = "" },
		func(u *user.User) { u.Language = "abroad" },
	} {
		u := w.add(10+n, edit)
		decoys[u.Phone[3:]] = "subject of " + u.Phone
	}
	w.Admits = func(u user.User, from challenge.Starter) bool { return u.Language != "abroad" && from.Country == "TR" }
	for phone, subject := range decoys {
		if s, err := w.reset(phone); err != nil || s.PAuth != "p-auth" {
			t.Errorf("%s: %+v, %v", phone, s, err)
		}
		r := w.started[len(w.started)-1]
		if r.Decoy != subject || r.Account.UserID != "" || r.Account.Phone != "+90"+phone || r.Account.Dial != "90" ||
			r.Action != "RESET_PASSWORD" || r.Starter != from {
			t.Errorf("%s: %+v", phone, r)
		}
	}
	_, err := w.reset("0532 000 00 01")
	storetest.Must(t, err)
	r := w.started[len(w.started)-1]
	if r.Decoy != "" || r.Account.UserID != w.user.ID || r.Account.Dial != "90" || r.Account.Mail != w.user.Email {
		t.Errorf("%+v", r)
	}
	acts := persistencetest.Acts(t, w.db)
	if len(acts) != 6 || acts[5] != "RESET_PASSWORD||"+w.user.ID+"|"+w.user.ID+"|started" {
		t.Errorf("%v", acts)
	}
	w.Dev = true // allows accounts that are seeded for development
	_, err = w.reset("5320000011")
	if storetest.Must(t, err); w.started[len(w.started)-1].Decoy != "" {
		t.Errorf("%+v", w.started[len(w.started)-1])
	}
}

// The hint of the phone shows as much as the client gave as the country code.
func TestDialOfTheHint(t *testing.T) {
	w := newWorld(t)
	_, err := w.StartReset(t.Context(), replace.ResetRequest{CountryCode: "9053", Phone: "20000001"}, from)
	storetest.Must(t, err)
	if r := w.started[0]; r.Account.Dial != "9053" || r.Account.UserID != w.user.ID {
		t.Errorf("%+v", r.Account)
	}
}

func TestStartResetRefuses(t *testing.T) {
	w := newWorld(t)
	for _, r := range []replace.ResetRequest{{CountryCode: "x", Phone: "5320000001"}, {CountryCode: "90", Phone: "x"}} {
		_, err := w.StartReset(t.Context(), r, from)
		storetest.Wants(t, err, fault.InvalidField)
		storetest.Wants(t, r.Validate(), fault.InvalidField)
	}
	storetest.Must(t, replace.ResetRequest{CountryCode: "90", Phone: "5320000001"}.Validate())
	_, err := w.reset("5329999999")
	storetest.Wants(t, err, fault.Unavailable)
	w.refuse = []error{fault.New(fault.MFANotAvailable, "no mail")}
	_, err = w.reset("5320000001") // its challenge cannot be created, so it gets a decoy
	if storetest.Must(t, err); w.started[0].Decoy != "subject of +905320000001" {
		t.Errorf("%+v", w.started[0])
	}
	w.refuse = []error{commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, nil}
	_, err = w.reset("5320000001")
	storetest.Must(t, err)
	w.refuse = []error{commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, commit.ErrFenced, nil}
	_, err = w.reset("5320000001")
	storetest.Wants(t, err, fault.Unavailable)
	w.refuse = []error{fault.New(fault.Overloaded, "full")}
	_, err = w.reset("5320000001")
	storetest.Wants(t, err, fault.Overloaded)
	persistencetest.Fails(t, w.db, "users audit", func(context.Context) error {
		_, err := w.reset("5320000001")
		return err
	})
}

// Starts are bounded for the phone and for the network; a refused start counts for neither.
func TestStartsAreBounded(t *testing.T) {
	w := newWorld(t)
	now, guards := func() time.Time { return w.now }, account.NewPasswordGuards(w.db)
	w.Phones = password.NewGuards(guards, w.db, password.Limit(2, time.Minute), now)
	w.Networks = password.NewGuards(guards, w.db, password.Limit(4, time.Minute), now)
	for n, want := range []fault.Code{"", "", fault.RateLimited, fault.RateLimited} {
		_, err := w.reset("5320000001")
		if fault.CodeOf(err) != want {
			t.Errorf("start %d: %v", n, err)
		}
		var f *fault.Error
		if errors.As(err, &f) && (f.Message != "the reset was started too often; try later" || f.RetryAfter <= 0) {
			t.Errorf("%+v", f)
		}
	}
	for n, want := range []fault.Code{"", "", fault.RateLimited} { // the network has two left
		_, err := w.reset(fmt.Sprint("532000010", n))
		if fault.CodeOf(err) != want {
			t.Errorf("another phone %d: %v", n, err)
		}
	}
	w.now = w.now.Add(time.Minute)
	_, err := w.reset("5320000001")
	storetest.Must(t, err)
	persistencetest.Fails(t, w.db, "password_guard", func(context.Context) error {
		_, err := w.reset("5320000002")
		return err
	})
	w.Networks = nil
	for range 9 {
		_, err := w.reset("5320000001")
		storetest.Must(t, err)
	}
}

// A count under the phone's former subject still applies.
func TestFormerSubjectCounts(t *testing.T) {
	w := newWorld(t)
	now, guards := func() time.Time { return w.now }, account.NewPasswordGuards(w.db)
	w.Phones = password.NewGuards(guards, w.db, password.Limit(1, time.Minute), now)
	w.Networks = password.NewGuards(guards, w.db, password.Limit(9, time.Minute), now)
	try, err := w.Phones.Charge(t.Context(), "reset/former of +905320000001", "")
	storetest.Must(t, err)
	try.Wrong()
	_, err = w.reset("5320000001")
	storetest.Wants(t, err, fault.RateLimited)
}

// A completed reset signs an ot-auth token that is valid for ten minutes.
func TestResetAction(t *testing.T) {
	w := newWorld(t)
	r, err := w.build(w.ResetAction(), w.challenge(from), nil)
	storetest.Must(t, err)
	c := w.signed[0]
	if !r.Success || r.Headers["ot-auth"] != "signed "+c.ID || c.Class != token.OTAuth || c.Subject != "" ||
		!c.IssuedAt.Equal(w.now) || !c.ExpiresAt.Equal(w.now.Add(10*time.Minute)) {
		t.Errorf("%+v, %+v", r, c)
	}
	if a := w.ResetAction(); a.Code != "RESET_PASSWORD" || a.Flow != challenge.FlowReset {
		t.Errorf("%+v", a)
	}
	w.no = errors.New("no key")
	if _, err := w.build(w.ResetAction(), w.challenge(from), nil); !errors.Is(err, w.no) {
		t.Error(err)
	}
}

// An ot-auth token sets the password once: it ends every session, clears wrong tries and notifies the user.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	w.login()
	guards := password.NewGuards(account.NewPasswordGuards(w.db), w.db, password.Limit(1, time.Hour), w.Service.Now)
	try, err := guards.Charge(t.Context(), w.user.ID, "192.0.2.0/24")
	storetest.Must(t, err)
	try.Wrong()
	id := w.token()
	storetest.Must(t, w.update(id, second))
	if w.is(first) || !w.is(second) || w.lives() != 0 {
		t.Errorf("first %t, second %t, %d sessions", w.is(first), w.is(second), w.lives())
	}
	storetest.Wants(t, w.update(id, third), fault.TokenRevoked)
	storetest.Same(t, challengetest.Committed(t, delivery.NewOutbox(w.db)),
		[]string{w.user.Email + " password-changed 192.0.2.7"})
	acts := persistencetest.Acts(t, w.db)
	if got := acts[len(acts)-1]; got != "PASSWORD_SET||"+w.user.ID+"|"+w.user.ID+"|with ot-auth; all sessions ended" {
		t.Error(got)
	}
	again := password.NewGuards(account.NewPasswordGuards(w.db), w.db, password.Limit(1, time.Hour), w.Service.Now)
	if _, err := again.Charge(t.Context(), w.user.ID, "192.0.2.0/24"); err != nil {
		t.Errorf("the wrong tries still count: %v", err)
	}
	w.reload()
	w.now = w.now.Add(time.Second)
	from.SessionID = "s1"
	defer func() { from.SessionID = "" }()
	storetest.Must(t, w.update(w.token(), third))
	if acts := persistencetest.Acts(t, w.db); acts[len(acts)-1] !=
		"PASSWORD_SET|"+w.user.ID+"|"+w.user.ID+"|"+w.user.ID+"|with ot-auth; all sessions ended" {
		t.Error(acts[len(acts)-1])
	}
}

// A refused request leaves the token unchanged.
func TestUpdateRefuses(t *testing.T) {
	w := newWorld(t)
	id := w.token()
	storetest.Wants(t, w.update("unknown", second), fault.TokenRevoked)
	storetest.Wants(t, w.Update(t.Context(), replace.UpdateRequest{TokenID: id, Password: second, Verify: third}),
		fault.InvalidField)
	storetest.Wants(t, w.update(id, "short"), fault.InvalidField)
	storetest.Wants(t, w.update(id, first), fault.PasswordReused)
	w.Admits = func(user.User, challenge.Starter) bool { return false }
	storetest.Wants(t, w.update(id, second), fault.GeoBlocked)
	w.Admits = nil
	for columns, back := range map[string]string{"cv = cv + 1": "cv = cv - 1", "status = 'passive'": "status = 'active'",
		"demo = true": "demo = false", "id = 'x'": ""} {
		w.set(columns)
		storetest.Wants(t, w.update(id, second), fault.TokenRevoked)
		if back == "" {
			persistencetest.Exec(t, w.db, "UPDATE users SET id = ? WHERE id = 'x'", w.user.ID)
		} else {
			w.set(back)
		}
	}
	w.now = w.now.Add(10 * time.Minute)
	storetest.Wants(t, w.update(id, second), fault.TokenExpired)
	w.now = w.now.Add(-time.Millisecond)
	w.set("demo = true")
	w.Dev = true
	persistencetest.Fails(t, w.db, "users reset_token audit outbox", func(context.Context) error {
		return w.update(id, second)
	})
}

// A token is found after its key was replaced.
func TestTokenOutlivesItsKey(t *testing.T) {
	w := newWorld(t)
	w.TokenTTL = 2 * keyring.Notice
	id := w.token()
	keyringtest.Replace(t, w.keys)
	w.now = w.now.Add(keyring.Notice)
	w.Ring = w.keys.Ring()
	storetest.Must(t, w.update(id, second))
}

// Each caller takes a place of its site in the queue of hashes.
func TestPlaces(t *testing.T) {
	w := newWorld(t)
	var asked []netip.Addr
	w.Place = func(from client.Origin) string { asked = append(asked, from.Addr); return "" }
	storetest.Must(t, w.update(w.token(), second))
	if len(asked) != 1 || asked[0].String() != "192.0.2.7" {
		t.Errorf("%v", asked)
	}
	full, err := password.NewHasher(password.HasherOptions{Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Slots: 1, Queue: 0, Wait: time.Millisecond})
	storetest.Must(t, err)
	w.Hasher = full
	place, err := full.Admit(password.Caller{})
	storetest.Must(t, err)
	defer place.Leave()
	for range 300 {
		if p, err := full.Admit(password.Caller{}); err == nil {
			defer p.Leave()
		}
	}
	storetest.Wants(t, w.update("x", second), fault.Overloaded)
	_, err = w.prepare(first, second)
	storetest.Wants(t, err, fault.Overloaded)
}
