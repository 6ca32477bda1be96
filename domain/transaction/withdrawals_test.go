package transaction_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"castellan/domain/addressbook/address"
	"castellan/domain/amount"
	"castellan/domain/audit"
	"castellan/domain/fault"
	"castellan/domain/level"
	"castellan/domain/limit"
	"castellan/domain/parameter"
	"castellan/domain/rate"
	"castellan/domain/storetest"
	"castellan/domain/transaction"
	"castellan/domain/user"
	"castellan/persistence"
	"castellan/persistence/access"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

var orders = flag.Int("orders", 10_000, "random orders of TestWithdrawalModel")

type (
	levels []level.Level
	quotes struct{ rate.Store }
)

func (l levels) List(context.Context, level.Query) ([]level.Level, error) { return l, nil }

func (quotes) Last(context.Context, time.Time, ...rate.Pair) ([]rate.Quote, error) {
	return []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}, Rate: rate.Must("100")},
		{Pair: rate.Pair{Base: "ETH", Quote: "TRY"}, Rate: rate.Must("10")}}, nil
}

// Addresses that fit their networks.
var addresses = map[string]string{"BTC": "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
	"ETH": "0xde0b295669a9fd93d5f28d9ec85e40f4cb697bae"}

// desk takes in withdrawals of users of level 0, who may send 100 TRY a day and 250 a month.
// The fee is 0.01 BTC and 0.02 ETH.
type desk struct {
	*transaction.Withdrawals
	m  *persistencetest.Money
	t  *testing.T
	mu sync.Mutex
	at time.Time
}

func (d *desk) now() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.at }

func (d *desk) advance(by time.Duration) { d.mu.Lock(); defer d.mu.Unlock(); d.at = d.at.Add(by) }

func newDesk(t *testing.T, users ...string) *desk {
	t.Helper()
	d := &desk{t: t, at: time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)}
	d.m = persistencetest.NewMoney(t, d.now)
	parameters := kit.NewParameters(d.m.DB)
	storetest.Must(t, d.m.DB.InTx(t.Context(), func(ctx context.Context) error {
		if err := parameter.Seed(ctx, parameters); err != nil {
			return err
		}
		return parameter.Fee.Change(ctx, parameters, func(parameter.Fees) (parameter.Fees, error) {
			return parameter.Fees{"BTC": amount.Must("0.01"), "ETH": amount.Must("0.02")}, nil
		})
	}))
	live := parameter.NewLive(parameters)
	storetest.Must(t, live.Reload(t.Context()))
	rules, err := address.NewRules(nil)
	storetest.Must(t, err)
	limits := level.Limits{SendCryptoDaily: amount.Must("100"), SendCryptoMonthly: amount.Must("250")}
	store := access.NewUsers(d.m.DB)
	d.Withdrawals = &transaction.Withdrawals{Ledger: d.m.Ledger, Store: persistence.NewTransactions(d.m.DB), Users: store,
		Currencies: d.m.Currencies, Parameters: live, Rules: rules, Books: persistence.NewAddressBooks(d.m.DB),
		Claims: kit.NewIntegration(d.m.DB), Now: d.now,
		Limits: &limit.Service{Users: store, Levels: levels{{Limits: limits}}, Store: persistence.NewLimits(d.m.DB),
			Rates: quotes{}, Catalog: d.m.Currencies.Catalog, Now: d.now}}
	for _, u := range users {
		d.m.User(u, func(*user.User) {})
	}
	return d
}

func hundredths(n int64) string { return fmt.Sprintf("%d.%02d", n/100, n%100) }

// ask requests n hundredths of a currency.
func (d *desk) ask(user, code string, n int64, externalID string) (transaction.Outgoing, error) {
	return d.Request(d.t.Context(), audit.By{UserID: "service:wallet"}, transaction.WithdrawalRequest{
		ExternalID: externalID, UserID: user, CurrencyCode: code, NetworkCode: code,
		Amount: amount.Must(hundredths(n)), Address: addresses[code]})
}

