package password

import "container/list"

// places are who was admitted to a hasher and who waits for a slot. Not safe for
// concurrent use: the hasher's lock guards them.
//
// The one idea: sites take turns, each in the order of its own callers. So a site
// with many callers makes another wait for one hash, and not for all of its own.
// Callers whom their account knows wait in turns of their own, which alternate with
// those of the others: neither can keep the other waiting longer than one hash.
type places struct {
	room, share, reserve int

	admitted int
	held     map[string]int // site → admitted; without ""
	turns    [2]turns       // of callers who are known, and of the others
	last     int            // of turns, which was served last
}

// shares is the part of all places that a site may hold at most (D-PWD-05), and the
// part that is kept for callers whom their account knows.
const shares = 8

func newPlaces(room int) places {
	return places{room: room, share: max(1, room/shares), reserve: room / shares, held: map[string]int{}, last: others}
}

const (
	known = iota
	others
)

// full tells that a caller of a site would be refused whoever it is.
func (p *places) full(site string) bool {
	return p.admitted >= p.room || site != "" && p.held[site] >= p.share
}

func (p *places) admit(c Caller) bool {
	if p.full(c.Site) || !c.Known && p.admitted >= p.room-p.reserve {
		return false
	}
	p.admitted++
	if c.Site != "" {
		p.held[c.Site]++
	}
	return true
}

func (p *places) leave(c Caller) {
	p.admitted--
	if c.Site == "" {
		return
	}
	if p.held[c.Site]--; p.held[c.Site] == 0 {
		delete(p.held, c.Site)
	}
}

// waiter waits for a slot.
type waiter struct {
	slot chan *arena
	line *line
	at   *list.Element // in line
}

// wait puts a caller at the end of its site's line.
func (p *places) wait(c Caller) *waiter {
	t := &p.turns[others]
	if c.Known {
		t = &p.turns[known]
	}
	return t.wait(c.Site)
}

// next takes out who is served next; nil: nobody waits.
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

func (p *places) waiting() int { return p.turns[known].waiting + p.turns[others].waiting }

// turns are lines of sites that are served one after the other.
type turns struct {
	lines   map[string]*line
	order   list.List // of *line, the next one first; each has waiters
	waiting int
}

type line struct {
	of      *turns
	site    string
	waiters list.List // of *waiter
	at      *list.Element
}

func (t *turns) wait(site string) *waiter {
	l := t.lines[site]
	if l == nil {
		if t.lines == nil {
			t.lines = map[string]*line{}
		}
		l = &line{of: t, site: site}
		l.at = t.order.PushBack(l)
		t.lines[site] = l
	}
	w := &waiter{slot: make(chan *arena, 1), line: l}
	w.at = l.waiters.PushBack(w)
	t.waiting++
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
	t.waiting--
	if l.waiters.Len() == 0 {
		t.order.Remove(l.at)
		delete(t.lines, l.site)
	}
}
