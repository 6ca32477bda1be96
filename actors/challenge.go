package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// challengeActor owns one challenge. This file is its shell: messages, loading, saving and the timer. Its decisions are
// in steps.go, the waiting callers in waiters.go, and the listening nodes in listeners.go.
//
// The one rule: save, then swap. A step is committed first and becomes the actor's state afterwards. A caller therefore
// never sees a state that is not in the row.
type challengeActor struct {
	d      *Deps
	state  *challenge.Challenge // nil: not read yet
	budget *challenge.Budget    // nil: not read yet
	// outcome is the sealed result; nil until the challenge is done or denied.
	outcome []byte
	fresh   bool   // loaded from the warm cache, and no fence has failed since
	sealed  sealed // from the warm cache, until the action takes it
	running bool   // the action runs on its own goroutine
	waiters []waiter
	nodes   []listener
	timer   *time.Timer
	wakes   uint64    // stamp of the armed timer
	wakeAt  time.Time // zero: no timer is armed
	touched time.Time
	// ctx carries the trace of the current message; nil between messages.
	ctx context.Context
}

func (a *challengeActor) io() (context.Context, context.CancelFunc) { return a.d.io(a.ctx) }

// Messages that the actor sends to itself.
type (
	wake     struct{ stamp uint64 }
	executed struct{}
)

// tries bounds how often a step is decided again because its row was busy. It is large because all challenges of a user
// share one budget of wrong values.
const tries = 64

func (a *challengeActor) Receive(ctx actor.Context) {
	c := cluster.ContextOf(ctx)
	a.ctx = c.Background()
	a.receive(c, ctx.Message())
	a.ctx = nil
}

func (a *challengeActor) receive(c *cluster.Context, msg any) {
	if _, timer := msg.(wake); !timer {
		a.touched = a.d.Now()
	}
	if a.d.late(msg) {
		a.arm(c)
		return
	}
	switch m := msg.(type) {
	case *pb.ChallengePrime:
		if a.state == nil {
			made := unprime(c.ID(), m)
			a.state, a.sealed, a.fresh = &made, sealed{m.Command, m.Intent}, true
		}
	case *pb.ChallengeComplete:
		a.complete(c, m)
		// The actor stops at once, or it would outlive its challenge: few callers request the outcome later, and those
		// read the rows.
		if a.outcome != nil && a.unneeded() && c.Passivate() {
			a.stopTimer()
			return
		}
	case *pb.ChallengeUser:
		a.user(c)
	case *pb.ChallengeRenew:
		a.renew(c, m)
	case *pb.ChallengeResult:
		a.result(c, m)
	case *pb.ChallengeSubscribe:
		a.subscribe(c, m)
	case executed:
		a.running = false
		a.refresh(c)
	case *pb.ChallengeRefresh:
		a.refresh(c)
	case wake:
		if m.stamp != a.wakes || a.awake(c) {
			return
		}
	}
	a.arm(c)
}

// awake handles the timer and reports whether the actor has stopped.
func (a *challengeActor) awake(c *cluster.Context) (left bool) {
	now := a.d.Now()
	a.wakeAt = time.Time{}
	if slices.ContainsFunc(a.waiters, func(w waiter) bool { return !now.Before(w.until) }) {
		_ = a.reread(c) // before a waiter is released; settle loads again if this failed
	}
	a.settle(c)
	return now.Sub(a.touched) >= a.d.Idle && a.unneeded() && c.Passivate()
}

// unneeded reports whether no call, socket or action depends on this actor.
func (a *challengeActor) unneeded() bool {
	return !a.running && len(a.waiters) == 0 && len(a.nodes) == 0
}

// load makes sure that the state is loaded.
func (a *challengeActor) load(c *cluster.Context) error {
	if a.state != nil {
		return nil
	}
	if p, ok := a.d.WarmCache.take(c.ID()); ok {
		a.state, a.sealed, a.fresh = &p.state, p.sealed, true
		return nil
	}
	ctx, cancel := a.io()
	defer cancel()
	s, err := a.d.Store.Load(ctx, c.ID())
	if err != nil {
		return err
	}
	a.state = &s
	if err := a.resume(c); err != nil {
		a.forget() // the outcome is missing: the next call must read both again
		return err
	}
	return nil
}

// resume continues the work of an earlier owner: it loads the outcome of a challenge that has one, and runs the action
// of a challenge that is executing.
func (a *challengeActor) resume(c *cluster.Context) error {
	switch a.state.State {
	case challenge.Done, challenge.Denied:
		ctx, cancel := a.io()
		defer cancel()
		o, err := a.d.Store.Outcome(ctx, c.ID())
		if err != nil {
			return err
		}
		a.outcome = o.Sealed
	case challenge.Executing:
		a.execute(c)
	}
	return nil
}

// forget drops everything that was read from rows.
func (a *challengeActor) forget() {
	a.state, a.budget, a.outcome, a.fresh = nil, nil, nil, false
}

// step is the result of one decision, to be saved. The actor adopts it only after a successful commit.
type step struct {
	next    challenge.Challenge
	writes  []commit.Write    // besides the update of the challenge itself
	budget  *challenge.Budget // nil: the budget is unchanged
	outcome []byte            // sealed; nil: the step has no outcome
}

