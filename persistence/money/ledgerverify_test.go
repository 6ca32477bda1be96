package money_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// book is a ledger with two users, two closed days, holds in every state and a
// reversal.
type book struct {
	db       *persistence.DB
	l        *ledger.Ledger
	ada, bob ledger.Account
	treasury ledger.Account
	first    ledger.Transfer // of ada, on the first closed day
	last     ledger.Transfer // of bob, today
	active   ledger.Hold     // of ada
	settled  ledger.Hold     // of ada
	day      int64           // the first closed one
}

func newBook(t *testing.T, db *persistence.DB) *book {
	t.Helper()
	account := func(kind ledger.Kind, owner string) ledger.Account {
		return ledger.Account{Kind: kind, Owner: owner, Asset: 1}
	}
	b := &book{db: db, l: ledgertest.New(money.NewLedger(db), db), ada: account(ledger.User, "ada"),
		bob: account(ledger.User, "bob"), treasury: account(ledger.Treasury, "")}
	now := time.Now()
	do := func(m ledger.Movement) ledger.Result {
		t.Helper()
		return storetest.Value(b.l.Do(t.Context(), audit.By{UserID: "op"}, m))(t)
	}
	n := 0
	move := func(daysAgo int, from, to ledger.Account, sum string) ledger.Transfer {
		t.Helper()
		n++
		at := now.AddDate(0, 0, -daysAgo)
		return do(ledger.Movement{Transfers: []ledger.Transfer{
			ledger.New(at, "test", fmt.Sprint(n), from, to, amount.Must(sum))}}).Transfers[0]
	}
	hold := func(ref string) ledger.Hold {
		t.Helper()
		return do(ledger.Movement{Take: []ledger.Hold{
			ledger.NewHold(now, "queue", ref, "withdrawal", b.ada, amount.Must("2"))}}).Holds[0]
	}
	b.first = move(4, b.treasury, b.ada, "100")
	move(4, b.treasury, b.bob, "50")
	move(3, b.ada, b.bob, "1.5")
	move(3, b.bob, b.treasury, "0.25")
	storetest.Must(t, ledger.CloseDays(t.Context(), money.NewLedger(db), db, now))
	b.day = b.first.At.UnixMilli() / (24 * time.Hour).Milliseconds()
	wrong := move(0, b.treasury, b.bob, "7")
	do(ledger.Movement{Transfers: []ledger.Transfer{ledger.Reversal(now, wrong, "booked twice")}})
	b.active, b.settled = hold("1"), hold("2")
	sent := ledger.New(now, "withdrawal", "2", b.ada, b.treasury, amount.Must("1.99"))
	do(ledger.Movement{Transfers: []ledger.Transfer{sent}, End: []ledger.End{{Hold: b.settled.ID, Transfer: sent.ID}}})
	do(ledger.Movement{End: []ledger.End{{Hold: hold("3").ID}}})
	b.last = move(0, b.treasury, b.bob, "1")
	return b
}

func (b *book) verify(ctx context.Context) error {
	_, err := ledger.Verify(ctx, money.NewLedger(b.db))
	return err
}

// tamper runs statements with what protects the tables switched off.
func (b *book) tamper(t *testing.T, texts ...string) {
	t.Helper()
	off := "PRAGMA defer_foreign_keys = ON"
	if b.db.Postgres() {
		off = "SET LOCAL session_replication_role = replica"
	}
	storetest.Must(t, b.db.InTx(t.Context(), func(ctx context.Context) error {
		for _, text := range append([]string{off}, texts...) {
			if _, err := b.db.Conn(ctx).ExecContext(ctx, text); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	}))
}

var ledgerTables = []string{"asset", "account", "balance", "transfer", "hold", "day", "audit"}

// keep copies all tables; restore puts the copies back.
func (b *book) keep(t *testing.T) (restore func()) {
	t.Helper()
	if !b.db.Postgres() {
		var names []string
		storetest.Must(t, b.db.Conn(t.Context()).NewSelect().Table("sqlite_master").Column("name").
			Where("type = 'trigger'").Scan(t.Context(), &names))
		for _, name := range names {
			b.tamper(t, "DROP TRIGGER "+name)
		}
	}
	var put []string
	for _, table := range ledgerTables {
		b.tamper(t, "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table)
		put = append(put, "DELETE FROM "+table, "INSERT INTO "+table+" SELECT * FROM kept_"+table)
	}
	return func() { b.tamper(t, put...) }
}

// Every fault that is planted below the service is reported with its id.
func TestLedgerVerifyNamesTheFault(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		b := newBook(t, db)
		totals := storetest.Value(ledger.Verify(t.Context(), money.NewLedger(db)))(t)
		if len(totals) != 1 || totals[0].String() !=
			"asset 1: 8 transfers between 3 accounts add up to 0; users have 148.76, of which 2 is locked" {
			t.Errorf("the totals are %v", totals)
		}
		restore := b.keep(t)
		forged := b.first
		forged.Reason = "forged"
		sum := "x'%x'"
		if db.Postgres() {
			sum = `'\x%x'`
		}
		ada, first, last := "'"+b.ada.ID()+"'", "'"+b.first.ID+"'", "'"+b.last.ID+"'"
		day := fmt.Sprint(" AND day = ", b.day)
		for name, c := range map[string]struct{ names, do string }{
			"an amount changed": {b.first.ID, "UPDATE transfer SET hi = hi + 1 WHERE id = " + first},
			"a digest remade": {b.first.ID, fmt.Sprintf("UPDATE transfer SET reason = 'forged', digest = "+sum+
				" WHERE id = '%s'", forged.Digest(), b.first.ID)},
			"a transfer removed":   {b.last.ID, "DELETE FROM transfer WHERE id = " + last},
			"an audit row removed": {b.last.ID, "DELETE FROM audit WHERE target = " + last},
			"an audit row doubled": {b.last.ID, "INSERT INTO audit SELECT chain, seq + 1000, at, actor_id, user_id, action, " +
				"target, outcome, ip, request_id, detail, hash FROM audit WHERE target = " + last},
			"a treasury off by the least": {b.treasury.ID(), "UPDATE balance SET posted_lo = posted_lo - 1 " +
				"WHERE account_id = '" + b.treasury.ID() + "'"},
			"a number changed": {b.ada.ID(), "UPDATE transfer SET credit_seq = credit_seq + 50 WHERE id = " + first},
			"a hold removed":   {b.ada.ID(), "DELETE FROM hold WHERE id = '" + b.active.ID + "'"},
			"a hold settled by a stranger": {b.settled.ID, "UPDATE hold SET transfer_id = " + last + " WHERE id = '" +
				b.settled.ID + "'"},
			"a balance removed": {b.ada.ID(), "DELETE FROM balance WHERE account_id = " + ada},
			"a day missing":     {b.ada.ID(), "DELETE FROM day WHERE account_id = " + ada + day},
			"a day too many":    {b.ada.ID(), "UPDATE day SET day = day - 9 WHERE account_id = " + ada + day},
		} {
			b.tamper(t, c.do)
			if err := b.verify(t.Context()); !errors.Is(err, ledger.ErrBroken) || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%s: %v, want the name of %s", name, err, c.names)
			}
			restore()
			storetest.Must(t, b.verify(t.Context()))
		}
	})
}

