package transaction_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

var (
	orders = flag.Int("orders", 300, "random orders of TestWithdrawalModel, on each database")
	seed   = flag.Uint64("orders.seed", 23, "seed of these orders")
)

const (
	waiting  = time.Hour        // of an address
	approval = 10 * time.Minute // life of a challenge
)

// sent is a withdrawal of the model, in hundredths, or a request for one.
type sent struct {
	user, code, external string
	n, fee               int64
	ask                  transaction.WithdrawalRequest
	right                *entry // of the book, which must have waited; nil: the address is never valid

	id          string
	status      transaction.QueueStatus
	at          time.Time // when it was booked
	challengeID string    // until its owner has approved
}

func (s *sent) worth() int64 { // hundredths of TRY
	if s.code == "BTC" {
		return s.n * 100
	}
	return s.n * 10
}

// entry is an address in a book.
type entry struct {
	id int64
	at time.Time // zero if it is not in the book
}

// owner is a user of the model.
type owner struct {
	active, prohibited, risky, ignored bool
	posted                             map[string]int64
	book                               map[string]*entry // by currency
	all, open                          []*sent
	waits                              []*sent // for the owner
}

// model is a plain model of withdrawals: one goroutine, sums in whole hundredths.
type model struct {
	*desk
	r        *rand.Rand
	owners   map[string]*owner
	disabled map[string]bool // pairs
	service  *transaction.Approvals
	mu       sync.Mutex
	commands map[string][]byte // of challenges
	started  map[string]challenge.Challenge
	refusals map[fault.Code]int // of orders that ran alone
	made     int
	n        int
}

// The model's currencies; fees and minima are in hundredths.
var (
	codes  = []string{"BTC", "ETH"}
	fees   = map[string]int64{"BTC": 1, "ETH": 2}
	minima = map[string]int64{"BTC": 3, "ETH": 5}
)

// locked returns the held sum of an account, and used the amount that counts against the limits.
func (o *owner) locked(code string) (n int64) {
	for _, s := range o.open {
		if s.code == code {
			n += s.n + s.fee
		}
	}
	return n
}

func (o *owner) used(now time.Time) (day, month int64) {
	for _, s := range o.open {
		day, month = day+s.worth(), month+s.worth()
	}
	for _, s := range o.all {
		if s.status == transaction.QueueSuccess && s.at.Format("2006-01") == now.Format("2006-01") {
			if month += s.worth(); s.at.Day() == now.Day() {
				day += s.worth()
			}
		}
	}
	return day, month
}

// barred returns why the account may not withdraw.
func (o *owner) barred() fault.Code {
	switch {
	case !o.active:
		return fault.AccountNotActive
	case o.prohibited:
		return fault.WithdrawalProhibited
	case o.risky && !o.ignored:
		return fault.AMLRisky
	}
	return ""
}

// refusal returns the expected error of a request.
func (m *model) refusal(s *sent) fault.Code {
	o, now := m.owners[s.user], m.now()
	day, month := o.used(now)
	switch {
	case o.barred() != "":
		return o.barred()
	case m.disabled[s.code]:
		return fault.PairDisabled
	case s.n < minima[s.code]:
		return fault.BelowMinimum
	case day+s.worth() > 10_000 || month+s.worth() > 25_000:
		return fault.LimitExceeded
	case s.right == nil || s.right.at.IsZero() || s.right.at.Add(waiting).After(now):
		return fault.AddressNotAllowed
	case o.posted[s.code]-o.locked(s.code) < s.n+s.fee:
		return fault.InsufficientBalance
	}
	return ""
}

// known are the possible refusals of requests.
var known = []fault.Code{fault.AccountNotActive, fault.WithdrawalProhibited, fault.AMLRisky, fault.PairDisabled,
	fault.BelowMinimum, fault.LimitExceeded, fault.AddressNotAllowed, fault.InsufficientBalance}

