package transaction_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// sumRule is a rule that denies movements above a sum.
func sumRule(kind, per, window, of, over string) string {
	return fmt.Sprintf(`{"kinds":["%s"],"match":{"sums":[{"per":"%s","window":"%s","of":"%s","over":"%s"}]},%s}`, kind,
		per, window, of, over, deny)
}

// listed is a withdrawal of the model.
type listed struct {
	id, by, user string
	code         string
	n            int64 // hundredths
	at, left     time.Time
	gone, out    bool // cancelled or failed; sent
}

// flowModel is a list of withdrawals, whose sums are added up one by one.
type flowModel struct {
	*desk
	all    []*listed
	limits map[string]int64 // hundredths of lira in hours(per)
}

func hours(per string) time.Duration {
	return map[string]time.Duration{"PLATFORM": 2, "DESTINATION": 2}[per] + 1
}

// fits reports whether a withdrawal keeps all limits at an instant.
func (m *flowModel) fits(w *listed, left bool) bool {
	at := m.now()
	worth := map[string]int64{"BTC": 100, "ETH": 10}
	for per, most := range m.limits {
		sum := w.n * worth[w.code]
		for _, o := range m.all {
			when := o.at
			if left {
				when = o.left
			}
			same := map[string]bool{"PLATFORM": true, "INITIATOR": o.by == w.by, "ACCOUNT": o.user == w.user,
				"ASSET": o.code == w.code, "DESTINATION": o.code == w.code} // an asset has one address
			if same[per] && o != w && !o.gone && !when.IsZero() && when.After(at.Add(-hours(per)*time.Hour)) {
				sum += o.n * worth[o.code]
			}
		}
		if sum > most {
			return false
		}
	}
	return true
}

func (m *flowModel) step(rng *rand.Rand) error {
	w := &listed{}
	if len(m.all) > 0 {
		w = m.all[max(0, len(m.all)-1-rng.IntN(8))]
	}
	open := w.id != "" && !w.gone && !w.out
	switch rng.IntN(9) {
	case 0, 1, 2:
		w = &listed{by: fmt.Sprint("shop", rng.IntN(2)), user: fmt.Sprint("u", rng.IntN(3)), at: m.now(),
			code: []string{"BTC", "ETH"}[rng.IntN(2)], n: 1 + rng.Int64N(9)}
		o, err := m.Request(m.t.Context(), audit.By{UserID: "service:" + w.by}, transaction.WithdrawalRequest{
			ExternalID: fmt.Sprint(rng.Uint64()), UserID: w.user, CurrencyCode: w.code,
			NetworkCode: w.code, Amount: amount.Must(hundredths(w.n)), Address: addresses[w.code]})
		if fits := m.fits(w, false); fits != (err == nil) || err != nil && fault.CodeOf(err) != fault.PolicyDenied {
			return fmt.Errorf("request %+v: %v, want it to fit: %t", *w, err, fits)
		}
		if err == nil {
			w.id, m.all = o.Queued.ID, append(m.all, w)
		}
	case 3, 4:
		if o, err := m.Get(m.t.Context(), w.id); !open || err != nil || o.Queued.Status != transaction.QueueReady {
			return nil
		}
		err := m.move(w.id, transaction.QueueProcessing)
		if fits := m.fits(w, true); fits != (err == nil) {
			return fmt.Errorf("claim %+v: %v, want it to fit: %t", *w, err, fits)
		}
		if w.left = m.now(); err != nil {
			w.left = time.Time{}
		}
	case 5:
		if _, err := m.Cancel(m.t.Context(), audit.By{UserID: "op"}, w.id, ""); open && err == nil {
			w.gone = true
		}
	case 6:
		if open && !w.left.IsZero() && m.move(w.id, transaction.QueueFailed) == nil {
			w.gone = true
		}
	case 7:
		if open && !w.left.IsZero() && m.move(w.id, transaction.QueueSent) == nil &&
			m.move(w.id, transaction.QueueSuccess) == nil {
			w.out = true
		}
	case 8:
		if rng.IntN(4) > 0 {
			return m.Judge.KeepTotals(m.t.Context(), m.now())
		}
		return m.Judge.Past.KeepTotals(m.t.Context(), nil, m.now(), m.now())
	}
	m.advance([]time.Duration{0, time.Millisecond, 59 * time.Minute, time.Hour - time.Millisecond, time.Hour,
		20 * time.Minute}[rng.IntN(6)])
	return nil
}

