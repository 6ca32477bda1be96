package people_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/accounting"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpintegration "castellan/http/people/integration"
	"castellan/outbound/folder"
	"castellan/persistence"
	moneystore "castellan/persistence/money"
)

// D-INT-06: the journal of a job is downloaded as it was made, also where its delivery fails.
func TestJournals(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		files, err := folder.Open(t.TempDir())
		storetest.Must(t, err)
		t.Cleanup(func() { storetest.Must(t, files.Close()) })
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
