package money_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/webhook"
	"castellan/domain/money/accounting"
	"castellan/domain/money/ledger"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpaccounting "castellan/http/money/accounting"
	"castellan/outbound/courier"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

type service struct {
	*apitest.Site
	jobs  *apitest.Jobs
	files blob.Store
	now   time.Time

	mu     sync.Mutex
	posted map[string]string // by the id of the message
	refuse int               // so many posts
}

// ServeHTTP is the other side: it takes what is signed.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	secrets, _ := webhook.ParseSecrets(secret)
	var stamp int64
	_, _ = fmt.Sscan(r.Header.Get("webhook-timestamp"), &stamp)
	want := http.Header{}
	secrets.Sign(want, r.Header.Get("webhook-id"), time.Unix(stamp, 0), body)
	fresh := time.Since(time.Unix(stamp, 0)) < time.Minute
	if want.Get("webhook-signature") != r.Header.Get("webhook-signature") || !fresh {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if s.refuse > 0 {
		s.refuse--
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	s.posted[r.Header.Get("webhook-id")] = string(body)
}

func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		files := persistencetest.Files(t)
		s := &service{files: files, now: time.Now(), posted: map[string]string{}}
		other := httptest.NewServer(s)
		t.Cleanup(other.Close)
		to := storetest.Value(courier.New(courier.Config{URL: other.URL, Secret: secret}))(t)
		clock := func() time.Time { return s.now }
		ring := keyringtest.Ring(t, time.Now)
		s.jobs = apitest.NewJobs(t, db, ring, clock)
		journals := &accounting.Service{Store: money.NewAccounting(db), Files: files, Jobs: s.jobs.Service,
			Changes: admin.Changes{Commit: db, Now: clock}, Deliver: to.Post,
			Codes: func(asset int64) (string, string, error) { return []string{"", "BTC", "=ETH"}[asset], "NET", nil }}
		s.jobs.Kinds[accounting.Kind] = journals.Integration()
		book(t, db)
		s.Site = apitest.Serve(t, edge.Options{Idempotency: &auth.Idempotent{}}, httpaccounting.Group{Service: journals})
		test(t, s)
	})
}

// book makes movements of two assets on the last days of 2025 and the first of 2026.
func book(t *testing.T, db *persistence.DB) {
	t.Helper()
	l := &ledger.Ledger{Store: money.NewLedger(db), Commit: db, Now: time.Now,
		Decimals: func(context.Context, int64) (int, error) { return 18, nil }}
	house := func(k ledger.Kind, asset int64) ledger.Account { return ledger.Account{Kind: k, Asset: asset} }
	user := func(asset int64) ledger.Account { return ledger.Account{Kind: ledger.User, Owner: "u1", Asset: asset} }
	for i, m := range []struct {
		at            string
		kind          string
		debit, credit ledger.Account
		sum           string
	}{
		{"2025-12-31T23:59:59.999Z", "deposit", house(ledger.Treasury, 1), user(1), "1000"}, // the day before
		{"2026-01-01T00:00:00.000Z", "deposit", house(ledger.Treasury, 1), user(1), "0.100000000000000001"},
		{"2026-01-01T12:00:00.000Z", "deposit", house(ledger.Treasury, 1), user(1), "0.999999999999999999"},
		{"2026-01-01T13:00:00.000Z", "withdrawal", user(1), house(ledger.Treasury, 1), "0.5"},
		{"2026-01-01T13:00:00.001Z", "fee", user(1), house(ledger.Fee, 1), "0.01"},
		{"2026-01-02T23:59:59.999Z", "adjust", house(ledger.Adjustment, 2), user(2), "7"},
		{"2026-01-03T00:00:00.000Z", "deposit", house(ledger.Treasury, 2), user(2), "5"}, // the day after
	} {
		at, err := time.Parse(time.RFC3339Nano, m.at)
		storetest.Must(t, err)
		transfer := ledger.New(at, m.kind, fmt.Sprint("ref", i), m.debit, m.credit, amount.Must(m.sum))
		_, err = l.Do(t.Context(), audit.By{UserID: "admin"}, ledger.Movement{Transfers: []ledger.Transfer{transfer}})
		storetest.Must(t, err)
	}
}

const begin = "POST /integration/begin-accounting-integration"

const period = `{"startDate":"2026-01-01","endDate":"2026-01-02","invoiceDate":"2026-01-05"}`

