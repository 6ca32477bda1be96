package transaction_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/integration"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// asker is the service of approvals over a desk with the user u, and the engine of its challenges.
type asker struct {
	*transaction.Approvals
	d       *desk
	started []challenge.StartRequest
	rows    map[string]challenge.Challenge
	fenced  int // how many starts a concurrent change still overtakes
	fail    error
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	a := &asker{d: newDesk(t, persistencetest.SQLite(t), "u"), rows: map[string]challenge.Challenge{}}
	storetest.Must(t, a.d.m.Pay("u", "BTC/BTC", "1"))
	a.Approvals = &transaction.Approvals{Withdrawals: a.d.Withdrawals, Engine: engine{a},
		Account: func(_ context.Context, userID string) (challenge.Account, error) {
			return challenge.Account{UserID: userID, Phone: "+905320000001"}, a.fail
		},
		Known: func(_ context.Context, c challenge.Challenge, before time.Time) (bool, error) {
			return c.Starter.SessionID == "old" && before.Equal(a.d.now().Add(-24*time.Hour)), a.fail
		}}
	return a
}

// engine is the one of an asker.
type engine struct{ *asker }

func (a engine) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	if a.fenced--; a.fenced >= 0 {
		return challenge.Started{}, fmt.Errorf("start: %w", commit.ErrFenced)
	}
	c := challenge.Challenge{ID: fmt.Sprint("c", len(a.started)+1), UserID: r.Account.UserID,
		ExpiresAt: a.d.now().Add(10 * time.Minute).UnixMilli()}
	c.Starter = r.Starter
	if err := a.d.m.DB.Commit(ctx, r.Bind(c)...); err != nil {
		return challenge.Started{}, err
	}
	a.started, a.rows[c.ID] = append(a.started, r), c
	return challenge.Started{Challenge: c, PAuth: "token"}, nil
}

func (a engine) Again(_ context.Context, id string) (challenge.Started, error) {
	c, ok := a.rows[id]
	if !ok {
		return challenge.Started{}, fault.New(fault.ChallengeNotFound, "none")
	}
	return challenge.Started{Challenge: c, PAuth: "again"}, nil
}

var (
	wallet  = audit.By{UserID: "service:wallet"}
	starter = challenge.Starter{IP: "203.0.113.9", RequestID: "r1"}
)

func wants(externalID string) transaction.WithdrawalRequest {
	return transaction.WithdrawalRequest{ExternalID: externalID, UserID: "u", CurrencyCode: "BTC", NetworkCode: "BTC",
		Amount: amount.Must("0.5"), Address: " " + addresses["BTC"] + " ", AddressTag: "memo"}
}

// begin starts an approval and checks its challenge.
func (a *asker) begin(r transaction.WithdrawalRequest, id string, repeated bool) {
	a.d.t.Helper()
	got, err := a.Start(a.d.t.Context(), wallet, r, starter)
	if err != nil || got.Made != nil || got.Challenge.Challenge.ID != id || got.Repeated != repeated {
		a.d.t.Errorf("%+v, %v; want %s, repeated %t", got, err, id, repeated)
	}
}

// execute completes the challenge of the last start, or another one.
func (a *asker) execute(id string) (transaction.Outgoing, error) {
	a.d.t.Helper()
	var o transaction.Outgoing
	err := a.d.m.DB.InTx(a.d.t.Context(), func(ctx context.Context) (err error) {
		o, err = a.Execute(ctx, challenge.Execution{Challenge: a.rows[id], Command: a.started[len(a.started)-1].Command})
		return err
	})
	return o, err
}

// A code is sent with the amount and the end of the destination. The request is audited with the IP of its starter.
func TestBriefApproval(t *testing.T) {
	a := newAsker(t)
	a.begin(wants("x"), "c1", false)
	storetest.Equal(t, a.Brief(a.started[0].Command), "0.5 BTC …wf5mdq")
	_, err := a.execute("c1")
	storetest.Must(t, err)
	row := persistencetest.Did(t, a.d.m.DB, "WITHDRAWAL_REQUEST")[0]
	if row.IP != starter.IP || row.RequestID != "r1" || row.Detail != "0.5 BTC on BTC, fee 0.01" {
		t.Errorf("%+v", row)
	}
}

