package password

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

const turnTime = 75 * time.Millisecond // of a hash

func (p *places) waiting() (n int) {
	for _, t := range p.turns {
		for _, l := range t.lines {
			n += l.waiters.Len()
		}
	}
	return n
}

// hash holds a slot for the duration of a hash.
func (h *Hasher) hash(ctx context.Context, who Caller) error {
	p, err := h.Admit(who)
	if err != nil {
		return err
	}
	defer p.Leave()
	a, err := h.acquire(ctx, p)
	if err != nil {
		return err
	}
	time.Sleep(turnTime)
	h.done(a)
	return nil
}

// admitAll takes places for a site until one is refused, and returns how many it got.
func admitAll(h *Hasher, c Caller) (n int) {
	for n < 1000 {
		if _, err := h.Admit(c); err != nil {
			return n
		}
		n++
	}
	return n
}

// A site may use every free place; an eighth more is reserved for known callers.
func TestFreePlaces(t *testing.T) {
	h := small(t, HasherOptions{Slots: 1, Queue: 127})
	storetest.Equal(t, admitAll(h, Caller{Site: "a"}), 128, "places of one site")
	storetest.Equal(t, admitAll(h, Caller{Site: "b"}), 0, "places of a stranger if none is free")
	if n := admitAll(h, knownAt("c")); n != 16 || h.Full("d") == nil {
		t.Errorf("known callers took %d of the last 16", n)
	}
	h = small(t, HasherOptions{Slots: 1, Queue: 127})
	storetest.Equal(t, admitAll(h, own), 144, "places of the service itself")
}

// The displaced caller gets its error at once.
func TestDisplacedCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{Slots: 1, Queue: 2, Wait: 10 * time.Second})
		answers := make([]chan error, 4)
		for i, site := range []string{"a", "a", "a", "b"} {
			answers[i] = make(chan error, 1)
			go func() { answers[i] <- h.hash(t.Context(), Caller{Site: site}) }()
			synctest.Wait()
		}
		select {
		case err := <-answers[2]:
			storetest.Wants(t, err, fault.Overloaded, "the newest of three")
		default:
			t.Error("the newest of three was not displaced")
		}
		for _, i := range []int{0, 1, 3} {
			storetest.Wants(t, <-answers[i], "", "caller", i)
		}
		if h.Refused() != 1 || h.places.admitted != 0 || len(h.places.held) != 0 {
			t.Errorf("%d refused, %d still admitted, %v", h.Refused(), h.places.admitted, h.places.held)
		}
		time.Sleep(idle + time.Second)
	})
}

// One host keeps the queue full. The other callers are never refused, and the host is served at most once before
// another waiting caller (D-PWD-05).
func TestTurnsBesideAFullQueue(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			h := small(t, HasherOptions{Slots: 1, Queue: 20, Wait: time.Minute})
			ctx, stop := context.WithCancel(t.Context())
			var mu sync.Mutex
			var served []string // sites, in the order in which their hashes began
			hash := func(ctx context.Context, who Caller) (seen []string, err error) {
				p, err := h.Admit(who)
				if err != nil {
					return nil, err
				}
				defer p.Leave()
				mu.Lock()
				before := len(served)
				mu.Unlock()
				a, err := h.acquire(ctx, p)
				if err != nil {
					return nil, err
				}
				mu.Lock()
				seen = slices.Clone(served[before:])
				served = append(served, who.Site)
				mu.Unlock()
				time.Sleep(turnTime)
				h.done(a)
				return seen, nil
			}
			var host, others sync.WaitGroup
			for range 30 {
				host.Go(func() {
					for ctx.Err() == nil {
						if _, err := hash(ctx, Caller{Site: "host"}); err != nil {
							time.Sleep(10 * time.Millisecond)
						}
					}
				})
			}
			time.Sleep(time.Second)
			for i := range 6 {
				who := Caller{Site: fmt.Sprint("other ", i/2), Known: r.IntN(2) == 0}
				pauses := make([]time.Duration, 10)
				for k := range pauses {
					pauses[k] = time.Duration(r.IntN(1000)) * time.Millisecond
				}
				others.Go(func() {
					for _, pause := range pauses {
						time.Sleep(pause)
						seen, err := hash(t.Context(), who)
						if err != nil {
							t.Errorf("seed %d: %v: %v", seed, who, err)
						}
						if hosts := len(seen) - len(slices.DeleteFunc(seen, func(s string) bool { return s == "host" })); hosts > 1+
							(len(seen)-hosts) {
							t.Errorf("seed %d: %v waited for %d turns of the host and %d of others", seed, who, hosts,
								len(seen)-hosts)
						}
					}
				})
			}
			others.Wait()
			stop()
			host.Wait()
			time.Sleep(idle + time.Second)
		})
	}
}

