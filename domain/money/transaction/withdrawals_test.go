package transaction_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook/address"
	"castellan/domain/money/ledger"
	"castellan/domain/money/level"
	"castellan/domain/money/limit"
	"castellan/domain/money/policy"
	"castellan/domain/money/rate"
	"castellan/domain/money/transaction"
	"castellan/internal/pgtest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

type (
	levels struct {
		level.Store
		all []level.Level
	}
	quotes struct{ rate.Store }
)

func (l levels) List(context.Context, level.Query) ([]level.Level, error) { return l.all, nil }

// The rate of XRP is older than the policy accepts.
func (quotes) Last(_ context.Context, at time.Time, _ ...rate.Pair) ([]rate.Quote, error) {
	return []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}, Rate: rate.Must("100"), At: at},
		{Pair: rate.Pair{Base: "ETH", Quote: "TRY"}, Rate: rate.Must("10"), At: at},
		{Pair: rate.Pair{Base: "XRP", Quote: "TRY"}, Rate: rate.Must("1"), At: at.Add(-72*time.Hour - 1)}}, nil
}

// addresses are valid on their networks.
var addresses = map[string]string{"BTC": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
	"ETH": "0xde0b295669a9fd93d5f28d9ec85e40f4cb697bae", "XRP": "rHb9CJAWyB4rj91VRWn96DkukG4bwdtyTh"}

// desk accepts withdrawals of users of level 0, who may send 100 TRY a day and 250 a month. The fee is 0.01 BTC and
// 0.02 ETH.
type desk struct {
	*transaction.Withdrawals
	m *persistencetest.Money
	t *testing.T
	*clock
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }

func (c *clock) advance(by time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.at = c.at.Add(by) }

func newDesk(t *testing.T, db *persistence.DB, users ...string) *desk {
	t.Helper()
	d := &desk{t: t, clock: &clock{at: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)}}
	d.m = persistencetest.MoneyIn(t, db, d.now)
	parameters := kit.NewParameters(d.m.DB)
	storetest.Must(t, d.m.DB.InTx(t.Context(), func(ctx context.Context) error {
		if err := parameter.Seed(ctx, parameters); err != nil {
			return err
		}
		return parameter.Fee.Change(ctx, parameters, func(parameter.Fees) (parameter.Fees, error) {
			return parameter.Fees{"BTC": amount.Must("0.01"), "ETH": amount.Must("0.02")}, nil
		})
	}))
	live := parameter.NewCache(parameters)
	storetest.Must(t, live.Reload(t.Context()))
	rules := storetest.Value(address.NewRules(nil))(t)
	limits := level.Limits{SendCryptoDaily: amount.Must("100"), SendCryptoMonthly: amount.Must("250")}
	store := account.NewUsers(d.m.DB)
	d.Withdrawals = &transaction.Withdrawals{Ledger: d.m.Ledger, Store: money.NewTransactions(d.m.DB), Users: store,
		Currencies: d.m.Currencies, Parameters: live, Rules: rules,
		Tags: address.Tags{"BTC": address.MemoTag + "7"}, Books: money.NewAddressBooks(d.m.DB),
		Claims: kit.NewIntegration(d.m.DB), Now: d.now,
		Limits: &limit.Service{Users: store, Levels: levels{all: []level.Level{{Limits: limits}}},
			Store: money.NewLimits(d.m.DB),
			Rates: quotes{}, Catalog: d.m.Currencies.Catalog, Now: d.now}}
	for _, u := range users {
		d.m.User(u, func(*user.User) {})
	}
	return d
}

// unlimited gives every user limits that no request reaches.
func (d *desk) unlimited() {
	most := amount.Must("100000000")
	d.Limits.Levels = levels{all: []level.Level{{Limits: level.Limits{SendCryptoDaily: most, SendCryptoMonthly: most}}}}
}

// clients adds users with money: u0, u1, ….
func (d *desk) clients(n int, sum string) {
	d.t.Helper()
	for i := range n {
		d.m.User(fmt.Sprint("u", i), func(*user.User) {})
		storetest.Must(d.t, d.m.Pay(fmt.Sprint("u", i), "BTC/BTC", sum))
	}
}

// queue requests n hundredths of a bitcoin and returns the id of the withdrawal.
func (d *desk) queue(user string, n int64, externalID string) string {
	d.t.Helper()
	o := storetest.Value(d.ask(user, "BTC", n, externalID))(d.t)
	return o.Queued.ID
}

func hundredths(n int64) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }

// ask requests n hundredths of a currency.
func (d *desk) ask(user, code string, n int64, externalID string) (transaction.Outgoing, error) {
	return d.askBy("wallet", user, code, n, externalID)
}