// D-POL-23: a rule about devices is judged when the challenge is complete, and at the claim by the device of then. That
// of a service is NONE; an owner's that no rule asked for counts as new.
func TestDeviceOfOwner(t *testing.T) {
	a := newAsker(t)
	device := func(is string) string { return `{"match":{"device":["` + is + `"]},` + deny + `}` }
	n := 0
	ends := func(session, remembered string) (transaction.Outgoing, error) {
		n++
		id, r := fmt.Sprint("c", n), wants(fmt.Sprint(n))
		r.Amount = amount.Must("0.01")
		a.begin(r, id, false)
		c := a.rows[id]
		c.Starter.SessionID = session
		c.Methods = []challenge.Method{{Name: challenge.PUSH, Order: 1, Remembered: remembered}}
		a.rows[id] = c
		return a.execute(id)
	}
	for is, from := range map[string][2]string{"NEW": {"", ""}, "KNOWN": {"old", ""}, "REMEMBERED": {"", "r1"}} {
		a.d.judges(device(is), device("NONE"))
		_, err := ends(from[0], from[1])
		storetest.Wants(t, err, fault.PolicyDenied)
		a.d.judges(device("NONE"), `{"match":{"device":["KNOWN"],"account":{"levels":[7]}},`+deny+`}`)
		o := storetest.Value(ends(from[0], from[1]))(t)
		a.d.judges(device(is))
		storetest.Wants(t, a.d.move(o.Queued.ID, transaction.QueueProcessing), fault.InvalidState)
	}
	a.d.judges()
	o, err := ends("old", "")
	storetest.Must(t, err)
	a.d.judges(device("NEW"))
	storetest.Wants(t, a.d.move(o.Queued.ID, transaction.QueueProcessing), fault.InvalidState)
	a.d.judges(device("NONE"))
	_, err = a.d.ask("u", "BTC", 1, "service")
	storetest.Wants(t, err, fault.PolicyDenied)
}

// A start is decided again after a concurrent change, five times at most.
func TestApprovalRetriesAfterConcurrentChanges(t *testing.T) {
	a := newAsker(t)
	a.fenced = 5
	_, err := a.Start(t.Context(), wallet, wants("x"), starter)
	var busy *fault.Error
	if !errors.As(err, &busy) || busy.Code != fault.Unavailable || busy.RetryAfter != time.Second {
		t.Errorf("%+v", err)
	}
	a.fenced = 4
	a.begin(wants("x"), "c1", false)
}

// A completed challenge executes the approved terms or nothing: its own user, order, address and fee.
func TestApprovalExecutesOnlyTheApprovedOrder(t *testing.T) {
	a := newAsker(t)
	pair := a.d.m.Pair("BTC/BTC")
	var entry int64
	storetest.Must(t, a.d.m.DB.InTx(t.Context(), func(ctx context.Context) (err error) {
		entry, err = a.Books.Insert(ctx, "u", addressbook.Entry{Name: "n", Address: addresses["BTC"], AddressTag: "memo",
			CurrencyID: pair.CurrencyID, NetworkID: pair.NetworkID, CreatedAt: a.d.now(), AddressAt: a.d.now()})
		return err
	}))
	r := wants("x")
	r.Address, r.AddressID = "", entry
	a.begin(r, "c1", false)

	stranger := a.rows["c1"]
	stranger.UserID = "v"
	a.rows["c1"], stranger = stranger, a.rows["c1"]
	_, err := a.execute("c1")
	storetest.Wants(t, err, fault.InvalidState)
	a.rows["c1"] = stranger

	replace := func(to string) {
		storetest.Must(t, a.d.m.DB.InTx(t.Context(), func(ctx context.Context) error {
			return a.Books.Replace(ctx, "u", addressbook.Entry{ID: entry, Name: "n", Address: to, AddressTag: "memo",
				CurrencyID: pair.CurrencyID, NetworkID: pair.NetworkID, AddressAt: a.d.now()})
		}))
	}
	replace("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")
	_, err = a.execute("c1")
	storetest.Wants(t, err, fault.AddressNotAllowed)
	replace(addresses["BTC"])
	a.d.setFee("0.03")
	o, err := a.execute("c1")
	if err != nil || o.Fee() != amount.Must("0.01") {
		t.Errorf("fee %s, %v", o.Fee(), err)
	}

	broken := a.started[0]
	broken.Command = []byte("{")
	a.started = append(a.started, broken)
	if _, err := a.execute("c1"); err == nil || a.Describe(broken.Command) != nil || a.Brief(broken.Command) != "" {
		t.Errorf("a broken command: %v", err)
	}
	short, err := json.Marshal(map[string]any{"request": transaction.WithdrawalRequest{CurrencyCode: "BTC"}, "to": "abc"})
	if brief := a.Brief(short); err != nil || !strings.HasSuffix(brief, " BTC …abc") {
		t.Errorf("a short address: %q, %v", brief, err)
	}
	if _, err := kit.NewIntegration(a.d.m.DB).Claim(t.Context(), integration.Withdrawals, "x"); err != nil {
		t.Error(err)
	}
}