var sumSteps = flag.Int("sums.steps", 250, "steps of TestWideSumsInRandomOrder, at most 20,000 on PostgreSQL")

// In random orders of requests, claims, cancellations and ends, the sums of each kind admit what a list of movements
// admits. Totals begin and end meanwhile. Each step is made on any of three nodes.
func TestWideSumsInRandomOrder(t *testing.T) {
	onNodes(t, 3, func(t *testing.T, dbs []*persistence.DB) {
		db := dbs[0]
		d := newDesk(t, db)
		d.unlimited()
		d.clients(3, "1000")
		for _, u := range []string{"u0", "u1", "u2"} {
			storetest.Must(t, d.m.Pay(u, "ETH/ETH", "1000"))
		}
		m := &flowModel{desk: d, limits: map[string]int64{"INITIATOR": 900, "ASSET": 1200, "PLATFORM": 2500,
			"ACCOUNT": 850, "DESTINATION": 2000}}
		var rules []string
		for _, per := range slices.Sorted(maps.Keys(m.limits)) {
			window := fmt.Sprint(int(hours(per)), "h")
			rules = append(rules, sumRule("WITHDRAWAL", per, window, "VALUE", hundredths(m.limits[per])))
		}
		d.judges(rules...)
		seed, nodes := rand.Uint64(), d.nodes(dbs)
		rng, steps := rand.New(rand.NewPCG(seed, 0)), min(*sumSteps, map[bool]int{false: 1e9, true: 2e4}[db.Postgres()])
		for i := range steps {
			m.all = m.all[max(0, len(m.all)-1000):] // in three hours there are fewer
			m.desk = nodes[rng.IntN(len(nodes))]
			if err := m.step(rng); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, i, err)
			}
		}
		past := money.NewTransactions(db)
		storetest.Must(t, d.Judge.KeepTotals(t.Context(), d.now())) // the last step may have ended them
		sumsTogether(t, db, d.now())
		storetest.Must(t, past.KeepTotals(t.Context(), transaction.Flows(), d.now().Add(-72*time.Hour), d.now()))
		sumsTogether(t, db, d.now()) // all wide ones by totals, beside sums of movements
		storetest.Must(t, past.VerifyTotals(t.Context()))
		var totals int
		count := func() {
			storetest.Must(t, db.Conn(t.Context()).NewRaw("SELECT count(*) FROM money_flow WHERE number <> 0").
				Scan(t.Context(), &totals))
		}
		if count(); totals == 0 {
			t.Error("no totals were kept")
		}
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			_, err := db.Conn(ctx).NewRaw("UPDATE money_flow SET lo_low = lo_low + 1 WHERE grain = 20").Exec(ctx)
			return err
		}))
		if err := past.VerifyTotals(t.Context()); !errors.Is(err, ledger.ErrBroken) {
			t.Errorf("a wrong total is %v", err)
		}
		storetest.Must(t, past.PurgeTotals(t.Context(), d.now().Add(10*time.Hour)))
		if count(); totals != 0 {
			t.Errorf("%d totals after the purge", totals)
		}
	})
}

