package transaction_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// The names of the statuses are those of the interface.
func TestNamesOfStatuses(t *testing.T) {
	for status, want := range map[transaction.Status]string{transaction.WaitingTreasury: "waitingTreasuryApproval",
		transaction.WaitingSender: "waitingSenderInfo", transaction.WaitingQueue: "waitingQueue",
		transaction.Finalized: "finalized", transaction.FinalizedDeposit: "finalizedDeposit",
		transaction.Processing: "processing", transaction.Failed: "failed", transaction.Cancelled: "cancelled",
		99: "unknown"} {
		storetest.Equal(t, status.String(), want, status)
	}
	storetest.Equal(t, transaction.QueueStatus(99).String(), "unknown", "a status of the queue")
}

// A request is refused for the first reason that applies, in the documented order.
func TestRefusedRequests(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t), "u", "ignored")
	parameters := kit.NewParameters(d.m.DB)
	storetest.Must(t, d.m.DB.InTx(t.Context(), func(ctx context.Context) error {
		return errors.Join(parameter.AMLControl.Change(ctx, parameters, func(parameter.Ignored) (parameter.Ignored, error) {
			return parameter.Ignored{IgnoredUsers: []string{"ignored"}}, nil
		}), parameter.Minimum.Change(ctx, parameters, func(parameter.Fees) (parameter.Fees, error) {
			return parameter.Fees{"BTC": amount.Must("0.1")}, nil
		}))
	}))
	storetest.Must(t, d.Parameters.Reload(t.Context()))
	for _, u := range []string{"u", "ignored"} {
		storetest.Must(t, d.m.Pay(u, "BTC/BTC", "0.32"))
		storetest.Must(t, d.m.DB.Commit(t.Context(), user.SetAMLStatus{UserID: u, Status: "risky"}))
	}
	n := 0
	asks := func(what string, want fault.Code, change func(*transaction.WithdrawalRequest)) {
		t.Helper()
		n++
		r := wants(fmt.Sprint("x", n))
		r.Amount = amount.Must("0.1")
		change(&r)
		if o, err := d.Request(t.Context(), wallet, r); fault.CodeOf(err) != want || (o.Queued.ID == "") != (want != "") {
			t.Errorf("%s: %+v, %v, want %s", what, o, err, want)
		}
	}
	sum := func(text string) func(*transaction.WithdrawalRequest) {
		return func(r *transaction.WithdrawalRequest) { r.Amount = amount.Must(text) }
	}
	plain := func(*transaction.WithdrawalRequest) {}
	asks("a risky account", fault.AMLRisky, plain)
	asks("a risky account that is ignored", "", func(r *transaction.WithdrawalRequest) { r.UserID = "ignored" })
	storetest.Must(t, d.m.DB.Commit(t.Context(), user.SetAMLStatus{UserID: "u", Status: user.NotRisky}))
	pair := d.m.Pair("BTC/BTC")
	for column, where := range map[string]string{"currency_of_network active": fmt.Sprint(pair.ID),
		"currency_of_network withdraw_enable": fmt.Sprint(pair.ID), "currency active": fmt.Sprint(pair.CurrencyID),
		"currency withdraw_enable": fmt.Sprint(pair.CurrencyID), "currency_network active": fmt.Sprint(pair.NetworkID)} {
		var table, name string
		_, err := fmt.Sscan(column, &table, &name)
		storetest.Must(t, err)
		for _, on := range []bool{false, true} {
			persistencetest.Exec(t, d.m.DB, "UPDATE "+table+" SET "+name+" = ? WHERE id = "+where, on)
			storetest.Must(t, d.Currencies.Reload(t.Context()))
			if !on {
				asks(column, fault.PairDisabled, sum("0.01")) // before the minimum
			}
		}
	}
	asks("below the minimum", fault.BelowMinimum, sum("0.09999999"))
	asks("the minimum", "", plain)
	asks("one unit too many", fault.InsufficientBalance, sum("0.20000001")) // and the fee of 0.01
	asks("all that is left", "", sum("0.2"))
	if has := d.m.Has("u", "BTC/BTC"); has != "0.32 0.32 0" {
		t.Error(has)
	}
}

