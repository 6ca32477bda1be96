package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/stepup"
)

// complete evaluates an answer to a method.
func (a *challengeActor) complete(c *cluster.Context, m *pb.ChallengeComplete) {
	answer := answerOf(m)
	by := audit.By{UserID: m.ActorId, IP: m.Ip, RequestID: m.RequestId}
	var made *challenge.Step // nil: an exact repeat, which changes nothing
	decisions := 0
	err := a.decide(c, func(now time.Time) (*step, error) {
		decisions++
		made = nil
		if a.state.Repeat(answer) {
			return nil, nil
		}
		if err := a.needBudget(); err != nil {
			return nil, err
		}
		s, err := a.state.Complete(now, a.d.Rules, *a.budget, answer)
		if err != nil {
			return nil, err
		}
		if answer.Use != nil && decisions > 1 {
			return nil, stepup.OutdatedInput() // the failed fence may be the one of the use
		}
		made = &s
		return a.stepOf(now, s, answer, by)
	})
	switch {
	case err != nil:
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	case made != nil && made.Refusal != nil:
		a.d.refuse(c.Sender(), c.ID(), made.Refusal)
		a.settle(c)
		return
	case made != nil:
		a.publish(c, a.news(len(a.state.CompletedMethods())-1))
		a.settle(c) // an action that ends with its last method already has its outcome
	}
	switch {
	case a.state.State == challenge.Pending:
		c.Reply(a.answered(false))
	case a.outcome != nil:
		c.Reply(a.answered(true))
	default:
		a.wait(c, m.WaitMs, true)
		a.execute(c)
	}
}

// stepOf returns the writes of an evaluated answer: the uses, the guards of the decision, its cost and, if it ends the
// challenge, the outcome.
func (a *challengeActor) stepOf(now time.Time, s challenge.Step, answer challenge.Answer,
	by audit.By) (*step, error) {
	uses, err := a.uses(s, answer)
	if err != nil {
		return nil, err
	}
	out := &step{next: s.Next, budget: s.Budget}
	if s.Budget != nil {
		out.writes = []commit.Write{challenge.Spend{Budget: *s.Budget}, stepup.Credentials(*a.state)}
		told, err := a.guessed(s, answer, by)
		if err != nil {
			return nil, err
		}
		out.writes = append(out.writes, told...)
	} else {
		out.writes = stepup.Guards(*a.state, *a.budget)
	}
	switch s.Next.State {
	case challenge.Denied:
		sealed, write, err := a.seal(now, s.Next, challenge.Result{})
		if err != nil {
			return nil, err
		}
		out.outcome = sealed
		out.writes = append(out.writes, write, a.record(s.Next, audit.Refused, by, "denied"))
		if err := a.ending(out, now); err != nil {
			return nil, err
		}
	case challenge.Closed:
		out.writes = append(out.writes, a.record(s.Next, audit.Refused, by, "too many wrong values"))
		if err := a.ending(out, now); err != nil {
			return nil, err
		}
	case challenge.Executing:
		if answer.Remember {
			out.writes = append(out.writes, remembered.Writes(s.Next, now, by)...)
		}
		if s.Next.Off != 0 { // another factor has proved the user
			out.writes = append(out.writes, challenge.SwitchOn{UserID: s.Next.UserID})
		}
		if action, _ := a.d.Actions.Of(s.Next.Action, s.Next.Service); action.Build != nil {
			if err := a.build(now, action, out, by); err != nil {
				return nil, err
			}
		}
	}
	out.writes = append(out.writes, uses...)
	if settle, decided := a.state.SettlesPush(now, s.Next); decided {
		out.writes = append(out.writes, settle)
	}
	return out, nil
}

// ending adds the writes of an end without success to a step.
func (a *challengeActor) ending(s *step, now time.Time) error {
	ctx, cancel := a.io()
	defer cancel()
	writes, err := a.ended(ctx, s.next, now)
	s.writes = append(s.writes, writes...)
	return err
}

// guessed returns the writes that accompany a row of wrong values which must be reported. A decoy takes the same steps.
func (a *challengeActor) guessed(s challenge.Step, answer challenge.Answer, by audit.By) ([]commit.Write, error) {
	if a.d.Guessed == nil || !a.d.Rules.Notable(s.Row) {
		return nil, nil
	}
	ctx, cancel := a.io()
	defer cancel()
	account, err := a.d.Accounts.Account(ctx, a.state.Owner())
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return nil, err
	}
	return a.d.Guessed(*a.state, account, answer.Method, s.Row, by.IP), nil
}

// uses returns the writes by which an accepted answer consumes what it needs, such as the time step of a TOTP. An
// accepted answer of a method with uses must name one: without it the value could be used again.
func (a *challengeActor) uses(s challenge.Step, answer challenge.Answer) ([]commit.Write, error) {
	uses := a.d.Uses[answer.Method]
	switch {
	case s.Verdict == challenge.Wrong || uses == nil && answer.Use == nil:
		return nil, nil
	case uses == nil || answer.Use == nil:
		return nil, fmt.Errorf("actors: an accepted %s answer does not match its use", answer.Method)
	}
	return uses(*a.state, *answer.Use), nil
}

