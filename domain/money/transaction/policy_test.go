package transaction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// judges makes rules apply to a desk: each text is the match and the effect of one, which is named by its place.
func (d *desk) judges(rules ...string) *transaction.Judge {
	d.t.Helper()
	var all []policy.Rule
	for i, text := range rules {
		r := policy.Rule{Label: fmt.Sprint("rule ", i), Version: 1, Status: policy.Active,
			Kinds: []policy.Kind{policy.Withdrawal}}
		storetest.Must(d.t, json.Unmarshal([]byte(text), &r))
		storetest.Must(d.t, r.Check())
		all = append(all, r)
	}
	set := policy.Compile(all)
	d.Notices = challengetest.Notices{Now: d.now}
	return d.judgesBy(set)
}

func (d *desk) judgesBy(set *policy.Set) *transaction.Judge {
	d.Judge = &transaction.Judge{Rules: func() *policy.Set { return set }, Past: money.NewTransactions(d.m.DB),
		Rates: quotes{}, Books: d.Books, Users: d.Users, Catalog: d.m.Currencies.Catalog,
		ServiceRoles: func(string) []string { return []string{"shops"} },
		Shared: func(_ context.Context, a, b string) (bool, error) {
			return strings.HasPrefix(a, "twin") && strings.HasPrefix(b, "twin"), nil
		}}
	return d.Judge
}

// operators adds operators who have the role treasury.
func (d *desk) operators(ids ...string) {
	for _, id := range ids {
		d.m.User(id, func(u *user.User) { u.Roles = []string{"treasury"} })
	}
}

// read reads a withdrawal and checks its status and the reason of its hold.
func (d *desk) read(id string, status transaction.QueueStatus, why transaction.HeldFor) transaction.Outgoing {
	d.t.Helper()
	o := storetest.Value(d.Get(d.t.Context(), id))(d.t)
	if o.Queued.Status != status || o.Queued.Held.Reason != why {
		d.t.Errorf("%s is %s and held for %q, want %s and %q", id, o.Queued.Status, o.Queued.Held.Reason, status, why)
	}
	return o
}

func (d *desk) resume(by, id string) error {
	_, err := d.Resume(d.t.Context(), audit.By{UserID: by}, id, "")
	return err
}

// details joins the details of the audit rows of an action.
func (d *desk) details(action string) (all string) {
	for _, r := range persistencetest.Did(d.t, d.m.DB, action) {
		all += r.Detail + "\n"
	}
	return all
}

const (
	treasury = `"effect":{"type":"APPROVAL","group":"treasury","required":2,"expires":"3h"}`
	deny     = `"effect":{"type":"DENY"}`
	day      = `"effect":{"type":"WAIT","for":"24h","after":"REQUEST"}`
)

// A request that rules refuse stores nothing but an audit row with their names, which the caller does not get.
func TestDeniedWithdrawal(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
		storetest.Must(t, d.m.Pay("u", "XRP/XRP", "9"))
		d.judges(`{"match":{"assets":[{"currencyCode":"btc","network":"btc"},{"currencyCode":"Xrp"}],`+
			`"amount":{"over":"10","unit":"TRY"}},`+deny+`}`,
			`{"match":{"initiator":{"types":["SERVICE","OPERATOR"]},"amount":{"over":"8","unit":"TRY"}},`+
				`"effect":{"type":"OWNER"}}`)
		for i, c := range []struct {
			code string
			n    int64
			want fault.Code
		}{{"BTC", 8, ""}, {"BTC", 9, fault.OwnerRequired}, {"BTC", 11, fault.PolicyDenied},
			{"XRP", 1, fault.PolicyDenied}} { // its rate is too old, so its value is not known
			_, err := d.ask("u", c.code, c.n, fmt.Sprint(i))
			storetest.Wants(t, err, c.want)
			if err != nil && strings.Contains(err.Error(), "rule") {
				t.Errorf("%v names a rule", err)
			}
		}
		if has := d.m.Has("u", "BTC/BTC"); has != "1 0.09 0.91" {
			t.Error(has)
		}
		want := strings.Repeat("POLICY_DENIED: rule 0 (1), rule 1 (1)\n", 2) + "OWNER_REQUIRED: rule 1 (1)\n"
		if got := d.details("MONEY_DENY"); got != want {
			t.Error(got)
		}
		f, known, err := money.NewTransactions(db).Judged(t.Context(), d.first("u"))
		if err != nil || !known || f.Value != amount.Must("8") || !f.Rated || f.Initiator.String() != "SERVICE:wallet" ||
			f.Destination.Key != "BTC/"+addresses["BTC"] || f.Account.ID != "u" || f.Read.Used || !f.Read.Value {
			t.Errorf("%+v, %t, %v", f, known, err)
		}
	})
}

