package transactiontest

import (
	"errors"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
)

// A desk counts requests: of concurrent requests with one version, one commits.
func desk(w *world) {
	for want := range int64(3) {
		version, err := w.Desk(w.Context(), w.user)
		storetest.Must(w, err)
		if version != want {
			w.Fatalf("version %d, want %d", version, want)
		}
		refused := make(chan error, 4)
		won := storetest.Race(w.T, 4, fault.Internal, func(int) error {
			err := w.c.Commit(w.Context(), transaction.SetDesk{UserID: w.user, Version: version, At: w.at})
			refused <- err
			return err
		})
		close(refused)
		for err := range refused {
			if err != nil && !errors.Is(err, commit.ErrFenced) {
				w.Error(err)
			}
		}
		if won != 1 {
			w.Errorf("version %d was counted %d times", version, won)
		}
	}
	if version, err := w.Desk(w.Context(), "another"); version != 0 || err != nil {
		w.Errorf("another user: %d, %v", version, err)
	}
	// The report of the wallet about an entry is stored.
	q := w.enqueue("1", transaction.Queued{Status: transaction.QueueReady, ExternalID: "e"})
	q.Status, q.TxID, q.Reason = transaction.QueueSent, "0x1", "replaced"
	storetest.Must(w, w.c.Commit(w.Context(), transaction.SetQueued{Queued: q}))
	q.Version++
	got, err := w.Queued(w.Context(), q.ID)
	storetest.Must(w, err)
	storetest.Same(w, got, q)
}