// D-POL-21: an operator approves the order that was shown. The claim compares it with the rows, also if the stored
// digest of the order was altered too.
func TestApproverSignsOrder(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		d.Statements = unsigned{}
		d.operators("a", "b")
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "9"))
		d.judges(`{` + treasury + `}`)
		sign := func(by, id, order string) error {
			_, err := d.ResumeSigned(t.Context(), audit.By{UserID: by}, id, "", transaction.Signed{Order: order,
				ChallengeID: "challenge of " + by, IntentDigest: "intent of " + by})
			return err
		}
		id, other := d.queue("u", 5, "x"), d.queue("u", 5, "y")
		rows, order, err := d.Shown(t.Context(), id)
		storetest.Must(t, err)
		storetest.Same(t, rows, []challenge.Detail{{Key: "account", Value: "u"}, {Key: "amount", Value: "0.05 BTC (BTC)"},
			{Key: "fee", Value: "0.01 BTC"}, {Key: "address", Value: addresses["BTC"]}, {Key: "tag", Value: "none"},
			{Key: "reference", Value: "x"}, {Key: "rules", Value: "rule 0 (1)"},
			{Key: "initiator", Value: "service wallet, no owner"}})
		storetest.Wants(t, sign("a", other, order), fault.InvalidState)
		storetest.Must(t, sign("a", id, order))
		storetest.Must(t, sign("b", id, order))
		var kept []string
		storetest.Must(t, db.Conn(t.Context()).NewRaw("SELECT challenge_id || ', ' || intent_digest FROM "+
			"withdrawal_approval ORDER BY at, user_id").Scan(t.Context(), &kept))
		storetest.Same(t, kept, []string{"challenge of a, intent of a", "challenge of b, intent of b"})
		if text, err := d.claim(id, "token"); err != nil || !strings.Contains(text, `"own":null,"apr":2`) {
			t.Errorf("%s, %v", text, err)
		}

		storetest.Must(t, d.resume("a", other))
		storetest.Must(t, d.resume("b", other))
		foreign := transaction.Order{Account: "u", Address: addresses["BTC"], Amount: "0.05", Currency: "BTC",
			ExternalID: "z", Fee: "0.01", Network: "BTC"}.Digest()
		persistencetest.Exec(t, db, "UPDATE withdrawal_queue SET external_id = 'z' WHERE id = ?", other)
		persistencetest.Exec(t, db, "UPDATE withdrawal SET order_digest = ? WHERE id = ?", foreign, other)
		d.judges() // the rule is gone
		storetest.Wants(t, d.move(other, transaction.QueueProcessing), fault.InvalidState)
		d.read(other, transaction.QueueWaiting, transaction.HeldDigest)
		storetest.Wants(t, d.resume("a", other), fault.InvalidState)
	})
}
