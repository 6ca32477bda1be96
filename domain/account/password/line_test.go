package password

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
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
		time.Sleep(idle + time.Second)
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
			a := storetest.Value(g.Charge(t.Context(), "u", "p"))(t)
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
		storetest.Wants(t, logIn(t, g, r, h, "elsewhere"), "", "where no try is in line")
		for _, a := range held[:3] { // makes room for three
			storetest.Must(t, refund(t.Context(), a, r.Commit))
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
			a := storetest.Value(g.Charge(t.Context(), "u", "p"))(t)
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
		storetest.Equal(t, len(g.accounts), 0, "accounts are left")
		time.Sleep(idle + time.Second)
	})
}

// A caller that has left is neither hashed for nor judged, and gets the reason.
func TestHasherServesNoCallerThatLeft(t *testing.T) {
	h := small(t, HasherOptions{})
	native := storetest.Value(h.Hash(t.Context(), typed))(t)
	weak := foreign(t, "{SSHA}3HYXY1RXiZmbOpJr8U2NBIVfc/hzYWx0")
	wrapped := storetest.Value(h.Adopt(t.Context(), weak))(t)
	plain := storetest.Value(h.Adopt(t.Context(), strong(t, "scrypt$ln=14,r=8,p=1")))(t)
	busy := small(t, HasherOptions{Slots: 1})
	place := storetest.Value(busy.Admit(Caller{}))(t)
	defer place.Leave()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		h    *Hasher
		ctx  context.Context
		is   func(error) bool
		name string
	}{
		{h, gone, func(err error) bool { return errors.Is(err, context.Canceled) }, "left"},
		{busy, t.Context(), func(err error) bool { return fault.CodeOf(err) == fault.Overloaded }, "no place"},
	} {
		if text, err := c.h.Hash(c.ctx, typed); !c.is(err) || text != "" {
			t.Errorf("%s: hashed %q, %v", c.name, text, err)
		}
		if text, err := c.h.Adopt(c.ctx, weak); !c.is(err) || text != "" {
			t.Errorf("%s: adopted %q, %v", c.name, text, err)
		}
		for _, phc := range []string{native, wrapped, plain, ""} {
			if right, stale, err := c.h.Verify(c.ctx, typed, phc); !c.is(err) || right || stale {
				t.Errorf("%s: %q is right %t, stale %t, %v", c.name, phc, right, stale, err)
			}
		}
	}
	if text, err := ownPlace(h).Wrap(gone, plain); !errors.Is(err, context.Canceled) || text != "" {
		t.Errorf("wrapped %q, %v", text, err)
	}
}

// Without options a Hasher has the parameters that OWASP recommends, and a slot at least.
func TestDefaultHasher(t *testing.T) {
	h := storetest.Value(NewHasher(HasherOptions{}))(t)
	text, err := h.Hash(t.Context(), typed)
	if !strings.HasPrefix(text, "$argon2id$v=19$m=19456,t=2,p=1$") || err != nil || h.Slots() < 1 {
		t.Errorf("%s, %v, %d slots", text, err, h.Slots())
	}
	h.Trim()
	storetest.Equal(t, small(t, HasherOptions{Slots: 3}).Slots(), 3, "slots instead of 3")
}

// A try in the line of its prefix, or in that of its account, gives up with its caller, or after the longest wait. It
// is not charged then.
func TestGivesUpInLine(t *testing.T) {
	for _, prefix := range []string{"p", "q"} { // the line of the prefix, and the turn of the account
		synctest.Test(t, func(t *testing.T) {
			g, r := keeper()
			g.rules.Wait, r.lag = 4*time.Second, 10*time.Second
			var slow sync.WaitGroup
			slow.Go(func() {
				a, err := g.Charge(t.Context(), "u", "p")
				if err != nil {
					t.Error(err)
					return
				}
				a.Wrong()
			})
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if a, err := g.Charge(ctx, "u", prefix); !errors.Is(err, context.DeadlineExceeded) || a != nil {
				t.Errorf("%s: %v, %v", prefix, a, err)
			}
			began := time.Now()
			_, err := g.Charge(t.Context(), "u", prefix)
			var f *fault.Error
			if !errors.As(err, &f) || f.Code != fault.Overloaded || f.RetryAfter != 4*time.Second ||
				time.Since(began) != 4*time.Second {
				t.Errorf("%s: %v after %v", prefix, err, time.Since(began))
			}
			slow.Wait()
			if len(r.guards["u"].Tries) != 1 || len(g.accounts) != 0 {
				t.Errorf("%s: %+v, %d accounts are remembered", prefix, r.guards["u"], len(g.accounts))
			}
		})
	}
}

// A row that other nodes always change admits no try after twenty decisions.
func TestChargeOfABusyRow(t *testing.T) {
	g, r := keeper()
	fenced := make([]error, 20)
	for i := range fenced {
		fenced[i] = commit.ErrFenced
	}
	g.commit = &failing{r, fenced}
	_, err := g.Charge(t.Context(), "u", "p")
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Unavailable || f.RetryAfter != time.Second || len(r.guards) != 0 {
		t.Errorf("%v, %+v", err, r.guards)
	}
	g.commit = &failing{r, fenced[:19]}
	a, err := g.Charge(t.Context(), "u", "p")
	if err != nil || len(r.guards["u"].Tries) != 1 {
		t.Fatalf("%v, %+v", err, r.guards)
	}
	a.Wrong()
}
