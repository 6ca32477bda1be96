package transaction_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

var attackCount = flag.Int("attacks", 12, "attacks of TestScriptedAttacks, on each database")

// stolen is a withdrawal that an attacker has asked for.
type stolen struct {
	id, owner, by, to string
	n                 int64 // hundredths
	at, left          time.Time
	approvers         map[string]bool
	altered, gone     bool
}

// raid is a platform whose keys and operators belong to an attacker. Its oracle knows the rules in words and counts
// approvals by itself.
type raid struct {
	*desk
	*rand.Rand
	service *transaction.Service
	all     []*stolen
	credits map[string][]credited
	bound   int64 // above it three persons must approve, in hundredths
	members map[string]bool
	blocked map[string]bool
	denied  int
	held    int
	passed  int
	n       int
}

type credited struct {
	at time.Time
	n  int64
}

const (
	alone   = `"effect":{"type":"APPROVAL","group":"treasury","required":1}`
	three   = `"effect":{"type":"APPROVAL","group":"treasury","required":3,"expires":"3h"}`
	oneBTC  = `"assets":[{"currencyCode":"BTC"}]`
	perHour = 24 * time.Hour // the window of every sum
)

func (r *raid) rules() {
	j := r.judges(`{"match":{`+oneBTC+`,"amount":{"over":"`+hundredths(r.bound)+`","unit":"ASSET"}},`+three+`}`,
		`{"match":{`+oneBTC+`,"amount":{"over":"50","unit":"ASSET"}},`+deny+`}`,
		strings.Replace(sumRule("WITHDRAWAL", "INITIATOR", "24h", "VALUE", "300"), deny, alone, 1),
		strings.Replace(sumRule("WITHDRAWAL", "DESTINATION", "24h", "ACCOUNTS", "3"), deny, alone, 1),
		`{"kinds":["ADJUSTMENT"],"match":{`+oneBTC+`,"amount":{"over":"1","unit":"ASSET"}},`+alone+`}`,
		`{"kinds":["DEPOSIT"],"match":{`+oneBTC+`,"amount":{"over":"5","unit":"ASSET"}},`+alone+`}`,
		strings.Replace(sumRule("DEPOSIT", "INITIATOR", "24h", "VALUE", "1000"), deny, alone, 1))
	r.service.Judge = j
}

// needs returns how many persons must approve a withdrawal at an instant, by its request or by its claim.
func (r *raid) needs(w *stolen, left bool) (n int) {
	sum, accounts := w.n, map[string]bool{w.owner: true}
	for _, o := range r.all {
		at := o.at
		if left {
			at = o.left
		}
		if o == w || o.gone || at.IsZero() || !at.After(r.now().Add(-perHour)) {
			continue
		}
		if o.by == w.by {
			sum += o.n
		}
		if o.to == w.to {
			accounts[o.owner] = true
		}
	}
	if sum > 300 || len(accounts) > 3 {
		n = 1
	}
	if w.n > r.bound {
		n = 3
	}
	return n
}

// approvals counts the persons whose approvals of a withdrawal count now. The two twins are one.
func (r *raid) approvals(w *stolen) (n int) {
	twins := false
	for by, is := range w.approvers {
		switch {
		case !is || !r.members[by] || r.blocked[by] || by == w.owner || "OPERATOR:"+by == w.by:
		case strings.HasPrefix(by, "twin"):
			twins = true
		default:
			n++
		}
	}
	if twins {
		n++
	}
	return n
}

func (r *raid) one() *stolen {
	if len(r.all) == 0 {
		return nil
	}
	return r.all[max(0, len(r.all)-1-r.IntN(4))]
}

func oneOf[T any](r *raid, all ...T) T { return all[r.IntN(len(all))] }

