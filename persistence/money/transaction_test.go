package money_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestTransactionStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) transactionStores {
		return transactionStores{Store: money.NewTransactions(db), Ledger: money.NewLedger(db)}
	},
		storetest.Cases[transactionStores]{
			"Deposits":    withTransactions(depositsRoundTrip),
			"Credited":    withTransactions(depositsCredited),
			"Addresses":   withTransactions(depositAddresses),
			"Received":    withTransactions(depositsReceived),
			"Withdrawals": withTransactions(withdrawalsRoundTrip),
			"Queue":       withTransactions(withdrawalQueue),
			"Processes":   withTransactions(withdrawalProcesses),
			"Desk":        withTransactions(withdrawalDesk),
			"Fences":      withTransactions(transactionFences),
		}, "process", "withdrawal_queue", "withdrawal", "deposit")
}

// A desk counts requests: of concurrent requests with one version, one commits.
func withdrawalDesk(w *transactionWorld) {
	for want := range int64(3) {
		version := storetest.Value(w.Desk(w.Context(), w.user))(w)
		if version != want {
			w.Fatalf("version %d, want %d", version, want)
		}
		won := storetest.RaceOfFences(w.T, 4, func(int) error {
			return w.c.Commit(w.Context(), transaction.SetDesk{UserID: w.user, Version: version, At: w.at})
		})
		storetest.Equal(w, won, 1, "of version", version)
	}
	if version, err := w.Desk(w.Context(), "another"); version != 0 || err != nil {
		w.Errorf("another user: %d, %v", version, err)
	}
	// The report of the wallet about an entry is stored.
	q := w.enqueue("1", transaction.Queued{Status: transaction.QueueReady, ExternalID: "e"})
	q.Status, q.TxID, q.Reason = transaction.QueueSent, "0x1", "replaced"
	storetest.Must(w, w.c.Commit(w.Context(), transaction.SetQueued{Queued: q}, transaction.SetHeld{Queued: q}))
	q.Version++
	got := storetest.Value(w.Queued(w.Context(), q.ID))(w)
	storetest.Same(w, got, q)
}

// transactionStores are a transaction.Store and the ledger with it.
type transactionStores struct {
	transaction.Store
	Ledger ledger.Store
}

// transactionWorld is a store with its own user, who has 10 of asset 1.
type transactionWorld struct {
	*testing.T
	transactionStores
	c    commit.Committer
	l    *ledger.Ledger
	user string
	at   time.Time
}

func withTransactions(test func(w *transactionWorld)) func(*testing.T, transactionStores, commit.Committer) {
	return func(t *testing.T, s transactionStores, c commit.Committer) {
		l := &ledger.Ledger{Store: s.Ledger, Commit: c, Now: time.Now,
			Decimals: func(context.Context, int64) (int, error) { return 2, nil }}
		now := time.Now().UTC().Truncate(time.Millisecond)
		w := &transactionWorld{t, s, c, l, id.New(now), now.Add(-time.Hour)}
		u := user.New(w.user, now)
		u.Name, u.Surname, u.Email, u.Phone = "İnci", "Öz_"+w.user, w.user+"@example.test", "+90"+w.user
		storetest.Must(t, c.Commit(t.Context(), user.Add{User: u}))
		w.do(transaction.Receive(w.deposit(transaction.Finalized, "10")))
		test(w)
	}
}

// next returns an instant after all others of the world.
func (w *transactionWorld) next() time.Time {
	w.at = w.at.Add(time.Minute)
	return w.at
}

func (w *transactionWorld) deposit(s transaction.Status, sum string) transaction.Deposit {
	at := w.next()
	return persistencetest.Whole(w, func(d *transaction.Deposit) {
		d.ID, d.UserID, d.Asset, d.Amount, d.Status, d.At = id.New(at), w.user, 1, amount.Must(sum), s, at
		d.ToAddress, d.TransferID, d.JobID, d.Version = "castellan:1:"+w.user, "", "", 0
		d.Facts = "" // which is not read
	})
}

func (w *transactionWorld) do(m ledger.Movement) {
	w.Helper()
	_, err := w.l.Do(w.Context(), audit.By{UserID: "op"}, m)
	storetest.Must(w, err)
}

// transfer books a transfer to the user and returns its id.
func (w *transactionWorld) transfer() string {
	w.Helper()
	t := ledger.New(w.next(), "test", id.New(w.at), owned("", 1), owned(w.user, 1), amount.Must("0.01"))
	w.do(ledger.Movement{Transfers: []ledger.Transfer{t}})
	return t.ID
}

