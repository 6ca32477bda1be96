// Package ledgertest tests the contract of ledger.Store and the guarantees of Ledger: persistence runs the tests on
// both databases.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
)

// New returns a ledger of one node, whose assets have 2 decimals.
func New(s ledger.Store, c commit.Committer) *ledger.Ledger {
	return &ledger.Ledger{Store: s, Commit: c, Now: time.Now,
		Decimals: func(context.Context, int64) (int, error) { return 2, nil }}
}

// world is a user, a treasury and a node; every case has its own user.
type world struct {
	*testing.T
	ctx      context.Context
	l        *ledger.Ledger
	s        ledger.Store
	c        commit.Committer
	user     ledger.Account
	treasury ledger.Account
}

var (
	operator = audit.By{UserID: "op"}
	must     = amount.Must
	assets   atomic.Int64
)

func with(test func(w *world)) func(*testing.T, ledger.Store, commit.Committer) {
	return func(t *testing.T, s ledger.Store, c commit.Committer) {
		asset := assets.Add(1)
		test(&world{T: t, ctx: t.Context(), l: New(s, c), s: s, c: c,
			user:     ledger.Account{Kind: ledger.User, Owner: id.New(time.Now()), Asset: asset},
			treasury: ledger.Account{Kind: ledger.Treasury, Asset: asset}})
	}
}

func (w *world) in(ref, sum string) ledger.Transfer {
	return ledger.New(time.Now(), "deposit", w.user.Owner+ref, w.treasury, w.user, must(sum))
}

func (w *world) out(ref, sum string) ledger.Transfer {
	return ledger.New(time.Now(), "withdrawal", w.user.Owner+ref, w.user, w.treasury, must(sum))
}

func (w *world) do(l *ledger.Ledger, ts ...ledger.Transfer) (ledger.Result, error) {
	return l.Do(w.ctx, operator, ledger.Movement{Transfers: ts})
}

func (w *world) must(ts ...ledger.Transfer) ledger.Result {
	w.Helper()
	r := storetest.Value(w.do(w.l, ts...))(w)
	return r
}

func (w *world) refused(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("got %v, want %v", err, want)
	}
}

// has checks posted, locked and available of the user, and that the treasury has the opposite balance.
func (w *world) has(posted, locked, available string) {
	w.Helper()
	b := storetest.Value(w.l.Balance(w.ctx, w.user.Owner, w.user.Asset))(w)
	storetest.Same(w, []string{b.Posted.String(), b.Locked.String(), b.Available().String()},
		[]string{posted, locked, available})
	all := storetest.Value(w.s.Balances(w.ctx, w.treasury))(w)
	opposite := storetest.Value(b.Posted.Neg())(w)
	storetest.Equal(w, all[0].Posted, opposite, b.Posted)
}

func (w *world) hold(ref, sum string, beyond bool) (ledger.Hold, error) {
	h := ledger.NewHold(time.Now(), "queue", w.user.Owner+ref, "withdrawal", w.user, must(sum))
	h.Beyond = beyond
	r, err := w.l.Do(w.ctx, operator, ledger.Movement{Take: []ledger.Hold{h}})
	if err != nil {
		return h, err
	}
	return r.Holds[0], nil
}

// end releases a hold, or settles it by a transfer.
func (w *world) end(l *ledger.Ledger, hold string, by ...ledger.Transfer) (ledger.Result, error) {
	m := ledger.Movement{Transfers: by, End: []ledger.End{{Hold: hold}}}
	for _, t := range by {
		m.End[0].Transfer = t.ID
	}
	return l.Do(w.ctx, operator, m)
}

// nodes returns several nodes, which do not share their turns.
func (w *world) nodes() [3]*ledger.Ledger {
	return [3]*ledger.Ledger{w.l, New(w.s, w.c), New(w.s, w.c)}
}

