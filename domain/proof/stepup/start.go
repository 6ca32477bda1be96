package stepup

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/factor/remembered"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
)

// Starter starts challenges. All fields are required except Devices. Without Devices no device is woken.
type Starter struct {
	*Messenger
	Actions    challenge.Actions
	Accounts   Accounts
	Tokens     Tokens
	Challenges Challenges
	Commit     commit.Committer
	Devices    Devices
	// Remembered are the clients that are remembered; nil: none is.
	Remembered remembered.Store
	// Owners counts all active accounts by their methods; nil: a rehearsal does not count them.
	Owners func(context.Context) ([]challenge.Owners, error)
	// Finishes commits the challenges that their starts complete, with the effects of their actions; nil: Commit does.
	Finishes commit.Committer
}

var _ challenge.Starts = (*Starter)(nil)

// draft is a challenge on its way to its commit. Each step of Start adds its part.
type draft struct {
	challenge.StartRequest
	action challenge.Action
	now    time.Time
	plan   mfa.Plan
	keys   keys
	c      challenge.Challenge

	letters, wakes []letter
	grant          Grant
	pushed         []commit.Write // of its push, or of the notice in place of one
	used           []commit.Write // of the remembered client that completed a method
}

// Start starts a challenge. The challenge, the outbox rows of its codes, the challenges that make room for it, r.With
// and r.Bind commit together. If the client is remembered and no other method is required, the action runs too. It does
// so in the same unit if it only writes rows. commit.ErrFenced means that the account or one of their fences changed
// meanwhile: read again and restart.
func (s *Starter) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	action, ok := s.Actions.Of(r.Action, r.Service)
	if !ok {
		return challenge.Started{}, fault.New(fault.InvalidState, "no action of this code is registered")
	}
	d := draft{StartRequest: r, action: action, now: s.Now()}
	err := s.choose(ctx, &d)
	if err == nil {
		d.used, err = s.recall(ctx, d.now, &d.c, d.plan, d.Key)
	}
	if err == nil {
		err = s.permit(ctx, &d)
	}
	if err != nil {
		return challenge.Started{}, err
	}
	return s.commit(ctx, &d)
}

// choose makes the challenge with the methods that the action requires of the account.
func (s *Starter) choose(ctx context.Context, d *draft) (err error) {
	if d.Decoy != "" {
		d.Account.Mail, d.Proven = decoyMail, false
	}
	if d.Applicant != "" {
		d.Proven = false
	}
	if d.plan, d.keys, err = s.required(ctx, d.now, &d.StartRequest); err != nil {
		return err
	}
	offer, err := s.offer(d.StartRequest, d.plan, d.keys)
	if err != nil {
		return err
	}
	d.c = s.build(d.now, d.StartRequest, d.action.Flow, offer, d.plan)
	d.keys.mark(&d.c, d.plan)
	if d.c.Brief = d.Brief; d.action.Brief != nil {
		d.c.Brief = d.action.Brief(d.Command)
	}
	if d.Service != "" {
		d.c.Brief = foreignBrief(d.c.Brief)
	}
	if d.action.KeepsFilter {
		d.c.Filter = d.Account.Countries
	}
	if d.Proven {
		d.c.Off = d.Account.Off
	}
	return nil
}

// permit asks for the messages and pushes of a challenge. Those that no cap permits leave it, or refuse the start.
func (s *Starter) permit(ctx context.Context, d *draft) (err error) {
	d.letters = s.letters(d.c, d.StartRequest)
	if d.Proven {
		if d.letters, err = s.withinBudget(ctx, d.now, &d.c, d.letters); err != nil {
			return err
		}
	}
	if d.grant, err = s.reserve(ctx, d.now, d.c, d.letters, d.keys); err != nil {
		return err
	}
	if d.pushed, err = s.bounded(ctx, &d.c, d.letters, d.Account, d.grant); err != nil {
		return err
	}
	if d.Proven {
		if d.letters, err = s.withinCaps(ctx, d.now, &d.c, d.letters, d.grant); err != nil {
			return err
		}
	}
	d.wakes, err = s.wakes(ctx, d.c)
	return err
}

