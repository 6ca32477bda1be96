package money_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/stepup"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httptransaction "castellan/http/money/transaction"
	"castellan/http/rest"
	"castellan/http/wire"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// transactionSite is the section with a user "jane", who has no phone, and a user "kurt", who has
// one; with a treasury's address for BTC alone, a fee of 0.001 BTC, and an explorer of
// its network. Jobs run under a clock that they move, in the request that waits for
// them.
type transactionSite struct {
	*apitest.Site
	*testing.T
	db      *persistence.DB
	l       *ledger.Ledger
	service *transaction.Service
	jobs    *apitest.Jobs
	repeats *auth.Idempotent
	*clock
}

var numbers = wire.Numbers{FinalizedDeposit: 2, HotWallet: 6, TimeOut: 7}

// clock is the time of the jobs.
type clock struct {
	mu     sync.Mutex
	at     time.Time
	pauses []time.Duration // of jobs
	cut    func() bool     // whether the process dies before a job ends
	lists  bool            // whether the caller may list accounts
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pause(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses, c.at = append(c.pauses, until.Sub(c.at)), until
}

// transactionPost takes messages and sends none.
type transactionPost struct{}

func (transactionPost) Offers(message.Channel) bool              { return true }
func (transactionPost) Deliver(outbox.Message, message.Rendered) {}

// verify stands for the authenticator, whose own tests are those of domain/proof/totp.
func verify(_ context.Context, who rest.Caller, _ *rest.Endpoint, _ any) error {
	if who.OTP != "123456" {
		return fault.New(fault.OTPRequired, "a code is needed")
	}
	return nil
}

func transactionBoth(t *testing.T, test func(s transactionSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := transactionSite{T: t, db: db, clock: &clock{lists: true, at: time.Now().UTC().Truncate(time.Millisecond)}}
		ctx, house, parameters := t.Context(), persistencetest.MoneyIn(t, db, time.Now), kit.NewParameters(db)
		s.people()
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error { return s.parameters(ctx, parameters) }))
		live := parameter.NewCache(parameters)
		storetest.Must(t, live.Reload(ctx))
		s.l = house.Ledger
		ring := keyringtest.Ring(t, time.Now)
		s.jobs = apitest.NewJobs(t, db, ring, s.now)
		book := storetest.Value(message.NewBook("Castellan", nil))(t)
		s.service = &transaction.Service{Ledger: s.l, Users: account.NewUsers(db), Currencies: house.Currencies,
			Parameters: live, Now: time.Now, Store: money.NewTransactions(db),
			Changes: admin.Changes{Commit: db, Now: s.now}, Jobs: s.jobs.Service,
			Await: func(_ context.Context, id string) (job.Job, error) {
				if s.cut != nil && s.cut() {
					return job.Job{State: job.Running}, nil
				}
				j, _ := s.jobs.Finish(t, id, s.pause)
				return j, nil
			},
			Messenger: &stepup.Messenger{Config: stepup.Config{Lease: time.Minute, Language: "en"}, Book: book, Ring: ring,
				Dispatch: transactionPost{}, Now: s.now},
			MayMove: func(caller, userID string) error {
				return apitest.MayWrite(caller, userID, resource.Standing)
			}}
		s.jobs.Kinds[transaction.UpdateKind] = s.service.Kind()
		s.repeats = &auth.Idempotent{Store: kit.NewIdempotency(db), Commit: db, Ring: ring, Now: time.Now}
		s.Site = apitest.Serve(t, edge.Options{Idempotency: s.repeats, Verify: verify}, httptransaction.Group{
			Service: s.service, Numbers: numbers,
			Shows: func(_ rest.Caller, endpoint string) bool { return endpoint == "GET /admin/list-users" && s.lists }})
		test(s)
	})
}

func (s transactionSite) people() {
	for name, edit := range map[string]func(*user.User){
		"jane": func(u *user.User) { u.Name, u.Surname, u.Language = "Jane", "Işık", "tr" },
		"kurt": func(u *user.User) { u.Phone, u.CountryCode, u.Type = "+905321234567", "90", user.Corporate },
	} {
		u := user.New(name, time.Now())
		u.Email = name + "@example.com"
		edit(&u)
		storetest.Must(s, s.db.Commit(s.Context(), user.Add{User: u}))
	}
}

