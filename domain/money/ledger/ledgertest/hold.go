package ledgertest

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/ledger"
)

// holds locks, releases, settles, and blocks more than the balance.
func holds(w *world) {
	w.must(w.in("1", "10"))
	h := storetest.Value(w.hold("1", "4", false))(w)
	w.has("10", "4", "6")
	again := storetest.Value(w.hold("1", "4", false))(w)
	storetest.Same(w, again, h)
	_, err := w.hold("1", "5", false)
	w.refused(err, ledger.ErrConflict)
	_, err = w.hold("2", "6.01", false)
	w.refused(err, ledger.ErrInsufficient)
	_, err = w.do(w.l, w.out("1", "6.01"))
	w.refused(err, ledger.ErrInsufficient)

	// A settlement takes at most the locked amount; the rest is released.
	other := w.out("2", "4")
	other.Debit, other.Credit = other.Credit, other.Debit
	storetest.Fails(w, storetest.Err(w.end(w.l, h.ID, other)), "", "settled by a transfer of another account")
	r := storetest.Value(w.end(w.l, h.ID, w.out("3", "3")))(w)
	w.has("7", "0", "7")
	h = storetest.Value(w.s.Hold(w.ctx, h.ID))(w)
	if h.State != ledger.Settled || h.Transfer != r.Transfers[0].ID || h.Version != 2 {
		w.Errorf("settled: %+v", h)
	}
	w.refused(storetest.Err(w.end(w.l, h.ID)), ledger.ErrEnded)
	_, err = w.end(w.l, h.ID, w.out("4", "1"))
	w.refused(err, ledger.ErrEnded)
	storetest.Wants(w, storetest.Err(w.end(w.l, "unknown")), fault.RecordNotFound)

	// A blockage may exceed the balance and also holds future funds (D-BLK-03).
	b := storetest.Value(w.hold("5", "100", true))(w)
	w.has("7", "100", "0")
	w.must(w.in("2", "50"))
	w.has("57", "100", "0")
	_, err = w.do(w.l, w.out("5", "0.01"))
	w.refused(err, ledger.ErrInsufficient)
	storetest.Must(w, storetest.Err(w.end(w.l, b.ID)))
	storetest.Must(w, storetest.Err(w.end(w.l, b.ID))) // the same again
	w.has("57", "0", "57")
}

// stale is a store that returns the old state of a hold for a number of reads.
type stale struct {
	ledger.Store
	was  ledger.Hold
	left int
}

func (s *stale) Hold(ctx context.Context, id string) (ledger.Hold, error) {
	if s.left--; s.left >= 0 {
		return s.was, nil
	}
	return s.Store.Hold(ctx, id)
}

// endedMeanwhile ends a hold that another node has ended between the reads of the hold and of the balance.
func endedMeanwhile(w *world) {
	w.must(w.in("1", "10"))
	h := storetest.Value(w.hold("1", "4", false))(w)
	storetest.Must(w, storetest.Err(w.end(w.l, h.ID)))
	late := New(&stale{w.s, h, 2}, w.c)
	storetest.Must(w, storetest.Err(w.end(late, h.ID)))
	late = New(&stale{w.s, h, 1}, w.c)
	_, err := w.end(late, h.ID, w.out("1", "4"))
	w.refused(err, ledger.ErrEnded)
	w.has("10", "0", "10")
}

// decides takes all available funds while other movements run: a plan is only executed on the balances it was made
// from, on every node.
func decides(w *world) {
	w.must(w.in("0", "100"))
	whole := func(_ context.Context, has []ledger.Balance) (m ledger.Movement, err error) {
		if free := has[0].Available(); free.Sign() > 0 {
			m.Take = []ledger.Hold{ledger.NewHold(time.Now(), "all", id.New(time.Now()), "", w.user, free)}
		}
		return m, nil
	}
	nodes := w.nodes()
	held := make([]ledger.Result, 12)
	storetest.Race(w, 36, fault.InvalidState, func(i int) (err error) {
		l, ref := nodes[i%3], fmt.Sprint(i)
		switch n := i / 3; n % 3 {
		case 0:
			held[n/3*3+i%3], err = l.Decide(w.ctx, operator, []ledger.Account{w.user}, whole)
		case 1:
			_, err = w.do(l, w.in(ref, "7"))
		default:
			_, err = w.do(l, w.out(ref, "3"))
		}
		return err
	})
	last := storetest.Value(w.l.Decide(w.ctx, operator, []ledger.Account{w.user}, whole))(w)
	var sum amount.Amount
	for _, r := range append(held, last) {
		for _, h := range r.Holds {
			sum = storetest.Value(sum.Add(h.Amount))(w)
		}
	}
	b := storetest.Value(w.l.Balance(w.ctx, w.user.Owner, w.user.Asset))(w)
	if b.Available().Sign() != 0 || b.Locked != sum || b.Posted != sum {
		w.Errorf("%+v, held %s", b, sum)
	}
	// If nothing is to be done, nothing is written.
	r := storetest.Value(w.l.Decide(w.ctx, operator, []ledger.Account{w.user}, whole))(w)
	if again, err := w.l.Balance(w.ctx, w.user.Owner, w.user.Asset); len(r.Holds) > 0 || again != b {
		w.Errorf("%+v, %+v, %v", r, again, err)
	}
}

// reverses reverses transfers.
func reverses(w *world) {
	in := w.must(w.in("1", "10")).Transfers[0]
	back := w.must(ledger.Reversal(time.Now(), in, "booked twice"))
	w.has("0", "0", "0")
	t := back.Transfers[0]
	if t.Reverses != in.ID || t.Debit != in.Credit || t.Credit != in.Debit || t.Reason != "booked twice" {
		w.Errorf("the reversal is %+v", t)
	}
	again := w.must(ledger.Reversal(time.Now(), in, "booked twice"))
	if !again.Repeated || again.Transfers[0].ID != t.ID {
		w.Errorf("reversed again: %+v", again)
	}

	in = w.must(w.in("2", "10")).Transfers[0]
	w.must(w.out("2", "1"))
	_, err := w.do(w.l, ledger.Reversal(time.Now(), in, ""))
	w.refused(err, ledger.ErrInsufficient) // part of it is spent
	second := ledger.New(time.Now(), "correction", w.user.Owner, w.user, w.treasury, in.Amount)
	second.Reverses = in.ID
	second.Amount = must("9")
	storetest.Fails(w, storetest.Err(w.do(w.l, second)), "", "a reversal of a part")
}
