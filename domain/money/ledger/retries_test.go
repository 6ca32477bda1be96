package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// shaky is a ledger that answers units as a test says.
type shaky struct {
	ledger.Store
	commit.Committer
	refuse func(unit int, writes []commit.Write) error // of a unit, counted from 1
	units  int
}

func (s *shaky) Commit(ctx context.Context, writes ...commit.Write) error {
	s.units++
	if s.refuse != nil {
		if err := s.refuse(s.units, writes); err != nil {
			return err
		}
	}
	return s.Committer.Commit(ctx, writes...)
}

func newShaky(t *testing.T) (*shaky, *ledger.Ledger) {
	t.Helper()
	db := persistencetest.SQLite(t)
	s := &shaky{Store: money.NewLedger(db), Committer: db}
	return s, ledgertest.New(s, s)
}

func pays(ref string, from, to ledger.Account, sum string) ledger.Movement {
	now := time.UnixMilli(1_700_000_000_000)
	return ledger.Movement{Transfers: []ledger.Transfer{ledger.New(now, "test", ref, from, to, amount.Must(sum))}}
}

// opened is a shaky ledger in which alice has 10.
func opened(t *testing.T) (*shaky, *ledger.Ledger) {
	t.Helper()
	s, l := newShaky(t)
	_, err := l.Do(t.Context(), audit.Operator, pays("0", treasury, alice, "10"))
	storetest.Must(t, err)
	s.units = 0
	return s, l
}

func (s *shaky) has(t *testing.T, want string) {
	t.Helper()
	b, err := s.Balances(t.Context(), alice)
	if err != nil || len(b) != 1 || b[0].Posted != amount.Must(want) {
		t.Errorf("alice has %+v, %v, want %s", b, err, want)
	}
}

// A movement is decided 50 times where its balances change each time. It is decided again once where its reference
// seems taken. Any other error ends it at once, and so does a transaction of the caller.
func TestRetries(t *testing.T) {
	taken, down := fault.New(fault.RecordAlreadyExist, "taken"), fault.New(fault.Unavailable, "down")
	for name, c := range map[string]struct {
		refuse func(unit int) error
		inside bool
		want   fault.Code
		units  int
	}{
		"always fenced": {func(int) error { return commit.ErrFenced }, false, fault.Overloaded, 50},
		"49 times fenced": {func(n int) error {
			if n < 50 {
				return commit.ErrFenced
			}
			return nil
		}, false, "", 50},
		"once taken": {func(n int) error {
			if n == 1 {
				return taken
			}
			return nil
		}, false, "", 2},
		"always taken":         {func(int) error { return taken }, false, fault.RecordAlreadyExist, 2},
		"another error":        {func(int) error { return down }, false, fault.Unavailable, 1},
		"fenced in the caller": {func(int) error { return commit.ErrFenced }, true, fault.Unavailable, 1},
		"taken in the caller":  {func(int) error { return taken }, true, fault.Unavailable, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, l := opened(t)
			s.refuse = func(unit int, _ []commit.Write) error { return c.refuse(unit) }
			ctx := t.Context()
			if c.inside {
				ctx, _ = commit.Hooks(ctx)
			}
			r, err := l.Do(ctx, audit.Operator, pays("1", alice, treasury, "4"))
			if (err == nil) != (c.want == "") || err != nil && fault.CodeOf(err) != c.want || s.units != c.units ||
				(len(r.Transfers) == 1) != (c.want == "") {
				t.Errorf("%s: %+v, %v after %d units", name, r, err, s.units)
			}
			s.has(t, map[bool]string{true: "6", false: "10"}[c.want == ""])
		})
	}
}

// A caller that leaves ends the tries between two of them, and the wait for the turn of an account.
func TestCallerLeavesRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, l := opened(t)
		ctx, cancel := context.WithCancel(t.Context())
		inside := make(chan struct{})
		s.refuse = func(unit int, _ []commit.Write) error {
			if unit == 1 {
				inside <- struct{}{}
				<-inside
				cancel()
			}
			return commit.ErrFenced
		}
		done := make(chan error)
		go func() {
			_, err := l.Do(ctx, audit.Operator, pays("1", alice, treasury, "1"))
			done <- err
		}()
		<-inside // the first movement has the turn of alice
		waits, leave := context.WithCancel(t.Context())
		go func() {
			_, err := l.Do(waits, audit.Operator, pays("2", alice, bob, "1"))
			done <- err
		}()
		synctest.Wait()
		leave()
		if err := <-done; !errors.Is(err, context.Canceled) || s.units != 1 {
			t.Errorf("a wait for a turn: %v, %d units", err, s.units)
		}
		inside <- struct{}{}
		if err := <-done; !errors.Is(err, context.Canceled) || s.units > 3 {
			t.Errorf("a try: %v, %d units", err, s.units)
		}
		s.refuse = nil
		_, err := l.Do(t.Context(), audit.Operator, pays("3", alice, bob, "1"))
		storetest.Must(t, err)
		s.has(t, "9")
	})
}

