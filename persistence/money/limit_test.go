package money_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/domain/money/level"
	"castellan/domain/money/limit"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestLimitStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) limitStores {
		return limitStores{Store: money.NewLimits(db), Ledger: money.NewLedger(db)}
	},
		storetest.Cases[limitStores]{"Moved": limitMoved, "Waits": limitWaits, "TooMuch": limitTooMuch})
}

// limitStores are the tested store and the store of the ledger, whose movements count.
type limitStores struct {
	limit.Store
	Ledger ledger.Store
}

// The instants of the cases.
var (
	limitMonth = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	limitDay   = time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)
)

// limitWorld books movements.
type limitWorld struct {
	*testing.T
	l *ledger.Ledger
	c commit.Committer
	n int
}

// move books a deposit, or a withdrawal for a negative amount.
func (w *limitWorld) move(at time.Time, user string, asset int64, sum string) ledger.Transfer {
	w.Helper()
	w.n++
	a, treasury := amount.Must(sum), ledger.Account{Kind: ledger.Treasury, Asset: asset}
	to := fmt.Sprint("address ", w.n)
	var t ledger.Transfer
	var row commit.Write
	if a.Sign() > 0 {
		t = ledger.New(at, "in", fmt.Sprint(user, w.n), treasury, owned(user, asset), a)
		row = transaction.AddDeposit{Deposit: transaction.Deposit{ID: t.ID, UserID: user, Asset: asset, Amount: a,
			Status: transaction.Finalized, ToAddress: to, TransferID: t.ID, At: at}}
	} else {
		a, _ = a.Neg()
		t = ledger.New(at, "out", fmt.Sprint(user, w.n), owned(user, asset), treasury, a)
		row = transaction.AddWithdrawal{Withdrawal: transaction.Withdrawal{ID: t.ID, UserID: user, Asset: asset, Amount: a,
			Status: transaction.Finalized, ToAddress: to, TransferID: t.ID, At: at}}
	}
	r, err := w.l.Do(w.Context(), audit.By{}, ledger.Movement{Transfers: []ledger.Transfer{t}, With: []commit.Write{row}})
	storetest.Must(w, err)
	return r.Transfers[0]
}

func limitMoved(t *testing.T, s limitStores, c commit.Committer) {
	w := &limitWorld{T: t, l: ledgertest.New(s.Ledger, c), c: c}
	first, noon := limitMonth, limitDay.Add(12*time.Hour)
	w.move(limitMonth.Add(-time.Millisecond), "u1", 1, "1000") // the previous month
	w.move(first, "u1", 1, "0.75")
	w.move(limitDay.Add(-time.Millisecond), "u1", 1, "1.5")
	w.move(limitDay, "u1", 1, "2.25")
	w.move(noon, "u1", 1, "-0.5")
	w.move(first, "u1", 1, "-0.25")
	w.move(first, "u1", 2, "7")
	w.move(noon, "u2", 1, "5")
	back := w.move(noon, "u1", 2, "3")
	_, err := w.l.Do(t.Context(), audit.By{}, ledger.Movement{
		Transfers: []ledger.Transfer{ledger.Reversal(noon, back, "a mistake")}})
	storetest.Must(t, err)
	// Pending entries have no transfer: a deposit that is not credited, an amount that is only held.
	hold := ledger.NewHold(noon, "queue", "1", "withdrawal", owned("u1", 2), amount.Must("1"))
	_, err = w.l.Do(t.Context(), audit.By{}, ledger.Movement{Take: []ledger.Hold{hold}, With: []commit.Write{
		transaction.AddDeposit{Deposit: transaction.Deposit{ID: "waits", UserID: "u1", Asset: 2, Amount: amount.Must("9"),
			Status: -5, At: noon}},
		transaction.AddWithdrawal{Withdrawal: transaction.Withdrawal{ID: "held", UserID: "u1", Asset: 2,
			Amount: amount.Must("1"), HoldID: hold.ID, At: noon}}}})
	storetest.Must(t, err)
	for user, want := range map[string][]limit.Moved{
		"u1": {
			{Asset: 1, Today: amount.Must("0.5"), Month: amount.Must("0.75")},
			{Asset: 1, Received: true, Today: amount.Must("2.25"), Month: amount.Must("4.5")},
			{Asset: 2, Received: true, Month: amount.Must("7")},
		},
		"u2":     {{Asset: 1, Received: true, Today: amount.Must("5"), Month: amount.Must("5")}},
		"nobody": nil,
	} {
		got := storetest.Value(s.Moved(t.Context(), user, limitMonth, limitDay))(t)
		storetest.Same(t, got, want)
	}
}

