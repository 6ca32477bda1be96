package proof_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/totp"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

func TestTOTPStore(t *testing.T) {
	persistencetest.RunBoth(t, func(t *testing.T, open storetest.Open[totpStores]) {
		storetest.Run(t, usertest.WithTwo(open), storetest.Cases[totpStores]{
			"DefineAndRead":      totpDefineAndRead,
			"DefineUnderRace":    totpDefineUnderRace,
			"StepsOnlyRise":      totpStepsOnlyRise,
			"StepInATransaction": totpStepInATransaction,
			"CodeUnderRace":      totpCodeUnderRace,
			"RemoveEndsAll":      totpRemove,
		})
	}, func(db *persistence.DB) totpStores {
		return totpStores{proof.NewTOTP(db), account.NewUsers(db), db}
	}, "users", "totp", "recovery_code")
}

// totpStores are authenticators with their accounts.
type totpStores struct {
	totp.Store
	Users user.Store
	commit.Committer
}

func userID(n int) string { return usertest.Sample(n).ID }

func defined(n int, id string) totp.Define {
	d := totp.Define{Definition: totp.Definition{UserID: userID(n), ID: id, Sealed: []byte("sealed " + id),
		CreatedAt: usertest.Now}}
	for i := range totp.RecoveryCodes {
		d.Codes = append(d.Codes, keyring.Sum{Key: fmt.Sprint("key", i%2), Sum: fmt.Append(nil, id, " code ", i)})
	}
	return d
}

func totpDefineAndRead(t *testing.T, s totpStores, _ commit.Committer) {
	ctx, want := t.Context(), defined(1, "d1")
	want.LastStep = 7
	if d, err := s.Get(ctx, userID(1)); fault.CodeOf(err) != fault.TOTPNotDefined {
		t.Errorf("before: %+v, %v", d, err)
	}
	storetest.Must(t, s.Commit(ctx, user.SetTOTP{UserID: userID(1), CV: 1, Defined: true}, want))
	storetest.Same(t, storetest.Value(s.Get(ctx, userID(1)))(t), want.Definition)
	codes := storetest.Value(s.Codes(ctx, userID(1), "d1"))(t)
	if len(codes) != totp.RecoveryCodes {
		t.Fatalf("%d codes", len(codes))
	}
	for i, c := range codes {
		if c.Number != i+1 || !reflect.DeepEqual(c.Sum, want.Codes[i]) || !c.UsedAt.IsZero() {
			t.Errorf("code %d: %+v", i, c)
		}
	}
	storetest.Equal(t, len(storetest.Value(s.Codes(ctx, userID(1), "d2"))(t)), 0, "of another definition")
	u, err := s.Users.Get(ctx, userID(1))
	if err != nil || !u.TOTP || u.CV != 2 || !u.Account().TOTP {
		t.Errorf("the account: %+v, %v", u, err)
	}
	if u, err := s.Users.Login(ctx, user.Identifier{Phone: u.Phone}, "?"); err != nil || !u.TOTP {
		t.Errorf("at the login: %+v, %v", u, err)
	}
	if u, err := s.Users.Get(ctx, userID(2)); err != nil || u.TOTP || u.CV != 1 {
		t.Errorf("another account: %+v, %v", u, err)
	}
}

// race runs 20 callers, half of them in transactions of their own. One unit commits, and the others are fenced out.
func race(t *testing.T, c commit.Committer, unit func(i int) []commit.Write) {
	t.Helper()
	storetest.OneWins(t, 20, fault.Unavailable, func(i int) error {
		do := func(ctx context.Context, write func(context.Context) error) error { return write(ctx) }
		if i%2 == 1 {
			do = c.InTx
		}
		err := do(t.Context(), func(ctx context.Context) error { return c.Commit(ctx, unit(i)...) })
		if errors.Is(err, commit.ErrFenced) {
			return fault.New(fault.Unavailable, "fenced out")
		}
		return err
	})
}

func totpDefineUnderRace(t *testing.T, s totpStores, _ commit.Committer) {
	race(t, s, func(i int) []commit.Write {
		return []commit.Write{user.SetTOTP{UserID: userID(1), CV: 1, Defined: true}, defined(1, fmt.Sprint("d", i))}
	})
	d := storetest.Value(s.Get(t.Context(), userID(1)))(t)
	storetest.Equal(t, len(storetest.Value(s.Codes(t.Context(), userID(1), d.ID))(t)), totp.RecoveryCodes)
}