func (d *desk) askBy(service, user, code string, n int64, externalID string) (transaction.Outgoing, error) {
	return d.Request(d.t.Context(), audit.By{UserID: "service:" + service}, transaction.WithdrawalRequest{
		ExternalID: externalID, UserID: user, CurrencyCode: code, NetworkCode: code,
		Amount: amount.Must(hundredths(n)), Address: addresses[code]})
}

func (d *desk) move(id string, to transaction.QueueStatus) error {
	_, err := d.Move(d.t.Context(), audit.By{UserID: "service:wallet"},
		transaction.WalletMove{ID: id, To: to, TxID: map[bool]string{true: "0xabc"}[to == transaction.QueueSent], Reason: ""})
	return err
}

func TestWithdrawalRaces(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "limited", "poor", "same", "u")
		d.requestRaces(t)
		d.resumeAgainstCancel(t)
	})
}

// Concurrent requests over several currencies together never exceed a limit or the balance.
func (d *desk) requestRaces(t *testing.T) {
	for _, pay := range [][3]string{{"limited", "BTC/BTC", "100"}, {"limited", "ETH/ETH", "100"},
		{"poor", "BTC/BTC", "0.5"},
		{"same", "BTC/BTC", "100"}} {
		storetest.Must(t, d.m.Pay(pay[0], pay[1], pay[2]))
	}
	won := storetest.Race(t, 8, fault.LimitExceeded, func(i int) error { // 60 TRY each
		code, n := "BTC", int64(60)
		if i%2 == 1 {
			code, n = "ETH", 600
		}
		_, err := d.ask("limited", code, n, fmt.Sprint("l", i))
		return err
	})
	storetest.Equal(t, won, 1, "of 8 within the limit, want 1")
	won = storetest.Race(t, 8, fault.InsufficientBalance, func(i int) error {
		_, err := d.ask("poor", "BTC", 12, fmt.Sprint("p", i))
		return err
	})
	if got := d.m.Has("poor", "BTC/BTC"); won != 3 || got != "0.5 0.39 0.11" {
		t.Errorf("%d of 8 within the balance: %s", won, got)
	}
	var mu sync.Mutex
	ids := map[string]int{}
	storetest.Race(t, 8, fault.InvalidState, func(int) error {
		o, err := d.ask("same", "BTC", 10, "one")
		mu.Lock()
		defer mu.Unlock()
		ids[o.Queued.ID]++
		return err
	})
	if got := d.m.Has("same", "BTC/BTC"); len(ids) != 1 || got != "100 0.11 99.89" {
		t.Errorf("one external id made %v: %s", ids, got)
	}
	if _, err := d.ask("same", "BTC", 11, "one"); fault.CodeOf(err) != fault.InvalidState {
		t.Errorf("another body: %v", err)
	}
}

// A resume concurrent with other moves ends in a state of the table, and the hold is released once.
func (d *desk) resumeAgainstCancel(t *testing.T) {
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
	for i := range 10 {
		id := d.queue("u", 5, fmt.Sprint(i))
		storetest.Must(t, d.move(id, transaction.TimeOut))
		storetest.Race(t, 3, fault.InvalidState, func(i int) (err error) {
			switch i {
			case 0:
				_, err = d.Resume(t.Context(), audit.By{UserID: "op"}, id, "")
			case 1:
				_, err = d.Cancel(t.Context(), audit.By{UserID: "op"}, id, "")
			default:
				err = d.move(id, transaction.QueueProcessing)
			}
			return err
		})
		o := storetest.Value(d.Get(t.Context(), id))(t)
		want := "1 0.06 0.94"
		if o.Queued.Status == transaction.QueueCancelled {
			want = "1 0 1"
		}
		if got := d.m.Has("u", "BTC/BTC"); got != want {
			t.Fatalf("%s: %s, want %s", o.Queued.Status, got, want)
		}
		if o.Queued.Status == transaction.QueueProcessing {
			storetest.Must(t, d.move(id, transaction.QueueFailed))
		} else if !o.Queued.Status.Final() {
			_, err := d.Cancel(t.Context(), audit.By{UserID: "op"}, id, "")
			storetest.Must(t, err)
		}
	}
}

// A changed level applies to the next withdrawal, and the displayed remaining amount is the enforced one. Withdrawals,
// displayed limits and changes have separate stores, as on three nodes.
func TestChangedLevelIsEnforcedAsShown(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) { changedLevel(t, newDesk(t, db, "u")) })
}

