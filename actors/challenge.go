package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"castellan/actors/pb"
	"castellan/cluster"
	"castellan/domain/audit"
	"castellan/domain/challenge"
	"castellan/domain/challenge/stepup"
	"castellan/domain/commit"
	"castellan/domain/fault"
	"castellan/domain/outbox"
)

// challengeActor owns one challenge.
type challengeActor struct {
	d      *Deps
	state  *challenge.Challenge
	budget *challenge.Budget
	fresh  bool   // primed, and no fence has failed since
	sealed []byte // the command that came with priming, until it is used
	// outcome is the sealed result once the challenge is done or denied.
	outcome []byte
	running bool // the action is being executed
	waiters []waiter
	nodes   []listener // who listens
	timer   *time.Timer
	wakes   uint64    // stamp of the armed timer
	wakeAt  time.Time // zero: none armed
	touched time.Time
	// ctx carries the trace of the message that is handled; nil between two.
	ctx context.Context
}

func (a *challengeActor) io() (context.Context, context.CancelFunc) { return a.d.io(a.ctx) }

// waiter is a call that waits for the outcome.
type waiter struct {
	to    cluster.Sender
	until time.Time
	// final: the caller completed the last method and is told so even when
	// the action takes longer than it waits; otherwise it asked for the result.
	final bool
}

// listener is a node some of whose sockets listen.
type listener struct {
	node    string
	sockets int32
	until   time.Time // it asks again before that
}

// Messages to itself.
type (
	wake     struct{ stamp uint64 }
	executed struct{}
)

const (
	maxSockets  = 5                // per challenge (D-SOCK-05)
	listenLease = 75 * time.Second // hubs ask again every 20 s
	tries       = 64               // decisions before a busy row is given up; wrong values of one user meet in one budget
)

// Receive implements cluster.Behaviour.
func (a *challengeActor) Receive(c *cluster.Context, msg any) {
	a.ctx = c.Background()
	a.receive(c, msg)
	a.ctx = nil
}

func (a *challengeActor) receive(c *cluster.Context, msg any) {
	now := a.d.Now()
	if _, timer := msg.(wake); !timer {
		a.touched = now
	}
	switch m := msg.(type) {
	case *pb.ChallengePrime:
		if a.state == nil {
			made := unprime(c.ID(), m)
			a.state, a.sealed, a.fresh = &made, m.Command, true
		}
	case *pb.ChallengeComplete:
		a.complete(c, m)
		// Whoever asks again reads the rows: most never do, and what is over
		// would lie here longer than it lived.
		if a.outcome != nil && !a.running && len(a.waiters) == 0 && len(a.nodes) == 0 && c.Passivate() {
			a.rest()
			return
		}
	case *pb.ChallengeUser:
		a.user(c, m)
	case *pb.ChallengeRenew:
		a.renew(c, m)
	case *pb.ChallengeResult:
		a.result(c, m)
	case *pb.ChallengeSubscribe:
		a.subscribe(c, m)
	case *pb.ChallengeRefresh, executed:
		if _, done := m.(executed); done {
			a.running = false
		}
		a.refresh(c)
	case wake:
		if m.stamp != a.wakes {
			return
		}
		a.wakeAt = time.Time{}
		if slices.ContainsFunc(a.waiters, func(w waiter) bool { return !now.Before(w.until) }) {
			_ = a.look(c) // before somebody goes away without an answer; settle reads what could not be read
		}
		a.settle(c)
		if now.Sub(a.touched) >= a.d.Idle && !a.running && len(a.waiters) == 0 && len(a.nodes) == 0 && c.Passivate() {
			return
		}
	}
	a.arm(c)
}

// load makes sure of the state.
func (a *challengeActor) load(c *cluster.Context) error {
	if a.state != nil {
		return nil
	}
	if a.d.WarmCache != nil {
		if p, ok := a.d.WarmCache.take(c.ID()); ok {
			a.state, a.sealed, a.fresh = &p.state, p.command, true
			return nil
		}
	}
	ctx, cancel := a.io()
	defer cancel()
	s, err := a.d.Store.Load(ctx, c.ID())
	if err != nil {
		return err
	}
	a.state = &s
	return a.resume(c)
}

