package transaction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/policy"
	"castellan/domain/money/rate"
	"castellan/domain/money/transaction"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// unsigned shows the claims of a statement.
type unsigned struct{}

func (unsigned) SignStatement(typ string, claims any) (string, error) {
	text, err := json.Marshal(claims)
	return typ + " " + string(text), err
}

var worker = audit.By{UserID: "service:wallet"}

// claim claims a withdrawal with a token, and returns the order.
func (d *desk) claim(id, token string) (string, error) {
	o, err := d.Move(d.t.Context(), worker, transaction.WalletMove{ID: id, To: transaction.QueueProcessing, Claim: token})
	if err != nil {
		return "", err
	}
	return d.Sign(worker, o)
}

// Of many workers one has the claim. It gets the same order again, until the withdrawal leaves the status.
func TestClaimToken(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		d.Statements, d.Issuer = unsigned{}, "castellan"
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "9"))
		id, won := d.queue("u", 5, "<x>"), make(chan string, 8)
		if n := storetest.Race(t, 8, fault.InvalidState, func(i int) error {
			_, err := d.claim(id, fmt.Sprint("worker ", i))
			if err == nil {
				won <- fmt.Sprint("worker ", i)
			}
			return err
		}); n != 1 {
			t.Errorf("%d workers have the claim", n)
		}
		owner := <-won
		first, err := d.claim(id, owner)
		storetest.Must(t, err)
		digest := transaction.Order{Account: "u", Address: addresses["BTC"], Amount: "0.05", Currency: "BTC",
			ExternalID: "<x>", Fee: "0.01", Network: "BTC"}.Digest()
		at := d.now().Unix()
		want := fmt.Sprintf(`withdrawal-order+jwt {"iss":"castellan","aud":"wallet","jti":"%s","sub":"u","iat":%d,"exp":%d,`+
			`"order":{"account":"u","address":"%s","amount":"0.05","currency":"BTC","externalId":"\u003cx\u003e",`+
			`"fee":"0.01","network":"BTC","tag":""},"digest":"%s","own":null,"apr":0}`, id, at, at+600, addresses["BTC"], digest)
		storetest.Equal(t, first, want, "the order")
		d.advance(5*time.Minute - time.Millisecond)
		if again, err := d.claim(id, owner); again != first || err != nil {
			t.Errorf("%s, %v", again, err)
		}
		d.advance(time.Millisecond)
		if later, err := d.claim(id, owner); later == first || err != nil {
			t.Errorf("it was not renewed: %s, %v", later, err)
		}
		for _, other := range []string{"another", ""} {
			_, err := d.claim(id, other)
			storetest.Wants(t, err, fault.InvalidState)
		}
		storetest.Must(t, d.move(id, transaction.TimeOut))
		_, err = d.claim(id, "another")
		storetest.Must(t, err)
		_, err = d.claim(id, owner)
		storetest.Wants(t, err, fault.InvalidState)

		// A wallet without tokens repeats its claim as before.
		id = d.queue("u", 5, "y")
		for range 2 {
			storetest.Must(t, d.move(id, transaction.QueueProcessing))
		}
		_, err = d.claim(id, owner)
		storetest.Wants(t, err, fault.InvalidState)
	})
}

// A withdrawal whose rows were altered in the database is held at its claim, and can only be cancelled.
func TestAlteredWithdrawal(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u", "v")
		alarms := map[string]bool{}
		d.Altered = func(id string) { alarms[id] = true }
		storetest.Must(t, d.m.Pay("u", "BTC/BTC", "9"))
		for i, change := range []string{"withdrawal_queue SET address = 'bc1q0ht9tyks4vh7p5p904t340cr9nvahy7u3re7zg'",
			"withdrawal_queue SET address_tag = '1'", "withdrawal_queue SET external_id = 'z'",
			"withdrawal_queue SET fee_lo = fee_lo + 1", "withdrawal_queue SET user_id = 'v'",
			"withdrawal SET lo = lo + 1", "withdrawal SET to_address = 'bc1q0ht9tyks4vh7p5p904t340cr9nvahy7u3re7zg'"} {
			id := d.queue("u", 5, fmt.Sprint(i))
			persistencetest.Exec(t, db, "UPDATE "+change+" WHERE id = ?", id)
			storetest.Wants(t, d.move(id, transaction.QueueProcessing), fault.InvalidState)
			d.read(id, transaction.QueueWaiting, transaction.HeldDigest)
			storetest.Equal(t, alarms[id], true, "an alarm after", change)
			storetest.Wants(t, d.resume("op", id), fault.InvalidState)
			storetest.Must(t, storetest.Err(d.Cancel(t.Context(), audit.By{UserID: "op"}, id, "")))
		}
	})
}