// messages seals the codes of a challenge and returns its writes, without the challenge.
func (s *Starter) messages(d *draft) []commit.Write {
	writes := make([]commit.Write, 0, 5+len(d.letters)+len(d.wakes)+len(d.grant.Supersede)+len(d.With))
	writes = append(append(writes, Credentials(d.c)), d.pushed...)
	for i := range d.letters {
		l := &d.letters[i]
		name := d.c.Methods[l.method].Name
		off := d.Account.Off.Has(d.c.Flow, name) || slices.Contains(d.Withheld, name) // not offered when the start is proven
		s.seal(l, &d.c.Methods[l.method], d.c, d.Proven || d.grant.Send[i] && !off)
		writes = append(writes, outbox.Add{Message: l.row})
	}
	for _, w := range d.wakes {
		writes = append(writes, outbox.Add{Message: w.row})
	}
	for _, old := range d.grant.Supersede {
		writes = append(writes, challenge.Supersede{ID: old})
	}
	return writes
}

// commit commits a challenge with its messages. If its start has completed it, its action runs too.
func (s *Starter) commit(ctx context.Context, d *draft) (challenge.Started, error) {
	writes := s.messages(d)
	insert := challenge.Insert{Challenge: d.c}
	if d.Command != nil {
		insert.Commanded = true
		insert.Command = s.Ring.Seal(d.Command, challenge.CommandData(d.c.ID))
	}
	insert.Intent = s.describe(&insert.Challenge, d.StartRequest, d.action.Describe, insert.Command)
	var result *challenge.Result
	committer := s.Commit
	if insert.State == challenge.Executing {
		committer = cmp.Or(s.Finishes, s.Commit)
		if d.action.Build != nil {
			var done []commit.Write
			var err error
			insert.Challenge, result, done, err = s.finish(ctx, d.now, d.action, insert.Challenge, d.Command)
			if err != nil {
				return challenge.Started{}, err
			}
			writes = append(writes, done...)
		}
	}
	writes = append(append(append(writes, insert), d.With...), d.used...)
	if d.Bind != nil {
		writes = append(writes, d.Bind(d.c)...)
	}
	insert.Version = 1
	if d.primes() {
		s.Challenges.Prime(insert)
	}
	if err := committer.Commit(ctx, writes...); err != nil {
		s.Challenges.Refresh(d.c.ID)
		return challenge.Started{}, err
	}
	s.yield(ctx, d.c.ID)
	for _, old := range d.grant.Supersede {
		s.Challenges.Refresh(old)
	}
	for _, l := range append(d.letters, d.wakes...) {
		s.deliver(l)
	}
	if insert.State == challenge.Executing {
		result = s.executed(ctx, d.c.ID)
	}
	started, err := s.started(insert.Challenge)
	started.Result = result
	started.WebAuthn = d.keys.options(insert.Challenge)
	return started, err
}

// primes reports whether the owner of a new challenge can start with its state. A primed state has no field of the
// conditions below; with one of them the owner reads the row.
func (d *draft) primes() bool {
	c := &d.c
	return c.Off == 0 && c.Service == "" && !c.Passkeys && !c.Resistant && c.Entry == challenge.Password &&
		!c.Recovered && !c.Settling && c.Starter.Login == "" && d.used == nil
}

// started signs the token of a challenge.
func (s *Starter) started(c challenge.Challenge) (challenge.Started, error) {
	until := time.UnixMilli(c.ExpiresAt).Add(s.Config.Grace)
	token, err := s.Tokens.PAuth(c.ID, until)
	return challenge.Started{Challenge: c, PAuth: token, ExpiresAt: until}, err
}

// Again returns a challenge in its current state, with another token. The caller lost the answer of its start and has
// proven the same again. Errors: CHALLENGE_NOT_FOUND.
func (s *Starter) Again(ctx context.Context, id string) (challenge.Started, error) {
	c, err := s.Store.Load(ctx, id)
	if err != nil {
		return challenge.Started{}, err
	}
	return s.started(c)
}

// offer decides which methods of a plan the account must complete.
func (s *Starter) offer(r challenge.StartRequest, plan mfa.Plan, keys keys) ([]mfa.Planned, error) {
	action, _ := s.Actions.Of(r.Action, r.Service)
	offer, err := plan.Offer(func(n challenge.Name) bool {
		owns := keys.owns(r.Account, plan, r.Entry, n) || r.Decoy != "" // a decoy owns every required method
		if r.Proven && r.Account.Off.Has(action.Flow, n) {
			return false
		}
		return owns && s.reaches(n)
	})
	if err == nil && !r.Proven && r.Applicant == "" { // as a decoy: which others the account owns must not show
		offer, err = plan.Offer(s.reaches)
	}
	return offer, keys.lacking(err, plan)
}

