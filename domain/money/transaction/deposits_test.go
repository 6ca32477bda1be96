package transaction_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// till is the service of deposits over a desk with the user u.
type till struct {
	*transaction.Service
	*desk
	jobs job.Store
	told int  // messages to users
	run  bool // whether a job is over when it is awaited
}

var clerk = audit.By{UserID: "clerk", IP: "ip"}

func newTill(t *testing.T) *till {
	t.Helper()
	return newTillIn(t, persistencetest.SQLite(t))
}

func newTillIn(t *testing.T, db *persistence.DB) *till {
	t.Helper()
	d, s := newCounterIn(t, db)
	l := &till{Service: s, desk: d, jobs: kit.NewJobs(d.m.DB), run: true}
	s.Claims, s.Messenger = kit.NewIntegration(d.m.DB), l
	s.Changes = admin.Changes{Commit: d.m.DB, Now: d.now}
	s.Jobs = &job.Service{Store: l.jobs, Changes: s.Changes, Seal: func(plain, _ []byte) []byte { return plain }}
	s.MayMove = func(caller, userID string) error { return nil }
	s.Await = func(ctx context.Context, id string) (j job.Job, err error) {
		if j, err = l.jobs.Get(ctx, id); err != nil || !l.run {
			return j, err
		}
		for err == nil && !j.State.Over() {
			j, _, err = s.Kind().Step(ctx, j)
		}
		return j, err
	}
	return l
}

func (l *till) Notify(challenge.Account, string, string, message.Values, string, ...challenge.Name) []commit.Write {
	l.told++
	return nil
}

func report(id string, change func(*transaction.Report)) transaction.Report {
	r := transaction.Report{ExternalID: id, UserID: "u", CurrencyCode: "btc", Network: "BTC", Amount: amount.Must("2"),
		TxID: "tx-" + id, FromAddress: "from"}
	change(&r)
	return r
}

func plain(*transaction.Report) {}

func informed(r *transaction.Report) { r.SenderInfo = `{"b": 1, "a": "<x>"}` }

// The limits of a report are exact.
func TestLongestReport(t *testing.T) {
	l := newTill(t)
	sent := func(id string, size int) error {
		_, err := l.Report(t.Context(), clerk, report(id, func(r *transaction.Report) {
			r.SenderInfo = `{"a":"` + strings.Repeat("x", size-len(`{"a":""}`)) + `"}`
		}))
		return err
	}
	storetest.Must(t, sent(strings.Repeat("x", 128), 8192))
	storetest.Wants(t, sent(strings.Repeat("y", 129), 8192), fault.InvalidField)
	storetest.Wants(t, sent("z", 8193), fault.InvalidField)
}