// The tag is a part of the destination: a foreign one does not pass the waiting time of the address book.
func TestTagOfTheBook(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		d := newDesk(t, db, "u")
		d.Waiting = 24 * time.Hour
		storetest.Must(t, d.m.Pay("u", "XRP/XRP", "90"))
		pair := d.m.Pair("XRP/XRP")
		enter := func(tag string) (id int64) {
			storetest.Must(t, db.InTx(t.Context(), func(ctx context.Context) (err error) {
				if _, err = d.Books.Hold(ctx, "u"); err == nil {
					id, err = d.Books.Insert(ctx, "u", addressbook.Entry{Name: "tag " + tag, Address: addresses["XRP"],
						AddressTag: tag, CurrencyID: pair.CurrencyID, NetworkID: pair.NetworkID, CreatedAt: d.now(),
						AddressAt: d.now()})
				}
				return err
			}))
			return id
		}
		tagged, bare := enter("104723"), enter("")
		d.advance(25 * time.Hour)
		enter("6") // waits
		for i, c := range []struct {
			entry int64
			tag   string
			want  fault.Code
			is    string
		}{
			{0, "104723", "", "104723"}, {0, "", "", ""}, {tagged, "", "", "104723"}, {tagged, "104723", "", "104723"},
			{bare, "", "", ""},
			{0, "5", fault.AddressNotAllowed, ""}, {0, "6", fault.AddressNotAllowed, ""},
			{tagged, "5", fault.InvalidField, ""}, {bare, "5", fault.InvalidField, ""},
			{0, "abc", fault.InvalidField, ""}, {0, "0104723", fault.InvalidField, ""},
		} {
			r := transaction.WithdrawalRequest{ExternalID: fmt.Sprint(i), UserID: "u", CurrencyCode: "XRP", NetworkCode: "XRP",
				Amount: amount.Must("1"), AddressTag: c.tag, AddressID: c.entry}
			if c.entry == 0 {
				r.Address = addresses["XRP"]
			}
			o, err := d.Request(t.Context(), worker, r)
			if fault.CodeOf(err) != c.want || o.Queued.AddressTag != c.is || err == nil && (o.Withdrawal.Initiator !=
				"SERVICE:wallet" || o.Queued.Address != addresses["XRP"]) {
				t.Errorf("%+v: %+v, %v", c, o, err)
			}
		}
	})
}

// A rule knows whether a destination is in the address book of the account, and since when.
func TestRulesOfTheBook(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t), "u")
	storetest.Must(t, d.m.Pay("u", "BTC/BTC", "2"))
	d.judges(`{"match":{"destination":{"inBook":false}},`+deny+`}`,
		`{"match":{"destination":{"bookAgeBelow":"48h"}},`+deny+`}`)
	denied := func() {
		t.Helper()
		_, err := d.ask("u", "BTC", 1, "x")
		storetest.Wants(t, err, fault.PolicyDenied)
	}
	denied()
	pair := d.m.Pair("BTC/BTC")
	storetest.Must(t, d.m.DB.InTx(t.Context(), func(ctx context.Context) error {
		_, err := d.Books.Insert(ctx, "u", addressbook.Entry{Name: "n", Address: addresses["BTC"],
			CurrencyID: pair.CurrencyID, NetworkID: pair.NetworkID, CreatedAt: d.now(), AddressAt: d.now()})
		return err
	}))
	d.advance(48*time.Hour - time.Millisecond)
	denied()
	d.advance(time.Millisecond)
	_, err := d.ask("u", "BTC", 1, "x")
	storetest.Must(t, err)
}

