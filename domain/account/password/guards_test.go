package password

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// rows is a store of guards and its committer.
type rows struct {
	mu            sync.Mutex
	guards        map[string]Guard
	reads, writes int
	fail          error // of the next commit
	lag           time.Duration
}

func (r *rows) Guard(_ context.Context, key string) (Guard, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	g := r.guards[key]
	g.Key = key
	return g, nil
}

func (r *rows) Purge(context.Context, time.Time) error { return nil }

func (r *rows) Commit(_ context.Context, writes ...commit.Write) error {
	time.Sleep(r.lag)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.fail; err != nil {
		r.fail = nil
		return err
	}
	for _, w := range writes {
		if _, is := w.(commit.Unflushed); is {
			continue
		}
		g := w.(SaveGuard).Guard
		if r.guards[g.Key].Version != g.Version {
			return commit.ErrFenced
		}
		g.Version++
		r.guards[g.Key] = g
		r.writes++
	}
	return nil
}

func (r *rows) InTx(ctx context.Context, fn func(context.Context) error) error { return fn(ctx) }

// refund settles a try as a login does: in one unit that save commits.
func refund(ctx context.Context, a *Attempt, save func(context.Context, ...commit.Write) error) error {
	defer a.Wrong()
	for {
		w, err := a.Refund(ctx)
		if err != nil {
			return err
		}
		if err = save(ctx, w); err == nil {
			a.Refunded()
			return nil
		} else if !errors.Is(err, commit.ErrFenced) {
			return err
		}
	}
}

func keeper() (*Guards, *rows) {
	r := &rows{guards: map[string]Guard{}}
	return NewGuards(r, r, DefaultGuardRules(), time.Now), r
}

func TestChargeIsDurableAndRefundGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		a, err := g.Charge(t.Context(), "u", "p")
		if err != nil || len(r.guards["u"].Tries) != 1 {
			t.Fatalf("%v, %+v", err, r.guards["u"])
		}
		storetest.Must(t, refund(t.Context(), a, r.Commit))
		a.Wrong() // deferred by callers; it does nothing here
		if got := r.guards["u"]; len(got.Tries) != 0 || len(got.Good) != 1 || got.Version != 2 {
			t.Errorf("%+v", got)
		}
		if r.reads != 1 || r.writes != 2 {
			t.Errorf("a login read %d and wrote %d rows, want 1 and 2", r.reads, r.writes)
		}
		b, _ := g.Charge(t.Context(), "u", "p")
		b.Wrong()
		c, _ := g.Charge(t.Context(), "u", "p")
		storetest.Must(t, c.Return(t.Context()))
		for _, settled := range []*Attempt{a, b, c} {
			settled.Wrong()
			_, refunded := settled.Refund(t.Context())
			if err := settled.Return(t.Context()); !errors.Is(err, errSettled) || !errors.Is(refunded, errSettled) {
				t.Errorf("settled again: %v, %v", refunded, err)
			}
		}
		if got := r.guards["u"]; len(got.Tries) != 1 || r.writes != 5 {
			t.Errorf("one wrong and one that was not judged: %+v after %d writes", got, r.writes)
		}
		storetest.Equal(t, len(g.accounts), 0, "accounts are remembered without a try")
	})
}

// Ten wrong tries are judged and no more, whatever the timing.
func TestWrongTriesUnderRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		r.lag = time.Millisecond
		judged := storetest.Race(t, 200, fault.RateLimited, func(i int) error {
			a, err := g.Charge(t.Context(), "u", "p")
			if err == nil {
				time.Sleep(time.Duration(i%7) * 10 * time.Millisecond) // the hash
				a.Wrong()
			}
			return err
		})
		storetest.Equal(t, judged, 10, "judged")
		storetest.Equal(t, len(g.accounts), 0, "accounts are left")
	})
}

// Many users of one office log in to one account at once: all are accepted.
func TestRightTriesUnderRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		r.lag = time.Millisecond
		storetest.Race(t, 64, "", func(int) error {
			a, err := g.Charge(t.Context(), "u", "p")
			if err != nil {
				return err
			}
			time.Sleep(30 * time.Millisecond)
			if n := r.tries("u"); n > 10 {
				t.Errorf("%d tries at once", n)
			}
			return refund(t.Context(), a, r.Commit)
		})
		if got := r.guards["u"]; len(got.Tries) != 0 || got.Version != 128 {
			t.Errorf("%+v", got)
		}
	})
}

func (r *rows) tries(key string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.guards[key].Tries)
}