// resume picks up what an earlier owner left: the outcome of a challenge that
// has one, and the action of one that is executing.
func (a *challengeActor) resume(c *cluster.Context) error {
	switch a.state.State {
	case challenge.Done, challenge.Denied:
		if a.outcome == nil {
			ctx, cancel := a.io()
			defer cancel()
			o, err := a.d.Store.Outcome(ctx, c.ID())
			if err != nil {
				return err
			}
			a.outcome = o.Sealed
		}
	case challenge.Executing:
		a.execute(c)
	}
	return nil
}

// forget drops everything read from rows.
func (a *challengeActor) forget() {
	a.state, a.budget, a.outcome, a.fresh = nil, nil, nil, false
}

// decide runs step on the state until what it wants saved is saved. A step
// returns the next state and the writes beside it; a nil next means that there
// is nothing to save. When the row was moved on by somebody else everything
// is read again and decided again.
func (a *challengeActor) decide(c *cluster.Context, step func(now time.Time) (*challenge.Challenge, []commit.Write, error)) error {
	for range tries {
		if err := a.current(c); err != nil {
			return err
		}
		next, writes, err := step(a.d.Now())
		if err != nil || next == nil {
			return err
		}
		ctx, cancel := a.io()
		err = a.d.Commit.Commit(ctx, append(writes, challenge.Update{Challenge: *next})...)
		cancel()
		switch {
		case err == nil:
			next.Version++
			a.state = next
			return nil
		case errors.Is(err, commit.ErrFenced):
			a.refresh(c) // what another owner did is news to those who listen here
			if err := a.recheck(c); err != nil {
				return err
			}
		default: // what the row holds now is not known
			a.forget()
			return err
		}
	}
	return busy()
}

func busy() error {
	return fault.New(fault.Unavailable, "the challenge is busy; try again").After(time.Second)
}

// current is load for whoever asks how the challenge stands: it is over when the
// session that started it has ended (D-AUTH-11).
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

// look reads the rows again where another process may have moved them on without
// a word, unless all is decided.
func (a *challengeActor) look(c *cluster.Context) error {
	if !a.d.Unclustered || a.state == nil || a.outcome != nil || a.running || a.state.Ended(a.d.Now()) {
		return nil
	}
	a.refresh(c)
	return a.load(c)
}

// sessionLives tells whether the session that started a challenge, if one did,
// has not ended.
func (d *Deps) sessionLives(c challenge.Challenge) bool {
	s := c.Starter.SessionID
	return s == "" || d.Sessions.Live(c.UserID, s, c.SV)
}

// recheck closes a challenge whose user's credentials have changed since it
// was started (D-AUTH-11). It is called when a fence failed, because that is
// how the change shows.
func (a *challengeActor) recheck(c *cluster.Context) error {
	if err := a.load(c); err != nil {
		return err
	}
	if a.state.Ended(a.d.Now()) {
		return nil
	}
	ctx, cancel := a.io()
	defer cancel()
	// For a decoy too, so that both take the same steps.
	account, err := a.d.Accounts.Account(ctx, a.state.Owner())
	if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
		return err
	}
	if err == nil && account.CV == a.state.CV || err != nil && a.state.Kind == challenge.Decoy {
		return nil
	}
	return a.abort(c)
}

func (a *challengeActor) abort(c *cluster.Context) error {
	next := a.state.Abort(a.d.Now())
	ctx, cancel := a.io()
	defer cancel()
	if err := a.d.Commit.Commit(ctx, challenge.Update{Challenge: next}, a.record(next, audit.Refused, stepup.Actor{}, "credentials changed")); err != nil {
		a.forget()
		return err
	}
	next.Version++
	a.state = &next
	a.settle(c)
	return nil
}

