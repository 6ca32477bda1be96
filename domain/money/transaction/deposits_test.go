package transaction_test

import (
	"context"
	"errors"
	"slices"
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

// till is the service of deposits over a desk with the users u and v; v may not be moved by the clerk.
type till struct {
	*transaction.Service
	*desk
	jobs job.Store
	told []string
	run  bool // whether a job is over when it is awaited
}

var (
	clerk  = audit.By{UserID: "clerk", IP: "ip"}
	errNot = fault.New(fault.Forbidden, "not this user")
)

func newTill(t *testing.T) *till {
	t.Helper()
	return newTillIn(t, persistencetest.SQLite(t))
}

func newTillIn(t *testing.T, db *persistence.DB) *till {
	t.Helper()
	d, s := newCounterIn(t, db)
	d.m.User("v", func(*user.User) {})
	l := &till{Service: s, desk: d, jobs: kit.NewJobs(d.m.DB), run: true}
	s.Claims, s.Messenger = kit.NewIntegration(d.m.DB), l
	s.Changes = admin.Changes{Commit: d.m.DB, Now: d.now}
	s.Jobs = &job.Service{Store: l.jobs, Changes: s.Changes, Seal: func(plain, _ []byte) []byte { return plain }}
	s.MayMove = func(caller, userID string) error {
		if caller == "clerk" && userID == "v" {
			return errNot
		}
		return nil
	}
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

func (l *till) Notify(to challenge.Account, topic, template string, v message.Values, ip string,
	on ...challenge.Name) []commit.Write {
	l.told = append(l.told, strings.Join([]string{to.UserID, topic, template, v["amount"], ip}, " "))
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

func final(r *transaction.Report) { r.Final = true }

// A deposit is credited once: when its last report says so.
func TestReportsOfDeposit(t *testing.T) {
	for _, c := range []struct {
		name    string
		reports []func(*transaction.Report)
		status  []transaction.Status
		has     string
		told    int
		audit   []string
	}{
		{"waits for its sender", []func(*transaction.Report){plain, plain}, []transaction.Status{transaction.WaitingSender,
			transaction.WaitingSender}, "0 0 0", 1, []string{transaction.ActionReceive}},
		{"waits for the treasury", []func(*transaction.Report){informed, plain, informed}, slices.Repeat([]transaction.Status{
			transaction.WaitingTreasury}, 3), "0 0 0", 0, []string{transaction.ActionReceive}},
		{"gets its sender", []func(*transaction.Report){plain, informed}, []transaction.Status{transaction.WaitingSender,
			transaction.WaitingTreasury}, "0 0 0", 1, []string{transaction.ActionSender, transaction.ActionReceive}},
		{"is credited at once", []func(*transaction.Report){final, final, plain}, slices.Repeat([]transaction.Status{
			transaction.Finalized}, 3), "2 0 2", 1, []string{transaction.ActionReceive}},
		{"is credited later", []func(*transaction.Report){plain, final, final}, []transaction.Status{
			transaction.WaitingSender, transaction.Finalized, transaction.Finalized}, "2 0 2", 2,
			[]string{transaction.ActionFinalize, transaction.ActionReceive}},
	} {
		l := newTill(t)
		var first string
		for i, change := range c.reports {
			d := storetest.Value(l.Report(t.Context(), clerk, report("x", change)))(t)
			if i == 0 {
				first = d.ID
			}
			stored, err := l.Deposit(t.Context(), first)
			if err != nil || d.ID != first || d.Status != c.status[i] || stored.Status != c.status[i] || d.UserID != "u" ||
				d.ExternalID != "x" || d.TxID != "tx-x" || d.FromAddress != "from" || d.ToAddress == "" ||
				d.SenderInfo != "" && d.SenderInfo != `{"a":"<x>","b":1}` {
				t.Errorf("%s: %+v, %+v, %v", c.name, d, stored, err)
			}
		}
		if has := l.m.Has("u", "BTC/BTC"); has != c.has || len(l.told) != c.told {
			t.Errorf("%s: has %s, told %v", c.name, has, l.told)
		}
		for _, action := range c.audit {
			if rows := persistencetest.Did(t, l.m.DB, action); len(rows) != 1 || rows[0].Target != first ||
				rows[0].UserID != "u" || rows[0].ActorID != "clerk" || !strings.HasSuffix(rows[0].Detail, ": 2 BTC") {
				t.Errorf("%s: %+v", c.name, rows)
			}
		}
	}
}

// A report that contradicts an earlier one, or names another account, is refused.
func TestRefusedReports(t *testing.T) {
	l := newTill(t)
	open, err := l.Report(t.Context(), clerk, report("x", informed))
	storetest.Must(t, err)
	_, err = l.Report(t.Context(), clerk, report("done", final))
	storetest.Must(t, err)
	holder := transaction.Address(l.m.Account("v", "BTC/BTC"))
	for name, c := range map[string]struct {
		r    transaction.Report
		want fault.Code
	}{
		"another amount":      {report("x", func(r *transaction.Report) { r.Amount = amount.Must("3") }), fault.InvalidState},
		"another sender":      {report("x", func(r *transaction.Report) { r.SenderInfo = `{"c":1}` }), fault.InvalidState},
		"a sender afterwards": {report("done", informed), fault.InvalidState},
		"the same transfer":   {report("y", func(r *transaction.Report) { r.TxID = "TX-X" }), fault.RecordAlreadyExist},
		"no user": {report("z", func(r *transaction.Report) { r.UserID = "" }),
			fault.InvalidField},
		"an unknown user":     {report("z", func(r *transaction.Report) { r.UserID = "w" }), fault.RecordNotFound},
		"an unknown currency": {report("z", func(r *transaction.Report) { r.CurrencyCode = "X" }), fault.InvalidField},
		"an unknown network":  {report("z", func(r *transaction.Report) { r.Network = "X" }), fault.InvalidField},
		"nothing":             {report("z", func(r *transaction.Report) { r.Amount = amount.Amount{} }), fault.InvalidField},
		"a long id":           {report(strings.Repeat("x", 129), plain), fault.InvalidField},
		"no object":           {report("z", func(r *transaction.Report) { r.SenderInfo = "[1]" }), fault.InvalidField},
		"an empty object":     {report("z", func(r *transaction.Report) { r.SenderInfo = "{}" }), fault.InvalidField},
		"a large object": {report("z", func(r *transaction.Report) {
			r.SenderInfo = `{"a":"` + strings.Repeat("x", 8185) + `"}`
		}), fault.InvalidField},
		"too precise": {report("z", func(r *transaction.Report) { r.Amount = amount.Must("0.000000001") }),
			fault.InvalidField},
		"the address of another": {report("z", func(r *transaction.Report) { r.ToAddress = holder }), fault.InvalidField},
		"an unknown address only": {report("z", func(r *transaction.Report) { r.UserID, r.ToAddress = "", "none" }),
			fault.RecordNotFound},
		"a damaged address": {report("z", func(r *transaction.Report) { r.UserID, r.ToAddress = "", holder+"x" }),
			fault.RecordNotFound},
		"the address of another currency": {report("z", func(r *transaction.Report) {
			r.UserID, r.ToAddress = "", transaction.Address(l.m.Account("v", "ETH/ETH"))
		}), fault.RecordNotFound},
	} {
		if _, err := l.Report(t.Context(), clerk, c.r); fault.CodeOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for id, change := range map[string]func(*transaction.Report){
		"largest":                func(r *transaction.Report) { r.SenderInfo = `{"a":"` + strings.Repeat("x", 8184) + `"}` },
		strings.Repeat("x", 128): plain,
		"address":                func(r *transaction.Report) { r.UserID, r.ToAddress = "", holder },
		"foreign":                func(r *transaction.Report) { r.ToAddress = "an-address-elsewhere" },
	} {
		d, err := l.Report(t.Context(), clerk, report(id, change))
		if err != nil || (d.UserID == "v") != (id == "address") || id == "foreign" && d.ToAddress != "an-address-elsewhere" {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	// While the treasury decides, no report changes the deposit.
	l.run = false
	_, err = l.UpdateStatus(t.Context(), clerk, transaction.Update{IDs: []string{open.ID},
		To: transaction.FinalizedDeposit})
	storetest.Must(t, err)
	_, err = l.Report(t.Context(), clerk, report("x", func(r *transaction.Report) { informed(r); final(r) }))
	storetest.Wants(t, err, fault.InvalidState)
	_, err = l.Deposit(t.Context(), "none")
	storetest.Wants(t, err, fault.RecordNotFound)
}

// An update credits deposits or returns them to wait for their senders. Deposits of users on whom the caller may not
// decide fail alone.
func TestUpdateOfDeposits(t *testing.T) {
	l := newTill(t)
	deposit := func(id, userID string) string {
		t.Helper()
		d, err := l.Report(t.Context(), clerk, report(id, func(r *transaction.Report) { informed(r); r.UserID = userID }))
		storetest.Must(t, err)
		return d.ID
	}
	a, b, c, e := deposit("a", "u"), deposit("b", "v"), deposit("c", "u"), deposit("e", "u")
	update := func(to transaction.Status, ids ...string) (transaction.Updated, error) {
		return l.UpdateStatus(t.Context(), clerk, transaction.Update{IDs: ids, To: to, Reason: "checked"})
	}
	l.told = nil
	got, err := update(transaction.FinalizedDeposit, a, b)
	storetest.Must(t, err)
	if got.JobID == "" || len(got.Deposits) != 2 || got.Deposits[0].Status != transaction.FinalizedDeposit ||
		got.Deposits[1].Status != transaction.WaitingTreasury || len(got.Failed) != 1 ||
		got.Failed[b] != fault.Forbidden || got.Deposits[0].TransferID == "" {
		t.Errorf("%+v", got)
	}
	if has := l.m.Has("u", "BTC/BTC") + ", " + l.m.Has("v", "BTC/BTC"); has != "2 0 2, 0 0 0" {
		t.Error(has)
	}
	rows := persistencetest.Did(t, l.m.DB, "TRANSACTION_STATUS_START")
	if rows[0].Target != got.JobID || !strings.Contains(rows[0].Detail, "4 BTC") ||
		!strings.Contains(rows[0].Detail, "checked") {
		t.Errorf("%+v", rows[0])
	}
	if rows := persistencetest.Did(t, l.m.DB, "TRANSACTION_STATUS"); len(rows) != 1 || rows[0].Target != a ||
		rows[0].UserID != "u" {
		t.Errorf("%+v", rows)
	}
	storetest.Same(t, l.told, []string{"u transaction " + message.DepositCredited + " 2 BTC ip"})
	got, err = update(transaction.WaitingSender, c)
	if err != nil || got.Deposits[0].Status != transaction.WaitingSender || len(got.Failed) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, x := range map[string]struct {
		ids  []string
		want fault.Code
	}{"unknown": {[]string{e, "none"}, fault.RecordNotFound}, "credited": {[]string{e, a}, fault.InvalidState},
		"waits for its sender": {[]string{c}, fault.InvalidState}} {
		if _, err := update(transaction.FinalizedDeposit, x.ids...); fault.CodeOf(err) != x.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	l.run = false
	got, err = update(transaction.FinalizedDeposit, e)
	if err != nil || got.JobID == "" || got.Deposits != nil { // it continues after the response
		t.Errorf("%+v, %v", got, err)
	}
	_, err = update(transaction.FinalizedDeposit, e)
	storetest.Wants(t, err, fault.InvalidState)
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
	got, err := l.UpdateStatus(t.Context(), clerk, transaction.Update{IDs: ids, To: transaction.FinalizedDeposit})
	storetest.Must(t, err)
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
