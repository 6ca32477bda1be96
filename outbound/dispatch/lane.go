package dispatch

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
)

// Rule describes how the messages of a channel share its attempts. A number of 0 means no limit.
type Rule struct {
	Slots int // concurrent attempts; 0: Options.Workers
	// Host returns the host that a message goes to; nil: all go to one host.
	Host func(to string) string
	// Most limits the attempts to a host that answers promptly, Slow those to any other host, and Slows those to all
	// such hosts together.
	Most, Slow, Slows int
	// RestAfter timeouts in a row pause attempts to a host, or for a user, for the time Rest.
	RestAfter int
	Rest      time.Duration
	// Pauses, if set, are the times between attempts in place of RetryMin and RetryMax. The last one repeats, whatever
	// MaxAttempts, until the message expires.
	Pauses []time.Duration
	// HalfLife: a message is not retried after half of its lifetime.
	HalfLife bool
}

// prompt is how soon a host must answer to get more concurrent attempts.
const prompt = time.Second

// mostWaiting is how many messages of a user to a host may wait; further ones are left to their leases.
const mostWaiting = 64

// remembered is how long a lane keeps hosts and users that have no messages.
const remembered = 15 * time.Minute

// lane is the queue of a channel. Hosts take turns, and at a host its users do, so no backlog delays the first message
// of another user. A user has one attempt under way at a time. A message that may not go is skipped.
type lane struct {
	rule   Rule
	lease  time.Duration
	sender message.Sender

	mu      sync.Mutex
	open    bool // deliveries have begun and have not ended
	hosts   map[string]*host
	users   map[string]*user
	turns   []*host // the hosts with messages
	waiting int
	// Attempts under way, and those of them to hosts that are not prompt.
	underWay, slow int
}

// host is a destination of messages.
type host struct {
	lines    []*line // with messages, in the order of their turns
	byUser   map[string]*line
	most     int // concurrent attempts
	underWay int
	rests    rest
	used     time.Time
}

// line is the queue of one user's messages to one host, oldest first.
type line struct {
	user string
	jobs []*job
}

// user is a user with an attempt under way, or whose last attempt timed out.
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

// job is a message and, once it has its turn, the attempt to send it.
type job struct {
	m    outbox.Message
	r    message.Rendered
	who  string
	host *host
	user *user
	slow bool // as it was counted
}

// answer is the result of an attempt, as far as it concerns its host.
type answer int8

const (
	unasked answer = iota // nothing was sent
	answered
	timedOut
)

func newLane(r Rule, s message.Sender, lease time.Duration) *lane {
	return &lane{rule: r, lease: lease, sender: s, hosts: map[string]*host{}, users: map[string]*user{}}
}

// add puts a message into the lane; a message without room is left to its lease. If the message may go at once, add
// returns it as an attempt, which running counts. While a slot is free, no message waits that could take it.
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
	j := &job{m: m, r: r, who: cmp.Or(m.UserID, m.ID), host: h} // a message without a user is its own user
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

// next takes the next message in turn, and counts its attempt in running; nil if no message may go.
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

// without removes the i-th element of a list. That is mostly the first, and then nothing is moved.
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
	running.Add(1) // while the lane is open no caller waits for the end of all
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

// resting returns until when the host or the user of an attempt is paused; the zero time: neither is.
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

// end records the result of an attempt for its host, and frees its slot. It reports whether the host or the user is now
// paused.
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

// timeout counts one timeout. The count is kept during a pause, so that the next timeout causes another pause.
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

// stale reports whether a message waited too long to be sent under its lease: some node claims it then.
func (l *lane) stale(j *job, now time.Time) bool {
	return j.m.State == outbox.Queued && !j.m.LeaseUntil.IsZero() && !now.Before(j.m.LeaseUntil.Add(-l.lease/2))
}

// late reports whether it is too late at an instant to retry a message.
func (l *lane) late(m outbox.Message, at time.Time) bool {
	return l.rule.HalfLife && at.After(m.CreatedAt.Add(m.ExpiresAt.Sub(m.CreatedAt)/2))
}

// sweep drops stale messages, and forgets hosts and users that are not needed.
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

// state counts the queued messages, the attempts under way, and the paused hosts and users.
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
