package password

import (
	"container/list"

	"castellan/domain/account/password/argon2id"
)

// places holds the callers that a hasher has admitted: those that hash and those that wait for a slot. Not safe for
// concurrent use: the hasher's lock guards it.
//
// The one idea: sites take turns, each in the order of its own callers. So a site with many callers delays another by
// one hash, not by all of its own. Callers known to their account wait in separate turns, which alternate with those
// of the others: neither kind delays the other by more than one hash.
//
// A site may use every free place. When none is free, a newcomer takes the place of the newest waiter of the site
// that holds the most (D-PWD-05).
type places struct {
	room, reserve int // places for all callers; further ones for known callers

	admitted int
	known    int            // admitted callers that are known to their account
	held     map[string]int // site → admitted; without ""
	turns    [2]turns       // of known callers, and of the others
	last     int            // index in turns of the last one served
	waiters  int64          // total so far
}

// reserved is the part of the places that known callers have in addition (D-PWD-05).
const reserved = 8

func newPlaces(room int) places {
	return places{room: room, reserve: room / reserved, held: map[string]int{}, last: others}
}

const (
	known = iota
	others
)

// free reports whether a caller finds a free place.
func (p *places) free(known bool) bool {
	return p.admitted < p.room || known && p.admitted < p.room+p.reserve
}

// admit gives a caller a free place or that of the displaced waiter. ok is false when there is neither.
func (p *places) admit(c Caller) (displaced *waiter, ok bool) {
	if !p.free(c.Known) {
		if displaced = p.displaceable(c); displaced == nil {
			return nil, false
		}
		displaced.giveUp()
		p.leave(displaced.place.who)
	}
	p.admitted++
	if c.Known {
		p.known++
	}
	if c.Site != "" {
		p.held[c.Site]++
	}
	return displaced, true
}

// displaceable returns the newest waiter of the site that holds the most places, if that site would still hold as
// many as the caller's. So of two equal callers the first one stays. A stranger displaces a known caller only while
// known callers hold more than their reserved places. Callers without a site are not displaced.
func (p *places) displaceable(c Caller) *waiter {
	var of *waiter
	from := others
	if c.Known || p.known > p.reserve {
		from = known
	}
	for i := from; i <= others; i++ {
		for site, l := range p.turns[i].lines {
			w := l.waiters.Back().Value.(*waiter)
			if site == "" || p.held[site] <= p.held[c.Site]+1 {
				continue
			}
			if of == nil || p.held[site] > p.held[of.line.site] ||
				p.held[site] == p.held[of.line.site] && w.number > of.number {
				of = w
			}
		}
	}
	return of
}

func (p *places) leave(c Caller) {
	p.admitted--
	if c.Known {
		p.known--
	}
	if c.Site == "" {
		return
	}
	if p.held[c.Site]--; p.held[c.Site] == 0 {
		delete(p.held, c.Site)
	}
}

// waiter waits for a slot, or for nil when another caller takes its place.
type waiter struct {
	slot   chan *argon2id.Memory
	place  *Place
	number int64 // later waiters have greater ones
	line   *line
	at     *list.Element // in line
}

// wait puts a caller at the end of its site's line.
func (p *places) wait(place *Place) *waiter {
	t := &p.turns[others]
	if place.who.Known {
		t = &p.turns[known]
	}
	p.waiters++
	return t.wait(&waiter{slot: make(chan *argon2id.Memory, 1), place: place, number: p.waiters})
}

// next removes and returns the next waiter to serve; nil when none waits.
func (p *places) next() *waiter {
	of := known
	if p.turns[known].order.Len() == 0 || p.last == known && p.turns[others].order.Len() > 0 {
		of = others
	}
	w := p.turns[of].next()
	if w != nil {
		p.last = of
	}
	return w
}

// turns holds lines of sites that are served one after the other.
type turns struct {
	lines map[string]*line
	order list.List // of *line, the next one first; each has waiters
}

type line struct {
	of      *turns
	site    string
	waiters list.List // of *waiter
	at      *list.Element
}

func (t *turns) wait(w *waiter) *waiter {
	site := w.place.who.Site
	l := t.lines[site]
	if l == nil {
		if t.lines == nil {
			t.lines = map[string]*line{}
		}
		l = &line{of: t, site: site}
		l.at = t.order.PushBack(l)
		t.lines[site] = l
	}
	w.line, w.at = l, l.waiters.PushBack(w)
	return w
}

func (t *turns) next() *waiter {
	first := t.order.Front()
	if first == nil {
		return nil
	}
	t.order.MoveToBack(first)
	w := first.Value.(*line).waiters.Front().Value.(*waiter)
	w.giveUp()
	return w
}

// giveUp takes the waiter out of its line.
func (w *waiter) giveUp() {
	l, t := w.line, w.line.of
	l.waiters.Remove(w.at)
	if l.waiters.Len() == 0 {
		t.order.Remove(l.at)
		delete(t.lines, l.site)
	}
}