// Several nodes write one row: the fence makes each decide on the current row.
func TestNodesShareTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, r := keeper()
		nodes := []*Guards{first, NewGuards(r, r, DefaultGuardRules(), time.Now),
			NewGuards(r, r, DefaultGuardRules(), time.Now)}
		judged := storetest.Race(t, 90, fault.RateLimited, func(i int) error {
			a, err := nodes[i%3].Charge(t.Context(), "u", "p")
			if err == nil {
				a.Wrong()
			}
			return err
		})
		if judged != 10 || len(r.guards["u"].Tries) != 10 {
			t.Errorf("%d judged, %d counted", judged, len(r.guards["u"].Tries))
		}
	})
}

func TestRefundIsDecidedAgainWhenFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		a := storetest.Value(g.Charge(t.Context(), "u", "p"))(t)
		other, _ := NewGuards(r, r, DefaultGuardRules(), time.Now).Charge(t.Context(), "u", "q") // another node
		other.Wrong()
		calls := 0
		storetest.Must(t, refund(t.Context(), a, func(ctx context.Context, w ...commit.Write) error {
			calls++
			return r.Commit(ctx, w...)
		}))
		if got := r.guards["u"]; calls != 2 || len(got.Tries) != 1 || got.Tries[0].Prefix != "q" {
			t.Errorf("%d calls, %+v", calls, got)
		}
		b, _ := g.Charge(t.Context(), "u", "p")
		boom := errors.New("boom")
		if err := refund(t.Context(), b, func(context.Context, ...commit.Write) error { return boom }); !errors.Is(err,
			boom) {
			t.Error(err)
		}
		c, _ := g.Charge(t.Context(), "u", "p")
		if err := refund(t.Context(), c,
			func(context.Context, ...commit.Write) error { return commit.ErrFenced }); fault.CodeOf(err) != fault.Unavailable {
			t.Errorf("a row that always moves on: %v", err)
		}
		if got := r.guards["u"]; len(got.Tries) != 3 || len(g.accounts) != 0 {
			t.Errorf("what could not be given back counts: %+v", got)
		}
	})
}

func TestOperatorUnlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		for range 10 {
			a := storetest.Value(g.Charge(t.Context(), "u", "p"))(t)
			a.Wrong()
		}
		storetest.Wants(t, storetest.Err(g.Charge(t.Context(), "u", "p")), fault.RateLimited)
		held := storetest.Value(g.Charge(t.Context(), "u", "q"))(t) // keeps the account in memory
		r.guards["u"] = Guard{Key: "u", Version: r.guards["u"].Version + 1}
		storetest.Value(g.Charge(t.Context(), "u", "p"))(t).Wrong()
		held.Wrong()
	})
}

// A waiting caller can give up, and waits no longer than it may. A failing database charges no try twice.
func TestChargeCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		g.rules.Wait = 4 * time.Second
		var held []*Attempt
		for range 10 {
			a := storetest.Value(g.Charge(t.Context(), "u", "p"))(t)
			held = append(held, a)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Charge(ctx, "u", "p"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		began := time.Now()
		if _, err := g.Charge(t.Context(), "u", "p"); fault.CodeOf(err) != fault.Overloaded ||
			time.Since(began) != 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for _, a := range held {
			a.Wrong()
		}
		storetest.Wants(t, storetest.Err(g.Charge(t.Context(), "u", "p")), fault.RateLimited)
		r.fail = fault.New(fault.Unavailable, "down")
		storetest.Wants(t, storetest.Err(g.Charge(t.Context(), "v", "p")), fault.Unavailable)
		if len(g.accounts) != 0 || len(r.guards["v"].Tries) != 0 {
			t.Errorf("%d accounts are left, %+v", len(g.accounts), r.guards["v"])
		}
	})
}

func TestAccountsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		r.lag = time.Second
		start := time.Now()
		storetest.Race(t, 50, "", func(i int) error {
			a, err := g.Charge(t.Context(), fmt.Sprint("u", i), "p")
			if err == nil {
				a.Wrong()
			}
			return err
		})
		storetest.Equal(t, time.Since(start), time.Second, "fifty accounts took")
	})
}

// A key without a guard starts with the tries of its former names, and continues with its own.
func TestGuardsInherit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		charge := func(key string, former ...string) error {
			a, err := g.Charge(t.Context(), key, "p", former...)
			if err == nil {
				a.Wrong()
			}
			return err
		}
		for i := range 9 {
			storetest.Must(t, charge(fmt.Sprint("old", i%2)))
			time.Sleep(time.Second)
		}
		seen, err := g.ChargeSeen(t.Context(), Guard{Key: "new"}, "p", time.Now(),
			func(bool) error { return nil }, "old0", "old1")
		storetest.Must(t, err)
		seen.Wrong()
		if fault.CodeOf(charge("new", "old0", "old1")) != fault.RateLimited || len(r.guards["new"].Tries) != 10 {
			t.Errorf("the eleventh try passed: %+v", r.guards["new"])
		}
		if err := charge("third", "none"); err != nil || len(r.guards["third"].Tries) != 1 {
			t.Errorf("%v, %+v", err, r.guards["third"])
		}
	})
}