func changedLevel(t *testing.T, d *desk) {
	t.Helper()
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "10"))
	node := func() *limit.Service {
		return &limit.Service{Users: account.NewUsers(d.m.DB), Levels: money.NewLevels(d.m.DB),
			Store: money.NewLimits(d.m.DB), Rates: quotes{}, Catalog: d.m.Currencies.Catalog, Now: d.now}
	}
	keeper := &level.Service{Store: money.NewLevels(d.m.DB),
		Changes: admin.Changes{Commit: d.m.DB, Now: d.now}}
	shown := node()
	d.Limits = node()
	for _, step := range []struct {
		daily string // of the level, in TRY
		ask   int64  // hundredths of a BTC, each worth 1 TRY
		want  fault.Code
		left  string // after it
	}{
		{"40", 50, fault.LimitExceeded, "40"},
		{"60", 50, "", "10"},
		{"50", 1, fault.LimitExceeded, "0"},
		{"51", 1, "", "0"},
		{"10", 1, fault.LimitExceeded, "0"},
		{"100", 50, fault.LimitExceeded, "49"},
		{"100", 49, "", "0"},
	} {
		_, err := keeper.Change(t.Context(), audit.By{UserID: "boss"}, 0, func(l *level.Level) {
			l.SendCryptoDaily, l.SendCryptoMonthly = amount.Must(step.daily), amount.Must("1000")
			l.SendTryDaily, l.SendTryMonthly = amount.Must("1000"), amount.Must("1000")
		})
		storetest.Must(t, err)
		if _, err = d.ask("u", "BTC", step.ask, step.daily+"/"+step.left); fault.CodeOf(err) != step.want {
			t.Errorf("%+v: %v", step, err)
		}
		info, err := shown.Of(t.Context(), "u")
		if storetest.Must(t, err); info.DebitDaily.String() != step.left {
			t.Errorf("%+v: %s is shown as left", step, info.DebitDaily)
		}
	}
}

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

// A node whose rules count nothing ends the totals of a flow, while another node extends or purges them. The sums are
// those of all movements afterwards.
func TestTotalsEndBesideAnotherNode(t *testing.T) {
	for _, what := range []string{"extend", "purge"} {
		t.Run(what, func(t *testing.T) {
			db := persistencetest.OpenWith(t, pgtest.DSN(t), persistence.Options{})
			flows := []transaction.Flow{{Kind: policy.Withdrawal, Direction: policy.Out}}
			d := newDesk(t, db)
			d.clients(3, "2")
			for i := range 3 {
				d.queue(fmt.Sprint("u", i), 1, fmt.Sprint(i))
			}
			past, now := money.NewTransactions(db), d.now()
			storetest.Must(t, past.KeepTotals(t.Context(), flows, now.Add(-20*time.Hour), now))
			ended := make(chan error, 1)
			storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
				for _, table := range []string{"money_flow_kept", "money_flow"} {
					if _, err := db.Conn(ctx).NewDelete().Table(table).Where("flow = ?", flows[0].String()).Exec(ctx); err != nil {
						return err
					}
				}
				go func() {
					if what == "purge" {
						ended <- past.PurgeTotals(context.Background(), now.Add(-10*time.Hour))
						return
					}
					ended <- past.KeepTotals(context.Background(), flows, now.Add(-transaction.FlowKept), now)
				}()
				waiting := func() (is bool) {
					storetest.Must(t, db.Conn(ctx).NewRaw("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted").Scan(ctx, &is))
					return is
				}
				for !waiting() && len(ended) == 0 {
					time.Sleep(time.Millisecond)
				}
				return nil
			}))
			t.Log(<-ended) // either may fail, and is repeated
			_, sums, err := past.Counted(t.Context(), nil, transaction.CountedQuery{Flow: flows[0],
				After: now.Add(-9 * time.Hour)})
			if err != nil || len(sums[0]) != 1 || sums[0][0].Number != 3 {
				t.Errorf("the sum of 3 withdrawals is %+v, %v", sums, err)
			}
			storetest.Must(t, past.VerifyTotals(t.Context()))
		})
	}
}

// The rights of a role to the tables of totals are granted after the migration, and nodes of the former version write
// movements meanwhile.
func TestMovementsNeedNoRightToTotals(t *testing.T) {
	db := persistencetest.OpenWith(t, pgtest.DSN(t), persistence.Options{})
	role := "service_" + strings.ToLower(rand.Text())
	do := func(ctx context.Context, texts ...string) error {
		return db.InTx(ctx, func(ctx context.Context) error {
			for _, text := range texts {
				if _, err := db.Conn(ctx).NewRaw(text).Exec(ctx); err != nil {
					return fmt.Errorf("%s: %w", text, err)
				}
			}
			return nil
		})
	}
	storetest.Must(t, do(t.Context(), "CREATE ROLE "+role, "GRANT SELECT, UPDATE ON withdrawal, deposit TO "+role))
	t.Cleanup(func() { storetest.Must(t, do(context.Background(), "DROP OWNED BY "+role, "DROP ROLE "+role)) })
	storetest.Must(t, do(t.Context(), "SET LOCAL ROLE "+role, "UPDATE withdrawal SET version = version + 1",
		"UPDATE deposit SET version = version + 1"))
}