// A move of the wallet names the status before it, or any. A repetition of the last move changes nothing.
func TestMovesFromAStatus(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t), "u")
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "2"))
	o, err := d.ask("u", "BTC", 50, "x")
	storetest.Must(t, err)
	for i, c := range []struct {
		m        transaction.WalletMove
		want     fault.Code
		is       transaction.QueueStatus
		tx, why  string
		versions int64
	}{
		{transaction.WalletMove{From: transaction.QueueSent, To: transaction.QueueProcessing}, fault.InvalidState,
			transaction.QueueReady, "", "", 0},
		{transaction.WalletMove{From: transaction.QueueReady, To: transaction.QueueProcessing, Reason: "claimed"}, "",
			transaction.QueueProcessing, "", "claimed", 1},
		{transaction.WalletMove{From: transaction.QueueReady, To: transaction.QueueProcessing}, "",
			transaction.QueueProcessing, "", "claimed", 1},
		{transaction.WalletMove{To: transaction.QueueProcessing, Reason: "other"}, fault.InvalidState,
			transaction.QueueProcessing, "", "claimed", 1},
		{transaction.WalletMove{To: transaction.QueueSent, TxID: "0x1"}, "", transaction.QueueSent, "0x1", "", 2},
		{transaction.WalletMove{To: transaction.QueueSent, TxID: "0x1"}, "", transaction.QueueSent, "0x1", "", 2},
		{transaction.WalletMove{To: transaction.QueueSent, TxID: "0x2"}, "", transaction.QueueSent, "0x2", "", 3}, // replaced
		{transaction.WalletMove{To: transaction.QueueSuccess}, "", transaction.QueueSuccess, "0x2", "", 4},
	} {
		c.m.ID = o.Queued.ID
		_, err := d.Move(t.Context(), wallet, c.m)
		is, err2 := d.Get(t.Context(), o.Queued.ID)
		if fault.CodeOf(err) != c.want || err2 != nil || is.Queued.Status != c.is || is.Queued.TxID != c.tx ||
			is.Queued.Reason != c.why || is.Queued.Version-o.Queued.Version != c.versions {
			t.Errorf("%d: %v, %+v", i, err, is.Queued)
		}
	}
	if has := d.m.Has("u", "BTC/BTC"); has != "1.49 0 1.49" {
		t.Error(has)
	}
	_, err = d.Move(t.Context(), wallet, transaction.WalletMove{ID: "none", To: transaction.QueueProcessing})
	storetest.Wants(t, err, fault.RecordNotFound)
}

