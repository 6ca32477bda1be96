package money_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/currency"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// A page of what may have a million rows is read by an index.
func TestTransactionsAreFoundByIndex(t *testing.T) {
	persistencetest.WithReads(t, func(db *persistence.DB, r *persistencetest.Reads) {
		s, ctx, text := money.NewTransactions(db), r.Context(), new("x")
		from := page.Query[transaction.Place]{After: &transaction.Place{ID: "9"}, Limit: 10}
		for _, c := range []struct {
			q     transaction.WaitingQuery
			index string
		}{
			{transaction.WaitingQuery{UserID: "u"}, "deposit_waiting"},
			{transaction.WaitingQuery{Treasury: true}, "deposit_status"},
			{transaction.WaitingQuery{UserID: "u", Treasury: true}, "deposit_"},
			{transaction.WaitingQuery{TxID: "x", Treasury: true}, "deposit_waiting_tx"},
			{transaction.WaitingQuery{ToAddress: "x", Treasury: true}, "deposit_waiting_address"},
		} {
			r.Index(c.index, storetest.Err(s.Waiting(ctx, c.q, from)))
		}
		for _, c := range []struct {
			q     transaction.QueueQuery
			index string
		}{
			{transaction.QueueQuery{}, "withdrawal_queue"},
			{transaction.QueueQuery{UserID: text}, "withdrawal_queue_user"},
			{transaction.QueueQuery{Assets: []int64{1}}, "withdrawal_queue_asset"},
			{transaction.QueueQuery{Status: new(transaction.TimeOut)}, "withdrawal_queue_status"},
			{transaction.QueueQuery{Active: new(true)}, "withdrawal_queue_active"},
			{transaction.QueueQuery{Active: new(false)}, "withdrawal_queue_final"},
			{transaction.QueueQuery{Address: text}, "withdrawal_queue_address"},
			{transaction.QueueQuery{AddressTag: text}, "withdrawal_queue_address_tag"},
			{transaction.QueueQuery{ExternalID: text}, "withdrawal_queue_external"},
			{transaction.QueueQuery{Attempt: text}, "withdrawal_queue_attempt"},
			{transaction.QueueQuery{TxID: text}, "withdrawal_queue_tx"},
			{transaction.QueueQuery{Name: text}, "withdrawal_queue"},
		} {
			r.Index(c.index, storetest.Err(s.Queue(ctx, c.q, from)))
		}
		of := transaction.ProcessQuery{UserID: "u", Assets: []int64{1, 2}}
		r.Index("process_user", storetest.Err(s.Processes(ctx, of, from)))
	})
}

// A report looks for its transfer by an index, and the doctor reads the index alone.
func TestSpellingsAreFoundByIndex(t *testing.T) {
	persistencetest.WithReads(t, func(db *persistence.DB, r *persistencetest.Reads) {
		wants := func(err error) {
			r.Helper()
			plan := r.Plan(err)
			for _, index := range []string{" deposit_received", " deposit_unusual"} {
				if !strings.Contains(plan, index) {
					r.Errorf("%s is not used:\n%s", index, plan)
				}
			}
		}
		s := money.NewTransactions(db)
		wants(storetest.Err(s.Received(r.Context(), 1, "0xab", "0xcd")))
		wants(storetest.Err(s.Received(r.Context(), 1, "0xab")))
		wants(storetest.Err(s.Respelled(r.Context(), 10)))
	})
}

// The doctor lists entries of one book that are spellings of one address. Each user's are its own.
func TestRespelledAddresses(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		const segwit = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			return currency.Seed(ctx, money.NewCurrencies(db))
		}))
		books := money.NewAddressBooks(db)
		for i, c := range [][2]string{{"a", segwit}, {"a", strings.ToUpper(segwit)}, {"b", segwit},
			{"b", "TR7NHqjeKQxGTCi8q8"}, {"b", "tR7NHqjeKQxGTCi8q8"}} {
			storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
				_, err := books.Hold(ctx, c[0])
				if err == nil {
					_, err = books.Insert(ctx, c[0], addressbook.Entry{Name: fmt.Sprint(i), Address: c[1], CurrencyID: 1,
						NetworkID: 1})
				}
				return err
			}))
		}
		got := storetest.Value(books.Respelled(t.Context(), 10))(t)
		if want := "entries 1 and 2 of user a"; strings.Join(got, "; ") != want {
			t.Errorf("%q, want %s", got, want)
		}
	})
}

// depositsReceived finds the reported transfers of an asset in all spellings, as programs with and without a canonical
// form store them.
func depositsReceived(w *transactionWorld) {
	add := func(asset int64, externalID, tx, to string) transaction.Deposit {
		d := transaction.Deposit{ID: id.New(w.at), UserID: w.user, Asset: asset, Amount: amount.Must("1"),
			Status: transaction.WaitingSender, TxID: tx, ToAddress: to, ExternalID: externalID, At: w.at}
		storetest.Must(w, w.c.Commit(w.Context(), transaction.AddDeposit{Deposit: d}))
		return d
	}
	const asset = 77
	tx, to := "0xAb"+w.user, "0xcD"+w.user // of this world only
	var want []string
	for i, spelling := range []string{"%s", " %s", "%s\n", "\u00a0%s", "%s\u200b", "\t%s\r\n\v\f "} {
		for j, text := range []string{tx, strings.ToUpper(tx), tx[2:]} {
			d := add(asset, fmt.Sprint(w.user, i, j), fmt.Sprintf(spelling, text), fmt.Sprintf(spelling, to))
			want = append(want, d.ID)
		}
	}
	for _, other := range []transaction.Deposit{add(asset+1, w.user+"a", tx, to), add(asset, "", tx, to),
		add(asset, w.user+"b", tx+"0", to), add(asset, w.user+"c", tx, to+"0")} {
		want = slices.DeleteFunc(want, func(id string) bool { return id == other.ID })
	}
	for _, c := range [][2]string{{tx, to}, {tx[2:] + " ", strings.ToLower(to)}} {
		all := storetest.Value(w.Received(w.Context(), asset, c[0], "elsewhere", c[1]))(w)
		var got []string
		for _, d := range all {
			if d.UserID == w.user && !slices.Contains(got, d.ID) {
				got = append(got, d.ID)
			}
		}
		if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			w.Errorf("%q: %d deposits, want %d", c, len(got), len(want))
		}
	}
}

func withdrawalProcesses(w *transactionWorld) {
	var all []transaction.Process
	for i := range 3 {
		at := w.next()
		p := persistencetest.Whole(w, func(p *transaction.Process) {
			p.ID, p.TransactionID, p.UserID, p.At = id.New(at), id.New(at), w.user, at
			p.Asset, p.Internal, p.Amount = int64(i), i == 1, amount.Amount{}
		})
		storetest.Must(w, w.c.Commit(w.Context(), transaction.AddProcess{Process: p}))
		all = append([]transaction.Process{p}, all...)
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
