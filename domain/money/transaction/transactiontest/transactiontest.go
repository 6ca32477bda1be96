// Package transactiontest tests the contract of transaction.Store, and the guarantees of the writes of transactions
// together with the ledger.
package transactiontest

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/access/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
)

// Stores are a transaction.Store and the ledger with it.
type Stores struct {
	transaction.Store
	Ledger ledger.Store
}

// Run checks an implementation of transaction.Store.
func Run(t *testing.T, open storetest.Open[Stores]) {
	storetest.Run(t, open, storetest.Cases[Stores]{
		"Deposits":    with(deposits),
		"Credited":    with(credited),
		"Addresses":   with(addresses),
		"Waiting":     with(waiting),
		"Withdrawals": with(withdrawals),
		"Queue":       with(queue),
		"Processes":   with(processes),
		"Desk":        with(desk),
		"Fences":      with(fences),
	})
}

// world is a store with its own user, who has 10 of asset 1.
type world struct {
	*testing.T
	Stores
	c    commit.Committer
	l    *ledger.Ledger
	user string
	at   time.Time
}

func with(test func(w *world)) func(*testing.T, Stores, commit.Committer) {
	return func(t *testing.T, s Stores, c commit.Committer) {
		l := &ledger.Ledger{Store: s.Ledger, Commit: c, Now: time.Now,
			Decimals: func(context.Context, int64) (int, error) { return 2, nil }}
		now := time.Now().UTC().Truncate(time.Millisecond)
		w := &world{t, s, c, l, id.New(now), now.Add(-time.Hour)}
		u := user.New(w.user, now)
		u.Name, u.Surname = "İnci", "Öz_"+w.user
		storetest.Must(t, c.Commit(t.Context(), user.Add{User: u}))
		w.do(transaction.Receive(w.deposit(transaction.Finalized, "10")))
		test(w)
	}
}

// next returns an instant after all others of the world.
func (w *world) next() time.Time {
	w.at = w.at.Add(time.Minute)
	return w.at
}

func (w *world) deposit(s transaction.Status, sum string) transaction.Deposit {
	at := w.next()
	return transaction.Deposit{ID: id.New(at), UserID: w.user, Asset: 1, Amount: amount.Must(sum), Status: s,
		TxID: "0xabc", ToAddress: "castellan:1:" + w.user, SenderInfo: `{"name":"Ada"}`, At: at,
		ExternalID: "external", FromAddress: "bc1from"}
}

func (w *world) do(m ledger.Movement) {
	w.Helper()
	_, err := w.l.Do(w.Context(), audit.By{UserID: "op"}, m)
	storetest.Must(w, err)
}

// enqueue puts a withdrawal of asset 1 plus one more into the queue.
func (w *world) enqueue(sum string, q transaction.Queued) transaction.Queued {
	w.Helper()
	at := w.next()
	out := transaction.Withdrawal{ID: id.New(at), UserID: w.user, Asset: 1, Amount: amount.Must(sum),
		ToAddress: "bc1" + sum, At: at}
	m, err := transaction.Enqueue(out, q, amount.Must("0.5"))
	storetest.Must(w, err)
	w.do(m)
	q.ID, q.UserID, q.Asset, q.Address, q.At, q.Version = out.ID, w.user, 1, out.ToAddress, at, 1
	return q
}

func (w *world) has(posted, locked string) {
	w.Helper()
	b, err := w.l.Balance(w.Context(), w.user, 1)
	storetest.Must(w, err)
	storetest.Same(w, [2]string{b.Posted.String(), b.Locked.String()}, [2]string{posted, locked})
}