func (s *service) begin(t *testing.T, body string) (id string, days int) {
	t.Helper()
	status, answer := s.Call(begin, body)
	var out struct {
		Data struct {
			Accepted bool
			ID       string
			Count    int
		}
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil || status != 200 || !out.Data.Accepted {
		t.Errorf("%s: %d %s", body, status, answer)
	}
	return out.Data.ID, out.Data.Count
}

const table = `"date","currency","network","entry","account","debit","credit","count","invoiceDate"
"2026-01-01","BTC","NET","deposit","treasury","1.1","0","2","2026-01-05"
"2026-01-01","BTC","NET","deposit","user","0","1.1","2","2026-01-05"
"2026-01-01","BTC","NET","fee","fee","0","0.01","1","2026-01-05"
"2026-01-01","BTC","NET","fee","user","0.01","0","1","2026-01-05"
"2026-01-01","BTC","NET","withdrawal","treasury","0","0.5","1","2026-01-05"
"2026-01-01","BTC","NET","withdrawal","user","0.5","0","1","2026-01-05"
"2026-01-02","'=ETH","NET","adjustment","adjustment","7","0","1","2026-01-05"
"2026-01-02","'=ETH","NET","adjustment","user","0","7","1","2026-01-05"
`

// REQ-ADM-01, D-ADM-01: 64 requests for one period get one job; its files are balanced,
// delivered with a signature, and the same when a step is done again.
func TestJournal(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		ids := map[string]bool{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				id, days := s.begin(t, period)
				mu.Lock()
				defer mu.Unlock()
				if ids[id] = true; days != 2 {
					t.Errorf("%d days", days)
				}
			})
		}
		wg.Wait()
		if len(ids) != 1 {
			t.Fatalf("%d jobs", len(ids))
		}
		id, _ := s.begin(t, period)
		s.refuse = 2
		j, _ := s.jobs.Finish(t, id, func(until time.Time) { s.now = until })
		want := "accounting/" + id
		if j.State != job.Done || j.Result != want+".json "+want+".csv" || j.Done != 8 {
			t.Errorf("%+v", j)
		}
		kept := func(ext string) string {
			content := storetest.Value(blob.Read(t.Context(), s.files, want+ext, 1<<20))(t)
			return string(content)
		}
		if kept(".csv") != table || s.posted[want+".csv"] != table || s.posted[want+".json"] != kept(".json") {
			t.Errorf("%s\nposted %v", kept(".csv"), s.posted)
		}
		var out struct {
			InvoiceDate string
			Lines       []struct{ Debit, Credit json.Number }
		}
		decoder := json.NewDecoder(bytes.NewReader([]byte(kept(".json"))))
		decoder.UseNumber()
		if err := decoder.Decode(&out); err != nil || len(out.Lines) != 8 || out.InvoiceDate != "2026-01-05" ||
			out.Lines[0].Debit != "1.1" {
			t.Errorf("%v, %+v", err, out)
		}

		// The first step once more, as after a kill.
		first := kept(".json") + kept(".csv")
		params := `{"From":"2026-01-01T00:00:00Z","To":"2026-01-03T00:00:00Z","Invoice":"2026-01-05T00:00:00Z"}`
		_, _, err := s.jobs.Kinds[accounting.Kind].Step(t.Context(), job.Job{ID: id, Params: []byte(params)})
		if storetest.Must(t, err); kept(".json")+kept(".csv") != first {
			t.Error("a second run makes other files")
		}

		// A period without a movement, and one that no receiver accepts.
		empty, _ := s.begin(t, strings.ReplaceAll(period, "2026", "2027"))
		s.jobs.Finish(t, empty, func(until time.Time) { s.now = until })
		rows, err := csv.NewReader(strings.NewReader(s.posted["accounting/"+empty+".csv"])).ReadAll()
		if err != nil || len(rows) != 1 {
			t.Errorf("%v, %v", rows, err)
		}
		s.refuse = 100
		lost, _ := s.begin(t, strings.ReplaceAll(period, "2026", "2028"))
		j, _ = s.jobs.Finish(t, lost, func(until time.Time) { s.now = until })
		if j.State != job.Failed || !strings.Contains(j.Error, "the server answered 502") {
			t.Errorf("%s %s", j.State, j.Error)
		}
	})
}

func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		for body, want := range map[string]string{
			strings.Replace(period, "2026-01-02", "2025-12-31", 1): "INVALID_FIELD startDate",
			strings.Replace(period, "2026-01-02", "2027-01-02", 1): "INVALID_FIELD endDate",
			latest("2026-01-01", "2026-01-02", "253402300800000"):  "INVALID_FIELD invoiceDate",
			latest("9999-12-01", "9999-12-31", `"2026-01-05"`):     "INVALID_FIELD endDate",
		} {
			s.Wants(begin, body, 400, want)
		}
		if _, days := s.begin(t, strings.Replace(period, "2026-01-02", "2027-01-01", 1)); days != 366 {
			t.Errorf("%d days", days)
		}
	})
}

// Only the configured address is called; errors name none.
func TestCourier(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("a redirect was followed")
	}))
	defer elsewhere.Close()
	moved := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer moved.Close()
	for _, url := range []string{moved.URL, "http://127.0.0.1:1/secret-path"} {
		c := storetest.Value(courier.New(courier.Config{URL: url, Secret: secret}))(t)
		if err := c.Post(t.Context(), "id", "text/csv", []byte("x")); err == nil || strings.Contains(err.Error(), "127.0") {
			t.Errorf("%v", err)
		}
	}
	for _, bad := range []courier.Config{{}, {Secret: "x"}, {Secret: secret, CAFile: "/nowhere"}} {
		if _, err := courier.New(bad); err == nil {
			t.Errorf("%+v: %v", bad, errors.New("was taken"))
		}
	}
}

// latest is a request whose dates JSON may not be able to write.
func latest(from, to, invoice string) string {
	return fmt.Sprintf(`{"startDate":%q,"endDate":%q,"invoiceDate":%s}`, from, to, invoice)
}
