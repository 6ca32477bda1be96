// Package limittest tests the contract of limit.Store: persistence runs the tests on both databases.
package limittest

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/domain/money/limit"
	"castellan/domain/money/transaction"
)

// Stores are the tested store and the store of the ledger, whose movements count.
type Stores struct {
	limit.Store
	Ledger ledger.Store
}

// Run checks an implementation of limit.Store.
func Run(t *testing.T, open storetest.Open[Stores]) {
	storetest.Run(t, open, storetest.Cases[Stores]{"Moved": moved, "Waits": waits, "TooMuch": tooMuch})
}

// The instants of the cases.
var (
	month = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	day   = time.Date(2026, 3, 31, 0, 0, 0, 0, time.UTC)
)

// world books movements.
type world struct {
	*testing.T
	l *ledger.Ledger
	c commit.Committer
	n int
}

func of(user string, asset int64) ledger.Account {
	return ledger.Account{Kind: ledger.User, Owner: user, Asset: asset}
}

// move books a deposit, or a withdrawal for a negative amount.
func (w *world) move(at time.Time, user string, asset int64, sum string) ledger.Transfer {
	w.Helper()
	w.n++
	a, treasury := amount.Must(sum), ledger.Account{Kind: ledger.Treasury, Asset: asset}
	to := fmt.Sprint("address ", w.n)
	var t ledger.Transfer
	var row commit.Write
	if a.Sign() > 0 {
		t = ledger.New(at, "in", fmt.Sprint(user, w.n), treasury, of(user, asset), a)
		row = transaction.AddDeposit{Deposit: transaction.Deposit{ID: t.ID, UserID: user, Asset: asset, Amount: a,
			Status: transaction.Finalized, ToAddress: to, TransferID: t.ID, At: at}}
	} else {
		a, _ = a.Neg()
		t = ledger.New(at, "out", fmt.Sprint(user, w.n), of(user, asset), treasury, a)
		row = transaction.AddWithdrawal{Withdrawal: transaction.Withdrawal{ID: t.ID, UserID: user, Asset: asset, Amount: a,
			Status: transaction.Finalized, ToAddress: to, TransferID: t.ID, At: at}}
	}
	r, err := w.l.Do(w.Context(), audit.By{}, ledger.Movement{Transfers: []ledger.Transfer{t}, With: []commit.Write{row}})
	storetest.Must(w, err)
	return r.Transfers[0]
}

func moved(t *testing.T, s Stores, c commit.Committer) {
	w := &world{T: t, l: ledgertest.New(s.Ledger, c), c: c}
	first, noon := month, day.Add(12*time.Hour)
	w.move(month.Add(-time.Millisecond), "u1", 1, "1000") // the previous month
	w.move(first, "u1", 1, "0.75")
	w.move(day.Add(-time.Millisecond), "u1", 1, "1.5")
	w.move(day, "u1", 1, "2.25")
	w.move(noon, "u1", 1, "-0.5")
	w.move(first, "u1", 1, "-0.25")
	w.move(first, "u1", 2, "7")
	w.move(noon, "u2", 1, "5")
	back := w.move(noon, "u1", 2, "3")
	_, err := w.l.Do(t.Context(), audit.By{}, ledger.Movement{
		Transfers: []ledger.Transfer{ledger.Reversal(noon, back, "a mistake")}})
	storetest.Must(t, err)
	// Pending entries have no transfer: a deposit that is not credited, an amount that is only held.
	hold := ledger.NewHold(noon, "queue", "1", "withdrawal", of("u1", 2), amount.Must("1"))
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
		got, err := s.Moved(t.Context(), user, month, day)
		storetest.Must(t, err)
		storetest.Same(t, got, want)
	}
}

// A queued withdrawal counts as sent today, whenever it was requested, until it is booked or abandoned (D-INT-04).
func waits(t *testing.T, s Stores, c commit.Committer) {
	w := &world{T: t, l: ledgertest.New(s.Ledger, c), c: c}
	w.move(month, "w1", 1, "10")
	w.move(day, "w1", 1, "-0.5")
	for i, status := range []transaction.Status{transaction.WaitingQueue, transaction.Failed, transaction.WaitingQueue,
		transaction.Cancelled} {
		at := month.Add(-time.Hour)
		m, err := transaction.Enqueue(transaction.Withdrawal{UserID: "w1", Asset: 1, Amount: amount.Must("1.25"), At: at},
			transaction.Queued{Status: transaction.QueueReady}, amount.Must("0.25"))
		storetest.Must(t, err)
		add := m.With[0].(transaction.AddWithdrawal)
		add.Withdrawal.Status, add.Withdrawal.ToAddress = status, fmt.Sprint("waits ", i)
		m.With[0] = add
		_, err = w.l.Do(t.Context(), audit.By{}, m)
		storetest.Must(t, err)
	}
	got, err := s.Moved(t.Context(), "w1", month, day)
	storetest.Must(t, err)
	storetest.Same(t, got, []limit.Moved{{Asset: 1, Today: amount.Must("3"), Month: amount.Must("3")},
		{Asset: 1, Received: true, Month: amount.Must("10")}})
}

// A sum too large for an amount is not an error.
func tooMuch(t *testing.T, s Stores, c commit.Committer) {
	w := &world{T: t, l: ledgertest.New(s.Ledger, c), c: c}
	const most = "999999999999999999"
	for range 12 { // more than 64 bits
		w.move(day, "rich", 3, most)
		w.move(day, "rich", 3, "-"+most)
	}
	w.move(day, "rich", 4, most)
	got, err := s.Moved(t.Context(), "rich", month, day)
	storetest.Must(t, err)
	sum := amount.Must(most)
	storetest.Same(t, got, []limit.Moved{{Asset: 3, Over: true}, {Asset: 3, Received: true, Over: true},
		{Asset: 4, Received: true, Today: sum, Month: sum}})
}