// A write that opens an account reports its error. Another node that opened it first is no error.
func TestOpeningAccounts(t *testing.T) {
	s, l := newShaky(t)
	l.Decimals = func(context.Context, int64) (int, error) { return 0, errDown }
	if _, err := l.Do(t.Context(), audit.Operator, pays("1", treasury, bob, "1")); !errors.Is(err,
		errDown) || s.units != 0 {
		t.Errorf("decimals: %v, %d units", err, s.units)
	}
	for _, answer := range []error{fault.New(fault.RecordAlreadyExist, "another node was first"), errDown} {
		for _, kind := range []string{"asset", "account"} {
			s, l := newShaky(t)
			s.refuse = func(_ int, writes []commit.Write) error {
				if writes[0].Table() != kind {
					return nil
				}
				storetest.Must(t, s.Committer.Commit(t.Context(), writes...))
				return answer
			}
			_, err := l.Do(t.Context(), audit.Operator, pays("1", treasury, alice, "1"))
			if errors.Is(answer, errDown) != errors.Is(err, errDown) || !errors.Is(err, errDown) && err != nil {
				t.Errorf("%s, %v: %v", kind, answer, err)
			}
		}
	}
}

// A finer amount is taken as soon as the asset has more decimals. Otherwise it is refused.
func TestFinerAmounts(t *testing.T) {
	decimals := map[int]error{2: ledger.ErrPrecision, 3: nil, 4: nil}
	for d, want := range decimals {
		_, l := opened(t)
		l.Decimals = func(context.Context, int64) (int, error) { return d, nil }
		ctx, _ := commit.Hooks(t.Context()) // also inside a transaction
		storetest.Is(t, storetest.Err(l.Do(ctx, audit.Operator, pays("1", alice, treasury, "0.001"))), want, d)
	}
	s, l := opened(t)
	l.Decimals = func(context.Context, int64) (int, error) { return 0, errDown }
	storetest.Is(t, storetest.Err(l.Do(t.Context(), audit.Operator, pays("1", alice, treasury, "0.001"))), errDown)
	l.Decimals = func(context.Context, int64) (int, error) { return 3, nil }
	s.refuse = func(int, []commit.Write) error { return errDown } // the record of the decimals
	if _, err := l.Do(t.Context(), audit.Operator, pays("1", alice, treasury, "0.001")); !errors.Is(err, errDown) ||
		s.units != 1 {
		t.Errorf("%v, %d units", err, s.units)
	}
}

// No sum goes beyond an amount: of a balance, of the locked part of it, or of what a movement adds. A full account of
// the operator is no fault of the request, and is reported to the operator.
func TestSumsBeyondAmounts(t *testing.T) {
	const most = "999999999999999999"
	carol := ledger.Account{Kind: ledger.User, Owner: "carol", Asset: 1}
	two := pays("2", treasury, bob, most)
	two.Transfers = append(two.Transfers, pays("3", treasury, carol, most).Transfers...)
	now := time.UnixMilli(1_700_000_000_000)
	hold := func(ref string) ledger.Movement {
		h := ledger.NewHold(now, "test", ref, "order", bob, amount.Must(most))
		h.Beyond = true
		return ledger.Movement{Take: []ledger.Hold{h}}
	}
	for name, c := range map[string]struct {
		before, m ledger.Movement
		want      error
	}{
		"one account":  {pays("1", treasury, bob, most), pays("2", suspense, bob, "1"), ledger.ErrTooLarge},
		"one side":     {pays("1", treasury, alice, "1"), two, ledger.ErrFull},
		"the treasury": {pays("1", treasury, alice, most), pays("2", treasury, bob, "1"), ledger.ErrFull},
		"holds":        {hold("1"), hold("2"), ledger.ErrTooLarge},
		"no opposite": {pays("1", treasury, alice, "1"), pays("2", treasury, bob, amount.Most.String()),
			ledger.ErrTooLarge},
	} {
		var alarms int
		_, l := newShaky(t)
		l.Decimals = func(context.Context, int64) (int, error) { return 18, nil }
		_, err := l.Do(t.Context(), audit.Operator, c.before)
		storetest.Must(t, err)
		l.Full = func(ledger.Movement) { alarms++ }
		if r, err := l.Do(t.Context(), audit.Operator, c.m); !errors.Is(err, c.want) ||
			len(r.Transfers)+len(r.Holds) != 0 || (alarms > 0) != (c.want == ledger.ErrFull) {
			t.Errorf("%s: %+v, %v, %d alarms", name, r, err, alarms)
		}
	}
	b := &ledger.Batch{By: audit.Operator, Units: map[int64]int64{1: 1}}
	if b.Rounds() != nil {
		t.Error("a batch without movements has rounds")
	}
	for ref, to := range map[string]ledger.Account{"1": alice, "2": bob} {
		storetest.Must(t, b.Do(pays(ref, treasury, to, most)))
	}
	_, adds := savesOf(b.Rounds()[1])
	if adds != 2 { // one by one, since their sum is not an amount
		t.Errorf("%d additions", adds)
	}
}