// A queued withdrawal counts as sent today, whenever it was requested, until it is booked or abandoned (D-INT-04).
func limitWaits(t *testing.T, s limitStores, c commit.Committer) {
	w := &limitWorld{T: t, l: ledgertest.New(s.Ledger, c), c: c}
	w.move(limitMonth, "w1", 1, "10")
	w.move(limitDay, "w1", 1, "-0.5")
	for i, status := range []transaction.Status{transaction.WaitingQueue, transaction.Failed, transaction.WaitingQueue,
		transaction.Cancelled} {
		at := limitMonth.Add(-time.Hour)
		m, err := transaction.Enqueue(transaction.Withdrawal{UserID: "w1", Asset: 1, Amount: amount.Must("1.25"), At: at},
			transaction.Queued{Status: transaction.QueueReady}, amount.Must("0.25"))
		storetest.Must(t, err)
		add := m.With[0].(transaction.AddWithdrawal)
		add.Withdrawal.Status, add.Withdrawal.ToAddress = status, fmt.Sprint("waits ", i)
		m.With[0] = add
		_, err = w.l.Do(t.Context(), audit.By{}, m)
		storetest.Must(t, err)
	}
	got := storetest.Value(s.Moved(t.Context(), "w1", limitMonth, limitDay))(t)
	storetest.Same(t, got, []limit.Moved{{Asset: 1, Today: amount.Must("3"), Month: amount.Must("3")},
		{Asset: 1, Received: true, Month: amount.Must("10")}})
}

// A sum too large for an amount is not an error.
func limitTooMuch(t *testing.T, s limitStores, c commit.Committer) {
	w := &limitWorld{T: t, l: ledgertest.New(s.Ledger, c), c: c}
	const most = "999999999999999999"
	for range 12 { // more than 64 bits
		w.move(limitDay, "rich", 3, most)
		w.move(limitDay, "rich", 3, "-"+most)
	}
	w.move(limitDay, "rich", 4, most)
	got := storetest.Value(s.Moved(t.Context(), "rich", limitMonth, limitDay))(t)
	sum := amount.Must(most)
	storetest.Same(t, got, []limit.Moved{{Asset: 3, Over: true}, {Asset: 3, Received: true, Over: true},
		{Asset: 4, Received: true, Today: sum, Month: sum}})
}

// The sums are read from two ranges of an index that holds all summed columns.
func TestMovedIsFoundByIndex(t *testing.T) {
	persistencetest.WithReads(t, func(db *persistence.DB, r *persistencetest.Reads) {
		at := time.UnixMilli(1_700_000_000_000)
		plan := r.Plan(storetest.Err(money.NewLimits(db).Moved(r.Context(), "u1", at, at)))
		for _, index := range []string{"deposit_moved", "withdrawal_moved", "withdrawal_waits", "transfer_reverses"} {
			if !strings.Contains(plan, index) {
				r.Errorf("the plan does not use %s:\n%s", index, plan)
			}
		}
		for _, table := range []string{"SCAN deposit", "SCAN withdrawal", "Seq Scan"} {
			if strings.Contains(plan, table) {
				r.Errorf("the plan reads a whole table:\n%s", plan)
			}
		}
	})
}

// A level may have limits of a month for what is received (D-USR-09).
func TestLevelWithLimitsOfAMonth(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		persistencetest.Exec(t, db, `INSERT INTO user_level (id, label, special, limits) VALUES (3, 'Monthly', FALSE,
			'{"receiveLimitTRYDaily":7,"receiveLimitTRYMonthly":70.5}')`)
		all := storetest.Value(money.NewLevels(db).List(t.Context(), level.Query{Special: new(false)}))(t)
		storetest.Same(t, all[len(all)-1], level.Level{ID: 3, Label: "Monthly", Limits: level.Limits{
			ReceiveTryDaily: amount.Must("7"), ReceiveTryMonthly: new(amount.Must("70.5"))}})
	})
}

func TestLevelStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) level.Store {
		persistencetest.Exec(t, db, "DELETE FROM user_level WHERE id = 5") // the one that the cases add
		return money.NewLevels(db)
	},
		storetest.Cases[level.Store]{"RaceOfAdds": levelRaceOfAdds, "RaceOfChanges": levelRaceOfChanges})
}

func levelRaceOfAdds(t *testing.T, s level.Store, _ commit.Committer) {
	if won := storetest.Race(t, 8, fault.RecordAlreadyExist, func(i int) error {
		return s.Add(t.Context(), level.Level{ID: 5, Label: fmt.Sprint("Gold ", i)})
	}); won != 1 {
		t.Errorf("%d callers added level 5", won)
	}
}

// No concurrent change is lost.
func levelRaceOfChanges(t *testing.T, s level.Store, _ commit.Committer) {
	storetest.Must(t, s.Add(t.Context(), level.Level{ID: 5, Label: "Gold"}))
	storetest.Race(t, 8, "", func(int) error {
		return s.Change(t.Context(), 5, func(l level.Level) (_ level.Level, err error) {
			l.SendTryDaily, err = l.SendTryDaily.Add(amount.Must("1"))
			return l, err
		})
	})
	storetest.Must(t, s.Change(t.Context(), 5, func(l level.Level) (level.Level, error) {
		storetest.Equal(t, l.SendTryDaily, amount.Must("8"))
		return l, nil
	}))
}