func (a *challengeActor) complete(c *cluster.Context, m *pb.ChallengeComplete) {
	if a.d.late(m.Deadline) {
		return
	}
	answer := answerOf(m)
	by := stepup.Actor{ID: m.ActorId, IP: m.Ip, RequestID: m.RequestId}
	var verdict error
	var told *challenge.Challenge // what the step led to; nil: an exact repeat
	var spent *challenge.Budget
	decisions := 0
	err := a.decide(c, func(now time.Time) (*challenge.Challenge, []commit.Write, error) {
		decisions++
		verdict, told, spent = nil, nil, nil
		if a.state.Repeat(answer) {
			return nil, nil, nil
		}
		if err := a.needBudget(); err != nil {
			return nil, nil, err
		}
		step, err := a.state.Complete(now, a.d.Rules, *a.budget, answer)
		if err != nil {
			return nil, nil, err
		}
		if answer.Claim != nil && decisions > 1 {
			return nil, nil, stepup.Overtaken() // the fence that failed may be the claim's
		}
		claimed, err := a.claim(step, answer)
		if err != nil {
			return nil, nil, err
		}
		verdict, told, spent = step.Refusal, &step.Next, step.Budget
		writes, err := a.writes(now, &step, by)
		return &step.Next, append(writes, claimed...), err
	})
	switch {
	case errors.Is(err, stepup.Overtaken()):
		c.Reply(&pb.Refusal{Code: overtaken, AttemptsLeft: -1})
		return
	case err != nil:
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	case verdict != nil:
		if spent != nil {
			spent.Version++
			a.budget = spent
		}
		a.d.refuse(c.Sender(), c.ID(), verdict)
		a.settle(c)
		return
	case told != nil:
		a.publish(c, a.news(len(a.state.CompletedMethods())-1))
		a.settle(c) // an action that is done with its last method has its outcome already
	}
	switch {
	case a.state.State == challenge.Pending:
		c.Reply(&pb.ChallengeAnswered{Action: a.state.Action})
	case a.outcome != nil:
		c.Reply(&pb.ChallengeAnswered{Action: a.state.Action, Final: true, Outcome: a.outcome})
	default:
		a.waiters = append(a.waiters, waiter{to: c.Sender(), until: a.d.Now().Add(time.Duration(m.WaitMs) * time.Millisecond), final: true})
		a.execute(c)
	}
}

// claim makes the writes by which an accepted answer uses up what it claims.
// An answer of a method with claims is accepted with one only: without it the
// value could be used again.
func (a *challengeActor) claim(s challenge.Step, answer challenge.Answer) ([]commit.Write, error) {
	claims := a.d.Claims[answer.Method]
	switch {
	case s.Verdict == challenge.Wrong || claims == nil && answer.Claim == nil:
		return nil, nil
	case claims == nil || answer.Claim == nil:
		return nil, fmt.Errorf("actors: an accepted %s answer and its claim do not go together", answer.Method)
	}
	return claims(*a.state, *answer.Claim), nil
}

// user tells whose the challenge is. One that changes the user's geographic
// filter is judged by the filter it keeps from the moment it does.
func (a *challengeActor) user(c *cluster.Context, m *pb.ChallengeUser) {
	if a.d.late(m.Deadline) {
		return
	}
	if err := a.load(c); err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	is := &pb.ChallengeUserIs{UserId: a.state.UserID}
	if s := a.state; s.State == challenge.Executing || s.State == challenge.Done {
		is.KeepsFilter, is.Filter = a.d.Actions[s.Action].KeepsFilter, string(s.Filter)
	}
	c.Reply(is)
}

// needBudget makes sure of the budget. A challenge that was just made takes it
// that nothing was spent; the guard of its commit finds out otherwise, and
// then it is read.
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

// writes are what commits beside a step: the guards it was decided under, what
// it cost, and, when it ended the challenge, the outcome.
func (a *challengeActor) writes(now time.Time, s *challenge.Step, by stepup.Actor) ([]commit.Write, error) {
	var ws []commit.Write
	if s.Budget != nil {
		ws = append(ws, challenge.Spend{Budget: *s.Budget}, stepup.Credentials(*a.state))
	} else {
		ws = stepup.Guards(*a.state, *a.budget)
	}
	switch s.Next.State {
	case challenge.Denied:
		sealed, write, err := a.seal(now, s.Next, challenge.Result{})
		if err != nil {
			return nil, err
		}
		a.outcome = sealed
		ws = append(ws, write, a.record(s.Next, audit.Refused, by, "denied"))
	case challenge.Closed:
		ws = append(ws, a.record(s.Next, audit.Refused, by, "too many wrong values"))
	case challenge.Executing:
		action, ok := a.d.Actions[s.Next.Action]
		if !ok || action.Build == nil {
			break
		}
		built, err := a.build(now, action, &s.Next, by)
		if err != nil {
			return nil, err
		}
		ws = append(ws, built...)
	}
	return ws, nil
}

