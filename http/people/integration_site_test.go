package people_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/stepup"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpintegration "castellan/http/people/integration"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	moneystore "castellan/persistence/money"
)

func TestMain(m *testing.M) { apitest.Main(m, "integration", "standing") }

// integrationMoney is the deposits of users "jane" and "kurt", who have no money.
type integrationMoney struct {
	*apitest.Site
	*testing.T
	db      *persistence.DB
	l       *ledger.Ledger
	service *transaction.Service
	jobs    *apitest.Jobs
}

// post takes messages and sends none.
type post struct{}

func (post) Offers(message.Channel) bool              { return true }
func (post) Deliver(outbox.Message, message.Rendered) {}

func bothMoney(t *testing.T, test func(s integrationMoney)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, store, parameters := t.Context(), moneystore.NewCurrencies(db), kit.NewParameters(db)
		integrationPeople(t, db, "jane", "kurt")
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error {
			if err := currency.Seed(ctx, store); err != nil {
				return err
			}
			return parameter.Seed(ctx, parameters)
		}))
		currencies, live := currency.NewCache(store), parameter.NewCache(parameters)
		storetest.Must(t, currencies.Reload(ctx))
		storetest.Must(t, live.Reload(ctx))
		ring := keyringtest.Ring(t, time.Now)
		book, err := message.NewBook("Castellan", nil)
		storetest.Must(t, err)
		s := integrationMoney{T: t, db: db, jobs: apitest.NewJobs(t, db, ring, time.Now)}
		s.l = &ledger.Ledger{Store: moneystore.NewLedger(db), Commit: db, Now: time.Now,
			Decimals: func(_ context.Context, asset int64) (int, error) { return currencies.Catalog().Decimals(asset) }}
		s.service = &transaction.Service{Ledger: s.l, Users: account.NewUsers(db), Currencies: currencies,
			Parameters: live, Now: time.Now, Store: moneystore.NewTransactions(db),
			Changes: admin.Changes{Commit: db, Now: time.Now}, Jobs: s.jobs.Service,
			Await: func(context.Context, string) (job.Job, error) { return job.Job{State: job.Running}, nil },
			Messenger: &stepup.Messenger{Config: stepup.Config{Lease: time.Minute, Language: "en"}, Book: book, Ring: ring,
				Dispatch: post{}, Now: time.Now},
			MayMove: func(caller, userID string) error { return apitest.MayWrite(caller, userID, resource.Standing) },
			Claims:  kit.NewIntegration(db)}
		s.jobs.Kinds[transaction.UpdateKind] = s.service.Kind()
		s.Site = apitest.Serve(t, edge.Options{}, httpintegration.Deposits{Service: s.service, FinalizedDeposit: 2}).
			Below("/integration/")
		test(s)
		_, err = ledger.Verify(ctx, moneystore.NewLedger(db))
		storetest.Must(t, err)
	})
}

func integrationPeople(t *testing.T, db *persistence.DB, names ...string) {
	t.Helper()
	for i, name := range names {
		u := user.New(name, time.UnixMilli(1_700_000_000_000+int64(i)))
		u.Name, u.Surname, u.Email = name, "Doe", name+"@example.com"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: u}))
	}
}

// asset is the pair of BTC on its own network.
func (s integrationMoney) asset() int64 {
	pair, ok := s.service.Currencies.Catalog().Info(new("BTC"), new("BTC"))
	if !ok {
		s.Fatal("there is no BTC")
	}
	return pair.ID
}

// has checks what a user has.
func (s integrationMoney) has(userID, want string) {
	s.Helper()
	b, err := s.l.Balance(s.Context(), userID, s.asset())
	if want == "0" && fault.CodeOf(err) == fault.RecordNotFound {
		return
	}
	storetest.Must(s, err)
	if b.Posted.String() != want {
		s.Errorf("%s has %s, want %s", userID, b.Posted, want)
	}
}

func (s integrationMoney) count(table string, where ...string) int {
	return count(s.T, s.db, table, where...)
}

func count(t *testing.T, db *persistence.DB, table string, where ...string) int {
	t.Helper()
	q := db.Conn(t.Context()).NewSelect().Table(table)
	for _, w := range where {
		q = q.Where(w)
	}
	n, err := q.Count(t.Context())
	storetest.Must(t, err)
	return int(n)
}

// settle waits until the feed lists every event: on PostgreSQL it holds them back while an
// older transaction of the server is under way, and other tests share the server.
func settle(t *testing.T, db *persistence.DB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got, err := kit.NewIntegration(db).Events(t.Context(), integration.EventQuery{},
			page.Query[integration.Place]{Limit: 1000})
		storetest.Must(t, err)
		if want := count(t, db, "integration_event"); len(got.Records) == want || time.Now().After(deadline) {
			return
		}
	}
}

// events are those of the feed as type, user and data.
func events(t *testing.T, db *persistence.DB) (all []string) {
	t.Helper()
	settle(t, db)
	got, err := kit.NewIntegration(db).Events(t.Context(), integration.EventQuery{},
		page.Query[integration.Place]{Limit: 1000})
	storetest.Must(t, err)
	for _, e := range got.Records {
		data, _ := json.Marshal(e.Data)
		all = append(all, string(e.Type)+" "+e.UserID+" "+string(data))
	}
	return all
}

// at are requests that are sent at the same time, with the answers by their status.
func at(s *apitest.Site, line string, bodies ...string) map[int][]string {
	answers, mu, wg := map[int][]string{}, sync.Mutex{}, sync.WaitGroup{}
	for _, body := range bodies {
		wg.Go(func() {
			status, answer := s.Call(line, body)
			mu.Lock()
			defer mu.Unlock()
			answers[status] = append(answers[status], answer)
		})
	}
	wg.Wait()
	return answers
}

// field is a text of the record of an answer.
func field(t *testing.T, answer, name string) string {
	t.Helper()
	var a struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Data == nil {
		t.Fatalf("no record: %s", answer)
	}
	text, _ := a.Data[name].(string)
	return text
}

// edited is a body in which parts are replaced.
func edited(body string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(body) }

func ledgerAccount(userID string, asset int64) ledger.Account {
	return ledger.Account{Kind: ledger.User, Owner: userID, Asset: asset}
}