// stopped is a Past whose first Counted waits, so that a line forms behind it.
type stopped struct {
	transaction.Past
	once    sync.Once
	at, run chan struct{}
	broken  bool // it panics then
}

func (s *stopped) Counted(ctx context.Context, gates []string, queries ...transaction.CountedQuery) (map[string]int64,
	[][]transaction.Counted, error) {
	s.once.Do(func() { close(s.at); <-s.run })
	if s.broken {
		panic("broken")
	}
	return s.Past.Counted(ctx, gates, queries...)
}

// moving is a rate that rises at an instant.
type moving struct {
	rate.Store
	low, high string
	rises     time.Time
}

func (m moving) Last(_ context.Context, at time.Time, _ ...rate.Pair) ([]rate.Quote, error) {
	text := m.low
	if !at.Before(m.rises) {
		text = m.high
	}
	return []rate.Quote{{Pair: rate.Pair{Base: "BTC", Quote: "TRY"}, Rate: rate.Must(text), At: at}}, nil
}

// unit requests withdrawals of that many hundredths of a bitcoin, the last one a second later. All but the first wait
// at a gate behind it. unit returns the number of admitted ones and the error of the last. A broken unit panics.
func unit(t *testing.T, rule string, rates rate.Store, broken bool, hundreds ...int64) (admitted int, last error) {
	t.Helper()
	d := newDesk(t, persistencetest.SQLite(t))
	d.clients(len(hundreds), "2")
	j := d.judges(rule)
	if rates != nil {
		j.Rates = rates
	}
	d.advance(59 * time.Second)
	s := &stopped{Past: j.Past, at: make(chan struct{}), run: make(chan struct{}), broken: broken}
	j.Past = s
	errs := make([]error, len(hundreds))
	var ended sync.WaitGroup
	for i, n := range hundreds {
		if i == len(hundreds)-1 {
			d.advance(time.Second)
		}
		ended.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("panic: %v", p)
				}
			}()
			_, errs[i] = d.ask(fmt.Sprint("u", i), "BTC", n, fmt.Sprint("x", i))
		})
		if i == 0 {
			<-s.at
			continue
		}
		for j.Waiting() < i { // the first has been taken from the line
			time.Sleep(time.Millisecond)
		}
	}
	close(s.run)
	ended.Wait()
	for _, err := range errs {
		if err == nil {
			admitted++
		}
	}
	return admitted, errs[len(errs)-1]
}

// A unit of a gate admits what its requests would be admitted one after another (D-POL-09).
func TestUnitsJudgeAsTheirMovementsAlone(t *testing.T) {
	for name, c := range map[string]struct {
		rule     string
		rates    rate.Store
		hundreds []int64
		admitted int
	}{
		"a rule that begins while they wait": {`{"match":{"hours":{"from":"12:01","to":"13:00","zone":"UTC"},"sums":[` +
			`{"per":"PLATFORM","window":"1h","of":"COUNT","over":"2"}]},` + deny + `}`, nil, []int64{1, 1, 1}, 2},
		"a rate that rises while they wait": {sumRule("WITHDRAWAL", "PLATFORM", "1h", "VALUE", "100"),
			moving{low: "100", high: "1000", rises: time.Date(2026, 3, 10, 12, 1, 0, 0, time.UTC)}, []int64{50, 1, 1}, 2},
		"values below a cent": {sumRule("WITHDRAWAL", "PLATFORM", "1h", "VALUE", "0.01"),
			moving{low: "0.4", high: "0.4"}, []int64{1, 1, 1, 1, 1, 1, 1, 1}, 4},
		"a sum of some of them": {`{"match":{"sums":[{"per":"PLATFORM","window":"1h","of":"COUNT","over":"1"},` +
			`{"per":"DESTINATION","window":"1h","of":"COUNT","over":"2"}]},` + deny + `}`, nil, []int64{1, 1, 1}, 2},
	} {
		admitted, last := unit(t, c.rule, c.rates, false, c.hundreds...)
		if admitted != c.admitted || fault.CodeOf(last) != fault.PolicyDenied {
			t.Errorf("%s: %d admitted, want %d; the last: %v", name, admitted, c.admitted, last)
		}
	}
}

