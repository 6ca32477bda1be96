package money_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestLedgerStore(t *testing.T) {
	persistencetest.RunBoth(t, ledgertest.Run, func(db *persistence.DB) ledger.Store { return money.NewLedger(db) })
}

// Every query of a statement, of the closing of days and of the verification continues after the last page by an
// index: none sorts, and none reads a whole table. The sides of an account, the digests of the audit and the active
// holds are read from their index alone.
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
		_, err := b.l.Store.Statement(t.Context(), b.ada, page.Query[ledger.Place]{Limit: 10, Count: true,
			After: &ledger.Place{ID: b.last.ID}})
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
