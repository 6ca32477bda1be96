package transaction_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// status sets the status of an account that nothing else changes meanwhile.
func (d *desk) status(userID string, s user.Status) commit.Write {
	d.t.Helper()
	u := storetest.Value(account.NewUsers(d.m.DB).Get(d.t.Context(), userID))(d.t)
	return user.SetStatus{UserID: userID, CV: u.CV, Status: s}
}

func (d *desk) commit(ws ...commit.Write) {
	d.t.Helper()
	storetest.Must(d.t, d.m.DB.Commit(d.t.Context(), ws...))
}

// hold runs the job of a block to its end.
func (d *desk) hold(userID string) {
	d.t.Helper()
	w, err := persistencetest.HoldQueued(d.now)(audit.By{UserID: "op"}, userID)
	storetest.Must(d.t, err)
	var writes []commit.Write
	for j := w.(job.Add).Job; !j.State.Over(); d.commit(writes...) {
		j, writes, err = d.Holding().Step(d.t.Context(), j)
		storetest.Must(d.t, err)
	}
}

// published counts the events of a type about a withdrawal.
func (d *desk) published(of integration.Type, id string) (n int) {
	// The feed may be late: it waits for the transactions of all tests on the server.
	storetest.Must(d.t, d.m.DB.Conn(d.t.Context()).NewRaw("SELECT count(*) FROM integration_event WHERE type = ? AND "+
		"data LIKE ?", string(of), "%"+id+"%").Scan(d.t.Context(), &n))
	return n
}

// blocks are the ways in which an account is kept from withdrawing, and their ends.
func (d *desk) blocks() []block {
	return []block{
		{transaction.HeldAccount, fault.AccountNotActive,
			func() commit.Write { return d.status("u", user.Blocked) },
			func() commit.Write { return d.status("u", user.Active) }},
		{transaction.HeldProhibited, fault.WithdrawalProhibited,
			func() commit.Write { return user.SetWithdrawProhibited{UserID: "u", Prohibited: true} },
			func() commit.Write { return user.SetWithdrawProhibited{UserID: "u"} }},
		{transaction.HeldAML, fault.AMLRisky,
			func() commit.Write { return user.SetAMLStatus{UserID: "u", Status: "highRisk"} },
			func() commit.Write { return user.SetAMLStatus{UserID: "u", Status: user.NotRisky} }},
		{transaction.HeldAlarm, "", func() commit.Write { return user.Alarm{UserID: "u", At: d.now()} }, nil},
	}
}

type block struct {
	why        transaction.HeldFor
	refused    fault.Code // of a resume; "" for none
	begin, end func() commit.Write
}

