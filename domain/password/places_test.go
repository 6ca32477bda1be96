package password

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/fault"
)

const turnTime = 75 * time.Millisecond // of a hash

// hash holds a slot as long as a hash does.
func (h *Hasher) hash(ctx context.Context, who Caller) error {
	p, err := h.Admit(who)
	if err != nil {
		return err
	}
	defer p.Leave()
	a, err := h.acquire(ctx, who)
	if err != nil {
		return err
	}
	time.Sleep(turnTime)
	h.done(a)
	return nil
}

// One host with 150 connections asks all the time. Whoever else comes waits for its
// hash and for no other, whether the account knows the place or not (D-PWD-05).
func TestOneHostKeepsNobodyWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{Slots: 1, Queue: 128, Wait: 10 * time.Second})
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		refused := 0
		var mu sync.Mutex
		for range 150 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := h.hash(ctx, Caller{Site: "attacker"}); fault.CodeOf(err) == fault.Overloaded {
						mu.Lock()
						refused++
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
					}
				}
			})
		}
		time.Sleep(time.Second + turnTime/3)
		for i := range 20 {
			began := time.Now()
			if err := h.hash(t.Context(), Caller{Site: fmt.Sprint("owner", i), Known: i%2 == 0}); err != nil {
				t.Errorf("owner %d: %v", i, err)
			}
			if took := time.Since(began); took > 3*turnTime {
				t.Errorf("owner %d waited %v, which is more than three turns", i, took)
			}
			time.Sleep(turnTime / 2)
		}
		stop()
		wg.Wait()
		if refused == 0 {
			t.Error("150 callers had a place: an eighth of 129 is 16")
		}
		time.Sleep(h.idle + time.Second)
	})
}

func TestShareOfPlaces(t *testing.T) {
	h := small(t, HasherOptions{Slots: 1, Queue: 127})
	take := func(site string, known bool) (n int) {
		for n < 1000 {
			if _, err := h.Admit(Caller{Site: site, Known: known}); err != nil {
				return n
			}
			n++
		}
		return n
	}
	if n := take("a", false); n != 16 {
		t.Errorf("a site holds %d of 128 places", n)
	}
	if h.Full("a") == nil || h.Full("b") != nil {
		t.Error("the site with its share is full, another is not")
	}
	for i := range 5 {
		take(fmt.Sprint("b", i), false)
	}
	if n := take("last", false); n != 16 {
		t.Errorf("the seventh site holds %d", n)
	}
	if n := take("late", false); n != 0 || h.Full("late") != nil {
		t.Errorf("of the last eighth a stranger took %d", n)
	}
	if n := take("owner", true); n != 16 {
		t.Errorf("of the last eighth those who are known took %d", n)
	}
	if h.Full("anybody") == nil {
		t.Error("everything is taken")
	}
	h = small(t, HasherOptions{Slots: 1, Queue: 127})
	if n := take("", true); n != 128 {
		t.Errorf("the service's own work had %d places", n)
	}
}

func knownAt(site string) Caller { return Caller{Site: site, Known: true} }

// Sites take turns, and those who are known take them with those who are not.
func TestTurnsOfSites(t *testing.T) {
	for name, c := range map[string]struct {
		callers []Caller
		want    []int // callers in the order in which they are served
	}{
		"one site, in order":       {[]Caller{{Site: "a"}, {Site: "a"}, {Site: "a"}}, []int{0, 1, 2}},
		"two sites":                {[]Caller{{Site: "a"}, {Site: "a"}, {Site: "a"}, {Site: "b"}}, []int{0, 3, 1, 2}},
		"who is known comes first": {[]Caller{{Site: "a"}, {Site: "b"}, {Site: "c", Known: true}}, []int{2, 0, 1}},
		"and not all the time":     {[]Caller{{Site: "a"}, knownAt("c"), knownAt("c")}, []int{1, 0, 2}},
		"known sites take turns": {[]Caller{knownAt("a"), knownAt("a"), knownAt("b")},
			[]int{0, 2, 1}},
		"the own work has its turn": {[]Caller{{Site: "a"}, {Site: "a"}, {}}, []int{0, 2, 1}},
	} {
		p := newPlaces(100)
		var waiters []*waiter
		for _, who := range c.callers {
			waiters = append(waiters, p.wait(who))
		}
		var got []int
		for w := p.next(); w != nil; w = p.next() {
			got = append(got, slices.Index(waiters, w))
		}
		if !slices.Equal(got, c.want) || p.waiting() != 0 || len(p.turns[0].lines)+len(p.turns[1].lines) != 0 {
			t.Errorf("%s: served %v, want %v; %d wait", name, got, c.want, p.waiting())
		}
	}
	p := newPlaces(100)
	first, second := p.wait(Caller{Site: "a"}), p.wait(Caller{Site: "a"})
	third := p.wait(Caller{Site: "b"})
	first.giveUp()
	third.giveUp()
	if w := p.next(); w != second || p.next() != nil || p.waiting() != 0 {
		t.Error("who gave up is served, or held the others up")
	}
}

// What a caller waited elsewhere is part of its wait.
func TestWaitCountsFromSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{Slots: 1, Queue: 10, Wait: 5 * time.Second})
		held, _ := h.acquire(t.Context(), own)
		began := time.Now()
		time.Sleep(3 * time.Second)
		if err := h.hash(t.Context(), Caller{Site: "a", Since: began}); fault.CodeOf(err) != fault.Overloaded ||
			time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		h.done(held)
		time.Sleep(h.idle + time.Second)
	})
}