// A withdrawal that was booked before it entered the queue is not booked twice, and has no hold to release.
func TestBookedBeforeTheQueue(t *testing.T) {
	for to, want := range map[transaction.QueueStatus]fault.Code{transaction.QueueSuccess: "",
		transaction.QueueFailed: fault.InvalidState} {
		d := newDesk(t, persistencetest.SQLite(t), "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "2"))
		id := d.queue("u", 50, "x")
		storetest.Must(t, d.move(id, transaction.QueueProcessing))
		storetest.Must(t, d.move(id, transaction.QueueSent))
		persistencetest.Exec(t, d.m.DB, "UPDATE withdrawal SET transfer_id = (SELECT MIN(id) FROM transfer)")
		_, err := d.Move(t.Context(), wallet, transaction.WalletMove{ID: id, To: to})
		is, err2 := d.Get(t.Context(), id)
		if fault.CodeOf(err) != want || err2 != nil || (is.Queued.Status == to) != (want == "") ||
			is.Withdrawal.TransferID == "" || (is.Withdrawal.Status == transaction.Finalized) != (want == "") ||
			d.m.Has("u", "BTC/BTC") != "2 0.51 1.49" {
			t.Errorf("%s: %v, %+v, %s", to, err, is, d.m.Has("u", "BTC/BTC"))
		}
	}
}

// An assigned address leads to its account, if that is an account of a user.
func TestHoldersOfAddresses(t *testing.T) {
	d, s := newCounter(t)
	asset := d.m.Pair("BTC/BTC").ID
	treasury := ledger.Account{Kind: ledger.Treasury, Asset: asset}
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1")) // opens both accounts
	for address, of := range map[string]ledger.Account{"a1": d.m.Account("u", "BTC/BTC"), "a2": treasury} {
		persistencetest.Exec(t, d.m.DB, "INSERT INTO coin_address (address, account_id, created_at) VALUES (?, ?, 1)",
			address, of.ID())
	}
	own := transaction.Address(d.m.Account("u", "BTC/BTC"))
	for address, want := range map[string]fault.Code{"a1": "", own: "", "a2": fault.RecordNotFound,
		"a3": fault.RecordNotFound, own[:len(own)-1]: fault.RecordNotFound} {
		a, err := s.Holder(t.Context(), address)
		if fault.CodeOf(err) != want || err == nil && a != d.m.Account("u", "BTC/BTC") {
			t.Errorf("%s: %+v, %v", address, a, err)
		}
	}
}

// waiting adds deposits of u that wait for the treasury, with or without a sender.
func (l *till) waiting(sum, sender string, ids ...string) {
	l.t.Helper()
	for _, id := range ids {
		_, err := l.m.Do(l.t.Context(), clerk, transaction.Receive(transaction.Deposit{ID: id, UserID: "u",
			Asset: l.m.Pair("BTC/BTC").ID, Amount: amount.Must(sum), Status: transaction.WaitingTreasury, SenderInfo: sender,
			At: l.now()}))
		storetest.Must(l.t, err)
	}
}

// A deposit whose user is gone is credited without messages. One whose user cannot be read is not credited.
func TestCreditWithoutUser(t *testing.T) {
	for answer, want := range map[error]string{fault.New(fault.RecordNotFound, "none"): "1 0 1", errDown: "0 0 0"} {
		l := newTill(t)
		l.waiting("1", "{}", "d1")
		l.told = 0
		l.Service.Users = accounts{l.Service.Users, answer}
		_, err := l.UpdateStatus(t.Context(), clerk, transaction.Update{IDs: []string{"d1"},
			To: transaction.FinalizedDeposit})
		if has := l.m.Has("u", "BTC/BTC"); err != nil || has != want || l.told != 0 {
			t.Errorf("%v: %v, has %s, told %d", answer, err, has, l.told)
		}
		_, err = l.Report(t.Context(), clerk, report("x", plain)) // tells its user that the sender is missing
		if errors.Is(answer, errDown) != errors.Is(err, errDown) {
			t.Errorf("%v: a report: %v", answer, err)
		}
	}
}

// fencing answers the units of an update as if a concurrent one was faster.
type fencing struct{ commit.Committer }

func (fencing) Commit(context.Context, ...commit.Write) error { return commit.ErrFenced }

// An update that fails changes nothing. Deposits that another one has claimed are refused until its job is gone.
func TestRefusedUpdates(t *testing.T) {
	l := newTill(t)
	storetest.Must(t, l.m.Pay("u", "BTC/BTC", "2"))
	out := storetest.Value(l.ask("u", "BTC", 50, "out"))(t)
	l.waiting("1", "{}", "d1")
	l.waiting("600000000000000000", "{}", "large1", "large2")
	update := func(ids ...string) error {
		_, err := l.UpdateStatus(t.Context(), clerk, transaction.Update{IDs: ids, To: transaction.FinalizedDeposit})
		return err
	}
	l.Service.Changes.Commit = fencing{l.m.DB}
	storetest.Wants(t, update("d1"), fault.InvalidState)
	l.Service.Changes.Commit = l.m.DB
	persistencetest.Fails(t, l.m.DB, "deposit withdrawal", func(context.Context) error {
		if err := update(out.Queued.ID, "d1"); fault.CodeOf(err) != fault.InvalidState {
			return err
		}
		return nil
	})
	l.run = false
	l.waiting("1", "{}", "d2")
	persistencetest.Fails(t, l.m.DB, "job deposit", func(context.Context) error { return update("d2") })
	persistencetest.Exec(t, l.m.DB, "ALTER TABLE job RENAME TO broken")
	if err := update("d2"); err == nil || fault.CodeOf(err) == fault.InvalidState {
		t.Errorf("a claim whose job cannot be read: %v", err)
	}
	persistencetest.Exec(t, l.m.DB, "ALTER TABLE broken RENAME TO job")
	storetest.Wants(t, update("d2"), fault.InvalidState)
	persistencetest.Exec(t, l.m.DB, "DELETE FROM job") // a purged job holds no deposit
	storetest.Must(t, update("d2"))
	storetest.Must(t, update("large1", "large2"))
	if rows := persistencetest.Did(t, l.m.DB, "TRANSACTION_STATUS_START"); rows[0].Detail !=
		"2 to finalizedDeposit: 1200000000000000000 BTC" {
		t.Errorf("%+v", rows[0])
	}
}

// A failure of the database is reported by every step of a withdrawal, and leaves nothing behind.
func TestWithdrawalsReportFailures(t *testing.T) {
	d, s := newCounter(t)
	s.Changes = admin.Changes{Commit: d.m.DB, Now: d.now}
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
	n := 0
	request := func(context.Context) error {
		n++
		_, err := d.ask("u", "BTC", 5, fmt.Sprint("x", n))
		return err
	}
	persistencetest.Fails(t, d.m.DB, "integration_claim users balance withdrawal_desk withdrawal_queue withdrawal hold "+
		"audit integration_event", request)
	made := func() string { n++; return d.queue("u", 5, fmt.Sprint("x", n)) }
	id := made() // a first success opens the account of the fees, in a unit of its own
	for _, to := range []transaction.QueueStatus{transaction.QueueProcessing, transaction.QueueSent,
		transaction.QueueSuccess} {
		storetest.Must(t, d.move(id, to))
	}
	id = made()
	persistencetest.Fails(t, d.m.DB, "withdrawal_queue withdrawal hold balance audit integration_event",
		func(ctx context.Context) error {
			_, err := d.Cancel(ctx, clerk, id, "")
			return err
		})
	id = made()
	persistencetest.Fails(t, d.m.DB, "withdrawal_queue audit", func(context.Context) error {
		return d.move(id, transaction.TimeOut)
	})
	persistencetest.Fails(t, d.m.DB, "withdrawal_queue audit integration_event", func(ctx context.Context) error {
		_, err := d.Resume(ctx, clerk, id, "")
		return err
	})
	storetest.Must(t, d.move(id, transaction.QueueProcessing))
	storetest.Must(t, d.move(id, transaction.QueueSent))
	persistencetest.Fails(t, d.m.DB, "withdrawal_queue withdrawal hold balance transfer process audit",
		func(context.Context) error { return d.move(id, transaction.QueueSuccess) })
	id = made()
	storetest.Must(t, d.move(id, transaction.TimeOut))
	persistencetest.Fails(t, d.m.DB, "withdrawal_queue withdrawal hold balance transfer process audit",
		func(ctx context.Context) error {
			_, err := s.UpdateQueue(ctx, clerk, transaction.QueueUpdate{ID: id, To: transaction.QueueSuccess,
				CurrencyCode: "BTC"})
			return err
		})
}

// A failure of the database is reported by the start and the execution of an approval.
func TestApprovalsReportFailures(t *testing.T) {
	a := newAsker(t)
	persistencetest.Fails(t, a.d.m.DB, "integration_claim users balance audit", func(ctx context.Context) error {
		_, err := a.Start(ctx, wallet, wants("x"), starter)
		return err
	})
	persistencetest.Fails(t, a.d.m.DB, "withdrawal_address integration_claim users balance withdrawal_desk "+
		"withdrawal_queue withdrawal hold audit integration_event", func(context.Context) error {
		_, err := a.execute("c1")
		return err
	})
	persistencetest.Fails(t, a.d.m.DB, "withdrawal_queue withdrawal", func(ctx context.Context) error {
		_, err := a.Start(ctx, wallet, wants("x"), starter)
		return err
	})
}