// enqueue puts a withdrawal of asset 1 plus one more into the queue.
func (w *transactionWorld) enqueue(sum string, q transaction.Queued) transaction.Queued {
	w.Helper()
	at := w.next()
	out := transaction.Withdrawal{ID: id.New(at), UserID: w.user, Asset: 1, Amount: amount.Must(sum),
		ToAddress: "bc1" + sum, At: at}
	m := storetest.Value(transaction.Enqueue(out, q, amount.Must("0.5")))(w)
	w.do(m)
	q.ID, q.UserID, q.Asset, q.Address, q.At, q.Version = out.ID, w.user, 1, out.ToAddress, at, 1
	return q
}

func (w *transactionWorld) has(posted, locked string) {
	w.Helper()
	b := storetest.Value(w.l.Balance(w.Context(), w.user, 1))(w)
	storetest.Same(w, [2]string{b.Posted.String(), b.Locked.String()}, [2]string{posted, locked})
}

func depositsRoundTrip(w *transactionWorld) {
	one, two := w.deposit(transaction.WaitingTreasury, "1"), w.deposit(transaction.FinalizedDeposit, "2.25")
	w.do(transaction.Receive(one))
	w.do(transaction.Receive(two))
	got := storetest.Value(w.Deposits(w.Context(), one.ID, two.ID, "nothing"))(w)
	slices.SortFunc(got, func(a, b transaction.Deposit) int { return a.At.Compare(b.At) })
	one.Version, two.Version = 1, 1
	if len(got) == 2 {
		if two.TransferID = got[1].TransferID; two.TransferID == "" {
			w.Error("not credited")
		}
	}
	storetest.Same(w, got, []transaction.Deposit{one, two})
	w.has("12.25", "0")
	none, err := w.Deposits(w.Context())
	if len(none) != 0 || err != nil {
		w.Errorf("%v %v", none, err)
	}
}

// An address belongs to the account to which it was assigned.
func depositAddresses(w *transactionWorld) {
	a := ledger.Account{Kind: ledger.User, Owner: w.user, Asset: 1}
	storetest.Must(w, w.c.Commit(w.Context(), transaction.AddAddress{Account: a, At: w.at}))
	got, err := w.Holder(w.Context(), transaction.Address(a))
	storetest.Must(w, err)
	storetest.Same(w, got, a)
	_, err = w.Holder(w.Context(), "bc1nobody")
	storetest.Wants(w, err, fault.RecordNotFound)
}

// A waiting deposit is not credited, and any other is; the database enforces it.
func depositsCredited(w *transactionWorld) {
	free := w.deposit(transaction.FinalizedDeposit, "1")
	if err := w.c.Commit(w.Context(), transaction.AddDeposit{Deposit: free}); err == nil {
		w.Error("finalized without a transfer")
	}
	m := transaction.Receive(w.deposit(transaction.Finalized, "1"))
	paid := m.With[0].(transaction.AddDeposit).Deposit
	paid.Status = transaction.WaitingSender
	m.With[0] = transaction.AddDeposit{Deposit: paid}
	if _, err := w.l.Do(w.Context(), audit.By{}, m); err == nil {
		w.Error("credited while it waits")
	}
	w.has("10", "0")
	waits := w.deposit(transaction.WaitingTreasury, "1")
	w.do(transaction.Receive(waits))
	waits.Status, waits.Version = transaction.FinalizedDeposit, 1
	if err := w.c.Commit(w.Context(), transaction.SetDeposit{Deposit: waits}); err == nil {
		w.Error("finalized without a transfer")
	}
}

func withdrawalsRoundTrip(w *transactionWorld) {
	q := w.enqueue("3", transaction.Queued{Status: transaction.TimeOut})
	got, err := w.Withdrawal(w.Context(), q.ID)
	storetest.Must(w, err)
	if got.HoldID == "" {
		w.Errorf("nothing is held for %+v", got)
	}
	storetest.Same(w, got, transaction.Withdrawal{ID: q.ID, UserID: w.user, Asset: 1, Amount: amount.Must("3"),
		Status: transaction.WaitingQueue, ToAddress: "bc13", HoldID: got.HoldID, At: q.At, Version: 1})
	w.has("10", "3.5")
	whole := persistencetest.Whole(w, func(out *transaction.Withdrawal) {
		out.UserID, out.Asset, out.TransferID, out.HoldID, out.Version = w.user, 1, w.transfer(), "", 1
	})
	storetest.Must(w, w.c.Commit(w.Context(), transaction.AddWithdrawal{Withdrawal: whole}))
	got, err = w.Withdrawal(w.Context(), whole.ID)
	storetest.Must(w, err)
	whole.Facts = "" // which is not read
	storetest.Same(w, got, whole)
	_, err = w.Withdrawal(w.Context(), "nothing")
	storetest.Wants(w, err, fault.RecordNotFound)
	m, err := transaction.Enqueue(transaction.Withdrawal{UserID: w.user, Asset: 1, Amount: amount.Must("6.52"),
		At: w.next()}, transaction.Queued{Status: transaction.TimeOut}, amount.Amount{})
	storetest.Must(w, err)
	if _, err := w.l.Do(w.Context(), audit.By{}, m); !errors.Is(err, ledger.ErrInsufficient) {
		w.Errorf("more than is there: %v", err)
	}
}