// first returns the id of the first withdrawal of a user.
func (d *desk) first(userID string) (id string) {
	d.t.Helper()
	storetest.Must(d.t, d.m.DB.Conn(d.t.Context()).NewRaw("SELECT min(id) FROM withdrawal WHERE user_id = ?", userID).
		Scan(d.t.Context(), &id))
	return id
}

// Two members of the group release a withdrawal, in one unit. The owner, the initiator, a stranger and an account
// that shares a device with an approver do not count, and no member counts twice.
func TestWithdrawalNeedsApprovals(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db)
		d.m.User("u", func(u *user.User) { u.Roles = []string{"treasury"} })
		d.m.User("stranger", func(*user.User) {})
		d.operators("a", "twin 1", "twin 2", "asks")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
		d.judges(`{"match":{"account":{"firstWithdrawal":true}},` + treasury + `}`)
		o, err := d.Request(t.Context(), audit.By{UserID: "asks"}, transaction.WithdrawalRequest{ExternalID: "x",
			UserID: "u", CurrencyCode: "BTC", NetworkCode: "BTC", Amount: amount.Must("0.1"), Address: addresses["BTC"]})
		storetest.Must(t, err)
		id := o.Queued.ID
		storetest.Same(t, d.read(id, transaction.QueueWaiting, transaction.HeldPolicy), o)
		if !o.Queued.Held.Until.Equal(d.now().Add(3*time.Hour)) || d.m.Has("u", "BTC/BTC") != "1 0.11 0.89" ||
			d.published(integration.WithdrawalQueued, id) != 0 {
			t.Errorf("%+v", o.Queued)
		}
		storetest.Wants(t, d.move(id, transaction.QueueProcessing), fault.InvalidState)
		for _, by := range []string{"u", "asks", "stranger", "service:wallet", "none"} {
			storetest.Wants(t, d.resume(by, id), fault.Forbidden)
		}
		storetest.Must(t, d.resume("twin 1", id))
		for _, by := range []string{"twin 1", "twin 2"} {
			storetest.Wants(t, d.resume(by, id), fault.Forbidden)
		}
		d.read(id, transaction.QueueWaiting, transaction.HeldPolicy)
		d.commit(user.Revoke{UserID: "twin 1", Role: "treasury"}) // ends the approval
		won := storetest.Race(t, 4, fault.Forbidden, func(int) error { return d.resume("a", id) })
		storetest.Equal(t, won, 1, "approvals of one person")
		d.read(id, transaction.QueueWaiting, transaction.HeldPolicy)
		storetest.Must(t, d.resume("twin 2", id))
		d.read(id, transaction.QueueReady, "")
		if d.published(integration.WithdrawalQueued, id) != 1 || d.published(integration.WithdrawalResumed, id) != 0 {
			t.Error("the wallet does not learn of it as of a new one")
		}
		storetest.Must(t, d.move(id, transaction.QueueProcessing)) // the approvals count at the claim, too
		if got := d.details("MONEY_RELEASE"); !strings.Contains(got, "POLICY rule 0 (1); 2 of treasury") {
			t.Error(got)
		}
	})
}

// A wait ends by itself; approvals that expire cancel the withdrawal. Its owner gets one notice of each.
func TestHoldsEnd(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t), "u", "v")
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
	storetest.Must(t, d.m.Pay("v", "BTC/BTC", "1"))
	d.operators("a", "b")
	d.judges(`{"match":{"destination":{"firstUse":true}},`+day+`}`,
		`{"match":{"destination":{"inBook":false},"amount":{"over":"50","unit":"TRY"}},`+treasury+`}`)
	both := storetest.Value(d.ask("u", "BTC", 51, "both"))(t)
	waits := storetest.Value(d.ask("u", "BTC", 1, "waits"))(t)
	blocked := storetest.Value(d.ask("v", "BTC", 1, "blocked"))(t)
	ends := func() { storetest.Must(t, d.EndHolds(t.Context())) }
	d.advance(24*time.Hour - time.Millisecond)
	ends()
	for _, o := range []transaction.Outgoing{both, waits, blocked} {
		d.read(o.Queued.ID, transaction.QueueWaiting, transaction.HeldPolicy)
	}
	storetest.Wants(t, d.resume("a", waits.Queued.ID), fault.InvalidState)
	storetest.Must(t, d.resume("a", both.Queued.ID)) // approved during the wait
	d.commit(d.status("v", user.Blocked))
	d.advance(time.Millisecond)
	ends()
	d.read(waits.Queued.ID, transaction.QueueReady, "")
	d.read(blocked.Queued.ID, transaction.QueueWaiting, transaction.HeldAccount)
	if o := d.read(both.Queued.ID, transaction.QueueCancelled, ""); o.Queued.Reason == "" {
		t.Error("no reason")
	}
	if has := d.m.Has("u", "BTC/BTC"); has != "1 0.02 0.98" || d.published(integration.WithdrawalQueued,
		waits.Queued.ID) != 1 || d.published(integration.WithdrawalCancelled, both.Queued.ID) != 1 {
		t.Error(has)
	}
	storetest.Must(t, d.move(waits.Queued.ID, transaction.QueueProcessing))
	ends()
	held := " withdrawal-held " // the block of v is not reported
	storetest.Same(t, challengetest.Committed(t, delivery.NewOutbox(d.m.DB)), []string{" withdrawal-expired ",
		held, held, held, " withdrawal-released "})
	// Approvals that are first asked for long after the request have their whole time.
	d.judges(`{"effect":{"type":"APPROVAL","group":"treasury","required":3,"expires":"3h"}}`)
	d.commit(d.status("v", user.Active))
	storetest.Must(t, d.resume("a", blocked.Queued.ID))
	storetest.Must(t, d.resume("b", blocked.Queued.ID))
	ends()
	d.read(blocked.Queued.ID, transaction.QueueWaiting, transaction.HeldPolicy)
}

