package totp_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/factor"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

// desk is a service over a real database with a manual clock and one account with an authenticator.
type desk struct {
	*totp.Service
	t     *testing.T
	db    *persistence.DB
	store proof.TOTP
	now   atomic.Int64 // ms
	who   audit.By

	access map[string]any // the result of the setup
	// recovered and byPasskey say how the challenges of the actions were completed.
	recovered, byPasskey bool
}

// told returns the committed notices of a kind.
func (d *desk) told(kind message.Kind) (all []string) {
	d.t.Helper()
	for _, n := range challengetest.Committed(d.t, delivery.NewOutbox(d.db)) {
		if strings.Contains(n, " "+string(kind)+" ") {
			all = append(all, n)
		}
	}
	return all
}

func onBoth(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, newDesk(t, db)) })
}

// newDesk returns a desk over a database.
func newDesk(t *testing.T, db *persistence.DB) *desk {
	t.Helper()
	d := &desk{t: t, db: db, store: proof.NewTOTP(db)}
	d.now.Store(1_700_000_010_000) // the beginning of a step
	d.Service = &totp.Service{Store: d.store, Users: account.NewUsers(db), Budgets: factor.NewChallenges(db),
		Commit: db, Ring: keyringtest.Ring(t, time.Now),
		Notices: challengetest.Notices{Now: d.clock}, Rules: challenge.DefaultRules(),
		Recovery: totp.Limit{Attempts: 5, Window: 15 * time.Minute}, Issuer: "Castellan", Now: d.clock}
	storetest.Must(t, db.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
	d.who = audit.By{UserID: usertest.Sample(1).ID, IP: "203.0.113.9", RequestID: "r1"}
	d.setUp()
	return d
}

func (d *desk) clock() time.Time { return time.UnixMilli(d.now.Load()) }

func (d *desk) pass(t time.Duration) { d.now.Add(t.Milliseconds()) }

// run executes an action like an owner of its challenge.
func (d *desk) run(a challenge.Action, userID string) (r challenge.Result, err error) {
	d.t.Helper()
	ctx := d.t.Context()
	u, err := d.Users.Get(ctx, userID)
	storetest.Must(d.t, err)
	x := challenge.Execution{Challenge: challenge.Challenge{UserID: userID, Body: challenge.Body{CV: u.CV,
		Recovered: d.recovered}}, Now: d.Now()}
	if d.byPasskey {
		x.Challenge.Methods = []challenge.Method{{Order: 1, Proof: &challenge.Proof{DeviceID: "p1", JWS: passkey.Text}}}
	}
	if a.Prepare != nil {
		if x.Prepared, err = a.Prepare(ctx, x); err != nil {
			return r, err
		}
	}
	var told error // by the action, which the end of the transaction must not hide
	err = d.db.InTx(ctx, func(ctx context.Context) error { r, told = a.Exec(ctx, x); return told })
	if err != nil && told == nil {
		d.t.Errorf("the action %s did not report that it failed", a.Code)
	}
	return r, err
}

func (d *desk) setUp() {
	d.t.Helper()
	r, err := d.run(d.SetupAction(), d.who.UserID)
	if storetest.Must(d.t, err); !r.Success {
		d.t.Errorf("a setup reports no success: %+v", r)
	}
	d.access = nil
	storetest.Must(d.t, json.Unmarshal(r.Data, &d.access))
}

func (d *desk) recovery(n int) string { return d.access["recoveryCodes"].([]any)[n].(string) }

// code returns the app's code, some steps from now.
func (d *desk) code(steps int64) string {
	d.t.Helper()
	stored := storetest.Value(d.store.Get(d.t.Context(), d.who.UserID))(d.t)
	secret := storetest.Value(d.Ring.Open(stored.Sealed, totp.SecretData(stored.UserID, stored.ID)))(d.t)
	return totp.CodeAt(secret, totp.StepAt(d.Now())+steps)
}

func (d *desk) wrong() string {
	for c := byte('0'); ; c++ {
		code := strings.Repeat(string(c), 6)
		if code != d.code(-1) && code != d.code(0) && code != d.code(1) {
			return code
		}
	}
}

func expect(t *testing.T, err error, code fault.Code) *fault.Error {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v, want %q", err, code)
	}
	var f *fault.Error
	errors.As(err, &f)
	return f
}

