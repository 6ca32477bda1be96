package accounting

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/outbound/folder"
)

func files(t *testing.T) *folder.Store {
	t.Helper()
	s, err := folder.Open(t.TempDir())
	storetest.Must(t, err)
	t.Cleanup(func() { storetest.Must(t, s.Close()) })
	return s
}

func day(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }

var march = Period{From: day(1), To: day(31), Invoice: day(31)}

// codes are those of the assets 1 and 2.
func codes(asset int64) (string, string, error) {
	if asset == 9 {
		return "", "", errors.New("there is no such asset")
	}
	return map[int64]string{1: "BTC", 2: "=EVIL"}[asset], "net", nil
}

// A booking is named after the accounts between which it moves.
func TestEntries(t *testing.T) {
	for _, c := range []struct {
		kind          string
		debit, credit ledger.Kind
		want          string
	}{
		{ledger.KindReversal, ledger.User, ledger.Fee, "reversal"},
		{"x", ledger.User, ledger.Fee, "fee"},
		{"x", ledger.Fee, ledger.User, "fee"},
		{"x", ledger.Adjustment, ledger.User, "adjustment"},
		{"x", ledger.User, ledger.Adjustment, "adjustment"},
		{"x", ledger.Treasury, ledger.User, "deposit"},
		{"x", ledger.User, ledger.Treasury, "withdrawal"},
		{"x", ledger.User, ledger.User, "transfer"},
		{"x", ledger.Treasury, ledger.Suspense, "transfer"},
	} {
		if got := entry(Total{Kind: c.kind, Debit: c.debit, Credit: c.credit}); got != c.want {
			t.Errorf("%+v is a %s", c, got)
		}
	}
}

// The days of a period are those that it touches.
func TestDays(t *testing.T) {
	for _, c := range []struct {
		from, to time.Time
		want     int
	}{
		{day(1), day(1), 0}, {day(1), day(2), 1}, {day(1), day(1).Add(time.Millisecond), 1},
		{day(2).Add(-time.Millisecond), day(2).Add(time.Millisecond), 2}, {day(2), day(1), -1},
	} {
		if got := (Period{From: c.from, To: c.to}).Days(); got != c.want {
			t.Errorf("%s to %s: %d days", c.from, c.to, got)
		}
	}
}

// A period has 1 to 366 days, and its times can be written as JSON.
func TestPeriodIsBounded(t *testing.T) {
	far := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		p    Period
		want string
	}{
		{Period{From: day(1), To: day(1)}, "endDate"},
		{Period{From: day(1), To: day(1).AddDate(0, 0, 367)}, "endDate"},
		{Period{From: far.AddDate(0, 0, -1), To: far}, "endDate"},
		{Period{From: day(1), To: day(2), Invoice: far}, "invoiceDate"},
	} {
		_, err := new(Service).Begin(t.Context(), audit.By{}, c.p)
		storetest.WantsFields(t, err, c.want)
	}
}

func total(n int, asset int64, debit, credit ledger.Kind, sum string) Total {
	return Total{Day: day(n), Asset: asset, Kind: "x", Debit: debit, Credit: credit, Sum: amount.Must(sum).Sum(), Count: 2}
}

// Each total becomes a debit and a credit, and equal lines are added up.
func TestJournal(t *testing.T) {
	j, err := newJournal(march, []Total{total(2, 1, ledger.User, ledger.Treasury, "5"),
		total(1, 2, ledger.Treasury, ledger.User, "1.5"), total(2, 1, ledger.User, ledger.Treasury, "2")}, codes)
	storetest.Must(t, err)
	const want = `"date","currency","network","entry","account","debit","credit","count","invoiceDate"` + "\n" +
		`"2026-03-01","'=EVIL","net","deposit","treasury","1.5","0","2","2026-03-31"` + "\n" +
		`"2026-03-01","'=EVIL","net","deposit","user","0","1.5","2","2026-03-31"` + "\n" +
		`"2026-03-02","BTC","net","withdrawal","treasury","0","7","4","2026-03-31"` + "\n" +
		`"2026-03-02","BTC","net","withdrawal","user","7","0","4","2026-03-31"` + "\n"
	if got := string(j.csv()); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	var read struct {
		StartDate, EndDate, InvoiceDate string
		Lines                           []struct{ Debit, Credit amount.Amount }
	}
	storetest.Must(t, json.Unmarshal(j.json(), &read))
	if read.StartDate != "2026-03-01T00:00:00Z" || read.EndDate != "2026-03-31T00:00:00Z" ||
		read.InvoiceDate != "2026-03-31" || len(read.Lines) != 4 || read.Lines[3].Debit != amount.Must("7") {
		t.Errorf("%s", j.json())
	}

}