// A claim of an account that was blocked in any way since the request is refused and holds the withdrawal, until the
// cause is gone and an operator resumes it.
func TestBlockThenClaim(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "9"))
		for i, c := range d.blocks() {
			var ids []string
			for n := range 4 {
				o := storetest.Value(d.ask("u", "BTC", 1, fmt.Sprint(c.why, n)))(t)
				ids = append(ids, o.Queued.ID)
				read := storetest.Value(d.Get(t.Context(), o.Queued.ID))(t)
				storetest.Same(t, o, read) // the answer is the record
			}
			claimed, asked, late := ids[0], ids[1], ids[2:]
			storetest.Must(t, d.move(claimed, transaction.QueueProcessing))
			storetest.Must(t, d.move(late[0], transaction.TimeOut))
			d.advance(time.Minute)
			d.commit(c.begin())
			d.advance(time.Minute)

			o, err := d.Move(t.Context(), audit.By{UserID: "service:wallet"},
				transaction.WalletMove{ID: asked, From: transaction.QueueReady, To: transaction.QueueProcessing})
			storetest.Wants(t, err, fault.InvalidState)
			if o.Queued.Status != transaction.QueueWaiting || o.Queued.Held != (transaction.Held{Reason: c.why,
				Since: d.now()}) || d.published(integration.WithdrawalHeld, asked) != 1 {
				t.Errorf("%s: %+v", c.why, o.Queued)
			}
			storetest.Wants(t, d.move(asked, transaction.QueueProcessing), fault.InvalidState)
			storetest.Wants(t, d.move(claimed, transaction.QueueProcessing), fault.InvalidState) // a repetition
			d.hold("u")
			d.hold("u") // holds what is held no more than once
			for _, id := range late {
				o := storetest.Value(d.Get(t.Context(), id))(t)
				if o.Queued.Held.Reason != c.why || d.published(integration.WithdrawalHeld, id) != 1 {
					t.Errorf("%s: the job left %+v", c.why, o.Queued)
				}
			}
			if d.published(integration.WithdrawalRecall, claimed) != 2 {
				t.Errorf("%s: the wallet was not asked to stop", c.why)
			}
			storetest.Must(t, d.move(claimed, transaction.QueueSent))

			if c.end != nil {
				_, err = d.Resume(t.Context(), audit.By{UserID: "op"}, asked, "")
				storetest.Wants(t, err, c.refused)
				d.commit(c.end())
			}
			o, err = d.Resume(t.Context(), audit.By{UserID: "op"}, asked, "")
			storetest.Must(t, err)
			if o.Queued.Held != (transaction.Held{}) || o.Queued.ResumedAt != d.now() {
				t.Errorf("%s: resumed as %+v", c.why, o.Queued)
			}
			storetest.Must(t, d.move(asked, transaction.QueueProcessing))
			n, err := db.Conn(t.Context()).NewSelect().Table("audit").Where("action = 'MONEY_HOLD'").Count(t.Context())
			if err != nil || n != int64(3*(i+1)) {
				t.Errorf("%s: %d audit rows, %v", c.why, n, err)
			}
		}
	})
}

// Each change that decides about money refuses a unit that was decided before it; others do not.
func TestMoneyVersion(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		users := account.NewUsers(db)
		for _, c := range []struct {
			write              func(u user.User) commit.Write
			money, credentials bool
		}{
			{func(u user.User) commit.Write { return user.SetPassword{UserID: "u", CV: u.CV, Hash: "h"} }, true, true},
			{func(u user.User) commit.Write { return user.SetPhone{UserID: "u", CV: u.CV, Phone: "+901"} }, true, true},
			{func(u user.User) commit.Write { return user.SetMail{UserID: "u", CV: u.CV, Mail: "a@b.test"} }, true, true},
			{func(u user.User) commit.Write { return user.SetTOTP{UserID: "u", CV: u.CV, Defined: true} }, true, true},
			{func(u user.User) commit.Write { return user.SetPush{UserID: "u", CV: u.CV, Owned: true} }, true, true},
			{func(u user.User) commit.Write { return user.SetStatus{UserID: "u", CV: u.CV, Status: user.Blocked} }, true,
				false},
			{func(user.User) commit.Write { return user.SetLevel{UserID: "u", Level: 2} }, true, false},
			{func(user.User) commit.Write { return user.SetAMLStatus{UserID: "u", Status: "risky"} }, true, false},
			{func(user.User) commit.Write { return user.SetWithdrawProhibited{UserID: "u", Prohibited: true} }, true,
				false},
			{func(user.User) commit.Write { return user.Alarm{UserID: "u", At: time.Now()} }, true, false},
			{func(user.User) commit.Write { return user.Grant{UserID: "u", Role: "clerk", At: time.Now()} }, true, false},
			{func(user.User) commit.Write { return user.Revoke{UserID: "u", Role: "clerk"} }, true, false},
			{func(user.User) commit.Write { return user.LoggedIn{UserID: "u", At: time.Now(), Network: "n"} }, false,
				false},
			{func(user.User) commit.Write { return user.SetName{UserID: "u", Name: "n"} }, false, false},
		} {
			before := storetest.Value(users.Get(t.Context(), "u"))(t)
			d.commit(c.write(before))
			after, err := users.Get(t.Context(), "u")
			storetest.Must(t, err)
			w := fmt.Sprintf("%T", c.write(before))
			err = db.Commit(t.Context(), commit.Guard{On: commit.UserMoney, Key: "u", Version: before.MoneyVersion})
			if c.money != errors.Is(err, commit.ErrFenced) || c.money != (after.MoneyVersion == before.MoneyVersion+1) {
				t.Errorf("%s: version %d to %d, %v", w, before.MoneyVersion, after.MoneyVersion, err)
			}
			if c.credentials != after.CredentialsAt.After(before.CredentialsAt) {
				t.Errorf("%s: credentials changed at %v", w, after.CredentialsAt)
			}
			if c.credentials { // so that the next instant differs
				persistencetest.Exec(t, db, "UPDATE users SET credentials_at = 1")
			}
		}
	})
}

