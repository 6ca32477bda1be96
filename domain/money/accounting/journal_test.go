package accounting

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
	"castellan/outbound/folder"
)

func files(t *testing.T) *folder.Store {
	t.Helper()
	s := storetest.Value(folder.Open(t.TempDir()))(t)
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
		storetest.Equal(t, entry(Total{Kind: c.kind, Debit: c.debit, Credit: c.credit}), c.want, c)
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
		storetest.Equal(t, (Period{From: c.from, To: c.to}).Days(), c.want, c.from, c.to)
	}
}

func total(n int, asset int64, debit, credit ledger.Kind, sum string) Total {
	return Total{Day: day(n), Asset: asset, Kind: "x", Debit: debit, Credit: credit, Sum: amount.Must(sum).Sum(), Count: 2}
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
	storetest.Fails(t, (journal{Lines: []line{one}}).balanced(), "", "a debit without a credit is balanced")
	other := line{Date: "2026-03-02", Currency: "BTC", Credit: amount.Must("1").Sum()}
	storetest.Fails(t, (journal{Lines: []line{one, other}}).balanced(), "", "the credit of another day balances a debit")
}

type totals struct{ err error }

func (s totals) Totals(_ context.Context, from, to time.Time) ([]Total, error) {
	if from != march.From || to != march.To {
		return nil, errors.New("another period")
	}
	return []Total{total(1, 1, ledger.User, ledger.Treasury, "5")}, s.err
}

// A step without the ledger, the names of assets or a stored file fails; without a delivery the first one is the last.
func TestSteps(t *testing.T) {
	down := errors.New("down")
	s := &Service{Store: totals{}, Files: files(t), Codes: codes,
		Deliver: func(context.Context, string, string, []byte) error { return nil }}
	params := storetest.Value(json.Marshal(march))(t)
	j := job.Job{ID: "j1", Kind: Kind, State: job.Running, Params: params}
	step := func(j job.Job) (job.Job, error) {
		next, _, err := s.Integration().Step(t.Context(), j)
		return next, err
	}
	storetest.Fails(t, storetest.Err(step(job.Job{ID: "j1", Params: []byte("{")})), "")
	s.Store = totals{down}
	storetest.Is(t, storetest.Err(step(j)), down, "without the ledger")
	s.Store, s.Codes = totals{}, func(int64) (string, string, error) { return "", "", down }
	storetest.Is(t, storetest.Err(step(j)), down, "without the names of assets")
	s.Codes = codes
	made := storetest.Value(step(j))(t)
	half := storetest.Value(step(made))(t)
	storetest.Must(t, s.Files.Delete(t.Context(), "accounting/j1.csv"))
	storetest.Fails(t, storetest.Err(step(half)), "", "a missing file was delivered")
	s.Deliver = nil
	storetest.Equal(t, storetest.Value(step(j))(t).State, job.Done, "without a delivery")
}