// A job moves one deposit in half a second. A deposit that has moved already counts as done, and a failed database
// repeats the step.
func TestStepsOfUpdate(t *testing.T) {
	l := newTill(t)
	l.run = false
	var ids []string
	for _, id := range []string{"a", "b"} {
		d := storetest.Value(l.Report(t.Context(), clerk, report(id, informed)))(t)
		ids = append(ids, d.ID)
	}
	got, err := l.UpdateStatus(t.Context(), clerk, transaction.Update{IDs: ids, To: transaction.FinalizedDeposit,
		Reason: "checked"})
	storetest.Must(t, err)
	if row := persistencetest.Did(t, l.m.DB, "TRANSACTION_STATUS_START")[0]; row.Target != got.JobID ||
		row.Detail != "2 to finalizedDeposit: 4 BTC; checked" {
		t.Errorf("%+v", row)
	}
	j := storetest.Value(l.jobs.Get(t.Context(), got.JobID))(t)
	step := l.Kind().Step
	for range 2 { // a repeated step
		next, _, err := step(t.Context(), j)
		if err != nil || next.Total != 2 || next.Done != 1 || next.Cursor != "1" || next.Rest.Milliseconds() != 500 ||
			next.State.Over() {
			t.Errorf("%+v, %v", next, err)
		}
	}
	j.Cursor = "1"
	next, _, err := step(t.Context(), j)
	if err != nil || !next.State.Over() || l.m.Has("u", "BTC/BTC") != "4 0 4" {
		t.Errorf("%+v, %v, %s", next, err, l.m.Has("u", "BTC/BTC"))
	}
	other := j
	other.ID = "another"
	if next, _, err := step(t.Context(), other); err != nil || next.Failed != 1 || next.Done != 0 {
		t.Errorf("%+v, %v", next, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := step(gone, j); !errors.Is(err, context.Canceled) && fault.CodeOf(err) != fault.Unavailable {
		t.Error(err)
	}
	j.Params = []byte("{")
	if _, _, err := step(t.Context(), j); err == nil {
		t.Error("a job without parameters steps")
	}
}

// A credit that rules hold waits for the treasury, also if an operator reports it. The decision of an operator is the
// approval, if the operator is in the group.
func TestCreditIsHeld(t *testing.T) {
	l := newTill(t)
	l.m.User("clerk", func(u *user.User) { u.Roles = []string{"support"} })
	l.m.User("chief", func(u *user.User) { u.Roles = []string{"treasury"} })
	one := `"effect":{"type":"APPROVAL","group":"treasury","required":1}`
	l.Service.Judge = l.judges(`{"kinds":["DEPOSIT"],"match":{"amount":{"over":"199","unit":"TRY"},` +
		`"initiator":{"types":["SERVICE"],"roles":["shops"]}},` + one + `}`)
	final := func(r *transaction.Report) { informed(r); r.Final = true }
	small := func(r *transaction.Report) { final(r); r.Amount = amount.Must("1.99") }
	credit := func(by, id string) (shown transaction.Status) {
		d := storetest.Value(l.Report(t.Context(), wallet, report(id, final)))(t)
		storetest.Must(t, l.m.DB.InTx(t.Context(), func(ctx context.Context) error { // as under an Idempotency-Key
			got, err := l.UpdateStatus(ctx, audit.By{UserID: by}, transaction.Update{IDs: []string{d.ID},
				To: transaction.FinalizedDeposit})
			storetest.Must(t, err)
			shown = got.Deposits[0].Status
			return nil
		}))
		return shown
	}
	for _, c := range []struct {
		id     string
		edit   func(*transaction.Report)
		want   transaction.Status
		judged bool
	}{{"small", small, transaction.Finalized, true}, {"large", final, transaction.WaitingTreasury, true},
		{"large", final, transaction.WaitingTreasury, true}, {"bare", func(r *transaction.Report) { r.Final = true },
			transaction.WaitingSender, true}, {"later", informed, transaction.WaitingTreasury, false},
		{"later", final, transaction.WaitingTreasury, true}, {"later", final, transaction.WaitingTreasury, true},
		{"little", func(r *transaction.Report) { small(r); r.Final = false }, transaction.WaitingTreasury, false},
		{"little", small, transaction.Finalized, true}} {
		d, err := l.Report(t.Context(), wallet, report(c.id, c.edit))
		if err != nil || d.Status != c.want {
			t.Errorf("%s: %s, %v, want %s", c.id, d.Status, err, c.want)
		}
		if _, judged, _ := l.Service.Judge.Past.Judged(t.Context(), d.ID); judged != c.judged {
			t.Errorf("%s: facts are stored: %t", c.id, judged)
		}
	}
	if by := credit("clerk", "large"); by != transaction.WaitingTreasury {
		t.Error("credited by an operator who is not in the group")
	}
	if by := credit("chief", "more"); by != transaction.FinalizedDeposit {
		t.Errorf("not credited by a member of the group: %s", by)
	}
	if has := l.m.Has("u", "BTC/BTC"); has != "5.98 0 5.98" {
		t.Error(has)
	}
	if got := l.details("MONEY_HOLD"); strings.Count(got, "POLICY rule 0 (1)\n") != 4 {
		t.Error(got)
	}
}