// modelPlace is a place in the model, a plain list.
type modelPlace struct {
	place   *Place
	waiting *waiter
}

// The places agree with a plain list. A caller is refused only when no place is free and no other site with a
// displaceable waiter would still hold as many as its own. The displaced caller is the newest such waiter of the site
// that holds the most.
func TestPlacesAgainstAList(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := newPlaces(16)
		var list []modelPlace
		held := func(site string) (n int) {
			for _, m := range list {
				if m.place.who.Site == site && site != "" {
					n++
				}
			}
			return n
		}
		knowns := func() (n int) {
			for _, m := range list {
				if m.place.who.Known {
					n++
				}
			}
			return n
		}
		often := 2 + r.IntN(4) // one in that many callers is known
		for step := range 400 {
			switch r.IntN(4) {
			case 0, 1:
				c := Caller{Site: []string{"", "a", "a", "a", "b", "b", "c", "d"}[r.IntN(8)], Known: r.IntN(often) == 0}
				free := len(list) < 16 || c.Known && len(list) < 18
				want := -1
				for i, m := range list { // the list and its waiters are in the order of arrival
					if free || m.waiting == nil || m.place.who.Site == "" || held(m.place.who.Site) <= held(c.Site)+1 ||
						m.place.who.Known && !c.Known && knowns() <= 2 {
						continue
					}
					if want < 0 || held(m.place.who.Site) >= held(list[want].place.who.Site) {
						want = i
					}
				}
				displaced, ok := p.admit(c)
				if ok != (free || want >= 0) || displaced != nil && (want < 0 || displaced != list[want].waiting) ||
					displaced == nil && want >= 0 {
					t.Fatalf("seed %d, step %d: admitted %v, displaced %v, want %d of %v", seed, step, ok, displaced, want, list)
				}
				if want >= 0 {
					list = slices.Delete(list, want, want+1)
				}
				if ok {
					m := modelPlace{place: &Place{who: c, held: true}}
					m.waiting = p.wait(m.place)
					list = append(list, m)
				}
			case 2:
				if w := p.next(); w != nil {
					i := slices.IndexFunc(list, func(m modelPlace) bool { return m.waiting == w })
					list[i].waiting = nil
				}
			default:
				i := slices.IndexFunc(list, func(m modelPlace) bool { return m.waiting == nil })
				if i >= 0 {
					p.leave(list[i].place.who)
					list = slices.Delete(list, i, i+1)
				}
			}
			if p.admitted != len(list) || p.held["a"] != held("a") {
				t.Fatalf("seed %d, step %d: %d admitted, %d of a; want %d and %d", seed, step, p.admitted, p.held["a"],
					len(list), held("a"))
			}
		}
	}
}

func knownAt(site string) Caller { return Caller{Site: site, Known: true} }

// Sites take turns, and known callers alternate with the others.
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
			waiters = append(waiters, p.wait(&Place{who: who}))
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
	at := func(site string) *Place { return &Place{who: Caller{Site: site}} }
	first, second := p.wait(at("a")), p.wait(at("a"))
	third := p.wait(at("b"))
	first.giveUp()
	third.giveUp()
	if w := p.next(); w != second || p.next() != nil || p.waiting() != 0 {
		t.Error("who gave up is served, or held the others up")
	}
}

// The time that a caller waited elsewhere is part of its wait.
func TestWaitCountsFromSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := small(t, HasherOptions{Slots: 1, Queue: 10, Wait: 5 * time.Second})
		held, _ := h.acquire(t.Context(), ownPlace(h))
		began := time.Now()
		time.Sleep(3 * time.Second)
		if err := h.hash(t.Context(), Caller{Site: "a", Since: began}); fault.CodeOf(err) != fault.Overloaded ||
			time.Since(began) != 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		h.done(held)
		time.Sleep(idle + time.Second)
	})
}