func (s transactionSite) parameters(ctx context.Context, store parameter.Store) error {
	if err := parameter.Seed(ctx, store); err != nil {
		return err
	}
	if err := parameter.Treasury.Change(ctx, store, func(parameter.Addresses) (parameter.Addresses, error) {
		return parameter.Addresses{"BTC": {"BTC": "bc1treasury"}}, nil
	}); err != nil {
		return err
	}
	if err := parameter.Fee.Change(ctx, store, func(parameter.Fees) (parameter.Fees, error) {
		return parameter.Fees{"BTC": amount.Must("0.001")}, nil
	}); err != nil {
		return err
	}
	return parameter.Explorer.Change(ctx, store, func(parameter.Links) (parameter.Links, error) {
		return parameter.Links{"BTC": "https://explorer.example/tx/{txId}"}, nil
	})
}

// asset is the pair of BTC on its own network.
func (s transactionSite) asset() int64 {
	pair, ok := s.service.Currencies.Catalog().Info(new("BTC"), new("BTC"))
	if !ok {
		s.Fatal("there is no BTC")
	}
	return pair.ID
}

func (s transactionSite) do(m ledger.Movement, err error) {
	s.Helper()
	storetest.Must(s, err)
	_, err = s.l.Do(s.Context(), audit.By{UserID: "op"}, m)
	storetest.Must(s, err)
}

// deposit is a deposit of jane, unless edit says otherwise.
func (s transactionSite) deposit(status transaction.Status, sum string, edit ...func(*transaction.Deposit)) string {
	s.Helper()
	at := s.now()
	d := transaction.Deposit{ID: id.New(at), UserID: "jane", Asset: s.asset(), Amount: amount.Must(sum), Status: status,
		SenderInfo: `{"name":"Ada"}`, At: at}
	for _, f := range edit {
		f(&d)
	}
	s.do(transaction.Receive(d), nil)
	return d.ID
}

// enqueue puts a withdrawal of jane into the queue.
func (s transactionSite) enqueue(status transaction.QueueStatus, sum string, edit ...func(*transaction.Queued)) string {
	s.Helper()
	return s.enqueueAs(transaction.Withdrawal{}, status, sum, edit...)
}

// enqueueAs is enqueue with fields of the withdrawal.
func (s transactionSite) enqueueAs(w transaction.Withdrawal, status transaction.QueueStatus, sum string,
	edit ...func(*transaction.Queued)) string {
	s.Helper()
	q := transaction.Queued{Status: status, TxID: "x/1"}
	for _, f := range edit {
		f(&q)
	}
	fee := amount.Must("0.001")
	if q.Fee != nil {
		fee = *q.Fee
	}
	at := s.now()
	w.ID, w.UserID, w.Asset, w.Amount = id.New(at), "jane", s.asset(), amount.Must(sum)
	w.ToAddress, w.At = "bc1away", at
	m, err := transaction.Enqueue(w, q, fee)
	if err == nil && q.Held.Reason != "" {
		m.With = append(m.With, transaction.SetHeld{Queued: m.With[1].(transaction.AddQueued).Queued})
	}
	s.do(m, err)
	return w.ID
}

// has checks what jane has.
func (s transactionSite) has(want string, locked ...string) {
	s.Helper()
	b := storetest.Value(s.l.Balance(s.Context(), "jane", s.asset()))(s)
	if b.Posted.String() != want || len(locked) > 0 && b.Locked.String() != locked[0] {
		s.Errorf("jane has %s of which %s is locked, want %s %s", b.Posted, b.Locked, want, locked)
	}
}

// holds checks what an account of the house has.
func (s transactionSite) holds(kind ledger.Kind, want string) {
	s.Helper()
	all := storetest.Value(s.l.Store.Balances(s.Context(), ledger.Account{Kind: kind, Asset: s.asset()}))(s)
	var posted amount.Amount
	if len(all) > 0 {
		posted = all[0].Posted
	}
	if posted.String() != want {
		s.Errorf("%s has %s, want %s", kind, posted, want)
	}
}

func (s transactionSite) count(table string, where ...string) int {
	return persistencetest.Count(s, s.db, table, where...)
}
