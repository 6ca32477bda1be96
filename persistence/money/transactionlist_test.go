package money_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/uptrace/bun"

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
	"castellan/persistence/record"
)

// A page of what may have a million rows is read by an index.
func TestTransactionsAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		of := func(fs []record.Filter) record.Part {
			return record.PartOf(page.Query[transaction.Place]{After: &transaction.Place{ID: "9"}, Limit: 10},
				money.TransactionOrder,
				fs)
		}
		all := func(row any) *bun.SelectQuery { return db.Conn(t.Context()).NewSelect().Model(row) }
		waits := func(q transaction.WaitingQuery) *bun.SelectQuery {
			return money.Deposits.Selected(all((*money.DepositRead)(nil)), of(money.WaitingFilters(q)))
		}
		queue := func(q transaction.QueueQuery) *bun.SelectQuery {
			return money.Entries.Selected(all((*money.EntryRead)(nil)), of(money.QueueFilters(q)))
		}
		text := new("x")
		for name, c := range map[string]struct {
			query *bun.SelectQuery
			index string
		}{
			"own that wait":     {waits(transaction.WaitingQuery{UserID: "u"}), "deposit_waiting"},
			"for the treasury":  {waits(transaction.WaitingQuery{Treasury: true}), "deposit_status"},
			"of one":            {waits(transaction.WaitingQuery{UserID: "u", Treasury: true}), "deposit_"},
			"of a hash":         {waits(transaction.WaitingQuery{TxID: "x", Treasury: true}), "deposit_waiting_tx"},
			"to one's address":  {waits(transaction.WaitingQuery{ToAddress: "x", Treasury: true}), "deposit_waiting_address"},
			"queue":             {queue(transaction.QueueQuery{}), "withdrawal_queue"},
			"queue of a user":   {queue(transaction.QueueQuery{UserID: text}), "withdrawal_queue_user"},
			"of an asset":       {queue(transaction.QueueQuery{Assets: []int64{1}}), "withdrawal_queue_asset"},
			"of a status":       {queue(transaction.QueueQuery{Status: new(transaction.TimeOut)}), "withdrawal_queue_status"},
			"active":            {queue(transaction.QueueQuery{Active: new(true)}), "withdrawal_queue_active"},
			"final":             {queue(transaction.QueueQuery{Active: new(false)}), "withdrawal_queue_final"},
			"to an address":     {queue(transaction.QueueQuery{Address: text}), "withdrawal_queue_address"},
			"with a tag":        {queue(transaction.QueueQuery{AddressTag: text}), "withdrawal_queue_address_tag"},
			"by an external id": {queue(transaction.QueueQuery{ExternalID: text}), "withdrawal_queue_external"},
			"by an attempt":     {queue(transaction.QueueQuery{Attempt: text}), "withdrawal_queue_attempt"},
			"by a transaction":  {queue(transaction.QueueQuery{TxID: text}), "withdrawal_queue_tx"},
			"of a name":         {queue(transaction.QueueQuery{Name: text}), "withdrawal_queue"},
			"processes": {money.Processes.Selected(all((*money.ProcessRow)(nil)),
				of(money.ProcessFilters(transaction.ProcessQuery{UserID: "u", Assets: []int64{1, 2}}))), "process_user"},
		} {
			persistencetest.WantsIndex(t, db, name, c.query, c.index)
		}
	})
}

// A report looks for its transfer by an index, and the doctor reads the index alone.
func TestSpellingsAreFoundByIndex(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := money.NewTransactions(db)
		usual, unusual := s.ReceivedFilters(1, "0xab", "0xcd")
		found := func(of []record.Filter) *bun.SelectQuery {
			return money.Transfers.Selected(db.Conn(t.Context()).NewSelect().Model((*money.DepositRead)(nil)),
				record.Part{Where: of})
		}
		anyTo, _ := s.ReceivedFilters(1, "0xab")
		several, odd := s.Candidates(t.Context(), 10)
		for index, queries := range map[string][]*bun.SelectQuery{"deposit_received": {found(usual), found(anyTo), several},
			"deposit_unusual": {found(unusual), odd}} {
			for _, q := range queries {
				if plan := persistencetest.Explain(t, db, q); !strings.Contains(plan, index) {
					t.Errorf("%s is not used:\n%s\n%s", index, q, plan)
				}
			}
		}
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
