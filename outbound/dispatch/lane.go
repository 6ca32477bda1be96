package dispatch

import (
	"slices"
	"sync"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
)

// Rule is how the messages of a channel share its attempts. A number that is 0 is
// no bound.
type Rule struct {
	Slots int // attempts under way; 0: Options.Workers
	// Host tells to which host a message goes; nil: all go to one.
	Host func(to string) string
	// Most are the attempts under way to a host that answers promptly, Slow those to
	// any other, and Slows those to all such hosts together.
	Most, Slow, Slows int
	// RestAfter timeouts in a row stop attempts to a host, or for a user, for the
	// time Rest.
	RestAfter int
	Rest      time.Duration
	// HalfLife: nothing is tried again once half of a message's life is over.
	HalfLife bool
}

// prompt is how soon a host answers that gets more attempts at once.
const prompt = time.Second

// mostWaiting are the messages of a user to a host that wait; further ones are left
// to their leases.
const mostWaiting = 64

// remembered is how long a lane knows hosts and users that it has nothing for.
const remembered = 15 * time.Minute

// lane is the queue of a channel. Hosts take turns, and at a host its users do, so
// that nobody's backlog delays the first message of another. A user has one attempt
// under way at a time. Whoever may not go is passed over.
type lane struct {
	rule   Rule
	lease  time.Duration
	sender message.Sender

	mu      sync.Mutex
	open    bool // deliveries have begun and have not ended
	hosts   map[string]*host
	users   map[string]*user
	turns   []*host // those with lines
	waiting int
	// Attempts under way, and those of them to hosts that are not prompt.
	underWay, slow int
}

// host is a place that messages go to.
type host struct {
	lines    []*line // with messages, in the order of their turns
	byUser   map[string]*line
	most     int // attempts under way at once
	underWay int
	rests    rest
	used     time.Time
}

// line is what waits of one user for one host, oldest first.
type line struct {
	user string
	jobs []*job
}

// user is somebody with an attempt under way, or whose last one timed out.
type user struct {
	busy  bool
	rests rest
	used  time.Time
}

// rest counts timeouts in a row.
type rest struct {
	timeouts int
	until    time.Time
}

// job is a message, and once it has its turn, the attempt to send it.
type job struct {
	m    outbox.Message
	r    message.Rendered
	who  string
	host *host
	user *user
	slow bool // as it was counted
}

// answer is what came of an attempt, as far as it tells of its host.
type answer int8

const (
	unasked answer = iota // nothing was sent
	answered
	timedOut
)

func newLane(r Rule, s message.Sender, lease time.Duration) *lane {
	return &lane{rule: r, lease: lease, sender: s, hosts: map[string]*host{}, users: map[string]*user{}}
}

// add puts a message into the lane; one that finds no place is left to its lease.
// When it may go at once it is returned as an attempt, which running counts: while a
// place is free nobody waits who could take it.
func (l *lane) add(m outbox.Message, r message.Rendered, now time.Time, running *sync.WaitGroup) *job {
	name := ""
	if l.rule.Host != nil {
		name = l.rule.Host(r.To)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.hosts[name]
	if h == nil {
		h = &host{byUser: map[string]*line{}, most: l.rule.Slow}
		l.hosts[name] = h
	}
	h.used = now
	j := &job{m: m, r: r, who: userOf(m), host: h}
	if u := l.users[j.who]; l.open && l.underWay < l.rule.Slots && l.admits(h) && (u == nil || !u.busy) {
		return l.begin(j, now, running)
	}
	in := h.byUser[j.who]
	if l.waiting >= queueLength || in != nil && len(in.jobs) >= mostWaiting {
		return nil
	}
	if in == nil {
		in = &line{user: j.who}
		h.byUser[j.who] = in
		if len(h.lines) == 0 {
			l.turns = append(l.turns, h)
		}
		h.lines = append(h.lines, in)
	}
	in.jobs = append(in.jobs, j)
	l.waiting++
	return nil
}

// userOf is whose a message is; one of nobody is its own.
func userOf(m outbox.Message) string {
	if m.UserID == "" {
		return m.ID
	}
	return m.UserID
}

// next takes the message whose turn it is, and counts its attempt in running; nil
// when nobody may go.
func (l *lane) next(now time.Time, running *sync.WaitGroup) *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open || l.underWay >= l.rule.Slots {
		return nil
	}
	for n, h := range l.turns {
		if !l.admits(h) {
			continue
		}
		for i, in := range h.lines {
			if u := l.users[in.user]; u != nil && u.busy {
				continue
			}
			j := in.jobs[0]
			in.jobs = in.jobs[1:]
			l.waiting--
			h.lines = without(h.lines, i)
			if len(in.jobs) > 0 {
				h.lines = append(h.lines, in)
			} else {
				delete(h.byUser, in.user)
			}
			l.turns = without(l.turns, n)
			if len(h.lines) > 0 {
				l.turns = append(l.turns, h)
			}
			return l.begin(j, now, running)
		}
	}
	return nil
}

