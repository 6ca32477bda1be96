package actors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"castellan/cluster"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

const (
	maxFailures = 5 // executions until the action fails for good (D-2FA-16)
	firstPause  = 200 * time.Millisecond
)

var errMoved = errors.New("actors: the challenge is no longer executing")

// execute runs the action of an executing challenge on its own goroutine and notifies the actor at the end. The action
// may run on two owners at once and more than once. Effect, outcome and the move to done are one transaction that the
// row fences, so only the first commit takes effect.
func (a *challengeActor) execute(c *cluster.Context) {
	if a.running || a.state == nil || a.state.State != challenge.Executing {
		return
	}
	a.running = true
	within, self, state, kept := c.Background(), c.Self(), *a.state, a.sealed
	a.sealed = sealed{}
	go func() {
		defer self.Send(executed{})
		pause := firstPause
		for {
			err := a.once(within, state, kept)
			if err == nil || errors.Is(err, errMoved) || errors.Is(err, commit.ErrFenced) {
				return
			}
			a.d.Log.Error("action failed", "action", state.Action, "challenge", state.ID, "failures", state.Failures+1, "err",
				err)
			if state, err = a.failed(within, state); err != nil || state.State != challenge.Executing {
				time.Sleep(time.Second)
				return // failed for good, or the database is unavailable: the next read resumes it
			}
			time.Sleep(pause)
			pause *= 2
		}
	}()
}

// once runs the action in one transaction with its outcome.
func (a *challengeActor) once(within context.Context, c challenge.Challenge, kept sealed) (err error) {
	ctx, cancel := context.WithTimeout(within, time.Minute)
	defer cancel()
	action, ok := a.d.Actions.Of(c.Action, c.Service)
	if !ok {
		return a.finish(ctx, c, challenge.Failed(fault.New(fault.InvalidState, "no action of this code is registered")))
	}
	command, err := a.command(ctx, c, kept)
	if refused(err) {
		return a.finish(ctx, c, challenge.Failed(asFault(err)))
	} else if err != nil {
		return err
	}
	x := challenge.Execution{Challenge: c, Command: command}
	if action.Prepare != nil {
		x.Now = a.d.Now()
		if x.Prepared, err = prepare(ctx, action, x); refused(err) {
			return a.finish(ctx, c, challenge.Failed(asFault(err)))
		} else if err != nil {
			return err
		}
	}
	var refusal error
	err = a.d.Commit.InTx(ctx, func(ctx context.Context) (err error) {
		defer recovered(&err)
		if gone, err := a.credentialsGone(ctx, c); gone || err != nil {
			refusal = errMoved
			return errors.Join(err, errMoved)
		}
		x.Now = a.d.Now()
		var result challenge.Result
		if action.Exec != nil {
			result, err = action.Exec(ctx, x)
		} else {
			var writes []commit.Write
			if result, writes, err = action.Build(ctx, x); err == nil {
				err = a.d.Commit.Commit(ctx, writes...)
			}
		}
		if err != nil {
			refusal = err
			return err
		}
		return a.finish(ctx, c, result)
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(refusal, errMoved) && errors.Is(err, errMoved):
		return a.closeExecuting(ctx, c)
	case refused(refusal):
		return a.refuse(ctx, action, x, refusal)
	}
	return err
}

// refuse ends an execution that its action refused, after the rollback of its transaction.
func (a *challengeActor) refuse(ctx context.Context, action challenge.Action, x challenge.Execution,
	refusal error) error {
	if action.Refused == nil {
		return a.finish(ctx, x.Challenge, challenge.Failed(asFault(refusal)))
	}
	return a.d.Commit.InTx(ctx, func(ctx context.Context) (err error) {
		defer recovered(&err)
		if err := action.Refused(ctx, x, refusal); err != nil {
			return err
		}
		return a.finish(ctx, x.Challenge, challenge.Failed(asFault(refusal)))
	})
}

// recovered converts a panic into an error; it must be deferred.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
}

// prepare runs the part of an action that precedes its transaction.
func prepare(ctx context.Context, action challenge.Action, x challenge.Execution) (_ any, err error) {
	defer recovered(&err)
	return action.Prepare(ctx, x)
}

// refused reports whether err is the action's own refusal, which is an outcome. Any other error may succeed on a retry.
func refused(err error) bool {
	f := asFault(err)
	return f != nil && f.Code != fault.Unavailable && f.Code != fault.Overloaded && f.Code != fault.Internal
}