func TestActions(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	_, err := d.run(d.SetupAction(), d.who.UserID)
	expect(t, err, fault.TOTPAlreadyDefined)
	if _, err := d.SetupAction().Exec(t.Context(), challenge.Execution{}); err == nil {
		t.Error("a setup without preparation passed")
	}
	_, err = d.run(d.DeactivateAction(), usertest.Sample(2).ID)
	expect(t, err, fault.TOTPNotDefined)
	// The account changed between challenge and execution.
	x := challenge.Execution{Challenge: challenge.Challenge{UserID: d.who.UserID, Body: challenge.Body{CV: 1}},
		Now: d.Now()}
	err = d.db.InTx(t.Context(), func(ctx context.Context) error {
		_,
			err := d.DeactivateAction().Exec(ctx, x)
		return err
	})
	if !errors.Is(err, commit.ErrFenced) {
		t.Errorf("an old credential version: %v", err)
	}
	r, err := d.run(d.DeactivateAction(), d.who.UserID)
	if err != nil || !r.Success || r.Data != nil {
		t.Errorf("%+v, %v", r, err)
	}
	u, err := d.Users.Get(t.Context(), d.who.UserID)
	if err != nil || u.TOTP || u.CV != 3 {
		t.Errorf("%+v, %v", u, err)
	}
	if on, off := d.told(message.TOTPOn), d.told(message.TOTPOff); len(on) != 1 || len(off) != 1 {
		t.Errorf("notified %q, %q", on, off)
	}
}

func TestJudge(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	ctx := t.Context()
	judge := func(code string) (challenge.Verdict, *challenge.Use) {
		t.Helper()
		v, use, err := d.Judge(ctx, d.who.UserID, code)
		storetest.Must(t, err)
		storetest.Equal(t, (v == challenge.Right), (use != nil), "verdict", v, "with use", use)
		return v, use
	}
	for steps, want := range map[int64]challenge.Verdict{-2: challenge.Wrong, -1: challenge.Right, 0: challenge.Right,
		1: challenge.Right, 2: challenge.Wrong} {
		if v, _ := judge(d.code(steps)); v != want {
			t.Errorf("%+d steps: %v", steps, v)
		}
	}
	old := d.code(0)
	v, use := judge(old) // judging does not use it up
	if v != challenge.Right {
		t.Fatalf("verdict %v", v)
	}
	c := challenge.Challenge{UserID: d.who.UserID}
	storetest.Must(t, d.db.Commit(ctx, totp.Use(c, *use)...))
	storetest.Is(t, d.db.Commit(ctx, totp.Use(c, *use)...), commit.ErrFenced, "the use again")
	c.UserID = usertest.Sample(2).ID
	if err := d.db.Commit(ctx, totp.Use(c, challenge.Use{Key: use.Key, Value: use.Value +
		1})...); !errors.Is(err, commit.ErrFenced) {
		t.Errorf("another user's use: %v", err)
	}
	for steps, want := range map[int64]challenge.Verdict{-1: challenge.Wrong, 0: challenge.Wrong, 1: challenge.Right} {
		if v, _ := judge(d.code(steps)); v != want {
			t.Errorf("after the use, %+d steps: %v", steps, v)
		}
	}
	d.pass(30 * time.Second)
	if v, _ := judge(old); v != challenge.Wrong {
		t.Error("a used code is right in the next step")
	}
	d.pass(-5 * time.Minute) // a clock that jumps back makes no code valid again
	if v, _ := judge(d.code(0)); v != challenge.Wrong {
		t.Error("an older step is right when the clock is set back")
	}
}

