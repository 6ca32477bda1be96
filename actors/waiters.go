package actors

import (
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/kit/fault"
)

// waiter is a call that waits for the outcome.
type waiter struct {
	to    cluster.Sender
	until time.Time
	// final: the call completed the last method, and receives that result even when the action takes longer than it
	// waits. Otherwise it requested the result.
	final bool
}

// wait keeps the caller of the current message until there is an outcome.
func (a *challengeActor) wait(c *cluster.Context, ms int64, final bool) {
	until := a.d.Now().Add(time.Duration(ms) * time.Millisecond)
	a.waiters = append(a.waiters, waiter{to: c.Sender(), until: until, final: final})
}

// result answers a request for the outcome, or keeps the caller waiting for it.
func (a *challengeActor) result(c *cluster.Context, m *pb.ChallengeResult) {
	err := a.current(c)
	if err == nil {
		err = a.reread(c)
	}
	if err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	switch answer := a.verdict(c.ID(), a.d.Now()); {
	case answer != nil:
		answer(c.Sender())
	case m.WaitMs > 0:
		a.wait(c, m.WaitMs, false)
	default:
		a.d.refuse(c.Sender(), c.ID(), notCompleted())
	}
}

// verdict returns how to answer a request for the outcome; nil until there is an outcome or the challenge ends.
func (a *challengeActor) verdict(id string, now time.Time) func(cluster.Sender) {
	if a.outcome != nil {
		return func(to cluster.Sender) { to.Reply(a.answered(true)) }
	}
	if a.state.Ended(now) {
		err := a.state.Open(now)
		return func(to cluster.Sender) { a.d.refuse(to, id, err) }
	}
	return nil
}

func (a *challengeActor) answered(final bool) *pb.ChallengeAnswered {
	return &pb.ChallengeAnswered{Action: a.state.Action, Final: final, Outcome: a.outcome}
}

// settle answers the waiters that need not wait any longer, and notifies the listeners if the challenge has ended
// without an outcome.
func (a *challengeActor) settle(c *cluster.Context) {
	if a.state == nil {
		if len(a.waiters)+len(a.nodes) == 0 {
			return
		}
		if err := a.load(c); err != nil {
			a.release(a.d.Now(), func(w waiter) { a.d.refuse(w.to, c.ID(), err) })
			return
		}
	}
	now := a.d.Now()
	if answer := a.verdict(c.ID(), now); answer != nil {
		for _, w := range a.waiters {
			answer(w.to)
		}
		a.waiters = nil
	}
	a.release(now, func(w waiter) {
		if w.final {
			w.to.Reply(a.answered(true))
		} else {
			a.d.refuse(w.to, c.ID(), notCompleted())
		}
	})
	a.dropListeners(c, now)
}

// release answers the waiters whose time is up.
func (a *challengeActor) release(now time.Time, answer func(waiter)) {
	a.waiters = slices.DeleteFunc(a.waiters, func(w waiter) bool {
		if now.Before(w.until) {
			return false
		}
		answer(w)
		return true
	})
	if len(a.waiters) == 0 {
		a.waiters = nil
	}
}

func notCompleted() error {
	return fault.New(fault.ChallengeNotCompleted, "the challenge is not completed yet").After(time.Second)
}
