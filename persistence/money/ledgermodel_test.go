package money_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/job"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/balance"
	"castellan/domain/money/ledger"
	"castellan/domain/money/ledger/ledgertest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// With 10000, each of rapid's hundred runs is so long, and so a million together.
var ledgerSteps = flag.Int("ledger.steps", 12, "movements in each run of the ledger's model")

// Random movements come to what an oracle of whole hundredths says, as decisions alone and on both databases, where the
// ledger verifies after them.
func TestLedgerAgainstItsModel(t *testing.T) {
	t.Run("decisions", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			b := &ledger.Batch{By: audit.Operator, Units: map[int64]int64{1: int64(amount.Unit(2))}}
			ledgerModel(r, modelled{func(m ledger.Movement) (bool, error) { return false, b.Do(m) }, b.Balance, 0}, *ledgerSteps)
		})
	})
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := ledgertest.New(money.NewLedger(db), db)
		do := func(m ledger.Movement) (repeated bool, err error) {
			got, err := l.Do(t.Context(), audit.Operator, m)
			return got.Repeated, err
		}
		balance := func(a ledger.Account) ledger.Balance {
			return storetest.Value(l.Balance(t.Context(), a.Owner, a.Asset))(t)
		}
		rapid.Check(t, func(r *rapid.T) { ledgerModel(r, modelled{do, balance, 1}, 12) })
		_, err := ledger.Verify(t.Context(), money.NewLedger(db))
		storetest.Must(t, err)
	})
}

// modelled is a ledger beside its oracle. The same movement again, at most repeats times, gets the same answer.
type modelled struct {
	do      func(ledger.Movement) (repeated bool, err error)
	balance func(ledger.Account) ledger.Balance
	repeats int
}

// oracle is what the users have and lock, in hundredths; user 3 is the treasury.
type oracle struct {
	posted, locked [4]int64
	holds          []heldSum
	moved          []movedSum
}

type heldSum struct {
	id   string
	user int
	n    int64
}

type movedSum struct {
	id       string
	from, to int
	n        int64
}

// spends reports whether a user may be debited while a lock of so much ends with it.
func (o *oracle) spends(user int, n, unlocked int64) bool {
	left := o.posted[user] - n
	return user == 3 || left >= 0 && (n <= unlocked || left >= o.locked[user]-unlocked)
}

func (o *oracle) move(id string, from, to int, n int64) {
	o.posted[from], o.posted[to] = o.posted[from]-n, o.posted[to]+n
	o.moved = append(o.moved, movedSum{id, from, to, n})
}

func hundredths(n int64) amount.Amount { return amount.Must(fmt.Sprintf("%d.%02d", n/100, n%100)) }

// ledgerModel makes steps movements of three users and one treasury, and compares
// each answer and balance with the oracle.
func ledgerModel(r *rapid.T, l modelled, steps int) {
	var o oracle
	var accounts [4]ledger.Account
	for i := range accounts {
		accounts[i] = ledger.Account{Kind: ledger.User, Owner: id.New(time.Now()), Asset: 1}
	}
	accounts[3].Kind = ledger.Treasury
	do := func(what string, fits bool, m ledger.Movement) (done bool) {
		for again := range 1 + rapid.IntRange(0, l.repeats).Draw(r, "again") {
			if repeated, err := l.do(m); (err == nil) != fits || fits && repeated != (again > 0) {
				r.Fatalf("%s, %+v of %+v: repeated %t, %v; fits: %v", what, m, o, repeated, err, fits)
			}
		}
		return fits
	}
	transfer := func(from, to int, n int64) ledger.Transfer {
		return ledger.New(time.Now(), "model", id.New(time.Now()), accounts[from], accounts[to], hundredths(n))
	}
	for range steps {
		u, n := rapid.IntRange(0, 2).Draw(r, "user"), rapid.Int64Range(1, 500).Draw(r, "sum")
		switch what := rapid.IntRange(0, 8).Draw(r, "what"); what {
		case 0, 1, 2: // in, out, and from one user to another
			from, to := [3]int{3, u, u}[what], [3]int{u, 3, (u + 1) % 3}[what]
			t := transfer(from, to, n)
			if ok := do("move", o.spends(from, n, 0), ledger.Movement{Transfers: []ledger.Transfer{t}}); ok {
				o.move(t.ID, from, to, n)
			}
		case 3, 4: // a hold; one of nine may exceed what is there
			h := ledger.NewHold(time.Now(), "model", id.New(time.Now()), "", accounts[u], hundredths(n))
			h.Beyond = what == 4 && n < 60
			fits := h.Beyond || max(0, o.posted[u]-o.locked[u]) >= n
			if ok := do("hold", fits, ledger.Movement{Take: []ledger.Hold{h}}); ok {
				o.locked[u] += n
				o.holds = append(o.holds, heldSum{h.ID, u, n})
			}
		case 5, 6, 7: // the end of a hold: settled by more or less than it, or released
			if len(o.holds) == 0 {
				continue
			}
			h := o.holds[0]
			t := transfer(h.user, 3, n)
			m, fits := ledger.Movement{End: []ledger.End{{Hold: h.id}}}, true
			if what < 7 {
				m.End[0].Transfer, m.Transfers, fits = t.ID, []ledger.Transfer{t}, o.spends(h.user, n, h.n)
			}
			if ok := do("end", fits, m); !ok {
				continue
			}
			if o.holds, o.locked[h.user] = o.holds[1:], o.locked[h.user]-h.n; what < 7 {
				o.move(t.ID, h.user, 3, n)
			}
		case 8: // a reversal, exact and once
			if len(o.moved) == 0 {
				continue
			}
			at := rapid.IntRange(0, len(o.moved)-1).Draw(r, "of")
			t := o.moved[at]
			was := ledger.Transfer{ID: t.id, Debit: accounts[t.from], Credit: accounts[t.to], Amount: hundredths(t.n)}
			back := ledger.Reversal(time.Now(), was, "")
			if ok := do("reverse", o.spends(t.to, t.n, 0), ledger.Movement{Transfers: []ledger.Transfer{back}}); ok {
				o.moved = append(o.moved[:at], o.moved[at+1:]...)
				o.move(back.ID, t.to, t.from, t.n)
			}
		}
		o.moved = o.moved[max(0, len(o.moved)-50):]
		if b := l.balance(accounts[u]); b.Posted != hundredths(o.posted[u]) || b.Locked != hundredths(o.locked[u]) {
			r.Fatalf("user %d has %+v, want %+v", u, b, o)
		}
	}
}