// The day before can be the day itself, so that a closing that was cut off continues after it.
func TestDayBefore(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		b := newBook(t, db)
		d := storetest.Value(money.NewLedger(db).DayBefore(t.Context(), b.ada.ID(), b.day+1))(t)
		storetest.Same(t, d, ledger.Day{Account: b.ada.ID(), Day: b.day + 1, Posted: amount.Must("98.5").Sum(),
			Out: amount.Must("1.5").Sum(), Seq: 2})
	})
}

func TestLedgerStore(t *testing.T) {
	persistencetest.RunBoth(t, ledgertest.Run, func(db *persistence.DB) ledger.Store { return money.NewLedger(db) })
}

// Every query of the closing of days and of the verification continues after the last page by an index: none sorts, and
// none reads a whole table. The sides of an account, the digests of the audit and the active holds are read from their
// index alone.
func TestLedgerReadsByIndex(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]bool{}
	trace := func(_ context.Context, text string) bool {
		mu.Lock()
		defer mu.Unlock()
		asked[text] = true
		return false
	}
	persistencetest.BothWith(t, persistence.Options{Trace: trace}, func(t *testing.T, db *persistence.DB) {
		b := newBook(t, db)
		clear(asked)
		_, _, err := money.NewLedger(db).FirstDay(t.Context())
		storetest.Must(t, err)
		storetest.Must(t, ledger.CloseDays(t.Context(), money.NewLedger(db), db, time.Now().AddDate(0, 0, 2)))
		storetest.Must(t, b.verify(t.Context()))
		seen := 0
		for text := range asked {
			if !strings.HasPrefix(text, "SELECT") {
				continue
			}
			seen++
			plan := persistencetest.ExplainText(t, db, text)
			// One row at the end of an index is read of it without a beginning.
			first := strings.HasSuffix(text, "LIMIT 1") && !strings.Contains(text, "WHERE")
			if whole.MatchString(plan) && !first || sorts.MatchString(plan) ||
				first && !strings.Contains(plan, "ndex") && !strings.Contains(plan, "INDEX") {
				t.Errorf("%s\nis planned as\n%s", text, plan)
			}
			if from := len(begins.FindAllString(plan, -1)); !first && len(scans.FindAllString(plan, -1)) > from {
				t.Errorf("%s\nreads an index from its beginning:\n%s", text, plan)
			}
			for of, index := range ledgerIndexOnly {
				if strings.Contains(text, of) && !strings.Contains(plan, "COVERING INDEX "+index) &&
					!strings.Contains(plan, "Index Only Scan using "+index) {
					t.Errorf("%s\nis not read of %s alone:\n%s", text, index, plan)
				}
			}
		}
		if seen < 13 {
			t.Errorf("only %d queries were seen: %v", seen, asked)
		}
	})
}

var (
	whole = regexp.MustCompile(`(?m)^SCAN |Seq Scan`)
	// The index that PostgreSQL uses, and the condition with which it begins.
	scans  = regexp.MustCompile(`Index (Only )?Scan`)
	begins = regexp.MustCompile(`Index Cond`)
	sorts  = regexp.MustCompile(`TEMP B-TREE|Sort`)
)

// ledgerIndexOnly are the indexes that suffice for queries, by their columns.
var ledgerIndexOnly = map[string]string{
	"(debit_id, id) >":   "transfer_debit",
	"(credit_id, id) >":  "transfer_credit",
	"(account_id, id) >": "hold_active",
	"LEDGER_TRANSFER":    "audit_transfer",
}

// A verification ends with its context, so that a node that leaves does not wait for it.
func TestLedgerVerifyIsBrokenOff(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		b := newBook(t, db)
		ctx, cancel := context.WithCancel(t.Context())
		_, err := ledger.Verify(ctx, leaving{money.NewLedger(db), cancel})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		storetest.Must(t, b.verify(t.Context()))
	})
}

// leaving are books of a node that leaves while it reads the first balances.
type leaving struct {
	money.Ledger
	leave func()
}

func (l leaving) Lines(ctx context.Context, after ledger.Line) ([]ledger.Line, error) {
	l.leave()
	return l.Ledger.Lines(context.WithoutCancel(ctx), after)
}
