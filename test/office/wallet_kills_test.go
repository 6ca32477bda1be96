package office

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/client"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/internal/blackbox"
)

// The wallet and random nodes of the service are killed during deposits and withdrawals, in production mode; on
// PostgreSQL the service has three nodes. Answers are lost, the hot wallet is sometimes empty, and transactions time
// out. The wallet and the administrators refuse, retry, resume, cancel and settle withdrawals, by every move of the
// table. In the end the chain, the ledger and the queue agree: no amount is lost, doubled or still on hold.
func TestFaultsWalletAndLedgerAgreeAfterKills(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		x := newExchange(t, s)
		var clients sync.WaitGroup
		clients.Go(x.pay)
		clients.Go(x.administer)
		for i := range requesters {
			clients.Go(func() { x.request(i) })
		}
		clients.Go(x.killWallet)
		began := time.Now()
		kills := 0
		for !x.stop.Load() && (kills < walletKills || x.walletKilled.Load() < walletKills) {
			kills++
			time.Sleep(rand.N(walletPause))
			x.killNode()
		}
		killed := time.Now()
		for !x.stop.Load() && time.Since(killed) < movesTime && (x.wishes.Load() < walletWishes || len(x.unseen(t)) > 0) {
			x.behind.Store(x.site.Count(openWithdrawals) > 2*requesters)
			time.Sleep(500 * time.Millisecond)
		}
		took := time.Since(began)
		x.stop.Store(true)
		clients.Wait()
		x.settle(t)
		x.compare(t)
		t.Logf("%d kills of nodes and %d of the wallet in %v, which crashed %d times by itself; %d payments, "+
			"%d withdrawals (%d refused): %v", kills, x.walletKilled.Load(), took.Round(time.Second), x.walletCrashed,
			x.payments, len(x.accepted), x.refused, x.ended)
		moves, _ := x.moved(t)
		t.Logf("moves: %v", moves)
	})
}

const (
	traders, requesters = 3, 8
	// movesTime is how long the test waits at most for the last move of the table, after the kills.
	movesTime = 3 * time.Minute
)

const openWithdrawals = "withdrawal_queue WHERE status NOT IN (4, 11, 12)"

// exchange is a platform with a wallet, three users and an administrator.
type exchange struct {
	*story
	front     *blackbox.Front
	caller    blackbox.Client
	platform  *client.Client // requests withdrawals
	sidekick  *client.Client // another program with the key of the wallet
	users     [traders]string
	addresses [traders]string

	stop   atomic.Bool
	behind atomic.Bool // the wallet has much open work, and gets no more
	mu     sync.Mutex
	wrong  error

	payments int            // the payer's
	paid     [traders]int64 // thousandths
	accepted []wish         // under mu
	refused  int            // under mu
	wishes   atomic.Int32   // accepted
	missing  atomic.Pointer[[]transaction.Move]

	walletKilled  atomic.Int32
	walletCrashed int // the killer's
	ended         map[string]int
}

// wish is a withdrawal that the service accepted.
type wish struct {
	id        string
	user      int
	thousands int64
}

func newExchange(t *testing.T, s *blackbox.Site) *exchange {
	// The rates are so low that no limit is reached.
	x := &exchange{story: newStory(t, s, "base,quote,rate,date\nUSD,TRY,40,2026-01-01\nETH,USD,0.01,2026-01-01\n",
		`{"label":"none","status":"INACTIVE","kinds":["WITHDRAWAL"],"effect":{"type":"DENY"}}`)}
	x.front = blackbox.NewFront(t, x.nodes...)
	x.caller, x.wallet.url = blackbox.NewClient(x.front.URL), x.front.URL
	c := storetest.Value(client.New(x.front.URL))(t)
	x.platform = c.Service(x.service("platform", "/integration/withdrawals").with["service-auth"])
	x.sidekick = c.Service(x.wallet.key)
	for i := range traders {
		x.users[i] = s.AddUser("user").ID
		x.boss.Ok(t, "POST", "/level/update-level", map[string]any{"userId": x.users[i], "levelId": 2})
		x.addresses[i] = x.wallet.must(t, "address", "--user", x.users[i])
		tx := x.wallet.must(t, "pay", "--to", x.addresses[i], "--amount", "2")
		x.wallet.must(t, "sender", "--tx", tx, "--name", "Ada Lovelace")
		x.payments, x.paid[i] = x.payments+1, 2000
	}
	x.wallet.must(t, "pay", "--to", x.wallet.must(t, "address"), "--amount", "1000")
	storetest.Must(t, x.wallet.start(x.flags(true)...))
	return x
}