// needBudget makes sure that the budget is loaded. For a new challenge it assumes that nothing was spent. If that is
// wrong, the guard of the commit fails, and the budget is read.
func (a *challengeActor) needBudget() error {
	if a.budget != nil {
		return nil
	}
	if a.fresh {
		a.budget = &challenge.Budget{Subject: a.state.Subject, Flow: a.state.Flow}
		return nil
	}
	ctx, cancel := a.io()
	defer cancel()
	b, err := a.d.Store.Budget(ctx, a.state.Subject, a.state.Flow)
	if err == nil {
		a.budget = &b
	}
	return err
}

// build finishes an action that only writes rows in the same step as the last method: it adds the action's writes and
// its outcome.
func (a *challengeActor) build(now time.Time, action challenge.Action, s *step, by audit.By) error {
	ctx, cancel := a.io()
	defer cancel()
	var result challenge.Result
	var writes []commit.Write
	command, err := a.command(ctx, s.next, a.sealed)
	if err == nil {
		result, writes, err = action.Build(ctx, challenge.Execution{Challenge: s.next, Command: command, Now: now})
	}
	if err != nil {
		if !refused(err) {
			return err
		}
		result = challenge.Failed(err)
		if writes, err = a.ended(ctx, s.next.Finish(), now); err != nil {
			return err
		}
	}
	s.next = s.next.Finish()
	sealed, write, err := a.seal(now, s.next, result)
	if err != nil {
		return err
	}
	s.outcome = sealed
	s.writes = append(append(s.writes, writes...), write, a.report(s.next, result, by))
	return nil
}

// command decrypts the command of the action, which must be the one of the intent that was shown (D-EXT-09). Otherwise
// it returns INVALID_STATE: nothing runs but what was signed.
func (a *challengeActor) command(ctx context.Context, c challenge.Challenge, kept sealed) (command []byte, err error) {
	if c.IntentDigest == "" && !c.Commanded { // of an older release
		return nil, nil
	}
	if kept.intent == nil || kept.command == nil && c.Commanded {
		if kept.command, kept.intent, err = a.d.Store.Sealed(ctx, c.ID); err != nil {
			return nil, err
		}
	}
	if c.IntentDigest != "" {
		document, err := a.d.Open(kept.intent, challenge.IntentData(c.ID))
		if passing(err) {
			return nil, err
		} else if err != nil || !c.Shown(document, kept.command) {
			return nil, a.mismatch(c)
		}
	}
	if !c.Commanded || kept.command == nil {
		return nil, nil
	}
	command, err = a.d.Open(kept.command, challenge.CommandData(c.ID))
	if err != nil && !passing(err) && c.IntentDigest != "" {
		err = a.mismatch(c)
	}
	return command, err
}

// passing reports whether a value could not be opened because its key could not be read now.
func passing(err error) bool { return asFault(err) != nil || errors.Is(err, context.DeadlineExceeded) }

// mismatch reports a challenge whose document or command is not the one that was shown.
func (a *challengeActor) mismatch(c challenge.Challenge) error {
	a.d.Log.Error("the command or the intent of a challenge was changed", "challenge", c.ID, "action", c.Action)
	if a.d.Mismatch != nil {
		a.d.Mismatch()
	}
	return fault.New(fault.InvalidState, "the operation differs from the approved one")
}

// renew sends a new code, or only checks whether it may.
func (a *challengeActor) renew(c *cluster.Context, m *pb.ChallengeRenew) {
	name := challenge.Name(m.Method)
	err := a.decide(c, func(now time.Time) (*step, error) {
		i, err := a.state.Renewable(now, a.d.Rules, m.MethodId, name)
		if err != nil || m.Check {
			return nil, err
		}
		if int(m.Message.Generation) != a.state.Methods[i].Generation+1 {
			return nil, stepup.OutdatedInput()
		}
		d := challenge.Digest{Key: m.Digest.GetKey(), Sum: m.Digest.GetSum()}
		next, err := a.state.Renew(now, a.d.Rules, m.MethodId, name, d)
		if err != nil {
			return nil, err
		}
		message := outbox.Add{Message: outgoing(c.ID(), m.MethodId, a.state.Owner(), m.Message)}
		return &step{next: next, writes: []commit.Write{message, stepup.Credentials(*a.state)}}, nil
	})
	if err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	s := a.state
	method, _ := s.Method(m.MethodId)
	generation := method.Generation
	if m.Check {
		generation++
	}
	c.Reply(&pb.ChallengeRenewed{
		Challenge: view(*s), UserId: s.UserID, Subject: s.Subject, Decoy: !s.Kind.Owned(), Proven: s.Proven,
		Generation: int32(generation), Template: method.Template, Language: s.Starter.Language, LifetimeMs: method.LifetimeMs,
		Brief: s.Brief,
	})
}

// user names the user of a challenge. If a challenge changes the user's geographic filter, its requests are from then
// on judged by the filter that it stores. A challenge that was started without a proof is judged by no filter
// (D-PWD-01).
func (a *challengeActor) user(c *cluster.Context) {
	if err := a.load(c); err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	is := &pb.ChallengeUserIs{UserId: a.state.UserID}
	if s := a.state; !s.Proven {
		is.KeepsFilter = true
	} else if s.State == challenge.Executing || s.State == challenge.Done {
		action, _ := a.d.Actions.Of(s.Action, s.Service)
		is.KeepsFilter, is.Filter = action.KeepsFilter, string(s.Filter)
	}
	c.Reply(is)
}
