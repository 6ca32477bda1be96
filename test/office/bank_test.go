package office

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/internal/blackbox"
)

// coins is an amount of n × 10⁻⁸.
func coins(n int64) amount.Amount {
	return amount.Must(fmt.Sprintf("%d.%08d", n/blackbox.MoneyUnit, n%blackbox.MoneyUnit))
}

// deed is one operation of a client. The service executes credit and debit (adjust-balance), and block and
// unblock (blockages). The mover executes all others.
type deed struct {
	order
	n        int64 // the amount, in 10⁻⁸
	from, to int   // users; -1: the treasury
	doubted  bool  // sent, not answered, and not repeated before the end
	done     bool
	refused  bool
	id       string // of the transfer or the hold
}

// bank is a site whose processes are killed during transfers.
type bank struct {
	*blackbox.Site
	users  [3]blackbox.Account
	tokens [3]blackbox.Headers
	boss   blackbox.Headers

	server, mover atomic.Pointer[blackbox.Node]
	stop          atomic.Bool
	acknowledged  atomic.Int64
	reads         atomic.Int64

	mu    sync.Mutex
	deeds []*deed
	fresh []*deed // acknowledged since the last check
	wrong error   // the first broken promise
}

// newBank starts a service with three users and an address of the treasury, and the mover beside it.
func newBank(t *testing.T, s *blackbox.Site) *bank {
	t.Helper()
	b := &bank{Site: s}
	s.Set("LIMITS_ENABLED=false", "LOG_LEVEL=info", "TOKENS_X_AUTH_TTL=24h", "TOKENS_SESSION_TTL=24h") // for slow machines
	n := s.Start()
	s.Exec(`UPDATE parameter SET json = '{"BTC":{"BTC":"bc1qtreasury"}}' WHERE code = 'TREASURY'`)
	b.boss = blackbox.Admin(t, s, n)
	for i := range b.users {
		b.users[i] = s.AddUser("user")
		b.tokens[i] = n.Auth(t, b.users[i])
	}
	n.Kill()
	rule := `{"label":"Adjustments","status":"ACTIVE","kinds":["ADJUSTMENT"],"effect":{"type":"DENY"},
		"match":{"sums":[{"per":"PLATFORM","window":"24h","of":"COUNT","over":"1000000"}]}}`
	s.Succeeds(rule, "money", "rule", "add", "-")
	// The task would begin the totals after half a minute.
	s.Exec(fmt.Sprintf("INSERT INTO money_flow_kept (flow, since) VALUES ('ADJUSTMENT/IN', %d), ('ADJUSTMENT/OUT', %[1]d)",
		time.Now().UnixMilli()>>25<<10))
	b.serve(true)
	for i := range b.users { // opens their accounts
		d := &deed{order: order{Do: "credit", Ref: fmt.Sprint("first ", i)}, n: 1000, from: -1, to: i}
		b.deeds = append(b.deeds, d)
		b.does(t, d)
	}
	return b
}

// does sends a deed until it is answered, and expects that it is done.
func (b *bank) does(t *testing.T, d *deed) {
	t.Helper()
	var err error
	blackbox.Until(t, blackbox.Within(10), "it is answered", func() bool {
		err = b.ask(d)
		return !errors.Is(err, blackbox.ErrLost)
	})
	if err != nil || !d.done {
		t.Fatalf("%+v: %v", d, err)
	}
}

// serve restarts the service, and the mover if it was killed too.
func (b *bank) serve(mover bool) {
	n := b.Begin()
	if mover {
		m := b.RunRole(moverRole)
		m.Ready()
		b.mover.Store(m)
	}
	n.Ready()
	b.server.Store(n)
}

func (b *bank) broke(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wrong == nil {
		b.wrong = fmt.Errorf(format, args...)
	}
	b.stop.Store(true)
}

func (b *bank) fault() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrong
}