// Run runs the suite. The store need not be empty.
func Run(t *testing.T, open storetest.Open[ledger.Store]) {
	storetest.Run(t, open, storetest.Cases[ledger.Store]{
		"Moves": with(func(w *world) {
			b := storetest.Value(w.l.Balance(w.ctx, w.user.Owner, w.user.Asset))(w)
			storetest.Same(w, b, ledger.Balance{Account: w.user})
			first := w.must(w.in("1", "10.5")).Transfers[0]
			w.must(w.out("1", "0.51"))
			w.has("9.99", "0", "9.99")
			storetest.Same(w, storetest.Value(w.s.ByRef(w.ctx, first.Kind, first.Ref))(w), first)
			owned := storetest.Value(w.s.Owned(w.ctx, w.user.Owner))(w)
			if len(owned) != 1 || owned[0].Seq != 2 || owned[0].Unit != 1e16 {
				w.Errorf("owned: %+v", owned)
			}
		}),
		// Of movements at once, each of which fits alone, one fills the treasury and the others are refused for that.
		"BoundsTheOperator": with(func(w *world) {
			var all sync.WaitGroup
			var made atomic.Int64
			for i, l := range w.nodes() {
				to := w.user
				to.Owner += fmt.Sprint(i)
				all.Go(func() {
					_, err := w.do(l, ledger.New(time.Now(), "x", to.Owner, w.treasury, to, must("600000000000000000")))
					if err == nil {
						made.Add(1)
					} else {
						w.refused(err, ledger.ErrFull)
					}
				})
			}
			if all.Wait(); made.Load() != 1 {
				w.Errorf("%d movements were made", made.Load())
			}
			err := w.c.Commit(w.ctx, ledger.Add{Account: w.treasury, Amount: must("-600000000000000000"), Count: 1})
			w.refused(err, commit.ErrCheck)
		}),
		"CountsAReferenceOnce": with(func(w *world) {
			first := w.must(w.in("1", "5"))
			again := w.must(w.in("1", "5"))
			storetest.Same(w, again.Transfers, first.Transfers)
			if first.Repeated || !again.Repeated {
				w.Errorf("repeated: %v, %v", first.Repeated, again.Repeated)
			}
			_, err := w.do(w.l, w.in("1", "6"))
			w.refused(err, ledger.ErrConflict)
			w.must(w.out("1", "5"))
			w.must(w.out("1", "5")) // a repeat does not depend on funds
			w.has("0", "0", "0")
		}),
		"CountsAReferenceOnceInARace": with(func(w *world) {
			nodes := w.nodes()
			var made atomic.Int64
			won := storetest.Race(w, 64, "", func(i int) error {
				r, err := w.do(nodes[i%3], w.in("1", "5"))
				if err == nil && !r.Repeated {
					made.Add(1)
				}
				return err
			})
			storetest.Equal(w, won, 64)
			storetest.Equal(w, made.Load(), 1)
			w.has("5", "0", "5")
			won = storetest.Race(w, 64, fault.RecordAlreadyExist,
				func(i int) error { return storetest.Err(w.do(nodes[i%3], w.in("2", fmt.Sprint(i+1)))) })
			storetest.Equal(w, won, 1)
		}),
		"NeverTakesMoreThanThereIsInARace": with(func(w *world) {
			w.must(w.in("0", "10"))
			nodes := w.nodes()
			won := storetest.Race(w, 30, fault.InvalidState,
				func(i int) error { return storetest.Err(w.do(nodes[i%3], w.out(fmt.Sprint(i), "1"))) })
			storetest.Equal(w, won, 10)
			w.has("0", "0", "0")
		}),
		"AddsUpAHotAccountInARace": with(func(w *world) {
			storetest.Race(w, 100, "", func(i int) error {
				u := w.user
				u.Owner += fmt.Sprint(i)
				_, err := w.do(w.l, ledger.New(time.Now(), "deposit", u.Owner, w.treasury, u, must("0.37")))
				return err
			})
			all := storetest.Value(w.s.Balances(w.ctx, w.treasury))(w)
			storetest.Equal(w, all[0].Posted, must("-37"))
			storetest.Equal(w, all[0].Seq, 100)
		}),
		"IsAllOrNothing": with(func(w *world) {
			w.must(w.in("1", "10"))
			fee := ledger.Account{Kind: ledger.Fee, Asset: w.user.Asset}
			feeOf := func(sum string) ledger.Transfer {
				return ledger.New(time.Now(), "fee", w.user.Owner+sum, w.user, fee, must(sum))
			}
			_, err := w.do(w.l, w.out("1", "9.5"), feeOf("0.51"))
			w.refused(err, ledger.ErrInsufficient)
			storetest.Wants(w, storetest.Err(w.s.ByRef(w.ctx, "withdrawal", w.user.Owner+"1")), fault.RecordNotFound)
			r := w.must(w.out("1", "9.5"), feeOf("0.5"))
			storetest.Equal(w, r.Transfers[0].Group, r.Transfers[1].Group, r.Transfers)
			storetest.Equal(w, r.Transfers[1].DebitSeq, 3, r.Transfers)
			_, err = w.do(w.l, w.out("2", "1"), feeOf("0.5"))
			if err == nil {
				w.Error("a new movement with an old part")
			}
		}),
		"Holds":                        with(holds),
		"Reverses":                     with(reverses),
		"EndsAHoldThatWasReadTooEarly": with(endedMeanwhile),
		"Decides":                      with(decides),
		"EndsAHoldOnceInARace": with(func(w *world) {
			w.must(w.in("1", "10"))
			h := storetest.Value(w.hold("1", "4", false))(w)
			nodes := w.nodes()
			storetest.OneWins(w, 12, fault.InvalidState,
				func(i int) error { return storetest.Err(w.end(nodes[i%3], h.ID, w.out(fmt.Sprint(i), "4"))) })
			w.has("6", "0", "6")
		}),
		"TakesAFinerPrecision": with(func(w *world) {
			w.must(w.in("1", "1"))
			w.l.Decimals = func(context.Context, int64) (int, error) { return 4, nil }
			w.must(w.in("2", "0.0001"))
			w.has("1.0001", "0", "1.0001")
			w.l.Decimals = func(context.Context, int64) (int, error) { return 0, fault.New(fault.RecordNotFound, "") }
			w.treasury.Asset, w.user.Asset = w.treasury.Asset+1e6, w.user.Asset+1e6
			_, err := w.do(w.l, w.in("3", "1"))
			w.refused(err, ledger.ErrNoAsset)
		}),
		"CommitsWhatBelongsToIt": with(func(w *world) {
			row := ledger.Open{Account: ledger.Account{Kind: ledger.Suspense, Owner: w.user.Owner, Asset: w.user.Asset}}
			_, err := w.l.Do(w.ctx, operator, ledger.Movement{
				Transfers: []ledger.Transfer{w.out("1", "1")}, With: []commit.Write{row}})
			w.refused(err, ledger.ErrInsufficient)
			opened := func() int {
				all := storetest.Value(w.s.Balances(w.ctx, row.Account))(w)
				return len(all)
			}
			storetest.Equal(w, opened(), 0, "a row of a movement that was refused")
			_, err = w.l.Do(w.ctx, operator, ledger.Movement{
				Transfers: []ledger.Transfer{w.in("1", "1")}, With: []commit.Write{row}})
			storetest.Must(w, err)
			storetest.Equal(w, opened(), 1, "the row of a movement is missing")
		}),
		"JoinsATransaction": with(func(w *world) {
			boom := errors.New("boom")
			w.refused(w.c.InTx(w.ctx, func(ctx context.Context) error {
				if _, err := w.l.Do(ctx, operator, ledger.Movement{Transfers: []ledger.Transfer{w.in("1", "1")}}); err != nil {
					return err
				}
				return boom
			}), boom)
			_, err := w.s.ByRef(w.ctx, "deposit", w.user.Owner+"1")
			storetest.Wants(w, err, fault.RecordNotFound)
		}),
	})
}
