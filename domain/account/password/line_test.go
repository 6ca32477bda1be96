package password

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/fault"
)

// logIn is a right login as session.Service performs it. It takes a place when nothing else prevents the charge.
func logIn(t *testing.T, g *Guards, r *rows, h *Hasher, prefix string) error {
	began := time.Now()
	who := Caller{Site: prefix, Since: began}
	if err := h.Full(prefix); err != nil {
		return err
	}
	seen, _ := r.Guard(t.Context(), "u")
	var place *Place
	a, err := g.ChargeSeen(t.Context(), seen, prefix, began, func(known bool) (err error) {
		who.Known = known
		place, err = h.Admit(who)
		return err
	})
	defer place.Leave()
	if err != nil {
		return err
	}
	slot, err := h.acquire(t.Context(), place)
	if err != nil {
		return errors.Join(err, a.Return(t.Context()))
	}
	time.Sleep(turnTime)
	h.done(slot)
	place.Leave()
	return refund(t.Context(), a, r.Commit)
}

// Twenty clients log in to one account from one address all the time. Each gets its turn: none waits much longer than
// the others.
func TestWaitersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		r.lag = time.Millisecond
		h := small(t, HasherOptions{Slots: 1, Queue: 128, Wait: 10 * time.Second})
		var mu sync.Mutex
		var took []time.Duration
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 20 {
					began := time.Now()
					if err := logIn(t, g, r, h, "p"); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		slices.Sort(took)
		if median, longest := took[len(took)/2], took[len(took)-1]; longest > 3*median || median > 25*turnTime {
			t.Errorf("median %v, longest %v", median, longest)
		}
		time.Sleep(h.idle + time.Second)
	})
}

// A try in line holds no place in the queue of hashes and is served in order. After too long a wait it gets a time to
// retry.
func TestLineOfAnAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, r := keeper()
		g.rules.Wait = 4 * time.Second
		h := small(t, HasherOptions{Slots: 1, Queue: 128})
		var held []*Attempt
		for range 10 {
			a, err := g.Charge(t.Context(), "u", "p")
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, a)
		}
		var mu sync.Mutex
		var order []int
		var ends []error
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				err := logIn(t, g, r, h, "p")
				mu.Lock()
				defer mu.Unlock()
				if order = append(order, i); err != nil {
					ends = append(ends, err)
				}
			})
			synctest.Wait()
		}
		if h.Waiting() != 0 || h.Running() != 0 {
			t.Errorf("%d places are held by those in line", h.Waiting())
		}
		if err := logIn(t, g, r, h, "elsewhere"); err != nil {
			t.Errorf("no try from elsewhere is in line: %v", err)
		}
		for _, a := range held[:3] { // makes room for three
			if err := refund(t.Context(), a, r.Commit); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			time.Sleep(turnTime)
			synctest.Wait()
		}
		time.Sleep(time.Second)
		mu.Lock()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) || len(ends) != 0 {
			t.Errorf("served %v, refused %v", order, ends)
		}
		mu.Unlock()
		wg.Wait()
		for range 3 {
			a, err := g.Charge(t.Context(), "u", "p")
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, a)
		}
		began := time.Now()
		err := logIn(t, g, r, h, "p")
		var e *fault.Error
		if !errors.As(err, &e) || e.Code != fault.Overloaded || e.RetryAfter != 4*time.Second ||
			time.Since(began) != 4*time.Second {
			t.Errorf("after %v in line: %v", time.Since(began), err)
		}
		began = time.Now()
		seen, _ := r.Guard(t.Context(), "u")
		_, err = g.ChargeSeen(t.Context(), seen, "p", began.Add(-3*time.Second), func(bool) error { return nil })
		if fault.CodeOf(err) != fault.Overloaded || time.Since(began) != time.Second {
			t.Errorf("who waited for 3 s before, and %v in line: %v", time.Since(began), err)
		}
		for _, a := range held[3:] {
			a.Wrong()
		}
		if len(g.accounts) != 0 {
			t.Errorf("%d accounts are left", len(g.accounts))
		}
		time.Sleep(h.idle + time.Second)
	})
}