// A journal that cannot be made exactly is an error.
func TestJournalCannotBeMade(t *testing.T) {
	if j, err := newJournal(march, []Total{total(1, 9, ledger.User, ledger.Fee, "1")}, codes); err == nil {
		t.Errorf("an unknown asset: %+v", j)
	}
	most := total(1, 1, ledger.User, ledger.User, "999999999999999999")
	j, err := newJournal(march, []Total{most, most}, codes)
	if err != nil || len(j.Lines) != 1 || j.Lines[0].Debit.String() != "1999999999999999998" {
		t.Errorf("a sum beyond an amount: %+v, %v", j, err)
	}
	one := line{Date: "2026-03-01", Currency: "BTC", Debit: amount.Must("1").Sum()}
	if err := (journal{Lines: []line{one}}).balanced(); err == nil {
		t.Error("a debit without a credit is balanced")
	}
	other := line{Date: "2026-03-02", Currency: "BTC", Credit: amount.Must("1").Sum()}
	if err := (journal{Lines: []line{one, other}}).balanced(); err == nil {
		t.Error("the credit of another day balances a debit")
	}
}

type totals struct{ err error }

func (s totals) Totals(_ context.Context, from, to time.Time) ([]Total, error) {
	if from != march.From || to != march.To {
		return nil, errors.New("another period")
	}
	return []Total{total(1, 1, ledger.User, ledger.Treasury, "5")}, s.err
}

// A job stores both files, then delivers one after the other, and repeats a step whose delivery failed.
func TestSteps(t *testing.T) {
	down := errors.New("down")
	var posted []string
	var refuse error
	s := &Service{Store: totals{}, Files: files(t), Codes: codes,
		Deliver: func(_ context.Context, id, mediaType string, body []byte) error {
			posted = append(posted, id+" "+mediaType+" "+string(body[:1]))
			return refuse
		}}
	params, err := json.Marshal(march)
	storetest.Must(t, err)
	j := job.Job{ID: "j1", Kind: Kind, State: job.Running, Params: params}
	step := func(j job.Job) (job.Job, error) {
		next, _, err := s.Integration().Step(t.Context(), j)
		return next, err
	}

	if _, err := step(job.Job{ID: "j1", Params: []byte("{")}); err == nil {
		t.Error("a job without parameters was run")
	}
	s.Store = totals{down}
	if _, err := step(j); !errors.Is(err, down) {
		t.Errorf("without the ledger: %v", err)
	}
	s.Store, s.Codes = totals{}, func(int64) (string, string, error) { return "", "", down }
	if _, err := step(j); !errors.Is(err, down) {
		t.Errorf("without the names of assets: %v", err)
	}
	s.Codes = codes
	made, err := step(j)
	if err != nil || made.State == job.Done || made.Total != 2 || made.Done != 2 || len(posted) != 0 {
		t.Fatalf("%+v, %v, posted %q", made, err, posted)
	}
	refuse = down
	_, err = step(made)
	storetest.Wants(t, err, fault.Unavailable)
	refuse, posted = nil, nil
	half, err := step(made)
	storetest.Must(t, err)
	done, err := step(half)
	storetest.Must(t, err)
	if half.State == job.Done || done.State != job.Done || done.Result != "accounting/j1.json accounting/j1.csv" ||
		strings.Join(posted, "\n") != "accounting/j1.json application/json {\naccounting/j1.csv text/csv; charset=utf-8 \"" {
		t.Errorf("%+v, %+v, posted %q", half, done, posted)
	}
	storetest.Must(t, s.Files.Delete(t.Context(), "accounting/j1.csv"))
	if _, err := step(half); err == nil {
		t.Error("a missing file was delivered")
	}
	s.Deliver = nil
	if done, err := step(j); err != nil || done.State != job.Done {
		t.Errorf("without a delivery: %+v, %v", done, err)
	}
}

// one is a store with one job.
type one struct {
	job.Store
	job job.Job
	err error
}

func (s one) Get(context.Context, string) (job.Job, error) { return s.job, s.err }

// A journal is available when its job has made it, in its formats.
func TestReadJournal(t *testing.T) {
	s := &Service{Files: files(t)}
	storetest.Must(t, s.Files.Put(t.Context(), "accounting/j1.json", []byte("{}")))
	made := job.Job{ID: "j1", Kind: Kind, State: job.Done, Result: "made"}
	for _, c := range []struct {
		name, format string
		one          one
		want         fault.Code
	}{
		{"the journal", JSON, one{job: made}, ""},
		{"a format without a file", CSV, one{job: made}, fault.RecordNotFound},
		{"an unknown format", "xml", one{job: made}, fault.RecordNotFound},
		{"an unknown job", JSON, one{err: fault.New(fault.RecordNotFound, "no job")}, fault.RecordNotFound},
		{"a job of another kind", JSON, one{job: job.Job{ID: "j1", Kind: "x", State: job.Done, Result: "made"}},
			fault.RecordNotFound},
		{"a running job", JSON, one{job: job.Job{ID: "j1", Kind: Kind, State: job.Running}}, fault.InvalidState},
		{"a failed job", JSON, one{job: job.Job{ID: "j1", Kind: Kind, State: job.Failed}}, fault.RecordNotFound},
		{"no database", JSON, one{err: errors.New("down")}, fault.Internal},
	} {
		s.Jobs = &job.Service{Store: c.one}
		content, mediaType, err := s.Journal(t.Context(), "j1", c.format)
		storetest.Wants(t, err, c.want)
		if c.want == "" && (string(content) != "{}" || mediaType != "application/json") {
			t.Errorf("%s: %q, %s", c.name, content, mediaType)
		}
	}
}