// request asks for a withdrawal with a stolen key, or as an operator.
func (r *raid) request() error {
	by := oneOf(r, "service:shop0", "service:shop1", "service:shop0", "t0", "boss")
	w := &stolen{owner: fmt.Sprint("u", r.IntN(6)), n: oneOf[int64](r, 30, 30, 40, 90, 100, 110, 290, 6000), at: r.now(),
		by: "OPERATOR:" + by, approvers: map[string]bool{}}
	if name, is := strings.CutPrefix(by, "service:"); is {
		w.by = "SERVICE:" + name
	}
	to, tag := oneOf(r, addresses["BTC"], strings.ToUpper(addresses["BTC"]),
		"bc1q0ht9tyks4vh7p5p904t340cr9nvahy7u3re7zg"), oneOf(r, "", "", "7")
	w.to = strings.ToLower(to) + " " + tag
	r.n++
	o, err := r.Request(r.t.Context(), audit.By{UserID: by}, transaction.WithdrawalRequest{
		ExternalID: fmt.Sprint("w", r.n), UserID: w.owner, CurrencyCode: "BTC", NetworkCode: "BTC",
		Amount: amount.Must(hundredths(w.n)), Address: to, AddressTag: tag})
	switch code := fault.CodeOf(err); {
	case code == fault.PolicyDenied && w.n == 6000:
		r.denied++
		return nil
	case code == fault.AccountNotActive && r.blocked[w.owner]:
		return nil
	case err != nil || w.n == 6000 || r.blocked[w.owner]:
		return fmt.Errorf("request %+v: %v", *w, err)
	}
	w.id = o.Queued.ID
	need, waits := r.needs(w, false), o.Queued.Status == transaction.QueueWaiting
	if waits {
		r.held++
	}
	r.all = append(r.all, w)
	if waits != (need > 0) {
		return fmt.Errorf("request %+v needs %d and is %s", *w, need, o.Queued.Status)
	}
	return nil
}

// claim is what the attacker wants: the money leaves.
func (r *raid) claim(w *stolen) error {
	o, err := r.Get(r.t.Context(), w.id)
	if err != nil || o.Queued.Status == transaction.QueueProcessing || r.move(w.id, transaction.QueueProcessing) != nil {
		return err
	}
	w.left = r.now()
	r.passed++
	if need := r.needs(w, true); w.altered || w.gone || r.blocked[w.owner] || r.approvals(w) < need {
		return fmt.Errorf("claimed %+v, which needs %d of %v and has %d; blocked: %v", *w, need, r.members,
			r.approvals(w), r.blocked)
	}
	return nil
}

func (r *raid) approve(w *stolen) {
	by := oneOf(r, "t0", "t1", "t2", "twin 1", "twin 2", "boss", w.owner, "service:shop0")
	if r.resume(by, w.id) == nil { // an approval, or the return of one that rules no longer hold
		all := storetest.Value(r.Judge.Past.Approved(r.t.Context(), w.id))(r.t)
		w.approvers[by] = slices.ContainsFunc(all, func(a transaction.AddApproval) bool { return a.UserID == by })
	}
}

// alter changes a row of a withdrawal in the database.
func (r *raid) alter(w *stolen) {
	change := oneOf(r, "withdrawal_queue SET address = 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'",
		"withdrawal_queue SET address_tag = '9'", "withdrawal SET hi = hi + 1", "withdrawal_queue SET status = 8",
		"withdrawal_queue SET user_id = 'u7'")
	persistencetest.Exec(r.t, r.m.DB, "UPDATE "+change+" WHERE id = ? AND status NOT IN (4, 11, 12)", w.id)
	w.altered = w.altered || !strings.Contains(change, "status = 8")
	if strings.Contains(change, "hi + 1") && !w.gone {
		w.n += 100 // sums have it, too
	}
}

// credit reports a deposit, or adjusts a balance.
func (r *raid) credit() error {
	r.n++
	if r.IntN(2) == 0 {
		n := oneOf[int64](r, 50, 100, 101)
		_, err := r.service.Adjust(r.t.Context(), audit.By{UserID: oneOf(r, "t0", "boss")},
			adjustment(oneOf(r, transaction.Credit, transaction.Debit), hundredths(n), fmt.Sprint("a", r.n)))
		if denied := fault.CodeOf(err) == fault.PolicyDenied; denied != (n > 100) || !denied && err != nil {
			return fmt.Errorf("an adjustment of %d: %v", n, err)
		}
		if n > 100 {
			r.denied++
		}
		return nil
	}
	key, n := oneOf(r, "shop0", "shop1"), oneOf[int64](r, 400, 500, 501)
	d, err := r.service.Report(r.t.Context(), audit.By{UserID: "service:" + key}, transaction.Report{
		ExternalID: fmt.Sprint("d", r.n), UserID: "u", CurrencyCode: "BTC", Network: "BTC",
		Amount: amount.Must(hundredths(n)), TxID: fmt.Sprint("tx", r.n), Final: true})
	sum := n
	for _, c := range r.credits[key] {
		if c.at.After(r.now().Add(-perHour)) {
			sum += c.n
		}
	}
	passes := n <= 500 && sum <= 1000
	if err != nil || passes != (d.Status == transaction.Finalized) {
		return fmt.Errorf("a credit of %d by %s after %d: %s, %v", n, key, sum-n, d.Status, err)
	}
	if passes {
		r.credits[key] = append(r.credits[key], credited{r.now(), n})
	}
	return nil
}