func (d *desk) move(id string, to transaction.QueueStatus) error {
	_, err := d.Move(d.t.Context(), audit.By{UserID: "service:wallet"},
		transaction.WalletMove{ID: id, To: to, TxID: map[bool]string{true: "0xabc"}[to == transaction.QueueSent], Reason: ""})
	return err
}

// Concurrent requests never exceed a limit or the balance together, over several currencies.
func TestRequestRaces(t *testing.T) {
	d := newDesk(t, "limited", "poor", "same")
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
	if won != 1 {
		t.Errorf("%d of 8 within the limit, want 1", won)
	}
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

// Of a resume and the moves that compete with it, the end result is one of the table, and the
// hold is released once.
func TestResumeAgainstCancel(t *testing.T) {
	d := newDesk(t, "u")
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
	for i := range 10 {
		o, err := d.ask("u", "BTC", 5, fmt.Sprint(i))
		storetest.Must(t, err)
		id := o.Queued.ID
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
		o, err = d.Get(t.Context(), id)
		storetest.Must(t, err)
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

// sent is a withdrawal of the model, in hundredths.
type sent struct {
	user, code, id string
	n, fee         int64
	status         transaction.QueueStatus
	at             time.Time // when it was booked
}

func (s sent) worth() int64 { // hundredths of TRY
	if s.code == "BTC" {
		return s.n * 100
	}
	return s.n * 10
}

// model is what users have, and their withdrawals.
type model struct {
	posted map[string]int64 // user and code
	all    []*sent
}

// locked and used are the sums of what is held of an account, and of what counts against the
// limits of a user.
func (m *model) locked(user, code string) (n int64) {
	for _, s := range m.all {
		if s.user == user && s.code == code && !s.status.Final() {
			n += s.n + s.fee
		}
	}
	return n
}

func (m *model) used(user string, now time.Time) (day, month int64) {
	for _, s := range m.all {
		open, booked := !s.status.Final(), s.status == transaction.QueueSuccess
		if s.user != user || !open && !booked {
			continue
		}
		if open || s.at.Format("2006-01-02") == now.Format("2006-01-02") {
			day += s.worth()
		}
		if open || s.at.Format("2006-01") == now.Format("2006-01") {
			month += s.worth()
		}
	}
	return day, month
}

// refusal is what a request must be answered.
func (m *model) refusal(s *sent, now time.Time) fault.Code {
	day, month := m.used(s.user, now)
	switch {
	case day+s.worth() > 10_000 || month+s.worth() > 25_000:
		return fault.LimitExceeded
	case m.posted[s.user+s.code]-m.locked(s.user, s.code) < s.n+s.fee:
		return fault.InsufficientBalance
	}
	return ""
}

// Random orders, alone and in races, against the plain model: never over a limit, never a
// negative available balance, and what is held is the sum of the open withdrawals.
func TestWithdrawalModel(t *testing.T) {
	const seed = 23
	r := rand.New(rand.NewPCG(seed, seed))
	users, codes := []string{"a", "b", "c"}, []string{"BTC", "ETH"}
	d := newDesk(t, users...)
	m := &model{posted: map[string]int64{}}
	fee := map[string]int64{"BTC": 1, "ETH": 2}
	targets := []transaction.QueueStatus{transaction.QueueProcessing, transaction.QueueSent, transaction.QueueSuccess,
		transaction.QueueFailed, transaction.TimeOut, transaction.HotWalletIsEmpty}
	n := 0
	for n < *orders {
		u := users[r.IntN(len(users))]
		size := 1 + 3*r.IntN(2) // alone, or four at once
		var wait sync.WaitGroup
		var asked []*sent
		for range size {
			n++
			switch k := r.IntN(10); {
			case k < 4:
				code := codes[r.IntN(2)]
				s := &sent{user: u, code: code, n: 1 + r.Int64N(60), fee: fee[code], status: transaction.QueueReady}
				want, external := m.refusal(s, d.now()), fmt.Sprint(n)
				if size > 1 {
					want = "?"
				}
				asked = append(asked, s)
				wait.Go(func() {
					o, err := d.ask(s.user, s.code, s.n, external)
					s.id = o.Queued.ID
					if got := fault.CodeOf(err); want != "?" && got != want {
						t.Errorf("order %s: %d of %s: %v, want %q", external, s.n, s.code, err, want)
					} else if err != nil && got != fault.LimitExceeded && got != fault.InsufficientBalance {
						t.Errorf("order %s: %v", external, err)
					}
				})
			case k == 4 && size == 1:
				code, sum := codes[r.IntN(2)], 1+r.Int64N(100)
				storetest.Must(t, d.m.Pay(u, code+"/"+code, hundredths(sum)))
				m.posted[u+code] += sum
			case k == 5 && size == 1:
				d.advance(time.Duration(r.IntN(30)) * time.Hour)
			default:
				var open []*sent
				for _, s := range m.all {
					if s.user == u && !s.status.Final() {
						open = append(open, s)
					}
				}
				if len(open) == 0 {
					continue
				}
				s, to, by := open[r.IntN(len(open))], targets[r.IntN(len(targets))], r.IntN(6)
				wait.Go(func() { d.step(s, to, by, size == 1) })
			}
		}
		wait.Wait()
		for _, s := range asked {
			if s.id != "" {
				m.all = append(m.all, s)
			}
		}
		d.check(m, u, codes)
		if t.Failed() {
			t.Fatalf("after %d orders, seed %d", n, seed)
		}
	}
}

// step moves a withdrawal; alone: as the table says.
func (d *desk) step(s *sent, to transaction.QueueStatus, by int, alone bool) {
	mover, err := transaction.Wallet, error(nil)
	switch by {
	case 0:
		mover, to = transaction.Resume, transaction.QueueReady
		_, err = d.Resume(d.t.Context(), audit.By{UserID: "op"}, s.id, "")
	case 1:
		mover, to = transaction.Cancel, transaction.QueueCancelled
		_, err = d.Cancel(d.t.Context(), audit.By{UserID: "op"}, s.id, "")
	default:
		err = d.move(s.id, to)
	}
	allowed := transaction.Allowed(mover, s.status, to) || mover == transaction.Wallet && s.status == to
	if code := fault.CodeOf(err); code != "" && code != fault.InvalidState || alone && allowed != (code == "") {
		d.t.Errorf("%s from %s to %s: %v", mover, s.status, to, err)
	}
}

// check reads the withdrawals of a user into the model, and compares what must hold.
func (d *desk) check(m *model, u string, codes []string) {
	d.t.Helper()
	for _, s := range m.all {
		if s.user != u || s.status.Final() {
			continue
		}
		o, err := d.Get(d.t.Context(), s.id)
		storetest.Must(d.t, err)
		if s.status = o.Queued.Status; s.status == transaction.QueueSuccess {
			s.at = d.now()
			m.posted[u+s.code] -= s.n + s.fee
		}
	}
	for _, code := range codes {
		b, err := d.m.Balance(d.t.Context(), u, d.m.Pair(code+"/"+code).ID)
		storetest.Must(d.t, err)
		posted, locked := m.posted[u+code], m.locked(u, code)
		if b.Posted.Cmp(amount.Must(hundredths(posted))) != 0 || b.Locked.Cmp(amount.Must(hundredths(locked))) != 0 ||
			posted < locked {
			d.t.Errorf("%s has %s %s of which %s is held, want %d and %d", u, b.Posted, code, b.Locked, posted, locked)
		}
	}
	if day, month := m.used(u, d.now()); day > 10_000 || month > 25_000 {
		d.t.Errorf("%s sent %d of a day, %d of a month", u, day, month)
	}
}