// Entries that wait for the comparison after a restore cannot be released, and keep no others from it.
func TestDueBesideUncompared(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t), "u")
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
	d.judges(`{"match":{"destination":{"firstUse":true}},` + day + `}`)
	first := storetest.Value(d.ask("u", "BTC", 1, "first"))(t)
	d.advance(time.Minute)
	next := storetest.Value(d.ask("u", "BTC", 1, "next"))(t)
	persistencetest.Exec(t, d.m.DB, "INSERT INTO restore_withdrawal (id, status, outcome, settled_at) "+
		"VALUES (?, ?, '', 0)", first.Queued.ID, int(transaction.QueueWaiting))
	d.advance(24 * time.Hour)
	storetest.Same(t, storetest.Value(d.Judge.Past.Due(t.Context(), d.now(), 1))(t), []string{next.Queued.ID})
}

// A queued withdrawal is judged again at its claim and at a resume, by the rules of that moment.
func TestRulesAtTheClaim(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		d.operators("a", "b")
		d.m.User("chief", func(u *user.User) { u.Roles = []string{user.RoleAdmin} })
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
		ids := map[string]string{}
		for _, rule := range []string{`{` + deny + `}`, `{"effect":{"type":"OWNER"}}`, `{` + treasury + `}`,
			`{` + day + `}`} {
			d.judges()
			id := d.queue("u", 1, rule)
			ids[rule] = id
			d.judges(rule)
			d.advance(time.Minute)
			storetest.Wants(t, d.move(id, transaction.QueueProcessing), fault.InvalidState)
			d.read(id, transaction.QueueWaiting, transaction.HeldPolicy)
			storetest.Equal(t, d.published(integration.WithdrawalHeld, id), 1, rule, "no event")
			d.advance(100 * time.Hour)
		}
		d.judges(`{` + deny + `}`)
		ctx, written := commit.Recorded(t.Context())
		storetest.Wants(t, db.InTx(ctx, func(ctx context.Context) error {
			return storetest.Err(d.Resume(ctx, audit.By{UserID: "chief"}, ids[`{`+deny+`}`], ""))
		}), fault.PolicyDenied)
		if !strings.Contains(fmt.Sprintf("%+v", *written), "MONEY_DENY") {
			t.Errorf("a refused resume in a transaction wrote %+v", *written)
		}
		d.judges(`{"effect":{"type":"OWNER"}}`)
		storetest.Wants(t, d.resume("a", ids[`{"effect":{"type":"OWNER"}}`]), fault.Forbidden)
		storetest.Must(t, d.resume("chief", ids[`{"effect":{"type":"OWNER"}}`]))
		storetest.Must(t, d.move(ids[`{"effect":{"type":"OWNER"}}`], transaction.QueueProcessing))
		d.judges() // rules that are gone ask for nothing
		storetest.Must(t, d.resume("a", ids[`{`+treasury+`}`]))
		d.read(ids[`{`+treasury+`}`], transaction.QueueReady, "")
		id := ids[`{`+treasury+`}`]
		storetest.Must(t, d.move(id, transaction.TimeOut))
		d.judges(`{` + treasury + `}`)
		// A challenge and an Idempotency-Key roll back what a failed resume wrote.
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			return storetest.Err(d.Resume(ctx, audit.By{UserID: "a"}, id, ""))
		}))
		d.read(id, transaction.QueueWaiting, transaction.HeldPolicy)
		storetest.Must(t, d.resume("b", id))
	})
}

