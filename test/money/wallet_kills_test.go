package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
	"castellan/test/harness"
)

// The service and the wallet are killed at random during deposits and withdrawals. Answers are lost, the hot
// wallet is sometimes empty, and the wallet refuses some withdrawals. In the end the chain, the ledger and the
// queue agree: no amount is lost, doubled or still on hold.
func TestFaultsWalletAndLedgerAgreeAfterKills(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		x := newExchange(t, s)
		var clients, killer sync.WaitGroup
		clients.Go(x.pay)
		clients.Go(x.administer)
		for i := range requesters {
			clients.Go(func() { x.request(i) })
		}
		killer.Go(x.killWallet)
		began := time.Now()
		kills := 0
		for (kills < walletKills || x.wishes.Load() < walletWishes) && !x.stop.Load() {
			kills++
			time.Sleep(rand.N(walletPause))
			x.node.Kill()
			x.node = s.Begin()
			x.node.Ready()
		}
		took := time.Since(began)
		killer.Wait()
		x.stop.Store(true)
		clients.Wait()
		x.settle(t)
		x.compare(t)
		t.Logf("%d kills of the service and %d of the wallet in %v, which crashed %d times by itself; %d payments, "+
			"%d withdrawals (%d refused): %v", kills, x.walletKilled, took.Round(time.Second), x.walletCrashed,
			x.payments, len(x.accepted), x.refused, x.ended)
	})
}

const traders, requesters = 3, 8

// exchange is a platform with a wallet, three users and an administrator.
type exchange struct {
	*blackbox.Site
	node      *blackbox.Node
	caller    blackbox.Client
	wallet    *walletProcess
	platform  *client.Client
	boss      blackbox.Headers
	users     [traders]string
	addresses [traders]string

	stop  atomic.Bool
	mu    sync.Mutex
	wrong error

	payments int            // the payer's
	paid     [traders]int64 // thousandths
	accepted []wish         // under mu
	refused  int            // under mu
	wishes   atomic.Int32   // accepted

	walletKilled, walletCrashed int
	ended                       map[string]int
}

// wish is a withdrawal that the service accepted.
type wish struct {
	id        string
	user      int
	thousands int64
}