// A block that has changed its row and is not committed yet, on this node or another, orders a concurrent claim behind
// it.
func TestClaimBesideBlock(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
		id := d.queue("u", 1, "x")
		block, claim := d.status("u", user.Blocked), make(chan error, 1)
		storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) error {
			if err := db.Commit(ctx, block); err != nil {
				return err
			}
			go func() { claim <- d.move(id, transaction.QueueProcessing) }()
			for waits := !db.Postgres(); !waits && len(claim) == 0; { // SQLite has one writer
				n, err := db.Conn(t.Context()).NewSelect().Table("pg_stat_activity").
					Where("datname = current_database() AND wait_event_type = 'Lock'").Count(t.Context())
				if err != nil {
					return err
				}
				waits = n > 0
			}
			return nil
		}))
		storetest.Wants(t, <-claim, fault.InvalidState)
		d.read(id, transaction.QueueWaiting, transaction.HeldAccount)
	})
}

// A hold needs a person after half of the time of its approvals, or after a day if its group cannot approve it.
func TestOverdueHolds(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u", "v")
		store := money.NewTransactions(db)
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "1"))
		storetest.Must(t, d.m.Pay("v", "BTC/BTC", "1"))
		d.operators("a", "b")
		d.judges(`{"match":{"amount":{"over":"50","unit":"TRY"}},`+treasury+`}`,
			`{"effect":{"type":"APPROVAL","group":"treasury","required":2,"expires":"60h"}}`)
		begun := d.now()
		short := d.queue("u", 51, "short")
		d.advance(time.Millisecond)
		long := d.queue("v", 1, "long")
		counts := storetest.Value(store.HeldCounts(t.Context()))(t)
		storetest.Same(t, counts, []transaction.HeldCount{{Reason: transaction.HeldPolicy, Number: 2, Oldest: begun}})
		late := func(after time.Duration, want ...string) {
			t.Helper()
			got := storetest.Value(d.Judge.Overdue(t.Context(), store, begun.Add(after)))(t)
			storetest.Same(t, got, want)
		}
		late(90*time.Minute - time.Millisecond)
		late(90*time.Minute, short)
		late(25*time.Hour, short)
		d.commit(user.Revoke{UserID: "b", Role: "treasury"})
		late(24*time.Hour, short)
		late(24*time.Hour+time.Millisecond, short, long)
	})
}

var claimRounds = flag.Int("claims.rounds", 4, "rounds of TestClaimsBesideBlocks, on each database")

// After the answer to a block, a finding, a prohibition or an alarm, none of 64 parallel claims on two nodes succeeds.
// Half of them begin before it.
func TestClaimsBesideBlocks(t *testing.T) {
	onNodes(t, 2, func(t *testing.T, dbs []*persistence.DB) {
		d := newDesk(t, dbs[0], "u")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "9"))
		d.judges()
		nodes := d.nodes(dbs)
		var ids [64]string
		for i := range ids {
			ids[i] = d.queue("u", 1, fmt.Sprint(i))
		}
		before, blocks := 0, d.blocks()
		for round := range *claimRounds {
			d.advance(time.Minute)
			change := blocks[round%len(blocks)]
			block, answered, failed := change.begin(), make(chan struct{}), make(chan error, 1)
			claimed := make(chan struct{}, len(ids))
			go func() {
				for range round % 8 { // so many claims are over when the block begins
					<-claimed
				}
				failed <- dbs[0].Commit(t.Context(), block)
				close(answered)
			}()
			before += storetest.Race(t, len(ids), fault.InvalidState, func(i int) error {
				late := i%2 == 1
				if late {
					<-answered
				}
				err := nodes[i/2%len(nodes)].move(ids[i], transaction.QueueProcessing)
				claimed <- struct{}{}
				if late && err == nil {
					t.Errorf("round %d: a claim after the answer", round)
				}
				return err
			})
			storetest.Must(t, <-failed)
			d.advance(time.Minute)
			if change.end != nil {
				d.commit(change.end())
			}
			for _, id := range ids {
				o := storetest.Value(d.Get(t.Context(), id))(t)
				if o.Queued.Status == transaction.QueueReady {
					continue
				}
				if o.Queued.Status == transaction.QueueProcessing {
					storetest.Must(t, d.move(id, transaction.TimeOut))
				}
				storetest.Must(t, d.resume("op", id))
			}
		}
		t.Logf("%d claims before the answer", before)
	})
}