// build finishes an action that only writes rows together with the last step.
func (a *challengeActor) build(now time.Time, action challenge.Action, next *challenge.Challenge, by stepup.Actor) ([]commit.Write, error) {
	ctx, cancel := a.io()
	defer cancel()
	command, err := a.command(ctx, *next, a.sealed)
	a.sealed = nil
	if err != nil {
		return nil, err
	}
	result, writes, err := action.Build(ctx, challenge.Execution{Challenge: *next, Command: command, Now: now})
	if err != nil {
		if !refused(err) {
			return nil, err
		}
		result, writes = challenge.Failed(err), nil
	}
	*next = next.Finish()
	sealed, write, err := a.seal(now, *next, result)
	if err != nil {
		return nil, err
	}
	a.outcome = sealed
	return append(writes, write, a.report(*next, result, by)), nil
}

func (a *challengeActor) renew(c *cluster.Context, m *pb.ChallengeRenew) {
	if a.d.late(m.Deadline) {
		return
	}
	name := challenge.Name(m.Method)
	err := a.decide(c, func(now time.Time) (*challenge.Challenge, []commit.Write, error) {
		i, err := a.state.Renewable(now, a.d.Rules, m.MethodId, name)
		if err != nil || m.Check {
			return nil, nil, err
		}
		if int(m.Message.Generation) != a.state.Methods[i].Generation+1 {
			return nil, nil, stepup.Overtaken()
		}
		d := challenge.Digest{}
		if m.Digest != nil {
			d = challenge.Digest{Key: m.Digest.Key, Sum: m.Digest.Sum}
		}
		next, err := a.state.Renew(now, a.d.Rules, m.MethodId, name, d)
		if err != nil {
			return nil, nil, err
		}
		return &next, []commit.Write{outbox.Add{Message: outgoing(c.ID(), m.MethodId, a.state.Owner(), m.Message)}, stepup.Credentials(*a.state)}, nil
	})
	if errors.Is(err, stepup.Overtaken()) {
		c.Reply(&pb.Refusal{Code: overtaken, AttemptsLeft: -1})
		return
	}
	if err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	method, _ := a.state.Method(m.MethodId)
	next := method.Generation
	if m.Check {
		next++
	}
	c.Reply(&pb.ChallengeRenewed{Challenge: view(*a.state), UserId: a.state.UserID, Subject: a.state.Subject, Decoy: a.state.Kind == challenge.Decoy, Proven: a.state.Proven,
		Generation: int32(next), Template: method.Template, Language: a.state.Starter.Language, LifetimeMs: method.LifetimeMs})
}

func (a *challengeActor) result(c *cluster.Context, m *pb.ChallengeResult) {
	if a.d.late(m.Deadline) {
		return
	}
	err := a.current(c)
	if err == nil {
		err = a.look(c)
	}
	if err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	now := a.d.Now()
	if answer := a.settled(c.ID(), now); answer != nil {
		answer(c.Sender())
		return
	}
	if m.WaitMs > 0 {
		a.waiters = append(a.waiters, waiter{to: c.Sender(), until: now.Add(time.Duration(m.WaitMs) * time.Millisecond)})
		return
	}
	a.d.refuse(c.Sender(), c.ID(), notCompleted())
}

// settled tells how to answer a question for the outcome; nil while there is
// neither an outcome nor an end.
func (a *challengeActor) settled(id string, now time.Time) func(cluster.Sender) {
	if a.outcome != nil {
		return func(to cluster.Sender) {
			to.Reply(&pb.ChallengeAnswered{Action: a.state.Action, Final: true, Outcome: a.outcome})
		}
	}
	if a.state.Ended(now) {
		err := a.state.Open(now)
		return func(to cluster.Sender) { a.d.refuse(to, id, err) }
	}
	return nil
}

// settle answers whoever need not wait any longer, and tells the listeners
// when the challenge ended without an outcome.
func (a *challengeActor) settle(c *cluster.Context) {
	if a.state == nil {
		if len(a.waiters) == 0 && len(a.nodes) == 0 {
			return
		}
		if a.load(c) != nil {
			return
		}
	}
	now := a.d.Now()
	answer := a.settled(c.ID(), now)
	rest := a.waiters[:0]
	for _, w := range a.waiters {
		switch {
		case answer != nil:
			answer(w.to)
		case now.Before(w.until):
			rest = append(rest, w)
		case w.final:
			w.to.Reply(&pb.ChallengeAnswered{Action: a.state.Action, Final: true})
		default:
			a.d.refuse(w.to, c.ID(), notCompleted())
		}
	}
	clear(a.waiters[len(rest):])
	a.waiters = rest
	if len(a.waiters) == 0 {
		a.waiters = nil
	}
	live := a.nodes[:0]
	for _, l := range a.nodes {
		if now.Before(l.until) {
			live = append(live, l)
		}
	}
	a.nodes = live
	if a.outcome == nil && a.state.Ended(now) {
		a.publish(c, &pb.ChallengeNews{ChallengeId: c.ID(), Action: a.state.Action, Gone: true})
		a.nodes = nil
	}
}

