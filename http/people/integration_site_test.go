package people_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/accounting"
	"castellan/domain/money/ledger"
	"castellan/domain/money/transaction"
	"castellan/domain/people/corporate"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/stepup"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpintegration "castellan/http/people/integration"
	"castellan/http/wire"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	moneystore "castellan/persistence/money"
	peoplestore "castellan/persistence/people"
	"castellan/persistence/persistencetest"
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

var numbers = wire.Numbers{FinalizedDeposit: 2, HotWallet: 6, TimeOut: 7}

func bothMoney(t *testing.T, test func(s integrationMoney)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		house := persistencetest.MoneyIn(t, db, time.Now)
		integrationPeople(t, db, "jane", "kurt")
		live := seeded(t, db)
		ring := keyringtest.Ring(t, time.Now)
		book := storetest.Value(message.NewBook("Castellan", nil))(t)
		s := integrationMoney{T: t, db: db, jobs: apitest.NewJobs(t, db, ring, time.Now)}
		s.l = house.Ledger
		s.service = &transaction.Service{Ledger: s.l, Users: account.NewUsers(db), Currencies: house.Currencies,
			Parameters: live, Now: time.Now, Store: moneystore.NewTransactions(db),
			Changes: admin.Changes{Commit: db, Now: time.Now}, Jobs: s.jobs.Service,
			Await: func(context.Context, string) (job.Job, error) { return job.Job{State: job.Running}, nil },
			Messenger: &stepup.Messenger{Config: stepup.Config{Lease: time.Minute, Language: "en"}, Book: book, Ring: ring,
				Dispatch: post{}, Now: time.Now},
			MayMove: func(caller, userID string) error { return apitest.MayWrite(caller, userID, resource.Standing) },
			Claims:  kit.NewIntegration(db)}
		s.jobs.Kinds[transaction.UpdateKind] = s.service.Kind()
		s.Site = apitest.Serve(t, edge.Options{}, httpintegration.Deposits{Service: s.service, Numbers: numbers}).
			Below("/integration/")
		test(s)
	})
}

// seeded are the parameters of a new installation, changed as asked.
func seeded(t *testing.T, db *persistence.DB, edits ...func(context.Context, parameter.Store) error) *parameter.Cache {
	t.Helper()
	store := kit.NewParameters(db)
	storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
		err := parameter.Seed(ctx, store)
		for _, edit := range edits {
			err = errors.Join(err, edit(ctx, store))
		}
		return err
	}))
	live := parameter.NewCache(store)
	storetest.Must(t, live.Reload(t.Context()))
	return live
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
	storetest.Equal(s, b.Posted.String(), want, userID)
}

func (s integrationMoney) count(table string, where ...string) int {
	return persistencetest.Count(s.T, s.db, table, where...)
}

// settle waits until the feed lists every event: on PostgreSQL it holds them back while an
// older transaction of the server is under way, and other tests share the server.
func settle(t *testing.T, db *persistence.DB) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := storetest.Value(kit.NewIntegration(db).Events(t.Context(), integration.EventQuery{},
			page.Query[integration.Place]{Limit: 1000}))(t)
		if want := persistencetest.Count(t, db, "integration_event"); len(got.Records) == want || time.Now().After(deadline) {
			return
		}
	}
}