// credentialsGone reports, inside the transaction, whether the user's credentials have changed since the start of the
// challenge or its session has ended (D-AUTH-11).
func (a *challengeActor) credentialsGone(ctx context.Context, c challenge.Challenge) (bool, error) {
	switch c.Kind {
	case challenge.Decoy:
		return true, nil // no value is right, so the challenge never reaches this point
	case challenge.Applicant:
		return false, nil // no credentials exist yet
	}
	if !a.d.sessionLives(c) {
		return true, nil
	}
	account, err := a.d.Accounts.Account(ctx, c.UserID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return true, nil
	}
	return err == nil && account.CV != c.CV, err
}

func (a *challengeActor) closeExecuting(ctx context.Context, c challenge.Challenge) error {
	next := c.Abort(a.d.Now())
	writes, err := a.ended(ctx, next, a.d.Now())
	if err != nil {
		return err
	}
	return a.d.Commit.Commit(ctx, append(writes, challenge.Update{Challenge: next},
		a.record(next, audit.Refused, audit.By{}, "credentials changed"))...)
}

// ended returns the writes that the action adds to an end without success.
func (a *challengeActor) ended(ctx context.Context, c challenge.Challenge, now time.Time) ([]commit.Write, error) {
	if action, _ := a.d.Actions.Of(c.Action, c.Service); action.Ended != nil {
		return action.Ended(ctx, c, now)
	}
	return nil, nil
}

// finish writes the outcome, the audit row and the move to done, in the transaction of ctx if it carries one.
func (a *challengeActor) finish(ctx context.Context, c challenge.Challenge, r challenge.Result) error {
	next := c.Finish()
	_, write, err := a.seal(a.d.Now(), next, r)
	if err != nil {
		return err
	}
	var ended []commit.Write
	if !r.Success {
		if ended, err = a.ended(ctx, next, a.d.Now()); err != nil {
			return err
		}
	}
	return a.d.Commit.Commit(ctx, append(ended, write, challenge.Update{Challenge: next},
		a.report(next, r, audit.By{}))...)
}

// failed counts a failed execution in the row; the last allowed failure ends the challenge.
func (a *challengeActor) failed(within context.Context, c challenge.Challenge) (challenge.Challenge, error) {
	ctx, cancel := a.d.io(within)
	defer cancel()
	c.Failures++
	if c.Failures >= maxFailures {
		err := a.finish(ctx, c, challenge.Failed(fault.New(fault.Internal, "the action could not be carried out")))
		return c.Finish(), err
	}
	if err := a.d.Commit.Commit(ctx, challenge.Update{Challenge: c}); err != nil {
		return c, err
	}
	c.Version++
	return c, nil
}

// seal returns the outcome row of a result.
func (a *challengeActor) seal(now time.Time, c challenge.Challenge, r challenge.Result) ([]byte, commit.Write, error) {
	plain, err := r.AppendBinary(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("encode outcome: %w", err)
	}
	sealed := a.d.Seal(plain, challenge.OutcomeData(c.ID))
	return sealed, challenge.Record{Outcome: challenge.Outcome{ChallengeID: c.ID, CreatedAt: now.UnixMilli(),
		ExpiresAt: c.ExpiresAt + a.d.Grace.Milliseconds(), Sealed: sealed}}, nil
}

func (a *challengeActor) record(c challenge.Challenge, o audit.Outcome, by audit.By, detail string) audit.Record {
	if by.IP == "" {
		by.IP, by.RequestID = c.Starter.IP, c.Starter.RequestID
	}
	return audit.Record{At: a.d.Now(), ActorID: by.UserID, UserID: c.Owner(), Action: c.Action, Target: c.ID, Outcome: o,
		IP: by.IP, RequestID: by.RequestID, Detail: detail}
}

// report returns the audit row of an outcome. For a login it names the session, with the user as the actor.
func (a *challengeActor) report(c challenge.Challenge, r challenge.Result, by audit.By) audit.Record {
	if !r.Success {
		return a.record(c, audit.Refused, by, string(r.Code))
	}
	detail := ""
	if r.SessionID != "" {
		detail = "session " + r.SessionID
		by.UserID = cmp.Or(by.UserID, r.UserID)
	}
	return a.record(c, audit.Success, by, detail)
}