func (s *Starter) build(now time.Time, r challenge.StartRequest, flow challenge.Flow, offer []mfa.Planned,
	plan mfa.Plan) challenge.Challenge {
	ms, ttl := now.UnixMilli(), s.Config.TTL.Milliseconds()
	for _, p := range offer {
		ttl = max(ttl, p.LifetimeMs)
	}
	a := r.Account
	c := challenge.Challenge{
		ID: id.New(now), UserID: a.UserID, Action: r.Action, Flow: flow, CreatedAt: ms, ExpiresAt: ms + ttl,
		Body: challenge.Body{Subject: a.UserID, Required: plan.Required, CV: a.CV, SV: a.SV, Proven: r.Proven,
			SignIntent: plan.SignIntent, PolicyID: plan.PolicyID, Entry: r.Entry, Recovered: r.Recovered, Service: r.Service,
			Starter: r.Starter, Methods: make([]challenge.Method, len(offer))},
	}
	if r.Decoy != "" {
		c.UserID, c.Subject, c.Kind = "", r.Decoy, challenge.Decoy
	}
	if r.Applicant != "" {
		c.UserID, c.Subject, c.Kind = "", r.Applicant, challenge.Applicant
	}
	for i, p := range offer {
		m := challenge.Method{ID: id.New(now), Name: p.Name, Template: p.Template, LifetimeMs: p.LifetimeMs,
			RenewMs: p.RenewMs, Mandatory: p.Mandatory}
		if m.LifetimeMs == 0 { // no limit of its own: it lives as long as the challenge (D-2FA-03)
			m.LifetimeMs = ttl
		}
		if p.Name.Sent() && s.Config.MaxCodeAge > 0 {
			m.LifetimeMs = min(m.LifetimeMs, s.Config.MaxCodeAge.Milliseconds())
		}
		if p.Code != string(p.Name) {
			m.Code = p.Code
		}
		m.ExpiresAt = ms + m.LifetimeMs
		if p.Name.Sent() {
			m.MadeAt = ms
			// The starter of a reset typed the number, not the mail address (D-2FA-26).
			if r.Proven || r.Applicant != "" || p.Name.Typed() {
				m.Hint = p.Name.Hint(p.Name.Address(a), a.Dial)
			}
		}
		if p.Name == challenge.PUSH && plan.NumberMatching {
			m.Number = newNumber()
			m.Digest = challenge.Digest(s.Ring.Hash("otp", c.ID, m.ID, approved+":"+m.Number))
		}
		c.Methods[i] = m
	}
	return c
}

// letters returns the messages of the codes that a new challenge sends; none if its start has completed it.
func (s *Starter) letters(c challenge.Challenge, r challenge.StartRequest) []letter {
	var ls []letter
	if c.State != challenge.Pending {
		return nil
	}
	for i, m := range c.Methods {
		if !m.Name.Sent() || m.Order > 0 {
			continue
		}
		to := m.Name.Address(r.Account)
		row := s.row(c, m, c.Owner(), to, r.Starter.IP)
		row.Proven = r.Proven
		ls = append(ls, letter{method: i, to: to, lang: s.language(r.Starter.Language, r.Account.Language), row: row})
	}
	return ls
}

// overtakers are the new challenges of this node that close others, by the closed ones. A start may be written after
// one that closes it, which then finds no row to close. So each start looks here after its commit. The map has two
// halves: after settling, the younger one becomes the older one.
type overtakers struct {
	mu         sync.Mutex
	young, old map[string][]string
	turned     time.Time
}

// note records what a challenge closes. It must precede the commit of that challenge.
func (o *overtakers) note(now time.Time, by string, closed []string) {
	if len(closed) == 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.young == nil || now.Sub(o.turned) >= settling || now.Before(o.turned) {
		o.young, o.old, o.turned = map[string][]string{}, o.young, now
	}
	for _, id := range closed {
		o.young[id] = append(o.young[id], by)
	}
}

func (o *overtakers) of(id string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Concat(o.young[id], o.old[id])
}

// yield closes a new challenge if one that closes it was written first. One that will be written later closes it
// itself, and one that never is closes nothing. After an error it stays open: the next start of its action counts it.
func (s *Starter) yield(ctx context.Context, id string) {
	by := s.overtakers.of(id)
	if len(by) == 0 {
		return
	}
	if written, err := s.Store.States(ctx, by); err == nil && len(written) > 0 {
		_ = s.Commit.Commit(ctx, challenge.Supersede{ID: id})
		s.Challenges.Refresh(id)
	}
}