// Of parallel requests of many accounts through two keys at 99 % of a limit, on three nodes, exactly those are admitted
// that fit. The limit is that of both keys or that of one destination, at which each key has another line.
func TestWideSumsInParallel(t *testing.T) {
	onNodes(t, 3, func(t *testing.T, dbs []*persistence.DB) {
		d := newDesk(t, dbs[0])
		d.clients(65, "4")
		d.unlimited()
		for day, per := range []string{"PLATFORM", "DESTINATION"} {
			d.advance(time.Duration(day) * 24 * time.Hour)
			d.judges(sumRule("WITHDRAWAL", per, "24h", "VALUE", "100"), sumRule("WITHDRAWAL", "INITIATOR", "1h", "COUNT",
				"1000"))
			nodes := d.nodes(dbs)
			d.queue("u64", 99, "first "+per)
			won := storetest.Race(t, 64, fault.PolicyDenied, func(i int) error {
				return patient(func() error {
					_, err := nodes[i%len(nodes)].askBy(fmt.Sprint("w", i/3%2), fmt.Sprint("u", i), "BTC", 1, fmt.Sprint(per, i))
					return err
				})
			})
			storetest.Equal(t, won, 1, "per", per, "requests were admitted, want 1")
		}
		storetest.Must(t, money.NewTransactions(dbs[0]).VerifyTotals(t.Context()))
	})
}

// Totals that begin and end beside requests and cancellations on three nodes match the movements, also after a
// withdrawal of an earlier day is cancelled.
func TestTotalsBesideWriters(t *testing.T) {
	onNodes(t, 3, func(t *testing.T, dbs []*persistence.DB) {
		const writers = 32
		flow := transaction.Flow{Kind: policy.Withdrawal, Direction: policy.Out}
		d := newDesk(t, dbs[0])
		d.clients(writers, "2")
		d.judges(sumRule("WITHDRAWAL", "INITIATOR", "72h", "COUNT", "100"))
		nodes := d.nodes(dbs)
		old := d.queue("u0", 1, "old")
		d.advance(40 * time.Hour)
		storetest.Race(t, writers+1, "", func(i int) error {
			n := nodes[i%len(nodes)]
			if i >= writers {
				for k := range 20 {
					flows := []transaction.Flow{flow}[:k%2]
					err := patient(func() error { return n.Judge.Past.KeepTotals(t.Context(), flows, n.now(), n.now()) })
					if err != nil {
						return err
					}
				}
				return nil
			}
			var o transaction.Outgoing
			err := patient(func() (err error) {
				o, err = n.ask(fmt.Sprint("u", i), "BTC", 1, fmt.Sprint("x", i))
				return err
			})
			if err != nil || i%2 == 0 {
				return err
			}
			return patient(func() error {
				_, err := n.Cancel(t.Context(), audit.By{UserID: "op"}, o.Queued.ID, "")
				return err
			})
		})
		past := money.NewTransactions(dbs[0])
		storetest.Must(t, patient(func() error { return d.Judge.KeepTotals(t.Context(), d.now()) }))
		storetest.Must(t, past.VerifyTotals(t.Context()))
		storetest.Must(t, storetest.Err(d.Cancel(t.Context(), audit.By{UserID: "op"}, old, "")))
		storetest.Must(t, past.VerifyTotals(t.Context()))
		_, sums, err := past.Counted(t.Context(), nil, transaction.CountedQuery{Flow: flow, Initiator: "SERVICE:wallet",
			After: d.now().Add(-72 * time.Hour)})
		if err != nil || len(sums[0]) != 1 || sums[0][0].Number != writers/2 {
			t.Errorf("%+v, %v", sums, err)
		}
	})
}

// A rehearsal judges the stored facts of each withdrawal by one rule, with the sums of its moment.
func TestRehearsal(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "9"))
		j := d.judges()
		begin := d.now()
		var ids []string
		for i, n := range []int64{3, 9, 4, 5} {
			ids = append(ids, d.queue("u", n, fmt.Sprint(i)))
			d.advance(30 * time.Minute)
		}
		_, err := d.Cancel(t.Context(), audit.By{UserID: "op"}, ids[1], "")
		storetest.Must(t, err)
		rehearse := func(text string, from time.Time) policy.Rehearsal {
			t.Helper()
			var r policy.Rule
			storetest.Must(t, json.Unmarshal([]byte(text), &r))
			found, _, err := j.Rehearse(t.Context(), from, r)
			storetest.Must(t, err)
			return found[0]
		}
		h := rehearse(sumRule("WITHDRAWAL", "PLATFORM", "2h", "VALUE", "8"), begin.Add(time.Millisecond))
		if h.Considered != 3 || h.Denied != 2 || h.Value.String() != "14" || h.Accounts != 1 ||
			fmt.Sprint(h.Examples) != fmt.Sprint([]string{ids[1], ids[3]}) {
			t.Errorf("a sum: %+v", h)
		}
		h = rehearse(`{"kinds":["WITHDRAWAL"],`+day+`}`, begin)
		if h.Held != 4 || len(h.Waits) != 4 || h.Waits[3] != 24*time.Hour {
			t.Errorf("a wait: %+v", h)
		}
		h = rehearse(`{"kinds":["WITHDRAWAL"],"match":{"destination":{"firstUse":true}},`+deny+`}`, begin)
		if h.Unknown != 4 || h.Denied != 0 {
			t.Errorf("a fact that was not stored: %+v", h)
		}
	})
}