// refresh reads the row again, because somebody else changed it.
func (a *challengeActor) refresh(c *cluster.Context) {
	before := 0
	if a.state != nil {
		before = len(a.state.CompletedMethods())
		if a.outcome != nil && a.state.State != challenge.Pending { // else it is that of a step that was fenced out
			before++
		}
	}
	a.forget()
	if err := a.load(c); err != nil {
		return // asked again when somebody needs it
	}
	if news := a.news(before); len(news.Events) > 0 {
		a.publish(c, news)
	}
	a.settle(c)
}

// subscribe notes a node and tells what happened after the event it has seen.
func (a *challengeActor) subscribe(c *cluster.Context, m *pb.ChallengeSubscribe) {
	if err := a.current(c); err != nil {
		a.d.refuse(c.Sender(), c.ID(), err)
		return
	}
	if !slices.ContainsFunc(a.nodes, func(l listener) bool { return l.node == m.Node }) {
		if err := a.look(c); err != nil {
			a.d.refuse(c.Sender(), c.ID(), err)
			return
		}
	}
	now := a.d.Now()
	others := int32(0)
	rest := a.nodes[:0]
	for _, l := range a.nodes {
		if l.node != m.Node && now.Before(l.until) {
			rest, others = append(rest, l), others+l.sockets
		}
	}
	a.nodes = rest
	refused := max(0, m.Sockets-(maxSockets-others))
	if m.Sockets-refused > 0 && (a.outcome != nil || !a.state.Ended(now)) {
		a.nodes = append(a.nodes, listener{node: m.Node, sockets: m.Sockets - refused, until: now.Add(listenLease)})
	}
	news := a.news(int(m.After))
	news.Gone = a.outcome == nil && a.state.Ended(now)
	c.Reply(&pb.ChallengeSubscribed{Refused: refused, News: news})
}

// news are the events after a number.
func (a *challengeActor) news(after int) *pb.ChallengeNews {
	n := &pb.ChallengeNews{ChallengeId: a.state.ID, Action: a.state.Action, ExpiresAt: a.state.ExpiresAt}
	done := a.state.CompletedMethods()
	for i, m := range done {
		if i >= after {
			n.Events = append(n.Events, &pb.Event{Number: int32(i + 1), MethodId: m.ID, Method: string(m.Name)})
		}
	}
	if a.outcome != nil && after <= len(done) {
		n.Events = append(n.Events, &pb.Event{Number: int32(len(done) + 1), Outcome: a.outcome})
	}
	return n
}

func (a *challengeActor) publish(c *cluster.Context, n *pb.ChallengeNews) {
	for _, l := range a.nodes {
		c.Node().Post(l.node, Hub, n)
	}
}

// arm keeps one timer, for the next instant at which the actor has something
// to do: somebody's patience, the challenge's end where somebody waits for it,
// or its own idleness.
func (a *challengeActor) arm(c *cluster.Context) {
	now := a.d.Now()
	at := a.touched.Add(a.d.Idle)
	if !at.After(now) { // needed beyond its idle time: look again later
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
		return // the armed one comes first and arms the next
	}
	a.rest()
	a.wakes++
	a.wakeAt = at
	a.timer = c.Self().After(at.Sub(now), wake{a.wakes})
}

// rest stops the timer of an actor that has left.
func (a *challengeActor) rest() {
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

func notCompleted() error {
	return fault.New(fault.ChallengeNotCompleted, "the challenge is not completed yet").After(time.Second)
}

// command opens what the action runs with; sealed is nil where it must be read.
func (a *challengeActor) command(ctx context.Context, c challenge.Challenge, sealed []byte) ([]byte, error) {
	if !c.Commanded {
		return nil, nil
	}
	if sealed == nil {
		var err error
		if sealed, err = a.d.Store.Command(ctx, c.ID); err != nil || sealed == nil {
			return nil, err
		}
	}
	return a.d.Open(sealed, challenge.CommandData(c.ID))
}