// flags returns the command line flags of the wallet.
func (x *exchange) flags(trouble bool) []string {
	all := []string{"--finalize", "--poll", "20ms", "--mine", "50ms", "--check", "200ms"}
	if trouble {
		all = append(all, "--lose", "0.1", "--fail", "0.1", "--empty", "0.15", "--timeout", "0.15", "--retry", "0.3",
			"--crash", "0.005")
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

// killNode kills a random node and starts another one.
func (x *exchange) killNode() {
	if x.cluster == nil {
		x.nodes[0].Kill()
		x.nodes[0] = x.site.Start()
		x.front.Route(x.nodes...)
		return
	}
	n := x.cluster.Nodes[rand.IntN(len(x.cluster.Nodes))]
	n.Kill()
	x.cluster.Forget(n)
	x.front.Route(x.cluster.Nodes...)
	x.cluster.Join()
	x.front.Route(x.cluster.Nodes...)
}

// auditActions are the names of the movers in the audit.
var auditActions = map[transaction.Mover]string{transaction.Wallet: "WITHDRAWAL_MOVE",
	transaction.Resume: "WITHDRAWAL_RESUME", transaction.Cancel: "WITHDRAWAL_CANCEL",
	transaction.Decision: "WITHDRAWAL_QUEUE_STATUS"}

// moved counts the moves that the audit names, and returns the withdrawals that an administrator settled by hand.
func (x *exchange) moved(t *testing.T) (moves map[transaction.Move]int, byHand map[string]bool) {
	t.Helper()
	db := x.site.Open()
	defer db.Close()
	rows, err := db.Query("SELECT action, detail, target FROM audit WHERE action LIKE 'WITHDRAWAL_%'")
	storetest.Must(t, err)
	defer rows.Close()
	moves, byHand = map[transaction.Move]int{}, map[string]bool{}
	for rows.Next() {
		var action, detail, id string
		storetest.Must(t, rows.Scan(&action, &detail, &id))
		for _, m := range transaction.Moves() {
			if action != auditActions[m.By] || !strings.HasPrefix(detail, fmt.Sprintf("%s to %s:", m.From, m.To)) {
				continue
			}
			moves[m]++
			if m.By == transaction.Decision && m.To == transaction.QueueSuccess {
				byHand[id] = true
			}
		}
	}
	storetest.Must(t, rows.Err())
	return moves, byHand
}

// unseen returns the moves of the table that have not happened; the administrator prefers them. The wallet replaces no
// transaction, no account is blocked (TestWithdrawalHeld), no owner cancels (TestOwnCancel), and no rule holds anything
// (TestHoldsEnd).
func (x *exchange) unseen(t *testing.T) (missing []transaction.Move) {
	t.Helper()
	moves, _ := x.moved(t)
	for _, m := range transaction.Moves() {
		absent := []transaction.Mover{transaction.Hold, transaction.OwnerCancel, transaction.Release}
		if moves[m] == 0 && m.From != m.To && !slices.Contains(absent, m.By) {
			missing = append(missing, m)
		}
	}
	x.missing.Store(&missing)
	return missing
}

// settle finishes all open work without further faults.
func (x *exchange) settle(t *testing.T) {
	t.Helper()
	if x.wrong != nil {
		t.Fatal(x.wrong)
	}
	x.wallet.kill()
	storetest.Must(t, x.wallet.start(x.flags(false)...))
	ended := func() bool {
		storetest.Must(t, x.decide(resumed))
		return x.site.Count(openWithdrawals) == 0
	}
	// A slow machine ends some withdrawals in this time, and a stuck one ends none.
	settled := false
	for left, was := x.site.Count(openWithdrawals), -1; !settled && left != was; {
		settled, was = blackbox.Becomes(90*time.Second, ended), left
		left = x.site.Count(openWithdrawals)
	}
	if !settled {
		for _, w := range x.accepted {
			got := x.caller.Ok(t, "GET", "/integration/withdrawals/"+w.id, nil, x.boss.with)
			if !slices.Contains([]string{"finalized", "failed", "cancelled"}, got.At(t, "data", "status")) {
				t.Logf("%s", got.Body)
			}
		}
		t.Fatalf("%d withdrawals have no end", x.site.Count(openWithdrawals))
	}
}

// compare compares the chain, the queue and the ledger.
func (x *exchange) compare(t *testing.T) {
	x.site.Has(len(x.accepted), "withdrawal_queue")
	sent := map[string][]chainTx{}
	for _, tx := range x.wallet.chain(t) {
		if tx.Memo != "" {
			sent[tx.Memo] = append(sent[tx.Memo], tx)
		}
	}
	x.ended = map[string]int{}
	has := x.paid
	_, byHand := x.moved(t)
	for _, w := range x.accepted {
		status := x.caller.Ok(t, "GET", "/integration/withdrawals/"+w.id, nil, x.boss.with).At(t, "data", "status")
		x.ended[status]++
		txs := sent[w.id]
		delete(sent, w.id)
		switch status {
		case "finalized":
			has[w.user] -= w.thousands
			if byHand[w.id] && len(txs) == 0 {
				continue
			}
			if byHand[w.id] || len(txs) != 1 || txs[0].To != coldWallet ||
				amount.Must(txs[0].Amount.String()) != amount.Must(thousandths(w.thousands)) {
				t.Errorf("the withdrawal %s of %s is finalized, and on the chain as %+v", w.id, thousandths(w.thousands), txs)
			}
		case "failed", "cancelled":
			if len(txs) != 0 {
				t.Errorf("the withdrawal %s is %s, and on the chain as %+v", w.id, status, txs)
			}
		default:
			t.Errorf("the withdrawal %s is %s", w.id, status)
		}
	}
	storetest.Equal(t, len(sent), 0, "transactions of no withdrawal", sent)
	for i, user := range x.users {
		var is []struct{ Balance, Locked json.Number }
		want := amount.Must(thousandths(has[i]))
		equal := func() bool {
			x.caller.Ok(t, "GET", "/admin/get-member-asset-balances?userId="+user, nil, x.boss.with).Read(t, &is)
			return len(is) == 0 && has[i] == 0 ||
				len(is) == 1 && amount.Must(is[0].Balance.String()) == want && is[0].Locked == "0"
		}
		if !blackbox.Becomes(30*time.Second, equal) {
			t.Errorf("user %d has %+v, want %s and nothing on hold", i, is, want)
		}
	}
	storetest.Equal(t, x.site.Count("deposit"), x.payments, "deposits of", "payments")
	if x.ended["finalized"] < walletKills/4 {
		t.Errorf("%d withdrawals were finalized between %d kills: too few to mean anything", x.ended["finalized"],
			walletKills)
	}
	if missing := x.unseen(t); len(missing) > 0 {
		t.Errorf("these moves did not happen: %v", missing)
	}
	for _, command := range []string{"ledger", "audit"} {
		x.site.Succeeds("", command, "verify")
	}
}