// without takes the i-th out of a list. That is mostly the first, and then nothing is
// moved.
func without[T any](list []*T, i int) []*T {
	if i == 0 {
		list[0] = nil
		return list[1:]
	}
	return slices.Delete(list, i, i+1)
}

// admits reports whether one more attempt may go to a host.
func (l *lane) admits(h *host) bool {
	return (h.most == 0 || h.underWay < h.most) &&
		(l.rule.Slows == 0 || !l.isSlow(h) || l.slow < l.rule.Slows)
}

func (l *lane) isSlow(h *host) bool { return l.rule.Slow > 0 && h.most <= l.rule.Slow }

func (l *lane) begin(j *job, now time.Time, running *sync.WaitGroup) *job {
	running.Add(1) // while the lane is open nobody waits for the end of all
	u := l.users[j.who]
	if u == nil {
		u = &user{}
		l.users[j.who] = u
	}
	j.user, j.slow = u, l.isSlow(j.host)
	u.busy, u.used, j.host.used = true, now, now
	j.host.underWay++
	l.underWay++
	if j.slow {
		l.slow++
	}
	return j
}

// resting is until when neither the host nor the user of an attempt is to be
// called; the zero time: they may be.
func (l *lane) resting(a *job, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	until := a.host.rests.until
	if a.user.rests.until.After(until) {
		until = a.user.rests.until
	}
	if !now.Before(until) {
		return time.Time{}
	}
	return until
}

// end notes what an attempt tells of its host, and gives its place to others. It
// reports whether the host or the user begins to rest.
func (l *lane) end(a *job, got answer, took time.Duration, now time.Time) (rests bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, u := a.host, a.user
	u.busy, u.used, h.used = false, now, now
	h.underWay--
	l.underWay--
	if a.slow {
		l.slow--
	}
	switch got {
	case timedOut:
		h.most = l.rule.Slow
		rests = l.timeout(&h.rests, now)
		rests = l.timeout(&u.rests, now) || rests
	case answered:
		h.rests, u.rests = rest{}, rest{}
		if l.rule.Slow == 0 {
			break
		}
		if took <= prompt {
			h.most *= 2
		} else {
			h.most /= 2
		}
		h.most = min(max(h.most, l.rule.Slow), max(l.rule.Most, l.rule.Slow))
	}
	if u.rests.timeouts == 0 {
		delete(l.users, a.who)
	}
	return rests
}

// timeout counts one; those before a rest count on after it, so that the next one
// makes another.
func (l *lane) timeout(r *rest, now time.Time) bool {
	if l.rule.RestAfter == 0 {
		return false
	}
	if r.timeouts++; r.timeouts < l.rule.RestAfter {
		return false
	}
	r.until = now.Add(l.rule.Rest)
	return true
}

// stale tells of a message that waited so long that there is no time left to send
// it under its lease: some node claims it then.
func (l *lane) stale(j *job, now time.Time) bool {
	return j.m.State == outbox.Queued && !j.m.LeaseUntil.IsZero() && !now.Before(j.m.LeaseUntil.Add(-l.lease/2))
}

// late tells that an instant is too late to try a message again.
func (l *lane) late(m outbox.Message, at time.Time) bool {
	return l.rule.HalfLife && at.After(m.CreatedAt.Add(m.ExpiresAt.Sub(m.CreatedAt)/2))
}

// sweep drops what is stale, and forgets hosts and users that are not needed.
func (l *lane) sweep(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.turns {
		for _, in := range h.lines {
			before := len(in.jobs)
			in.jobs = slices.DeleteFunc(in.jobs, func(j *job) bool { return l.stale(j, now) })
			l.waiting -= before - len(in.jobs)
		}
		h.lines = slices.DeleteFunc(h.lines, func(in *line) bool {
			if len(in.jobs) == 0 {
				delete(h.byUser, in.user)
			}
			return len(in.jobs) == 0
		})
	}
	l.turns = slices.DeleteFunc(l.turns, func(h *host) bool { return len(h.lines) == 0 })
	for name, h := range l.hosts {
		if len(h.lines) == 0 && h.underWay == 0 && now.Sub(h.used) > remembered {
			delete(l.hosts, name)
		}
	}
	for id, u := range l.users {
		if !u.busy && now.Sub(u.used) > remembered {
			delete(l.users, id)
		}
	}
}

// state counts what waits, the attempts under way, and the hosts and users that
// rest.
func (l *lane) state(now time.Time) (waiting, underWay, resting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.hosts {
		if now.Before(h.rests.until) {
			resting++
		}
	}
	for _, u := range l.users {
		if now.Before(u.rests.until) {
			resting++
		}
	}
	return l.waiting, l.underWay, resting
}

func (l *lane) setOpen(open bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = open
}