// Sums count requests by the instant of the request and claims by that of the claim, to the millisecond, and no two
// requests or claims pass a limit at once.
func TestSums(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u", "v", "w")
		d.operators("a", "b")
		for _, u := range []string{"u", "v", "w"} {
			storetest.Must(t, d.m.Pay(u, "BTC/BTC", "9"))
		}
		sum := func(per, of, over string) string {
			return fmt.Sprintf(`{"match":{"sums":[{"per":"%s","window":"1h","of":"%s","over":"%s"}]},%s}`, per, of, over,
				deny)
		}
		n := 0
		ask := func(user string, hundredth int64) error {
			n++
			_, err := d.ask(user, "BTC", hundredth, fmt.Sprint("s", n))
			return err
		}
		d.judges(sum("ACCOUNT", "VALUE", "5"))
		storetest.Must(t, ask("u", 5))
		storetest.Wants(t, ask("u", 1), fault.PolicyDenied)
		storetest.Must(t, ask("v", 5))
		d.advance(time.Hour - time.Millisecond)
		storetest.Wants(t, ask("u", 1), fault.PolicyDenied)
		d.advance(time.Millisecond)
		storetest.Must(t, ask("u", 1))
		d.advance(time.Hour)

		d.judges(sum("DESTINATION", "ACCOUNTS", "1"))
		won := storetest.Race(t, 2, fault.PolicyDenied, func(i int) error {
			_, err := d.ask([]string{"u", "v"}[i], "BTC", 1, fmt.Sprint("race", i))
			return err
		})
		storetest.Equal(t, won, 1, "accounts withdrew to one destination")
		d.advance(time.Hour)

		d.judges()
		var ids []string
		for i := range 4 {
			ids = append(ids, d.queue("w", 1, fmt.Sprint("claim", i)))
			d.advance(time.Hour)
		}
		d.judges(sum("ACCOUNT", "COUNT", "2"))
		won = storetest.Race(t, 4, fault.InvalidState, func(i int) error {
			return d.move(ids[i], transaction.QueueProcessing)
		})
		storetest.Equal(t, won, 2, "claims in an hour")
	})
}

// The challenge of the owner satisfies a rule if it had as many methods; a rule that came meanwhile is the outcome.
func TestOwnerSatisfiesRule(t *testing.T) {
	a := newAsker(t)
	owner := func(required int) string { return fmt.Sprintf(`{"effect":{"type":"OWNER","required":%d}}`, required) }
	a.d.judges(owner(1))
	a.begin(wants("x"), "c1", false)
	c := a.rows["c1"]
	c.Methods = []challenge.Method{{Name: challenge.PUSH, Order: 1}}
	a.rows["c1"] = c
	a.d.judges(owner(2))
	_, err := a.execute("c1")
	storetest.Wants(t, err, fault.PolicyDenied)
	storetest.Wants(t, a.Denied(t.Context(), wallet, err), fault.PolicyDenied)
	if got := a.d.details("MONEY_DENY"); got != "POLICY_DENIED: rule 0 (1)\n" {
		t.Error(got)
	}
	a.d.judges(owner(1))
	o := storetest.Value(a.execute("c1"))(t)
	storetest.Must(t, a.d.move(o.Queued.ID, transaction.QueueProcessing))
	a.d.judges(`{` + deny + `}`)
	small := wants("y")
	small.Amount = amount.Must("0.1")
	_, err = a.Start(t.Context(), wallet, small, starter)
	storetest.Wants(t, err, fault.PolicyDenied)
}

// The stored facts of a withdrawal and the sums of its request explain it by the rules of today.
func TestStoredFactsExplain(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t), "u")
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "9"))
	d.judges(sumRule("WITHDRAWAL", "PLATFORM", "1h", "VALUE", "50"))
	var ids []string
	for i, n := range []int64{3, 4, 5} {
		o := storetest.Value(d.ask("u", "BTC", n, fmt.Sprint(i)))(t)
		ids = append(ids, o.Queued.ID)
		d.advance(time.Minute)
	}
	j := d.judges(sumRule("WITHDRAWAL", "PLATFORM", "1h", "VALUE", "6"))
	f, totals, err := j.Stored(t.Context(), j.Rules(), ids[1])
	storetest.Must(t, err)
	v, considered := j.Rules().Explain(f, totals)
	if !v.Deny || considered[0].Used.String() != "7" || considered[0].Limit.String() != "6" {
		t.Errorf("%+v, %+v", v, considered)
	}
	_, _, err = j.Stored(t.Context(), j.Rules(), "none")
	storetest.Wants(t, err, fault.RecordNotFound)
}