func newExchange(t *testing.T, s *blackbox.Site) *exchange {
	t.Helper()
	at := porttest.Free(t)
	s.Set("HTTP_ADDR="+at, "LIMITS_ENABLED=false", "LOG_LEVEL=info")
	x := &exchange{Site: s, node: s.Start(), caller: blackbox.NewClient("http://" + at)}
	x.boss = harness.Admin(t, s, x.node)
	rates := filepath.Join(t.TempDir(), "rates.csv")
	err := os.WriteFile(rates, []byte("base,quote,rate,date\nUSD,TRY,40,2026-01-01\nETH,USD,0.01,2026-01-01\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Command("", "rates", "import", rates); got.Code != 0 {
		t.Fatalf("rates import: %s%s", got.Out, got.ErrOut)
	}
	x.wallet = newWallet(t, s, "http://"+at, "admin")
	c, err := client.New("http://" + at)
	if err != nil {
		t.Fatal(err)
	}
	x.platform = c.Service(x.wallet.key)
	for i := range traders {
		x.users[i] = s.AddUser("user").ID
		x.node.Ok(t, "POST", "/level/update-level", map[string]any{"userId": x.users[i], "levelId": 2}, x.boss)
		x.addresses[i] = x.wallet.must(t, "address", "--user", x.users[i])
		tx := x.wallet.must(t, "pay", "--to", x.addresses[i], "--amount", "2")
		x.wallet.must(t, "sender", "--tx", tx, "--name", "Ada Lovelace")
		x.payments, x.paid[i] = x.payments+1, 2000
	}
	x.wallet.must(t, "pay", "--to", x.wallet.must(t, "address"), "--amount", "1000")
	if err := x.wallet.start(x.flags(true)...); err != nil {
		t.Fatal(err)
	}
	return x
}

// flags returns the command line flags of the wallet.
func (x *exchange) flags(trouble bool) []string {
	all := []string{"--finalize", "--poll", "20ms", "--mine", "50ms"}
	if trouble {
		all = append(all, "--lose", "0.1", "--fail", "0.1", "--empty", "0.1", "--crash", "0.005")
	}
	return all
}

func (x *exchange) broke(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.wrong == nil {
		x.wrong = fmt.Errorf(format, args...)
	}
	x.stop.Store(true)
}

// killWallet kills the wallet and starts it again.
func (x *exchange) killWallet() {
	for x.walletKilled < walletKills && !x.stop.Load() {
		select {
		case <-x.wallet.end:
			x.walletCrashed++
		case <-time.After(rand.N(walletPause)):
			x.wallet.kill()
			x.walletKilled++
		}
		if err := x.wallet.start(x.flags(true)...); err != nil {
			x.broke("start the wallet: %w", err)
		}
	}
}

func thousandths(n int64) string { return fmt.Sprintf("%d.%03d", n/1000, n%1000) }

// pay sends deposits to users and identifies their sender in the wallet.
func (x *exchange) pay() {
	for !x.stop.Load() {
		user, n := rand.IntN(traders), 1+rand.Int64N(200)
		tx, err := x.wallet.run("pay", "--to", x.addresses[user], "--amount", thousandths(n))
		if err != nil {
			x.broke("%w", err)
			return
		}
		x.payments, x.paid[user] = x.payments+1, x.paid[user]+n
		time.Sleep(rand.N(300 * time.Millisecond))
		if _, err := x.wallet.run("sender", "--tx", tx, "--name", "Ada Lovelace"); err != nil {
			x.broke("%w", err)
			return
		}
	}
}

// request requests withdrawals, each until it is answered.
func (x *exchange) request(name int) {
	for n := 0; !x.stop.Load(); n++ {
		w := wish{user: rand.IntN(traders), thousands: 1 + rand.Int64N(50)}
		r := client.WithdrawalRequest{ExternalID: fmt.Sprintf("wish-%d-%d", name, n), UserID: x.users[w.user],
			CurrencyCode: "ETH", Network: "ETH", Amount: json.Number(thousandths(w.thousands)), Address: coldWallet}
		for again := true; again; {
			got, err := x.platform.RequestWithdrawal(context.Background(), r)
			switch e, answered := errors.AsType[*client.Error](err); {
			case err == nil:
				w.id, again = got.ID, false
				x.mu.Lock()
				x.accepted = append(x.accepted, w)
				x.mu.Unlock()
				x.wishes.Add(1)
			case answered && e.Code == fault.InsufficientBalance:
				again = false
				x.mu.Lock()
				x.refused++
				x.mu.Unlock()
			case answered && e.Status < 500:
				x.broke("withdrawal %s: %w", r.ExternalID, err)
				return
			}
		}
		time.Sleep(rand.N(150 * time.Millisecond))
	}
}

// administer resumes or cancels stuck withdrawals.
func (x *exchange) administer() {
	for !x.stop.Load() {
		time.Sleep(100 * time.Millisecond)
		if err := x.decide(0.2); err != nil {
			x.broke("%w", err)
		}
	}
}

// decide resumes withdrawals that the hot wallet could not pay, or cancels them with a probability.
func (x *exchange) decide(cancel float64) error {
	const stuck = "/admin/get-withdrawal-crypto-queue?limit=100&statusCode=6"
	got, err := x.caller.Try("GET", stuck, nil, x.boss)
	if err != nil || got.Status >= 500 {
		return nil // between a kill and a start
	}
	var list []struct{ ID string }
	if got.Status != 200 || json.Unmarshal(got.Body, &list) != nil {
		return fmt.Errorf("the queue: %s", got)
	}
	for _, q := range list {
		what := "resume"
		if rand.Float64() < cancel {
			what = "cancel"
		}
		got, err := x.caller.Try("POST", "/admin/withdrawals/"+q.ID+"/"+what, `{}`, x.boss)
		if err == nil && got.Status != 200 && got.Status < 500 && got.Code() != "INVALID_STATE" {
			return fmt.Errorf("%s: %s", what, got)
		}
	}
	return nil
}

// settle finishes all open work without further faults.
func (x *exchange) settle(t *testing.T) {
	t.Helper()
	if x.wrong != nil {
		t.Fatal(x.wrong)
	}
	x.wallet.kill()
	if err := x.wallet.start(x.flags(false)...); err != nil {
		t.Fatal(err)
	}
	const open = "withdrawal_queue WHERE status NOT IN (4, 11, 12)"
	ended := func() bool {
		if err := x.decide(0); err != nil {
			t.Fatal(err)
		}
		return x.Count(open) == 0
	}
	if !blackbox.Within(90*time.Second, ended) {
		for _, w := range x.accepted {
			var is struct{ Data struct{ Status string } }
			got := x.node.Ok(t, "GET", "/integration/withdrawals/"+w.id, nil, x.boss)
			if got.Read(t, &is); !slices.Contains([]string{"finalized", "failed", "cancelled"}, is.Data.Status) {
				t.Logf("%s", got.Body)
			}
		}
		t.Fatalf("%d withdrawals have no end", x.Count(open))
	}
}

// compare compares the chain, the queue and the ledger.
func (x *exchange) compare(t *testing.T) {
	t.Helper()
	if got := x.Count("withdrawal_queue"); got != len(x.accepted) {
		t.Errorf("%d withdrawals in the queue, %d were accepted", got, len(x.accepted))
	}
	sent := map[string][]chainTx{}
	for _, tx := range x.wallet.chain(t) {
		if tx.Memo != "" {
			sent[tx.Memo] = append(sent[tx.Memo], tx)
		}
	}
	x.ended = map[string]int{}
	has := x.paid
	for _, w := range x.accepted {
		var is struct {
			Data struct{ Status, TxID, Reason string }
		}
		x.node.Ok(t, "GET", "/integration/withdrawals/"+w.id, nil, x.boss).Read(t, &is)
		x.ended[is.Data.Status]++
		txs := sent[w.id]
		delete(sent, w.id)
		switch is.Data.Status {
		case "finalized":
			if has[w.user] -= w.thousands; len(txs) != 1 || txs[0].To != coldWallet ||
				amount.Must(txs[0].Amount.String()) != amount.Must(thousandths(w.thousands)) {
				t.Errorf("the withdrawal %s of %s is finalized, and on the chain as %+v", w.id, thousandths(w.thousands), txs)
			}
		case "failed", "cancelled":
			if len(txs) != 0 {
				t.Errorf("the withdrawal %s is %s, and on the chain as %+v", w.id, is.Data.Status, txs)
			}
		default:
			t.Errorf("the withdrawal %s is %s", w.id, is.Data.Status)
		}
	}
	if len(sent) != 0 {
		t.Errorf("transactions of no withdrawal: %+v", sent)
	}
	for i, user := range x.users {
		var is []struct{ Balance, Locked json.Number }
		want := amount.Must(thousandths(has[i]))
		equal := func() bool {
			x.node.Ok(t, "GET", "/admin/get-member-asset-balances?userId="+user, nil, x.boss).Read(t, &is)
			return len(is) == 0 && has[i] == 0 ||
				len(is) == 1 && amount.Must(is[0].Balance.String()) == want && is[0].Locked == "0"
		}
		if !blackbox.Within(30*time.Second, equal) {
			t.Errorf("user %d has %+v, want %s and nothing on hold", i, is, want)
		}
	}
	if got := x.Count("deposit"); got != x.payments {
		t.Errorf("%d deposits of %d payments", got, x.payments)
	}
	if x.ended["finalized"] < walletKills/4 {
		t.Errorf("%d withdrawals were finalized between %d kills: too few to mean anything", x.ended["finalized"],
			walletKills)
	}
	for _, command := range []string{"ledger", "audit"} {
		if got := x.Command("", command, "verify"); got.Code != 0 {
			t.Errorf("%s verify: exit %d: %s%s", command, got.Code, got.Out, got.ErrOut)
		}
	}
}