func totpStepsOnlyRise(t *testing.T, s totpStores, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.Commit(ctx, defined(1, "d1"), defined(2, "d2")))
	for _, c := range []struct {
		use totp.UseStep
		ok  bool
	}{
		{totp.UseStep{UserID: userID(1), ID: "d1", Step: 100}, true},
		{totp.UseStep{UserID: userID(1), ID: "d1", Step: 100}, false},
		{totp.UseStep{UserID: userID(1), ID: "d1", Step: 99}, false},
		{totp.UseStep{UserID: userID(2), ID: "d1", Step: 101}, false}, // another's definition
		{totp.UseStep{UserID: userID(1), ID: "d2", Step: 101}, false},
		{totp.UseStep{UserID: userID(3), ID: "d1", Step: 101}, false},
		{totp.UseStep{UserID: userID(1), ID: "d1", Step: 101}, true},
		{totp.UseStep{UserID: userID(2), ID: "d2", Step: 1}, true},
	} {
		err := s.Commit(ctx, c.use)
		if c.ok && err != nil || !c.ok && !errors.Is(err, commit.ErrFenced) {
			t.Errorf("%+v: %v", c.use, err)
		}
	}
	for n, want := range map[int]int64{1: 101, 2: 1} {
		storetest.Equal(t, storetest.Value(s.Get(ctx, userID(n)))(t).LastStep, want, n)
	}
}

// A step used in a transaction is used at its commit, and callers outside it wait for that.
func totpStepInATransaction(t *testing.T, s totpStores, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.Commit(ctx, defined(1, "d1")))
	use := totp.UseStep{UserID: userID(1), ID: "d1", Step: 7}
	undone := errors.New("undone")
	for _, end := range []error{undone, nil} {
		err := s.InTx(ctx, func(ctx2 context.Context) error {
			storetest.Must(t, s.Commit(ctx2, use))
			storetest.Is(t, s.Commit(ctx2, use), commit.ErrFenced, "again in the transaction")
			return end
		})
		if !errors.Is(err, end) {
			t.Error(err)
		}
	}
	storetest.Is(t, s.Commit(ctx, use), commit.ErrFenced, "after the transaction")
}

func totpCodeUnderRace(t *testing.T, s totpStores, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.Commit(ctx, defined(1, "d1")))
	at := usertest.Now.Add(time.Hour)
	use := totp.UseCode{UserID: userID(1), ID: "d1", Number: 3, At: at}
	race(t, s, func(int) []commit.Write { return []commit.Write{use} })
	for _, other := range []totp.UseCode{{UserID: userID(1), ID: "d2", Number: 1, At: at},
		{UserID: userID(2), ID: "d1", Number: 1, At: at}, {UserID: userID(1), ID: "d1", Number: 6, At: at}} {
		storetest.Is(t, s.Commit(ctx, other), commit.ErrFenced, other)
	}
	codes := storetest.Value(s.Codes(ctx, userID(1), "d1"))(t)
	for _, c := range codes {
		if used := c.Number == 3; used != !c.UsedAt.IsZero() || used && !c.UsedAt.Equal(at) {
			t.Errorf("%+v", c)
		}
	}
}

func totpRemove(t *testing.T, s totpStores, _ commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, s.Commit(ctx, user.SetTOTP{UserID: userID(1), CV: 1, Defined: true},
		defined(1, "d1"), defined(2, "d2")))
	storetest.Must(t, s.Commit(ctx, user.SetTOTP{UserID: userID(1), CV: 2, Defined: false},
		totp.Remove{UserID: userID(1)}))
	storetest.Wants(t, storetest.Err(s.Get(ctx, userID(1))), fault.TOTPNotDefined, "after the removal")
	if u, err := s.Users.Get(ctx, userID(1)); err != nil || u.TOTP || u.CV != 3 {
		t.Errorf("the account: %+v, %v", u, err)
	}
	for _, w := range []commit.Write{totp.UseStep{UserID: userID(1), ID: "d1", Step: 9},
		totp.UseCode{UserID: userID(1), ID: "d1", Number: 1, At: usertest.Now}} {
		storetest.Is(t, s.Commit(ctx, w), commit.ErrFenced, w)
	}
	storetest.Must(t, s.Commit(ctx, defined(1, "d3")))
	storetest.Equal(t, len(storetest.Value(s.Codes(ctx, userID(1), "d1"))(t)), 0, "old codes live on")
	if err := s.Commit(ctx, totp.UseCode{UserID: userID(1), ID: "d1", Number: 1,
		At: usertest.Now}); !errors.Is(err, commit.ErrFenced) {
		t.Errorf("an old code beside new ones: %v", err)
	}
	storetest.Value(s.Get(ctx, userID(2)))(t)
}