// A unit that panics answers every request of it.
func TestBrokenUnitAnswersAll(t *testing.T) {
	admitted, last := unit(t, sumRule("WITHDRAWAL", "PLATFORM", "1h", "COUNT", "9"), nil, true, 1, 1, 1)
	if admitted != 0 || last == nil {
		t.Errorf("%d admitted; the last: %v", admitted, last)
	}
}

// counting counts how often gates are read.
type counting struct {
	transaction.Past
	reads atomic.Int64
}

func (c *counting) Counted(ctx context.Context, gates []string, queries ...transaction.CountedQuery) (map[string]int64,
	[][]transaction.Counted, error) {
	c.reads.Add(1)
	return c.Past.Counted(ctx, gates, queries...)
}

// On one node no movement fails at a gate that it shares with movements whose widest gates are others.
func TestNarrowGateOfManyLines(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		const clients, each = 24, 2
		d := newDesk(t, db)
		d.clients(clients, "1")
		j := d.judges(sumRule("WITHDRAWAL", "INITIATOR", "24h", "COUNT", "2"),
			sumRule("WITHDRAWAL", "DESTINATION", "24h", "COUNT", "99"))
		c := &counting{Past: j.Past}
		j.Past = c
		won := storetest.Race(t, clients*each, "", func(i int) error {
			_, err := d.askBy(fmt.Sprint("w", i%clients), fmt.Sprint("u", i%clients), "BTC", 1, fmt.Sprint("x", i))
			return err
		})
		if reads := c.reads.Load(); won != clients*each || reads > int64(won) {
			t.Errorf("%d of %d requests were admitted, with %d reads of gates", won, clients*each, reads)
		}
	})
}

// sumsTogether reads sums of several accounts, destinations and initiators by one statement: each is what it is alone.
func sumsTogether(t *testing.T, db *persistence.DB, now time.Time) {
	t.Helper()
	var by []struct{ UserID, Destination, Initiator string }
	storetest.Must(t, db.Conn(t.Context()).NewRaw("SELECT DISTINCT user_id, destination, initiator FROM withdrawal "+
		"LIMIT 20").Scan(t.Context(), &by))
	var queries []transaction.CountedQuery
	for _, flow := range transaction.Flows() {
		for _, after := range []time.Time{now.Add(-time.Hour), now.Add(-72 * time.Hour)} {
			q := transaction.CountedQuery{Flow: flow, After: after}
			queries = append(queries, q)
			for _, x := range by {
				one, to, from, both := q, q, q, q
				one.UserID, to.Destination, from.Initiator = x.UserID, x.Destination, x.Initiator
				both.UserID, both.Initiator, both.Until = x.UserID, x.Initiator, now.Add(-time.Minute)
				if queries = append(queries, one, from, both); flow.Direction == policy.Out {
					queries = append(queries, to)
				}
			}
		}
	}
	past := money.NewTransactions(db)
	versions, all, err := past.Counted(t.Context(), []string{"unknown", "WITHDRAWAL/PLATFORM/"}, queries...)
	storetest.Must(t, err)
	if len(versions) != 1 || versions["WITHDRAWAL/PLATFORM/"] == 0 {
		t.Errorf("versions of gates: %v", versions)
	}
	found := 0
	for i, q := range queries {
		_, alone, err := past.Counted(t.Context(), nil, q)
		storetest.Must(t, err)
		if found += len(alone[0]); !reflect.DeepEqual(all[i], alone[0]) {
			t.Errorf("%+v\n together %v\n alone    %v", q, all[i], alone[0])
		}
	}
	if found == 0 {
		t.Error("no movements were counted")
	}
}
