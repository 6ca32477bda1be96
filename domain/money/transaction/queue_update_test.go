package transaction_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// setFee changes the fee of bitcoin.
func (d *desk) setFee(fee string) {
	d.t.Helper()
	parameters := kit.NewParameters(d.m.DB)
	storetest.Must(d.t, d.m.DB.InTx(d.t.Context(), func(ctx context.Context) error {
		return parameter.Fee.Change(ctx, parameters, func(parameter.Fees) (parameter.Fees, error) {
			return parameter.Fees{"BTC": amount.Must(fee)}, nil
		})
	}))
	storetest.Must(d.t, d.Parameters.Reload(d.t.Context()))
}

// enqueue puts 0.5 BTC of u into the queue, with its own fee or that of the currency.
func (d *desk) enqueue(id, to string, status transaction.QueueStatus, fee *amount.Amount) {
	d.t.Helper()
	w := transaction.Withdrawal{ID: id, UserID: "u", Asset: d.m.Pair("BTC/BTC").ID, Amount: amount.Must("0.5"),
		ToAddress: to, At: d.now()}
	m, err := transaction.Enqueue(w, transaction.Queued{Status: status, Fee: fee}, amount.Must("0.1"))
	storetest.Must(d.t, err)
	_, err = d.m.Do(d.t.Context(), wallet, m)
	storetest.Must(d.t, err)
}

// D-TX-08: a decision about the queue books the withdrawal with its fee, once, or returns it to the approval.
func TestUpdateQueue(t *testing.T) {
	d, s := newCounter(t)
	s.Changes = admin.Changes{Commit: d.m.DB, Now: d.now}
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "3"))
	own, odd := amount.Must("0.02"), amount.Must("0.000000001")
	zero := amount.Must("0")
	inside := transaction.Address(d.m.Account("u", "BTC/BTC"))
	d.enqueue("currency", addresses["BTC"], transaction.HotWalletIsEmpty, nil)
	d.enqueue("own", inside, transaction.TimeOut, &own)
	d.enqueue("free", addresses["BTC"], transaction.TimeOut, &zero)
	d.enqueue("odd", addresses["BTC"], transaction.TimeOut, &odd)
	update := func(id string, to transaction.QueueStatus, code string) error {
		_, err := s.UpdateQueue(t.Context(), clerk, transaction.QueueUpdate{ID: id, To: to, CurrencyCode: code,
			Reason: "by hand"})
		return err
	}
	storetest.Wants(t, update("none", transaction.QueueSuccess, "BTC"), fault.RecordNotFound)
	storetest.Wants(t, update("own", transaction.QueueCancelled, "BTC"), fault.InvalidState)
	storetest.Wants(t, update("own", transaction.QueueSuccess, "ETH"), fault.InvalidField)
	storetest.Wants(t, update("odd", transaction.QueueSuccess, "BTC"), fault.InvalidState)
	storetest.Must(t, update("odd", transaction.QueueWaiting, ""))
	storetest.Wants(t, update("odd", transaction.QueueSuccess, "BTC"), fault.InvalidState)
	for _, c := range []struct {
		id, code, fee, detail string
		internal              bool
	}{
		{"currency", "btc", "0.01", "hotWalletInsufficientBalance to success: 0.5 BTC, fee 0.01", false},
		{"own", "BTC", "0.02", "timeOut to success: 0.5 BTC, fee 0.02", true},
		{"free", "BTC", "0", "timeOut to success: 0.5 BTC", false},
	} {
		d.advance(time.Millisecond)
		storetest.Must(t, update(c.id, transaction.QueueSuccess, c.code))
		storetest.Wants(t, update(c.id, transaction.QueueSuccess, c.code), fault.InvalidState)
		o, err := d.Get(t.Context(), c.id)
		if err != nil || o.Withdrawal.Status != transaction.Processing || o.Fee().String() != c.fee ||
			o.Queued.Status != transaction.QueueSuccess || o.Withdrawal.TransferID == "" {
			t.Errorf("%s: %+v, %v", c.id, o, err)
		}
		if cost := s.Cost(transaction.Entry{Outgoing: o}); cost.String() != c.fee {
			t.Errorf("%s costs %s", c.id, cost)
		}
		row := persistencetest.Did(t, d.m.DB, "WITHDRAWAL_QUEUE_STATUS")[0]
		if row.Target != c.id || row.UserID != "u" || row.ActorID != "clerk" || !strings.HasPrefix(row.Detail, c.detail) ||
			!strings.HasSuffix(row.Detail, "by hand") {
			t.Errorf("%s: %+v", c.id, row)
		}
		all, err := s.Processes(t.Context(), transaction.ProcessQuery{UserID: "u"}, nil, page.Query[transaction.Place]{})
		if err != nil || all.Records[0].TransactionID != c.id || all.Records[0].Internal != c.internal ||
			all.Records[0].Status != transaction.Finalized {
			t.Errorf("%s: %+v, %v", c.id, all.Records, err)
		}
	}
	if has := d.m.Has("u", "BTC/BTC"); !strings.HasPrefix(has, "1.47 0.6 ") {
		t.Errorf("left: %s", has)
	}
	odd = amount.Must("0.03")
	for fee, want := range map[*amount.Amount]string{nil: "0.01", &odd: "0.03"} {
		e := transaction.Entry{Outgoing: transaction.Outgoing{Queued: transaction.Queued{Asset: d.m.Pair("BTC/BTC").ID,
			Fee: fee}}}
		if cost := s.Cost(e); cost.String() != want {
			t.Errorf("it will cost %s, want %s", cost, want)
		}
	}
}

// D-PRC-04: processes are listed for a user of the type only.
func TestProcessesByUserType(t *testing.T) {
	d, s := newCounter(t)
	u, err := d.Users.Get(t.Context(), "u")
	storetest.Must(t, err)
	at := d.now()
	for _, owner := range []string{"u", "gone"} {
		storetest.Must(t, d.m.DB.Commit(t.Context(), transaction.AddProcess{Process: transaction.Process{ID: owner,
			TransactionID: owner, UserID: owner, Asset: 1, Status: transaction.Finalized, At: at}}))
	}
	own, other := string(u.Type), string(u.Type)+"x"
	for _, c := range []struct {
		owner string
		kind  *string
		want  int
	}{{"u", nil, 1}, {"u", &own, 1}, {"u", &other, 0}, {"gone", nil, 1}, {"gone", &own, 0}} {
		got, err := s.Processes(t.Context(), transaction.ProcessQuery{UserID: c.owner}, c.kind,
			page.Query[transaction.Place]{})
		if err != nil || len(got.Records) != c.want {
			t.Errorf("%+v: %+v, %v", c, got.Records, err)
		}
	}
	s.Users = accounts{d.Users, errDown}
	if _, err := s.Processes(t.Context(), transaction.ProcessQuery{UserID: "u"}, &own,
		page.Query[transaction.Place]{}); err == nil {
		t.Error("no error")
	}
}