// A check of the schema refuses what another node has made too large meanwhile. The next decision says so.
func TestAnotherNodeFillsTheTreasury(t *testing.T) {
	s, l := opened(t)
	late := 0
	s.refuse = func(_ int, writes []commit.Write) error {
		if late > 0 || !slices.ContainsFunc(writes, func(w commit.Write) bool { _, is := w.(ledger.Add); return is }) {
			return nil
		}
		late++
		storetest.Must(t, s.Committer.Commit(t.Context(), ledger.Add{Account: treasury, Count: 1,
			Amount: amount.Must("-999999999999999900")}))
		return commit.ErrCheck
	}
	_, err := l.Do(t.Context(), audit.Operator, pays("1", treasury, bob, "100"))
	storetest.Is(t, err, ledger.ErrFull)
	storetest.Equal(t, late, 1)
	s.refuse = func(int, []commit.Write) error { return commit.ErrCheck }
	storetest.Is(t, storetest.Err(l.Do(t.Context(), audit.Operator, pays("2", treasury, bob, "1"))), commit.ErrCheck)
}

// The audit row of a transfer names the user of its credit side, otherwise that of its debit side, if any.
func TestUsersOfTransfers(t *testing.T) {
	s, l := opened(t)
	var users []string
	s.refuse = func(_ int, writes []commit.Write) error {
		for _, w := range writes {
			if r, ok := w.(audit.Record); ok {
				users = append(users, r.UserID+" "+r.Action)
			}
		}
		return nil
	}
	for _, m := range []ledger.Movement{pays("1", alice, bob, "1"), pays("2", alice, treasury, "1"),
		pays("3", treasury, suspense, "1")} {
		_, err := l.Do(t.Context(), audit.Operator, m)
		storetest.Must(t, err)
	}
	storetest.Same(t, users, []string{"bob LEDGER_TRANSFER", "alice LEDGER_TRANSFER", " LEDGER_TRANSFER"})
}

// A movement of which only the first part exists is refused.
func TestPartOfAMovementExists(t *testing.T) {
	s, l := opened(t)
	_, err := l.Do(t.Context(), audit.Operator, pays("1", alice, bob, "1"))
	storetest.Must(t, err)
	m := pays("1", alice, bob, "1")
	m.Transfers = append(m.Transfers, pays("2", alice, bob, "1").Transfers...)
	if _, err := l.Do(t.Context(), audit.Operator, m); !errors.Is(err, ledger.ErrConflict) || s.units != 2 {
		t.Errorf("%v after %d units", err, s.units) // one opened the account of bob
	}
	s.has(t, "9")
}

// A decision on balances is made again where a hold has ended since its plan. Without writes nothing is committed.
func TestPlansAreMadeAgain(t *testing.T) {
	s, l := opened(t)
	h := ledger.NewHold(time.UnixMilli(1), "test", "1", "order", alice, amount.Must("4"))
	_, err := l.Do(t.Context(), audit.Operator, ledger.Movement{Take: []ledger.Hold{h}})
	storetest.Must(t, err)
	plans := 0
	for want, end := range map[int]string{2: "release", 1: "nothing"} {
		plans, s.units = 0, 0
		r, err := l.Decide(t.Context(), audit.Operator, []ledger.Account{alice}, func(ctx context.Context,
			seen []ledger.Balance) (ledger.Movement, error) {
			if plans++; end == "nothing" || plans == 2 {
				return ledger.Movement{}, nil
			}
			if len(seen) != 1 || seen[0].Locked != amount.Must("4") {
				t.Errorf("seen %+v", seen)
			}
			_, err := ledgertest.New(s, s.Committer).Do(ctx, audit.Operator, ledger.Movement{End: []ledger.End{{Hold: h.ID}}})
			return ledger.Movement{End: []ledger.End{{Hold: h.ID}}}, err
		})
		if err != nil || plans != want || len(r.Transfers)+len(r.Holds) != 0 || s.units != 0 {
			t.Errorf("%s: %+v, %v after %d plans and %d units", end, r, err, plans, s.units)
		}
	}
}