// events are those of the feed as type, user and data.
func events(t *testing.T, db *persistence.DB) (all []string) {
	t.Helper()
	settle(t, db)
	got := storetest.Value(kit.NewIntegration(db).Events(t.Context(), integration.EventQuery{},
		page.Query[integration.Place]{Limit: 1000}))(t)
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

// D-INT-06: the journal of a job is downloaded as it was made, also where its delivery fails.
func TestJournals(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		files := persistencetest.Files(t)
		now := time.Now()
		jobs := apitest.NewJobs(t, db, keyringtest.Ring(t, time.Now), func() time.Time { return now })
		pause := func(until time.Time) { now = until }
		journals := &accounting.Service{Store: moneystore.NewAccounting(db), Files: files, Jobs: jobs.Service,
			Changes: admin.Changes{Commit: db, Now: time.Now},
			Codes:   func(int64) (string, string, error) { return "BTC", "BTC", nil }}
		jobs.Kinds[accounting.Kind] = journals.Integration()
		jobs.Kinds["other"] = job.Kind{Name: "other", Step: func(_ context.Context, j job.Job) (job.Job, []commit.Write,
			error) {
			return j.Finish("accounting/x.json"), nil, nil
		}}
		s := apitest.Serve(t, edge.Options{}, httpintegration.Accounting{Service: journals}).
			Below("/integration/accounting/")
		begin := func(day int) string {
			t.Helper()
			from := time.Date(2026, 10, day, 0, 0, 0, 0, time.UTC)
			j, err := journals.Begin(t.Context(), audit.Operator, accounting.Period{From: from, To: from.AddDate(0, 0, 1),
				Invoice: from})
			storetest.Must(t, err)
			return j.ID
		}
		id := begin(1)
		s.Wants("GET "+id, "", 409, "INVALID_STATE")
		jobs.Finish(t, id, pause)
		for query, want := range map[string][2]string{"": {"application/json", `"startDate": "2026-10-01T00:00:00Z"`},
			"?format=json": {"application/json", `"lines": []`},
			"?format=csv":  {"text/csv; charset=utf-8", `"date","currency","network",`}} {
			res, got := s.Send("GET "+id+query, "")
			if res.StatusCode != 200 || res.Header.Get("Content-Type") != want[0] || !strings.Contains(got, want[1]) {
				t.Errorf("%s: %d %s %s", query, res.StatusCode, res.Header.Get("Content-Type"), got)
			}
		}
		s.Wants("GET "+id+"?format=pdf", "", 400, "INVALID_FIELD format")
		storetest.Must(t, files.Delete(t.Context(), "accounting/"+id+".csv"))
		s.Wants("GET "+id+"?format=csv", "", 404, "RECORD_NOT_FOUND")
		s.Wants("GET nothing", "", 404, "RECORD_NOT_FOUND")
		other, _, err := jobs.Start(t.Context(), audit.Operator, job.Request{Kind: "other"})
		storetest.Must(t, err)
		jobs.Finish(t, other.ID, pause)
		s.Wants("GET "+other.ID, "", 404, "RECORD_NOT_FOUND")

		journals.Deliver = func(context.Context, string, string, []byte) error {
			return fault.New(fault.Unavailable, "away")
		}
		undelivered := begin(2)
		if j, _ := jobs.Finish(t, undelivered, pause); j.State != job.Failed {
			t.Fatalf("the job is %s", j.State)
		}
		if status, got := s.Call("GET "+undelivered, ""); status != 200 || !strings.Contains(got, "2026-10-02T") {
			t.Errorf("%d %s", status, got)
		}
	})
}

// D-INT-06: an application is added once for its external id, and its status is set.
func TestIntegrationApplications(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := peoplestore.NewCorporate(db)
		service := &corporate.Service{Store: store, Users: account.NewUsers(db), Claims: kit.NewIntegration(db),
			Changes: admin.Changes{Commit: db, Now: time.Now, Lock: store.Lock}}
		s := apitest.Serve(t, edge.Options{}, httpintegration.Applications{Service: service}).Below("/integration/")
		const add, acme = "POST corporate-applications", `{"externalId":"a1","companyName":"Acme A.Ş.","taxNumber":"77"}`
		same := at(s, add, slices.Repeat([]string{acme}, 8)...)
		if slices.Sort(same[200]); len(same) != 1 || len(slices.Compact(same[200])) != 1 {
			t.Fatalf("answers %v", same)
		}
		first := same[200][0]
		id := field(t, first, "id")
		want := `{"data":{"id":"` + id + `","externalId":"a1","companyName":"Acme A.Ş.","taxNumber":"77",` +
			`"status":"PENDING",` +
			`"createdAt":"`
		if !strings.HasPrefix(first, want) {
			t.Errorf("%s, want %s", first, want)
		}
		approved := strings.Replace(first, "PENDING", "APPROVED", 1)
		for range 2 {
			s.Wants("PATCH corporate-applications/"+id, `{"status":"APPROVED"}`, 200, approved)
		}
		s.Wants(add, acme, 200, approved)
		for body, want := range map[string]string{
			strings.Replace(acme, "77", "78", 1):                    "409 INVALID_STATE",
			strings.Replace(acme, "}", `,"status":"APPROVED"}`, 1):  "409 INVALID_STATE",
			strings.Replace(acme, "a1", strings.Repeat("ş", 65), 1): "400 INVALID_FIELD externalId",
		} {
			s.Gets(add, body, want)
		}
		s.Wants("PATCH corporate-applications/x", `{"status":"A"}`, 400, "INVALID_FIELD id")
		s.Wants("PATCH corporate-applications/99", `{"status":"A"}`, 404, "RECORD_NOT_FOUND")
		storetest.Equal(t, persistencetest.Count(t, db, "corporate_application"), 1, "applications")
		for action, detail := range map[string]string{corporate.ActionAdd: "PENDING",
			corporate.ActionStatus: "PENDING -> APPROVED"} {
			n := persistencetest.Count(t, db, "audit", "action = '"+action+"'", "target = '"+id+"'", "detail = '"+detail+"'")
			storetest.Equal(t, n, 1, "audit rows", action)
		}
		storetest.Equal(t, persistencetest.Count(t, db, "audit"), 2, "audit rows")
	})
}