// lostHits fails to store.
type lostHits struct{ policy.HitStore }

func (lostHits) AddHits(context.Context, time.Time, map[policy.Named]int64) error {
	return errors.New("down")
}

// A movement counts once for each rule that asks for something, or would on trial: when it is refused, held or
// credited, and when a newer rule holds its claim. Repetitions and judgements at the end of a hold do not count.
func TestHitsOfRules(t *testing.T) {
	l := newTill(t)
	d, s := l.desk, l.Service
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "100"))
	j := d.judges(`{"match":{"amount":{"over":"0.08","unit":"ASSET"},"assets":[{"currencyCode":"BTC"}]},`+deny+`}`,
		`{"match":{"amount":{"over":"0.04","unit":"ASSET"},"assets":[{"currencyCode":"BTC"}]},`+day+`}`,
		`{"status":"TRIAL",`+deny+`}`, `{"kinds":["DEPOSIT"],"match":{"amount":{"over":"4","unit":"ASSET"},`+
			`"assets":[{"currencyCode":"BTC"}]},"effect":{"type":"APPROVAL","group":"treasury","required":1}}`)
	s.Judge = j
	hits, store := new(policy.Hits), money.NewRules(d.m.DB)
	j.Hits = hits
	want := func(counts ...int64) {
		t.Helper()
		if hits.Flush(t.Context(), lostHits{}, d.now()) == nil {
			t.Error("a failure is not reported")
		}
		storetest.Must(t, hits.Flush(t.Context(), store, d.now()))
		got := storetest.Value(store.Hits(t.Context(), d.now().Add(-policy.Day)))(t)
		all := map[policy.Named]int64{}
		for i, n := range counts {
			if n > 0 {
				all[policy.Named{Label: fmt.Sprint("rule ", i), Version: 1}] = n
			}
		}
		storetest.Same(t, got, all)
	}
	_, err := d.ask("u", "BTC", 9, "denied")
	storetest.Wants(t, err, fault.PolicyDenied)
	want(1, 1, 1)
	held := storetest.Value(d.ask("u", "BTC", 5, "held"))(t)
	_, err = d.ask("u", "BTC", 5, "held") // a repetition
	storetest.Must(t, err)
	small := storetest.Value(d.ask("u", "BTC", 1, "small"))(t)
	want(1, 2, 3)
	d.advance(24 * time.Hour)
	storetest.Must(t, d.EndHolds(t.Context()))
	d.read(held.Queued.ID, transaction.QueueReady, "")
	storetest.Must(t, d.move(held.Queued.ID, transaction.QueueProcessing))
	for range 2 { // the second report changes nothing
		_, err = s.Report(t.Context(), wallet, transaction.Report{ExternalID: "d", UserID: "u", CurrencyCode: "BTC",
			Network: "BTC", Amount: amount.Must("5"), TxID: "tx", Final: true})
		storetest.Must(t, err)
	}
	want(1, 2, 3, 1)
	d.judges(`{` + deny + `}`).Hits = hits // a newer rule
	storetest.Wants(t, d.move(small.Queued.ID, transaction.QueueProcessing), fault.InvalidState)
	want(2, 2, 3, 1)
}