// Every booked movement can be closed, summed and verified. The movements are random, at the bounds of an amount. Their
// ids lie around two midnights and not in the order of their commits.
func TestLedgerAtTheBounds(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		l := ledgertest.New(money.NewLedger(db), db)
		l.Decimals = func(context.Context, int64) (int, error) { return amount.Decimals, nil }
		today := time.Now().UTC().Truncate(24 * time.Hour)
		asset, booked := int64(0), 0
		rapid.Check(t, func(r *rapid.T) {
			asset++
			booked += boundMovements(r, l, asset, today.AddDate(0, 0, -2))
		})
		if booked < 100 {
			t.Errorf("only %d movements were booked", booked)
		}
		now := today.Add(24*time.Hour - 1)
		n := ledger.Nightly(t.Context(), money.NewLedger(db), money.NewLedger(db), db, now)
		storetest.Must(t, n.Closing)
		storetest.Must(t, n.Verification)
		kind, _ := balance.Summing(money.NewBalances(db), func() time.Time { return now })
		for j := (job.Job{State: job.Running}); j.State != job.Done; {
			next, writes, err := kind.Step(t.Context(), j)
			storetest.Must(t, err)
			storetest.Must(t, db.Commit(t.Context(), writes...))
			j = next
		}
		_, err := money.NewAccounting(db).Totals(t.Context(), today.AddDate(0, 0, -3), now)
		storetest.Must(t, err)
	})
}

// boundMovements makes movements of an asset on the two days around a midnight and returns how many were booked.
func boundMovements(r *rapid.T, l *ledger.Ledger, asset int64, midnight time.Time) (booked int) {
	accounts := []ledger.Account{{Kind: ledger.User, Owner: "a"}, {Kind: ledger.User, Owner: "b"}, {Kind: ledger.Treasury},
		{Kind: ledger.Adjustment}, {Kind: ledger.Suspense}}
	for i := range accounts {
		accounts[i].Asset = asset
	}
	sums := rapid.OneOf(rapid.SampledFrom([]amount.Amount{amount.Most, amount.Must("999999999999999999"),
		amount.Must("0.000000000000000001")}), rapid.Map(rapid.Int64Range(1, 1e18-1), func(n int64) amount.Amount {
		return amount.Must(fmt.Sprint(n))
	}))
	for i := range rapid.IntRange(4, 12).Draw(r, "movements") {
		var m ledger.Movement
		for part := range rapid.IntRange(1, 2).Draw(r, "transfers") {
			from := rapid.IntRange(0, len(accounts)-1).Draw(r, "from")
			to := rapid.IntRange(0, len(accounts)-2).Draw(r, "to")
			if to >= from {
				to++
			}
			at := midnight.Add(time.Duration(rapid.IntRange(-2, 1).Draw(r, "hour")) * time.Hour)
			m.Transfers = append(m.Transfers, ledger.New(at, "bounds", fmt.Sprint(asset, i, part), accounts[from],
				accounts[to], sums.Draw(r, "sum")))
		}
		if rapid.IntRange(0, 3).Draw(r, "hold") == 0 {
			h := ledger.NewHold(midnight, "bounds", fmt.Sprint(asset, i), "", accounts[0], sums.Draw(r, "held"))
			h.Beyond, m.Transfers = true, nil
			m.Take = []ledger.Hold{h}
		}
		_, err := l.Do(r.Context(), audit.By{UserID: "op"}, m)
		switch fault.CodeOf(err) {
		case "":
			booked++
		case fault.InvalidState, fault.InvalidField, fault.Unavailable: // too little, too much, and too much of the house
		default:
			r.Fatalf("%+v: %v", m, err)
		}
	}
	return booked
}