// save commits a step and only then makes it the actor's state.
//
// It returns commit.ErrFenced when a row has changed; the caller then reads again. After any other error the content of
// the row is unknown, so the actor has forgotten its state.
func (a *challengeActor) save(s step) error {
	ctx, cancel := a.io()
	defer cancel()
	err := a.d.Commit.Commit(ctx, append(s.writes, challenge.Update{Challenge: s.next})...)
	if err != nil {
		if !errors.Is(err, commit.ErrFenced) {
			a.forget()
		}
		return err
	}
	s.next.Version++
	a.state = &s.next
	if s.budget != nil {
		s.budget.Version++
		a.budget = s.budget
	}
	if s.outcome != nil {
		a.outcome, a.sealed = s.outcome, sealed{}
	}
	return nil
}

// decide runs move on the state until the step that it returns is saved. A nil step means that there is nothing to
// save. When another owner has changed the row, decide reads everything again and repeats the decision.
func (a *challengeActor) decide(c *cluster.Context, move func(now time.Time) (*step, error)) error {
	for range tries {
		if err := a.current(c); err != nil {
			return err
		}
		s, err := move(a.d.Now())
		if err != nil || s == nil {
			return err
		}
		if err := a.save(*s); !errors.Is(err, commit.ErrFenced) {
			return err
		}
		a.refresh(c) // the listeners here have not seen the other owner's change
		if err := a.recheck(c); err != nil {
			return err
		}
	}
	return busy()
}

func busy() error {
	return fault.New(fault.Unavailable, "the challenge is busy; try again").After(time.Second)
}

// current loads the state. It closes the challenge when the session that started it has ended (D-AUTH-11).
func (a *challengeActor) current(c *cluster.Context) error {
	for range tries {
		if err := a.load(c); err != nil {
			return err
		}
		if a.state.Ended(a.d.Now()) || a.d.sessionLives(*a.state) {
			return nil
		}
		if err := a.abort(c); err != nil && !errors.Is(err, commit.ErrFenced) {
			return err
		}
	}
	return busy()
}

// reread reads the rows again if another process may have changed them without a message. A challenge that has ended
// does not change, so it is not read again.
func (a *challengeActor) reread(c *cluster.Context) error {
	if !a.d.Unclustered || a.state == nil || a.outcome != nil || a.running || a.state.Ended(a.d.Now()) {
		return nil
	}
	a.refresh(c)
	return a.load(c)
}

// sessionLives reports whether the session that started a challenge is still active. It is true for a challenge that
// was started without a session.
func (d *Deps) sessionLives(c challenge.Challenge) bool {
	s := c.Starter.SessionID
	return s == "" || d.Sessions.Live(c.UserID, s, c.SV)
}

// recheck closes a challenge if the credentials of its user have changed since the start (D-AUTH-11). It runs after a
// failed fence, because a changed credential makes the fence fail.
func (a *challengeActor) recheck(c *cluster.Context) error {
	if err := a.load(c); err != nil {
		return err
	}
	if a.state.Ended(a.d.Now()) {
		return nil
	}
	ctx, cancel := a.io()
	defer cancel()
	// A decoy takes the same steps.
	account, err := a.d.Accounts.Account(ctx, a.state.Owner())
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return err
	}
	if err == nil && account.CV == a.state.CV || err != nil && !a.state.Kind.Owned() {
		return nil
	}
	return a.abort(c)
}

// abort closes the challenge because its credentials have changed. After an error the state is unknown and is read
// again.
func (a *challengeActor) abort(c *cluster.Context) error {
	next := a.state.Abort(a.d.Now())
	s := step{next: next, writes: []commit.Write{a.record(next, audit.Refused, audit.By{}, "credentials changed")}}
	if err := a.ending(&s, a.d.Now()); err != nil {
		return err
	}
	if err := a.save(s); err != nil {
		a.forget()
		return err
	}
	a.settle(c)
	return nil
}

// refresh reads the row again after another owner has changed it, and notifies the listeners.
func (a *challengeActor) refresh(c *cluster.Context) {
	told := 0
	if a.state != nil {
		told = len(a.state.CompletedMethods())
		if a.outcome != nil {
			told++
		}
	}
	a.forget()
	a.d.WarmCache.take(c.ID()) // it is older than the row
	if err := a.load(c); err != nil {
		return // the next message loads again
	}
	if news := a.news(told); len(news.Events) > 0 {
		a.publish(c, news)
	}
	a.settle(c)
}

// arm keeps one timer, for the next instant at which the actor has work. That is the deadline of a waiter, the end of
// the challenge if a caller waits for it, or the end of the idle time.
func (a *challengeActor) arm(c *cluster.Context) {
	now := a.d.Now()
	at := a.touched.Add(a.d.Idle)
	if !at.After(now) { // still needed after its idle time: check again later
		at = now.Add(a.d.Idle)
	}
	for _, w := range a.waiters {
		at = earlier(at, w.until)
	}
	if a.state != nil && len(a.nodes)+len(a.waiters) > 0 {
		if end := a.state.Deadline(); end.After(now) {
			at = earlier(at, end)
		}
	}
	if !a.wakeAt.IsZero() && !at.Before(a.wakeAt) {
		return // the armed timer fires first and arms the next
	}
	a.stopTimer()
	a.wakes++
	a.wakeAt = at
	a.timer = c.Self().After(at.Sub(now), wake{a.wakes})
}

func (a *challengeActor) stopTimer() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
