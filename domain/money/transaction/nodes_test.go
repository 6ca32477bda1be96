package transaction_test

import (
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/level"
	"castellan/domain/money/transaction"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// onNodes runs a test on a fresh database of each kind. On PostgreSQL as many nodes as asked for have it open, each as
// a process has; on SQLite there is one.
func onNodes(t *testing.T, n int, test func(t *testing.T, dbs []*persistence.DB)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		test(t, []*persistence.DB{persistencetest.OpenWith(t, persistencetest.File(t), persistence.Options{})})
	})
	t.Run("postgres", func(t *testing.T) {
		dsn := pgtest.DSN(t)
		dbs := make([]*persistence.DB, n)
		for i := range dbs {
			dbs[i] = persistencetest.OpenWith(t, dsn, persistence.Options{})
		}
		test(t, dbs)
	})
}

// nodes returns the desk and those of the other nodes, which have its rules, users and clock.
func (d *desk) nodes(dbs []*persistence.DB) []*desk {
	all := []*desk{d}
	for _, db := range dbs[1:] {
		m, w, limits, users := *d.m, *d.Withdrawals, *d.Limits, account.NewUsers(db)
		m.DB, m.Ledger = db, &ledger.Ledger{Store: money.NewLedger(db), Commit: db, Now: d.now,
			Decimals: d.m.Decimals}
		limits.Users, limits.Store = users, money.NewLimits(db)
		w.Ledger, w.Store, w.Users, w.Limits = m.Ledger, money.NewTransactions(db), users, &limits
		w.Books, w.Claims = money.NewAddressBooks(db), kit.NewIntegration(db)
		n := &desk{Withdrawals: &w, m: &m, t: d.t, clock: d.clock}
		n.judgesBy(d.Judge.Rules())
		all = append(all, n)
	}
	return all
}

// patient repeats a request while the service is overloaded, as its clients must.
func patient(do func() error) error {
	for {
		err := do()
		if code := fault.CodeOf(err); code != fault.Overloaded && code != fault.Unavailable {
			return err
		}
	}
}

// Of 200 approvals at once of a withdrawal that needs two, two count, and it is released once. Of its claim and its
// cancellation by the owner, one happens.
func TestApprovalsInParallel(t *testing.T) {
	onNodes(t, 2, func(t *testing.T, dbs []*persistence.DB) {
		d := newDesk(t, dbs[0], "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
		d.judges(`{` + treasury + `}`)
		const persons = 200
		for i := range persons {
			d.operators(fmt.Sprint("op", i))
		}
		nodes := d.nodes(dbs)
		o, err := d.ask("u", "BTC", 5, "x")
		storetest.Must(t, err)
		id := o.Queued.ID
		won := storetest.Race(t, persons, fault.InvalidState, func(i int) error {
			return patient(func() error { return nodes[i%len(nodes)].resume(fmt.Sprint("op", i), id) })
		})
		rows, err := d.Judge.Past.Approved(t.Context(), id)
		storetest.Must(t, err)
		released := persistencetest.Did(t, d.m.DB, "MONEY_RELEASE")
		if d.read(id, transaction.QueueReady, ""); won != 2 || len(rows) != 2 || len(released) != 1 {
			t.Errorf("%d approvals, %d stored, %d releases", won, len(rows), len(released))
		}
		won = storetest.Race(t, 2, fault.InvalidState, func(i int) error {
			if i == 0 {
				return nodes[len(nodes)-1].move(id, transaction.QueueProcessing)
			}
			_, err := d.CancelOwn(t.Context(), audit.By{UserID: "u"}, id)
			return err
		})
		if won != 1 {
			t.Errorf("%d of claim and cancellation", won)
		}
	})
}

var (
	gateRequests = flag.Int("gate.requests", 64, "requests of TestHotGate, on each database")
	bulk         = flag.Int("bulk", 8, "held withdrawals of TestBulkApprovals, on each database")
)

// Requests of 64 clients on two nodes pass one gate, and each counts in its sum. The log has their rate.
func TestHotGate(t *testing.T) {
	onNodes(t, 2, func(t *testing.T, dbs []*persistence.DB) {
		const clients = 64
		d := newDesk(t, dbs[0])
		for i := range clients {
			d.m.User(fmt.Sprint("u", i), func(*user.User) {})
			storetest.Must(t, d.m.Pay(fmt.Sprint("u", i), "BTC/BTC", "100000"))
		}
		plenty := amount.Must("100000000")
		d.Limits.Levels = levels{all: []level.Level{{Limits: level.Limits{SendCryptoDaily: plenty,
			SendCryptoMonthly: plenty}}}}
		each := *gateRequests / clients
		d.judges(sumRule("WITHDRAWAL", "INITIATOR", "24h", "COUNT", fmt.Sprint(each*clients)))
		nodes := d.nodes(dbs)
		took := make([][]time.Duration, clients)
		began := time.Now()
		storetest.Race(t, clients, "", func(i int) error {
			for n := range each {
				asked := time.Now()
				err := patient(func() error {
					_, err := nodes[i%len(nodes)].ask(fmt.Sprint("u", i), "BTC", 1, fmt.Sprint(i, " ", n))
					return err
				})
				if err != nil {
					return err
				}
				took[i] = append(took[i], time.Since(asked))
			}
			return nil
		})
		seconds, all := time.Since(began).Seconds(), slices.Concat(took...)
		slices.Sort(all)
		t.Logf("%d requests, %.0f a second, 99 %% within %v", len(all), float64(len(all))/seconds, all[len(all)*99/100])
		_, err := d.ask("u0", "BTC", 1, "one more")
		storetest.Wants(t, err, fault.PolicyDenied)
	})
}

// Two persons approve all held withdrawals, as a bulk decision of the console does. The log has the time.
func TestBulkApprovals(t *testing.T) {
	onNodes(t, 2, func(t *testing.T, dbs []*persistence.DB) {
		d := newDesk(t, dbs[0], "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1000"))
		d.Limits.Levels = levels{all: []level.Level{{Limits: level.Limits{SendCryptoDaily: amount.Must("1000000"),
			SendCryptoMonthly: amount.Must("1000000")}}}}
		d.operators("a", "b")
		d.judges(`{` + treasury + `}`)
		nodes := d.nodes(dbs)
		var ids []string
		for i := range *bulk {
			o, err := d.ask("u", "BTC", 1, fmt.Sprint(i))
			storetest.Must(t, err)
			ids = append(ids, o.Queued.ID)
		}
		began := time.Now()
		for i, by := range []string{"a", "b"} {
			for _, id := range ids {
				storetest.Must(t, nodes[i%len(nodes)].resume(by, id))
			}
		}
		t.Logf("%d approved in %v", len(ids), time.Since(began).Round(time.Millisecond))
		for _, id := range ids {
			d.read(id, transaction.QueueReady, "")
		}
	})
}