// ask sends a deed once. After errLost its result is unknown.
func (b *bank) ask(d *deed) error {
	id, refused, err := b.send(d)
	switch {
	case err != nil:
		return err
	case d.done && (refused || id != d.id), d.refused && !refused:
		return fmt.Errorf("%+v again: %q, refused: %v", d, id, refused)
	case d.done || d.refused:
		return nil
	}
	d.id, d.done, d.refused, d.doubted = id, !refused, refused, false
	if d.done {
		b.acknowledged.Add(1)
		b.mu.Lock()
		b.fresh = append(b.fresh, d)
		b.mu.Unlock()
	}
	return nil
}

func (b *bank) send(d *deed) (id string, refused bool, err error) {
	switch d.Do {
	case "credit", "debit":
		return b.adjust(d)
	case "block", "unblock":
		return b.block(d)
	}
	d.Asset, d.Amount, d.From, d.To = blackbox.MoneyAsset, coins(d.n), b.owner(d.from), b.owner(d.to)
	a, err := b.mover.Load().Try("POST", "/", d.order, nil)
	var done moved
	switch {
	case err != nil || a.Status == 503:
		return "", false, blackbox.ErrLost
	case a.Status != 200:
		return "", false, fmt.Errorf("the mover answers %+v with %s", d, a)
	}
	err = json.Unmarshal(a.Body, &done)
	return done.ID, done.Refused, err
}

func (b *bank) owner(user int) string {
	if user < 0 {
		return ""
	}
	return b.users[user].ID
}

func (b *bank) adjust(d *deed) (id string, refused bool, err error) {
	user, direction := d.to, "C"
	if d.Do == "debit" {
		user, direction = d.from, "D"
	}
	a, err := b.server.Load().Try("POST", blackbox.AdjustPath, map[string]any{"userId": b.users[user].ID,
		"currencyCode": "BTC",
		"networkCode":  "BTC", "amount": coins(d.n), "type": direction, "uniqueId": d.Ref}, b.boss)
	if err != nil || a.Status == 503 {
		return "", false, blackbox.ErrLost
	}
	var body struct {
		Code    *int
		Message string
		Data    struct{ TransactionID string }
	}
	if a.Status != 200 || json.Unmarshal(a.Body, &body) != nil {
		return "", false, fmt.Errorf("an adjustment: %s", a)
	}
	if body.Code != nil && body.Message != "the available balance is insufficient" {
		return "", false, fmt.Errorf("the adjustment %+v: %s", d, a)
	}
	return body.Data.TransactionID, body.Code != nil, nil
}

// block locks an amount by a blockage, once for its Idempotency-Key, or releases it.
func (b *bank) block(d *deed) (id string, refused bool, err error) {
	path, body := "/blockage/insert-blockage-history", map[string]any{"userId": b.users[d.from].ID,
		"currencyCode": "BTC", "blockTypeId": 2, "amount": coins(d.n)}
	if d.Do == "unblock" {
		path, body = "/blockage/update-blockage-history", map[string]any{"id": d.Of, "status": "released"}
	}
	a, err := b.server.Load().Try("POST", path, body, blackbox.Headers{"x-auth": b.boss["x-auth"],
		"Idempotency-Key": "block " + d.Ref})
	if err != nil || a.Status == 503 || a.Code() == "IDEMPOTENCY_CONFLICT" {
		return "", false, blackbox.ErrLost
	}
	var is struct{ Data struct{ ID string } }
	if a.Status != 200 || json.Unmarshal(a.Body, &is) != nil || is.Data.ID == "" {
		return "", false, fmt.Errorf("a blockage: %s", a)
	}
	return is.Data.ID, false, nil
}

// teller is a client: it sends one deed after the other, and repeats unanswered and sometimes answered ones.
type teller struct {
	*bank
	name  int
	rng   *rand.Rand
	made  int
	holds []*deed // active ones of its own, and blockages
	past  []*deed // transfers of its own that are not reversed
}

