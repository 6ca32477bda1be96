// Package accounting makes the journal for the operator's bookkeeping (section 4.10 of the interface, D-ADM-01). A
// journal lists the bookings of a period, by day and currency, as double entries that sum to zero.
//
// The one idea: a journal depends on the ledger alone. The same period gives the same bytes, so a repeated step of the
// job does no harm.
//
// Start reading at Service.Begin, then journal.go.
package accounting

import (
	"context"
	"errors"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/money/ledger"
)

// Kind is the kind of job that makes and delivers a journal.
const Kind = "accounting-integration"

// Area is the storage area of journals.
const Area = "accounting"

// MaxDays is the longest period of one journal, in days.
const MaxDays = 366

// Total is the sum booked on one day for one asset between two kinds of accounts.
type Total struct {
	Day           time.Time // beginning of the day, in UTC
	Asset         int64
	Kind          string // kind of the transfers
	Debit, Credit ledger.Kind
	Sum           amount.Sum
	Count         int64
}

// Store reads the ledger for a journal. It joins the transaction that its context
// carries.
type Store interface {
	// Totals lists the totals of the transfers booked in [from, to), by day, asset, kind and accounts.
	Totals(ctx context.Context, from, to time.Time) ([]Total, error)
}

// Service makes journals. It is safe for concurrent use.
type Service struct {
	Store Store
	Files blob.Store
	// Codes returns the currency and the network of an asset.
	Codes   func(asset int64) (currency, network string, err error)
	Jobs    *job.Service
	Changes admin.Changes // without a topic: no node caches journals
	// Deliver posts a file; nil: journals are stored and not delivered.
	Deliver func(ctx context.Context, id, mediaType string, body []byte) error
}

// Period is the period of a journal. To is exclusive.
type Period struct {
	From, To, Invoice time.Time
}

var lastDay = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Days returns the number of UTC days that the period touches.
func (p Period) Days() int {
	const day = 24 * time.Hour
	return int(p.To.Add(day-1).Truncate(day).Sub(p.From.Truncate(day)) / day)
}

// Begin starts the job for a period, or returns the existing one: each period has one job (D-ADM-01). INVALID_FIELD.
func (s *Service) Begin(ctx context.Context, by audit.By, p Period) (j job.Job, err error) {
	// JSON cannot represent a time after the year 9999, and a client may send one as a number.
	const late = "must be before 9999-12-31"
	switch n := p.Days(); {
	case n < 1 || n > MaxDays:
		return j, fault.Invalid("endDate", "must be within 366 days of startDate")
	case p.To.After(lastDay):
		return j, fault.Invalid("endDate", late)
	case p.Invoice.After(lastDay):
		return j, fault.Invalid("invoiceDate", late)
	}
	err = s.Changes.Do(ctx, by, "ACCOUNTING_BEGIN", func(ctx context.Context) (done admin.Done, err error) {
		var started bool
		key := p.From.UTC().Format(time.RFC3339Nano) + "/" + p.To.UTC().Format(time.RFC3339Nano)
		j, started, err = s.Jobs.Start(ctx, by, job.Request{Kind: Kind, Key: key, Params: p})
		if started {
			done = admin.Done{Target: j.ID, Detail: key}
		}
		return done, err
	})
	return j, err
}

// The steps of the job, as named by its cursor.
const (
	deliverJSON = "deliver json"
	deliverCSV  = "deliver csv"
)

func (s *Service) Integration() job.Kind { return job.Kind{Name: Kind, Step: s.step, About: days} }

// days returns the first and the last UTC day of the journal of a job.
func days(j job.Job) string {
	var p Period
	if j.Into(&p) != nil {
		return ""
	}
	first, last := p.From.UTC().Format(time.DateOnly), p.To.Add(-1).UTC().Format(time.DateOnly)
	if first == last {
		return first
	}
	return first + " – " + last
}

// step makes the files, or delivers one of them. The keys of the files are derived from the job, so that a repeated
// step replaces them.
func (s *Service) step(ctx context.Context, j job.Job) (job.Job, []commit.Write, error) {
	var p Period
	if err := j.Into(&p); err != nil {
		return j, nil, err
	}
	switch j.Cursor {
	case "":
		return s.make(ctx, j, p)
	case deliverJSON:
		j.Cursor = deliverCSV
		return j, nil, s.deliver(ctx, j, keyOf(j, "."+JSON), mediaTypes[JSON])
	default:
		return j.Finish(j.Result), nil, s.deliver(ctx, j, keyOf(j, "."+CSV), mediaTypes[CSV])
	}
}

// The formats of a journal.
const (
	JSON = "json"
	CSV  = "csv"
)

// mediaTypes are the media types of the formats.
var mediaTypes = map[string]string{JSON: "application/json", CSV: "text/csv; charset=utf-8"}

var (
	errNoJournal = fault.New(fault.RecordNotFound, "there is no such journal")
	errNotMade   = fault.New(fault.InvalidState, "the journal is not ready yet")
)

// Journal returns the file of a job in a format, with its media type, even if the journal was not delivered.
//
// Errors: RECORD_NOT_FOUND for a job of another kind, a failed or purged job, and a missing file; INVALID_STATE while
// the job is not done.
func (s *Service) Journal(ctx context.Context, jobID, format string) (content []byte, mediaType string, err error) {
	j, err := s.Jobs.Store.Get(ctx, jobID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound || err == nil && j.Kind != Kind:
		return nil, "", errNoJournal
	case err != nil:
		return nil, "", err
	case !j.State.Over():
		return nil, "", errNotMade
	case j.Result == "" || mediaTypes[format] == "":
		return nil, "", errNoJournal
	}
	content, err = blob.Read(ctx, s.Files, keyOf(j, "."+format), maxFile)
	if errors.Is(err, blob.ErrNotFound) {
		err = errNoJournal
	}
	return content, mediaTypes[format], err
}

// keyOf returns the key of a file of a job.
func keyOf(j job.Job, ext string) string { return Area + "/" + j.ID + ext }

func (s *Service) make(ctx context.Context, j job.Job, p Period) (job.Job, []commit.Write, error) {
	totals, err := s.Store.Totals(ctx, p.From, p.To)
	if err != nil {
		return j, nil, err
	}
	journal, err := newJournal(p, totals, s.Codes)
	if err != nil {
		return j, nil, err
	}
	for ext, content := range map[string][]byte{".json": journal.json(), ".csv": journal.csv()} {
		if err := s.Files.Put(ctx, keyOf(j, ext), content); err != nil {
			return j, nil, err
		}
	}
	j.Total, j.Done = int64(len(journal.Lines)), int64(len(journal.Lines))
	j.Result = keyOf(j, ".json") + " " + keyOf(j, ".csv")
	if s.Deliver == nil {
		return j.Finish(j.Result), nil, nil
	}
	j.Cursor = deliverJSON
	return j, nil, nil
}

// maxFile is the maximum size of a journal, in bytes: MaxDays with a thousand lines a day.
const maxFile = 256 << 20

func (s *Service) deliver(ctx context.Context, j job.Job, key, mediaType string) error {
	if s.Deliver == nil { // delivery was switched off
		return nil
	}
	content, err := blob.Read(ctx, s.Files, key, maxFile)
	if err != nil {
		return err
	}
	if err := s.Deliver(ctx, key, mediaType, content); err != nil {
		return fault.New(fault.Unavailable, "the journal could not be delivered: %v", err)
	}
	return nil
}
