package transaction_test

import (
	"context"
	"fmt"
	"testing"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence/persistencetest"
)

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
	made := func() string {
		n++
		o, err := d.ask("u", "BTC", 5, fmt.Sprint("x", n))
		storetest.Must(t, err)
		return o.Queued.ID
	}
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