func (r *raid) step() error {
	w, who := r.one(), oneOf(r, "t0", "t1", "twin 1")
	switch do := r.IntN(16); {
	case do < 3 || w == nil:
		return r.request()
	case do < 6:
		r.approve(w)
	case do < 9:
		return r.claim(w)
	case do == 9:
		r.alter(w)
	case do == 10 && r.members[who]:
		r.commit(user.Revoke{UserID: who, Role: "treasury"})
		r.members[who] = false
	case do == 10:
		r.commit(user.Grant{UserID: who, Role: "treasury", At: r.now()})
		r.members[who] = true
	case do == 11: // administrators change the rule between a request and its claim
		r.bound = oneOf[int64](r, 50, 100, 100)
		r.rules()
	case do == 12:
		r.advance(oneOf(r, time.Millisecond, time.Hour, 3*time.Hour))
		storetest.Must(r.t, r.EndHolds(r.t.Context()))
		for _, w := range r.all {
			o := storetest.Value(r.Get(r.t.Context(), w.id))(r.t)
			w.gone = w.gone || o.Queued.Status == transaction.QueueCancelled
		}
	case do == 13: // cycling: what has failed does not count, and cannot leave again
		if r.move(w.id, transaction.QueueFailed) == nil {
			w.gone = true
		} else if _, err := r.CancelOwn(r.t.Context(), audit.By{UserID: w.owner}, w.id); err == nil {
			w.gone = true
		}
	case do == 14:
		return r.credit()
	default:
		who = oneOf(r, w.owner, who)
		s := user.Blocked
		if r.blocked[who] {
			s = user.Active
		}
		r.commit(r.status(who, s))
		r.blocked[who] = !r.blocked[who]
	}
	return nil
}

// In random scripts of an attacker nothing leaves below its quorum. The attacker has keys, an operator without the
// group, two members of it, twins with one device, and access to the database. The scripts split amounts, cycle
// deposits and withdrawals, spell addresses differently, alter rows, lose roles, let approvals expire and approve as
// owners. Each refusal is in the audit.
func TestScriptedAttacks(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := newTillIn(t, db)
		seed := rand.Uint64()
		r := &raid{desk: l.desk, service: l.Service, credits: map[string][]credited{}, bound: 100,
			Rand: rand.New(rand.NewPCG(seed, 0)), blocked: map[string]bool{},
			members: map[string]bool{"t0": true, "t1": true, "t2": true, "twin 1": true, "twin 2": true, "u0": true}}
		r.unlimited()
		r.operators("t0", "t1", "t2", "twin 1", "twin 2", "u0")
		for _, name := range []string{"u1", "u2", "u3", "u4", "u5", "u7", "boss"} {
			r.m.User(name, func(*user.User) {})
		}
		for i := range 6 {
			storetest.Must(t, r.m.Pay(fmt.Sprint("u", i), "BTC/BTC", "10000000"))
		}
		storetest.Must(t, r.m.Pay("u", "BTC/BTC", "100000"))
		r.rules()
		for attack := range *attackCount {
			for i := range 4 + r.IntN(12) {
				if err := r.step(); err != nil {
					t.Fatalf("seed %d, attack %d, step %d: %v", seed, attack, i, err)
				}
			}
			for _, w := range r.all { // the next attack begins a day later
				if _, err := r.Cancel(t.Context(), audit.By{UserID: "op"}, w.id, ""); err != nil && !w.altered {
					_ = r.move(w.id, transaction.QueueFailed)
				}
			}
			for name, is := range r.blocked {
				if is {
					r.commit(r.status(name, user.Active))
				}
			}
			for name, is := range r.members {
				if !is {
					r.commit(user.Grant{UserID: name, Role: "treasury", At: r.now()})
					r.members[name] = true
				}
			}
			clear(r.blocked)
			r.all = nil
			storetest.Must(t, r.Judge.KeepTotals(t.Context(), r.now())) // of the first round after it
			r.advance(25 * time.Hour)
		}
		storetest.Must(t, money.NewTransactions(db).VerifyTotals(t.Context()))
		var denied, held int
		storetest.Must(t, db.Conn(t.Context()).NewRaw("SELECT count(CASE WHEN action = 'MONEY_DENY' THEN 1 END), "+
			"count(CASE WHEN action = 'MONEY_HOLD' THEN 1 END) FROM audit").Scan(t.Context(), &denied, &held))
		if denied != r.denied || held < r.held || r.passed == 0 {
			t.Errorf("seed %d: the audit has %d of %d refusals and %d of %d holds; %d claims", seed, denied, r.denied, held,
				r.held, r.passed)
		}
		t.Logf("%d claims passed, %d requests were denied and %d held", r.passed, r.denied, r.held)
	})
}