// D-AUTH-08: a code is required, counted if wrong, and used up.
func TestVerify(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	ctx := t.Context()
	expect(t, d.Verify(ctx, audit.By{}, "123456"), fault.OTPRequired)
	expect(t, d.Verify(ctx, d.who, ""), fault.OTPRequired)
	expect(t, d.Verify(ctx, audit.By{UserID: usertest.Sample(2).ID}, "123456"), fault.OTPRequired)
	code := d.code(0)
	storetest.Must(t, d.Verify(ctx, d.who, code))
	for left := 9; left >= 0; left-- {
		f := expect(t, d.Verify(ctx, d.who, code), fault.OTPInvalid) // a replay is a wrong value
		if f.AttemptsLeft == nil || *f.AttemptsLeft != left {
			t.Errorf("%v, want %d attempts left", f, left)
		}
		d.pass(time.Second)
	}
	f := expect(t, d.Verify(ctx, d.who, d.code(1)), fault.RateLimited)
	storetest.Equal(t, f.RetryAfter, 15*time.Minute-10*time.Second, "retry after")
	// The count is that of the challenges started in a session.
	b, err := d.Budgets.Budget(ctx, d.who.UserID, challenge.FlowSession)
	if err != nil || len(b.TOTP) != 10 || b.Wait(d.Now(), d.Rules, challenge.TOTP) == 0 {
		t.Errorf("%+v, %v", b, err)
	}
	d.pass(f.RetryAfter - time.Millisecond)
	expect(t, d.Verify(ctx, d.who, d.code(0)), fault.RateLimited)
	d.pass(time.Millisecond) // the window rolls: one attempt is free again
	expect(t, d.Verify(ctx, d.who, d.wrong()), fault.OTPInvalid)
	expect(t, d.Verify(ctx, d.who, d.code(0)), fault.RateLimited)
	d.pass(15 * time.Minute)
	storetest.Must(t, d.Verify(ctx, d.who, d.code(0)))
	rows, err := kit.NewAudit(d.db).Verify(ctx, []byte("audit key of the test"))
	if err != nil || rows != 1+11 { // the setup and the refusals
		t.Errorf("%d audit rows, %v", rows, err)
	}
}

// Under concurrency one code is accepted once, and exactly as many wrong values are evaluated as the rules allow.
func TestVerifyUnderRace(t *testing.T) {
	onBoth(t, func(t *testing.T, d *desk) {
		code := d.code(0)
		codes := crowd(200, func() error { return d.Verify(t.Context(), d.who, code) })
		if codes[""] != 1 || codes[fault.OTPInvalid] != 10 || codes[fault.RateLimited] != 189 {
			t.Errorf("%v", codes)
		}
		// Two nodes do not share turns.
		d.pass(time.Hour)
		other := nodeOf(d)
		code = d.code(0)
		var n atomic.Int64
		codes = crowd(40, func() error {
			if n.Add(1)%2 == 0 {
				return other.Verify(t.Context(), d.who, code)
			}
			return d.Verify(t.Context(), d.who, code)
		})
		if codes[""] != 1 || codes[fault.OTPInvalid] != 10 || codes[fault.RateLimited] != 29 {
			t.Errorf("on two nodes: %v", codes)
		}
	})
}

// nodeOf returns the service of another node over the same database.
func nodeOf(d *desk) *totp.Service {
	s := d.Service
	return &totp.Service{Store: s.Store, Users: s.Users, Budgets: s.Budgets, Commit: s.Commit, Ring: s.Ring,
		Notices: s.Notices, Rules: s.Rules,
		Recovery: s.Recovery, Issuer: s.Issuer, Now: s.Now}
}

func crowd(n int, try func() error) map[fault.Code]int {
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[fault.Code]int{}
	for range n {
		wg.Go(func() {
			err := try()
			mu.Lock()
			defer mu.Unlock()
			codes[fault.CodeOf(err)]++
		})
	}
	wg.Wait()
	return codes
}