// judged compares a result with the model; "?" is any refusal, or none.
func (m *model) judged(s *sent, err error, want fault.Code) {
	code := fault.CodeOf(err)
	if want != "?" && code != want || want == "?" && err != nil && !slices.Contains(known, code) {
		m.t.Errorf("request %s: %d hundredths of %s of %s: %v, want %q", s.external, s.n, s.code, s.user, err, want)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if want != "?" {
		m.refusals[code]++
	}
}

// Start is a simple engine: its challenges wait for approval.
func (m *model) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	now := m.now()
	c := challenge.Challenge{ID: id.New(now), UserID: r.Account.UserID, Action: r.Action, CreatedAt: now.UnixMilli(),
		ExpiresAt: now.Add(approval).UnixMilli()}
	err := m.m.DB.Commit(ctx, r.Bind(c)...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commands[c.ID], m.started[c.ID] = r.Command, c
	return challenge.Started{Challenge: c}, err
}

// Again returns a challenge unchanged.
func (m *model) Again(_ context.Context, id string) (challenge.Started, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return challenge.Started{Challenge: m.started[id]}, nil
}

// execute executes an approved order, as the engine does.
func (m *model) execute(s *sent) (o transaction.Outgoing, err error) {
	m.mu.Lock()
	x := challenge.Execution{Challenge: m.started[s.challengeID], Command: m.commands[s.challengeID], Now: m.now()}
	m.mu.Unlock()
	for {
		err = m.m.DB.InTx(m.t.Context(), func(ctx context.Context) error {
			o, err = m.service.Execute(ctx, x)
			return err
		})
		if fault.CodeOf(err) != fault.Unavailable {
			break
		}
	}
	x.Challenge.State = challenge.Done
	m.mu.Lock()
	defer m.mu.Unlock()
	m.started[s.challengeID] = x.Challenge
	return o, err
}

func newModel(t *testing.T, db *persistence.DB, names []string) *model {
	m := &model{desk: newDesk(t, db, names...), r: rand.New(rand.NewPCG(*seed, *seed)), owners: map[string]*owner{},
		disabled: map[string]bool{}, commands: map[string][]byte{}, started: map[string]challenge.Challenge{},
		refusals: map[fault.Code]int{}}
	m.Waiting = waiting
	parameters := kit.NewParameters(db)
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		if err := parameter.AMLControl.Change(ctx, parameters, func(parameter.Ignored) (parameter.Ignored, error) {
			return parameter.Ignored{IgnoredUsers: names[2:]}, nil
		}); err != nil {
			return err
		}
		return parameter.Minimum.Change(ctx, parameters, func(parameter.Fees) (parameter.Fees, error) {
			all := parameter.Fees{}
			for code, n := range minima {
				all[code] = amount.Must(hundredths(n))
			}
			return all, nil
		})
	}))
	storetest.Must(t, m.Parameters.Reload(t.Context()))
	m.service = &transaction.Approvals{Withdrawals: m.Withdrawals, Engine: m,
		Account: func(_ context.Context, userID string) (challenge.Account, error) {
			return challenge.Account{UserID: userID}, nil
		}}
	for _, name := range names {
		m.owners[name] = &owner{active: true, ignored: slices.Contains(names[2:], name), posted: map[string]int64{},
			book: map[string]*entry{"BTC": {}, "ETH": {}}}
		for _, code := range codes {
			m.book(name, code)
		}
	}
	m.advance(waiting)
	return m
}

// requested returns a new request of a user: to an address, or to an entry of a book. Some use an address of another
// user or another network.
func (m *model) requested(name string) *sent {
	code := codes[m.r.IntN(2)]
	s := &sent{user: name, code: code, n: 1 + m.r.Int64N(60), fee: fees[code], external: fmt.Sprint("w", m.n),
		right: m.owners[name].book[code], status: transaction.QueueReady}
	s.ask = transaction.WithdrawalRequest{ExternalID: s.external, UserID: name, CurrencyCode: code, NetworkCode: code,
		Amount: amount.Must(hundredths(s.n)), Address: addresses[code]}
	to := func(e *entry) {
		if e.id != 0 {
			s.ask.Address, s.ask.AddressID = "", e.id
		}
	}
	switch m.r.IntN(12) {
	case 0, 1, 2, 3:
		to(s.right)
	case 4: // of another network
		s.ask.Address, s.right = addresses[codes[1-slices.Index(codes, code)]], nil
	case 5: // of another user; the address itself may be in this user's book
		// in a fixed order, so that a seed gives the same orders
		for _, other := range slices.Sorted(maps.Keys(m.owners)) {
			if e := m.owners[other].book[code]; other != name && e.id != 0 {
				to(e)
				s.right = nil
				break
			}
		}
	}
	return s
}