func deposits(w *world) {
	one, two := w.deposit(transaction.WaitingTreasury, "1"), w.deposit(transaction.FinalizedDeposit, "2.25")
	w.do(transaction.Receive(one))
	w.do(transaction.Receive(two))
	got, err := w.Deposits(w.Context(), one.ID, two.ID, "nothing")
	storetest.Must(w, err)
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
func addresses(w *world) {
	a := ledger.Account{Kind: ledger.User, Owner: w.user, Asset: 1}
	storetest.Must(w, w.c.Commit(w.Context(), transaction.AddAddress{Account: a, At: w.at}))
	got, err := w.Holder(w.Context(), transaction.Address(a))
	storetest.Must(w, err)
	storetest.Same(w, got, a)
	_, err = w.Holder(w.Context(), "bc1nobody")
	storetest.Wants(w, err, fault.RecordNotFound)
}

// A waiting deposit is not credited, and any other is; the database enforces it.
func credited(w *world) {
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

func waiting(w *world) {
	ids := map[string]string{}
	var forTreasury transaction.Deposit
	for name, s := range map[string]transaction.Status{"a": -9, "b": -5} {
		d := w.deposit(s, "1")
		w.do(transaction.Receive(d))
		ids[d.ID] = name
		if d.Status == transaction.WaitingTreasury {
			forTreasury = d
		}
	}
	for _, c := range []struct {
		q    transaction.WaitingQuery
		want int
	}{
		{transaction.WaitingQuery{UserID: w.user}, 2},
		{transaction.WaitingQuery{UserID: w.user, Treasury: true}, 1},
		{transaction.WaitingQuery{UserID: "nobody"}, 0},
		{transaction.WaitingQuery{UserID: w.user, TxID: forTreasury.TxID, Treasury: true}, 1},
		{transaction.WaitingQuery{TxID: "nothing", Treasury: true}, 0},
		{transaction.WaitingQuery{UserID: w.user, ToAddress: forTreasury.ToAddress, Treasury: true}, 1},
		{transaction.WaitingQuery{ToAddress: "nowhere", Treasury: true}, 0},
	} {
		got, err := w.Waiting(w.Context(), c.q, page.Query[transaction.Place]{Count: true})
		if storetest.Must(w, err); len(got.Records) != c.want || got.Total != c.want {
			w.Errorf("%+v: %+v", c.q, got)
		}
		for i, d := range got.Records {
			if ids[d.ID] == "" || i > 0 && got.Records[i-1].ID < d.ID {
				w.Errorf("%+v", got.Records)
			}
		}
	}
	first, err := w.Waiting(w.Context(), transaction.WaitingQuery{UserID: w.user}, page.Query[transaction.Place]{Limit: 1})
	storetest.Must(w, err)
	place := first.Records[0].Mark()
	rest, err := w.Waiting(w.Context(), transaction.WaitingQuery{UserID: w.user},
		page.Query[transaction.Place]{Limit: 1, After: &place})
	storetest.Must(w, err)
	if !first.More || rest.More || len(rest.Records) != 1 || rest.Records[0].ID >= place.ID {
		w.Errorf("%+v, then %+v", first, rest)
	}
	oldest, err := w.Waiting(w.Context(), transaction.WaitingQuery{UserID: w.user},
		page.Query[transaction.Place]{Limit: 1, Oldest: true})
	storetest.Must(w, err)
	if !oldest.More || oldest.Records[0].ID != rest.Records[0].ID {
		w.Errorf("oldest first: %+v", oldest)
	}
}

func withdrawals(w *world) {
	q := w.enqueue("3", transaction.Queued{Status: transaction.TimeOut})
	got, err := w.Withdrawal(w.Context(), q.ID)
	storetest.Must(w, err)
	if got.HoldID == "" || got.TransferID != "" || got.Status != transaction.WaitingQueue || got.Version != 1 ||
		got.Amount != amount.Must("3") || got.ToAddress != "bc13" || !got.At.Equal(q.At) {
		w.Errorf("%+v", got)
	}
	w.has("10", "3.5")
	_, err = w.Withdrawal(w.Context(), "nothing")
	storetest.Wants(w, err, fault.RecordNotFound)
	m, err := transaction.Enqueue(transaction.Withdrawal{UserID: w.user, Asset: 1, Amount: amount.Must("6.51"),
		At: w.next()}, transaction.Queued{Status: transaction.TimeOut}, amount.Amount{})
	storetest.Must(w, err)
	if _, err := w.l.Do(w.Context(), audit.By{}, m); !errors.Is(err, ledger.ErrInsufficient) {
		w.Errorf("more than is there: %v", err)
	}
}

func queue(w *world) {
	fee := amount.Must("0.25")
	a := w.enqueue("1", transaction.Queued{Status: transaction.HotWalletIsEmpty, AddressTag: "t1", ExternalID: "e1",
		Attempt: "a1", TxID: "x1", Fee: &fee})
	b := w.enqueue("2", transaction.Queued{Status: transaction.TimeOut, AddressTag: "t2", ExternalID: "e2",
		Attempt: "a2", TxID: "x2", Fee: new(amount.Amount)})
	c := w.enqueue("0.5", transaction.Queued{Status: transaction.QueueWaiting})
	c.Status = transaction.QueueSuccess
	storetest.Must(w, w.c.Commit(w.Context(), transaction.SetQueued{Queued: c}))
	c.Version = 2
	for _, want := range []transaction.Queued{a, b, c} {
		got, err := w.Queued(w.Context(), want.ID)
		storetest.Must(w, err)
		storetest.Same(w, got, want)
	}
	_, err := w.Queued(w.Context(), "nothing")
	storetest.Wants(w, err, fault.RecordNotFound)
	for name, x := range map[string]struct {
		q    transaction.QueueQuery
		want []transaction.Queued
	}{
		"all":           {transaction.QueueQuery{}, []transaction.Queued{c, b, a}},
		"id":            {transaction.QueueQuery{ID: &b.ID}, []transaction.Queued{b}},
		"another user":  {transaction.QueueQuery{UserID: new("nobody")}, nil},
		"address":       {transaction.QueueQuery{Address: new("bc12")}, []transaction.Queued{b}},
		"tag":           {transaction.QueueQuery{AddressTag: new("t1")}, []transaction.Queued{a}},
		"external":      {transaction.QueueQuery{ExternalID: new("e2")}, []transaction.Queued{b}},
		"attempt":       {transaction.QueueQuery{Attempt: new("a1")}, []transaction.Queued{a}},
		"tx":            {transaction.QueueQuery{TxID: new("x2")}, []transaction.Queued{b}},
		"status":        {transaction.QueueQuery{Status: new(transaction.TimeOut)}, []transaction.Queued{b}},
		"active":        {transaction.QueueQuery{Active: new(true)}, []transaction.Queued{b, a}},
		"final":         {transaction.QueueQuery{Active: new(false)}, []transaction.Queued{c}},
		"asset":         {transaction.QueueQuery{Assets: []int64{1, 7}}, []transaction.Queued{c, b, a}},
		"another asset": {transaction.QueueQuery{Assets: []int64{7}}, nil},
		"name":          {transaction.QueueQuery{Name: new("inCİ öz_")}, []transaction.Queued{c, b, a}},
		"other name":    {transaction.QueueQuery{Name: new("%")}, nil},
		"span": {transaction.QueueQuery{Span: transaction.Span{From: b.At, To: b.At}},
			[]transaction.Queued{b}},
		"since": {transaction.QueueQuery{Span: transaction.Span{From: b.At}}, []transaction.Queued{c, b}},
		"until": {transaction.QueueQuery{Span: transaction.Span{To: b.At}}, []transaction.Queued{b, a}},
	} {
		if x.q.UserID == nil {
			x.q.UserID = &w.user
		}
		got, err := w.Queue(w.Context(), x.q, page.Query[transaction.Place]{Count: true})
		storetest.Must(w, err)
		if !slices.EqualFunc(got.Records, x.want, func(a transaction.Entry, b transaction.Queued) bool {
			return a.Queued.ID == b.ID && a.Withdrawal.ID == b.ID && a.Queued.Status == b.Status &&
				a.FullName == "İnci Öz_"+w.user
		}) ||
			got.Total != len(x.want) {
			w.Errorf("%s: %+v", name, got)
		}
		oldest, err := w.Queue(w.Context(), x.q, page.Query[transaction.Place]{Limit: 1, Oldest: true})
		storetest.Must(w, err)
		if n := len(x.want); n > 0 && oldest.Records[0].Queued.ID != x.want[n-1].ID {
			w.Errorf("%s, oldest first: %+v", name, oldest)
		}
	}
	got, err := w.Queue(w.Context(), transaction.QueueQuery{ID: &a.ID}, page.Query[transaction.Place]{})
	storetest.Must(w, err)
	storetest.Same(w, got.Records[0].Queued, a)
	if e := got.Records[0]; e.Withdrawal.Amount != amount.Must("1") {
		w.Errorf("amount %s of %+v", e.Withdrawal.Amount, e)
	}
}

func processes(w *world) {
	var all []transaction.Process
	for i := range 3 {
		at := w.next()
		p := transaction.Process{ID: id.New(at), TransactionID: id.New(at), UserID: w.user, Asset: int64(i), TxID: "x",
			Internal: i == 1, Status: transaction.Finalized, At: at}
		storetest.Must(w, w.c.Commit(w.Context(), transaction.AddProcess{Process: p}))
		all = append([]transaction.Process{p}, all...)
	}
	for _, x := range []struct {
		q    transaction.ProcessQuery
		want []transaction.Process
	}{
		{transaction.ProcessQuery{}, all},
		{transaction.ProcessQuery{Assets: []int64{1}}, all[1:2]},
		{transaction.ProcessQuery{Span: transaction.Span{From: all[1].At, To: all[0].At}}, all[:2]},
	} {
		x.q.UserID = w.user
		got, err := w.Processes(w.Context(), x.q, page.Query[transaction.Place]{})
		storetest.Must(w, err)
		storetest.Same(w, got.Records, x.want)
	}
	q := w.enqueue("2", transaction.Queued{Status: transaction.TimeOut})
	sent := transaction.Process{ID: id.New(w.next()), TransactionID: q.ID, UserID: w.user, Asset: 1, At: w.at,
		Amount: amount.Must("2")}
	storetest.Must(w, w.c.Commit(w.Context(), transaction.AddProcess{Process: sent}))
	got, err := w.Processes(w.Context(), transaction.ProcessQuery{UserID: w.user}, page.Query[transaction.Place]{})
	storetest.Must(w, err)
	storetest.Same(w, got.Records, append([]transaction.Process{sent}, all...))
	again := all[0]
	again.ID = id.New(w.next())
	storetest.Wants(w, w.c.Commit(w.Context(), transaction.AddProcess{Process: again}), fault.RecordAlreadyExist)
}

// Of many changes of one version one is made.
func fences(w *world) {
	d := w.deposit(transaction.WaitingTreasury, "1")
	w.do(transaction.Receive(d))
	q := w.enqueue("1", transaction.Queued{Status: transaction.TimeOut})
	out, err := w.Withdrawal(w.Context(), q.ID)
	storetest.Must(w, err)
	d.Status, d.Version, q.Status = transaction.WaitingSender, 1, transaction.QueueWaiting
	out.Status = transaction.Finalized
	for _, write := range []commit.Write{transaction.SetDeposit{Deposit: d}, transaction.SetQueued{Queued: q},
		transaction.SetWithdrawal{Withdrawal: out}} {
		won := storetest.Race(w, 8, "", func(int) error {
			err := w.c.Commit(w.Context(), write)
			if errors.Is(err, commit.ErrFenced) {
				err = fault.New("", "fenced")
			}
			return err
		})
		if won != 1 {
			w.Errorf("%s: %d of 8 were made", write.Table(), won)
		}
	}
}