func withdrawalQueue(w *transactionWorld) {
	a := w.enqueue("1", persistencetest.Whole(w, func(q *transaction.Queued) {
		q.Status, q.AddressTag, q.Attempt, q.Version = transaction.HotWalletIsEmpty, "t1", "a1", 0
		q.Held = transaction.Held{Asks: q.Held.Asks} // the rest of another status is not read
	}))
	storetest.Must(w, w.c.Commit(w.Context(), transaction.SetHeld{Queued: a}))
	b := w.enqueue("2", transaction.Queued{Status: transaction.TimeOut, AddressTag: "t2", ExternalID: "e2",
		Attempt: "a2", TxID: "x2", Fee: new(amount.Amount)})
	c := w.enqueue("0.5", transaction.Queued{Status: transaction.QueueWaiting})
	c.Status = transaction.QueueSuccess
	storetest.Must(w, w.c.Commit(w.Context(), transaction.SetQueued{Queued: c}, transaction.SetHeld{Queued: c}))
	c.Version = 2
	for _, want := range []transaction.Queued{a, b, c} {
		got := storetest.Value(w.Queued(w.Context(), want.ID))(w)
		storetest.Same(w, got, want)
	}
	_, err := w.Queued(w.Context(), "nothing")
	storetest.Wants(w, err, fault.RecordNotFound)
	paid := storetest.Value(w.Withdrawal(w.Context(), a.ID))(w)
	paid.Status, paid.TransferID, paid.Fee = transaction.Finalized, w.transfer(), amount.Must("0.25")
	storetest.Must(w, w.c.Commit(w.Context(), transaction.SetWithdrawal{Withdrawal: paid}))
	got, err := w.Queue(w.Context(), transaction.QueueQuery{ID: &a.ID}, page.Query[transaction.Place]{})
	storetest.Must(w, err)
	storetest.Same(w, got.Records, []transaction.Entry{{Outgoing: transaction.Outgoing{Queued: a,
		Withdrawal: transaction.Withdrawal{ID: a.ID, UserID: w.user, Asset: 1, Amount: amount.Must("1"),
			Fee: paid.Fee, ToAddress: a.Address, TransferID: paid.TransferID}}, FullName: "İnci Öz_" + w.user,
		Email: w.user + "@example.test", Phone: "+90" + w.user}})
}

// Of many changes of one version one is made.
func transactionFences(w *transactionWorld) {
	d := w.deposit(transaction.WaitingTreasury, "1")
	w.do(transaction.Receive(d))
	q := w.enqueue("1", transaction.Queued{Status: transaction.TimeOut})
	out := storetest.Value(w.Withdrawal(w.Context(), q.ID))(w)
	d.Status, d.SenderInfo, d.TransferID, d.JobID, d.Version = transaction.Finalized, "other", w.transfer(), "job", 1
	q.Status, out.Status = transaction.QueueWaiting, transaction.Finalized
	out.TransferID, out.Fee = w.transfer(), amount.Must("0.25")
	for _, write := range []commit.Write{transaction.SetDeposit{Deposit: d}, transaction.SetQueued{Queued: q},
		transaction.SetWithdrawal{Withdrawal: out}} {
		won := storetest.RaceOfFences(w, 8, func(int) error { return w.c.Commit(w.Context(), write) })
		storetest.Equal(w, won, 1, "of 8 changes of", write.Table())
	}
	d.Version, out.Version = 2, 2
	gotDeposits := storetest.Value(w.Deposits(w.Context(), d.ID))(w)
	storetest.Same(w, gotDeposits, []transaction.Deposit{d})
	gotOut := storetest.Value(w.Withdrawal(w.Context(), out.ID))(w)
	storetest.Same(w, gotOut, out)
}