// book adds the address of a currency to the book of a user, or removes it.
func (m *model) book(name, code string) {
	e, pair := m.owners[name].book[code], m.m.Pair(code+"/"+code)
	storetest.Must(m.t, m.m.DB.InTx(m.t.Context(), func(ctx context.Context) (err error) {
		if _, err = m.Books.Hold(ctx, name); err != nil {
			return err
		}
		if !e.at.IsZero() {
			err = m.Books.Remove(ctx, name, e.id)
			*e = entry{}
			return err
		}
		e.at = m.now()
		e.id, err = m.Books.Insert(ctx, name, addressbook.Entry{Name: code, Address: addresses[code],
			CurrencyID: pair.CurrencyID, NetworkID: pair.NetworkID, CreatedAt: e.at, AddressAt: e.at})
		return err
	}))
}

// flag changes the permissions of an account, and more often restores them.
func (m *model) flag(name string) (write func() error) {
	o := m.owners[name]
	u := storetest.Value(m.Users.Get(m.t.Context(), name))(m.t)
	kind := m.r.IntN(3)
	if set := slices.Index([]bool{o.prohibited, o.risky, !o.active}, true); set >= 0 && m.r.IntN(3) > 0 {
		kind = set
	}
	switch kind {
	case 0:
		o.prohibited = !o.prohibited && m.r.IntN(3) == 0
		w := user.SetWithdrawProhibited{UserID: name, Prohibited: o.prohibited}
		return func() error { return m.m.DB.Commit(m.t.Context(), w) }
	case 1:
		o.risky = !o.risky && m.r.IntN(3) == 0
		w := user.SetAMLStatus{UserID: name, Status: user.NotRisky}
		if o.risky {
			w.Status = "risky"
		}
		return func() error { return m.m.DB.Commit(m.t.Context(), w) }
	}
	o.active = !o.active || m.r.IntN(3) > 0
	w := user.SetStatus{UserID: name, CV: u.CV, Status: user.Active}
	if !o.active {
		w.Status = user.Passive
	}
	return func() error { return m.m.DB.Commit(m.t.Context(), w) }
}

// toggle enables or disables withdrawals of a pair.
func (m *model) toggle(code string) {
	m.disabled[code] = !m.disabled[code]
	persistencetest.Exec(m.t, m.m.DB, "UPDATE currency_of_network SET withdraw_enable = ? WHERE id = ?", !m.disabled[code],
		m.m.Pair(code+"/"+code).ID)
	storetest.Must(m.t, m.Currencies.Reload(m.t.Context()))
}

// The sums of an account admit what fits, of whole units and of parts of them, while those of the platform are read
// from totals by the same statement.
func TestNarrowSumBesideTotals(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u", "v")
		d.unlimited()
		j := d.judges(sumRule("WITHDRAWAL", "PLATFORM", "3h", "VALUE", "10000"),
			sumRule("WITHDRAWAL", "ACCOUNT", "1h", "VALUE", "300"))
		storetest.Must(t, j.KeepTotals(t.Context(), d.now()))
		for name, n := range map[string]int64{"u": 50, "v": 100} { // hundredths of 100 lira
			storetest.Must(t, d.m.Pay(name, "BTC/BTC", "9"))
			for i := range 300/n + 1 {
				_, err := d.ask(name, "BTC", n, fmt.Sprint(name, i))
				if fits := i < 300/n; fits != (err == nil) || !fits && fault.CodeOf(err) != fault.PolicyDenied {
					t.Errorf("%s, %d: %v", name, i, err)
				}
			}
		}
	})
}