// next returns a random deed.
func (c *teller) next() *deed {
	c.made++
	user := c.rng.IntN(3)
	d := &deed{order: order{Ref: fmt.Sprintf("%d-%d", c.name, c.made)}, n: 1 + c.rng.Int64N(1000), from: user, to: -1}
	switch dice := c.rng.IntN(100); {
	case dice < 30:
		d.Do, d.from, d.to = "credit", -1, user
	case dice < 50:
		d.Do = "debit"
	case dice < 60:
		d.Do, d.to = "send", (user+1)%3
	case dice < 78 && len(c.holds) < 3 || len(c.holds) == 0 && dice < 90:
		// The third user's hold may exceed the balance.
		d.Do, d.Beyond = "hold", user == 2 && c.rng.IntN(20) == 0
		if d.Beyond {
			d.n *= 1000
		}
		if user == 2 && c.rng.IntN(3) == 0 { // and so may blockages
			d.Do = "block"
		}
	case dice < 90:
		h := c.holds[0]
		c.holds = c.holds[1:]
		d.Of, d.from, d.Do = h.id, h.from, "release"
		if h.Do == "block" {
			d.Do = "unblock"
		} else if !h.Beyond && c.rng.IntN(2) == 0 {
			d.Do, d.n = "settle", 1+c.rng.Int64N(h.n)
		}
	case len(c.past) > 0:
		was := c.past[0]
		c.past = c.past[1:]
		d.Do, d.Of, d.n, d.from, d.to = "reverse", was.id, was.n, was.to, was.from
	default:
		d.Do, d.from, d.to = "credit", -1, user
	}
	return d
}

func (c *teller) live() {
	for !c.stop.Load() {
		d := c.next()
		c.mu.Lock()
		c.deeds = append(c.deeds, d)
		c.mu.Unlock()
		if err := c.insist(d); err != nil {
			c.broke("client %d: %w", c.name, err)
			return
		}
		switch {
		case !d.done:
		case d.Do == "hold", d.Do == "block":
			c.holds = append(c.holds, d)
		case d.Do != "release" && d.Do != "unblock" && d.Do != "reverse" && len(c.past) < 20:
			c.past = append(c.past, d)
		}
	}
}

// insist sends a deed until it is answered, and sometimes once more. Sometimes it gives up, and the result is
// unknown until the end.
func (c *teller) insist(d *deed) error {
	for !c.stop.Load() {
		err := c.ask(d)
		if errors.Is(err, blackbox.ErrLost) {
			if c.rng.IntN(100) == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err == nil && d.done && c.rng.IntN(16) == 0 {
			err = c.ask(d)
		}
		if err == nil || !errors.Is(err, blackbox.ErrLost) {
			return err
		}
		return nil
	}
	d.doubted = !d.done && !d.refused
	return nil
}

// look reads a user's balance until the end, by the API and in the database. It is never negative, and never
// less than the locked amount.
func (b *bank) look(user int) {
	db := b.Open()
	defer db.Close()
	for !b.stop.Load() {
		a, err := b.server.Load().Try("GET", "/user/asset", nil, b.tokens[user])
		var all []struct{ Balance, Available, Locked amount.Amount }
		if err == nil && a.Status == 200 {
			if err := json.Unmarshal(a.Body, &all); err != nil || len(all) != 1 {
				b.broke("user %d sees %s, %v", user, a, err)
				return
			}
			free, _ := all[0].Balance.Sub(all[0].Locked)
			if all[0].Balance.Sign() < 0 || free.Sign() < 0 && user != 2 ||
				free.Sign() >= 0 && free != all[0].Available || free.Sign() < 0 && all[0].Available.Sign() != 0 {
				b.broke("user %d sees %s", user, a)
				return
			}
			b.reads.Add(1)
		}
		var posted, locked [2]int64
		err = db.QueryRow("SELECT posted_hi, posted_lo, locked_hi, locked_lo FROM balance WHERE account_id = $1",
			fmt.Sprintf("user/%d/%s", blackbox.MoneyAsset,
				b.users[user].ID)).Scan(&posted[0], &posted[1], &locked[0], &locked[1])
		if err != nil {
			b.broke("read the balance: %w", err)
			return
		}
		if less := posted[0] < locked[0] || posted[0] == locked[0] && posted[1] < locked[1]; posted[0] < 0 ||
			less && user != 2 {
			b.broke("user %d has %v, of which %v is locked", user, posted, locked)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}