// atGate is the committer of a node. It keeps a first unit back until all requests have read the ledger, and meddles
// with the first unit of several withdrawals.
type atGate struct {
	*persistence.DB
	ledger.Store
	unread atomic.Int64 // requests
	first  sync.Once
	shared atomic.Bool
	meddle func(one transaction.Withdrawal, commit func() error) error
}

func (g *atGate) HoldByRef(ctx context.Context, source, ref string) (ledger.Hold, error) {
	defer g.unread.Add(-1)
	return g.Store.HoldByRef(ctx, source, ref)
}

func (g *atGate) Commit(ctx context.Context, writes ...commit.Write) error {
	var made []transaction.Withdrawal
	for _, w := range writes {
		if w, is := w.(transaction.AddWithdrawal); is {
			made = append(made, w.Withdrawal)
		}
	}
	g.first.Do(func() {
		for g.unread.Load() > 0 {
			runtime.Gosched()
		}
	})
	do := func() error { return g.DB.Commit(ctx, writes...) }
	if len(made) > 1 && g.shared.CompareAndSwap(false, true) {
		return g.meddle(made[1], do)
	}
	return do()
}

// Requests that pass a gate in one unit are admitted up to the limit and no further, and each once. Neither one that is
// refused at another row nor the lost answer to the unit changes that.
func TestUnitsOfAGate(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		const clients, most = 12, 9
		d := newDesk(t, db)
		d.judges(sumRule("WITHDRAWAL", "INITIATOR", "1h", "COUNT", fmt.Sprint(most)))
		store := d.m.Ledger.Store
		for what, meddle := range map[string]func(transaction.Withdrawal, func() error) error{
			"lost": func(_ transaction.Withdrawal, do func() error) error { return errors.Join(do(), commit.ErrUnknown) },
			"refused": func(one transaction.Withdrawal, do func() error) error {
				persistencetest.Exec(t, db, "UPDATE users SET money_version = 7 WHERE id = ?", one.UserID)
				return do()
			}} {
			g := &atGate{}
			for round := 0; !g.shared.Load(); round++ {
				name := func(i int) string { return fmt.Sprint(what, round, "-", i) }
				for i := range clients {
					d.m.User(name(i), func(*user.User) {})
					storetest.Must(t, d.m.Pay(name(i), "BTC/BTC", "2"))
				}
				g = &atGate{DB: db, Store: store, meddle: meddle}
				g.unread.Store(clients)
				d.m.Ledger.Commit, d.m.Ledger.Store = g, g
				won := storetest.Race(t, clients, fault.PolicyDenied, func(i int) error {
					_, err := d.ask(name(i), "BTC", 1, name(i))
					for errors.Is(err, commit.ErrUnknown) {
						_, err = d.ask(name(i), "BTC", 1, name(i))
					}
					return err
				})
				d.m.Ledger.Commit, d.m.Ledger.Store = db, store
				_, sums, err := d.Judge.Past.Counted(t.Context(), nil, transaction.CountedQuery{After: d.now().Add(-time.Hour),
					Flow: transaction.Flow{Kind: policy.Withdrawal, Direction: policy.Out}})
				if err != nil || won != most || len(sums[0]) != 1 || sums[0][0].Number != most {
					t.Errorf("%s: %d admitted, want %d; stored %+v, %v", what, won, most, sums, err)
				}
				d.advance(time.Hour)
			}
		}
	})
}
