package stepup

import (
	"cmp"
	"context"
	"slices"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/mfa"
	"castellan/domain/access/remembered"
	"castellan/domain/delivery/outbox"
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
	// Finishes commits the challenges that their starts complete, with the effects of their actions; nil: Commit does.
	Finishes commit.Committer
}

var _ challenge.Starts = (*Starter)(nil)

// Start starts a challenge. The challenge, the outbox rows of its codes, the challenges that make room for it, r.With
// and r.Bind commit together. If the client is remembered and no other method is required, the action runs too. It does
// so in the same unit if it only writes rows. commit.ErrFenced means that the account or one of their fences changed
// meanwhile: read again and restart.
func (s *Starter) Start(ctx context.Context, r challenge.StartRequest) (challenge.Started, error) {
	action, ok := s.Actions.Of(r.Action, r.Service)
	if !ok {
		return challenge.Started{}, fault.New(fault.InvalidState, "no action of this code is registered")
	}
	now := s.Now()
	if r.Decoy != "" {
		r.Account.Mail, r.Proven = decoyMail, false
	}
	if r.Applicant != "" {
		r.Proven = false
	}
	keys, err := s.passkeys(ctx, r)
	if err != nil {
		return challenge.Started{}, err
	}
	plan, offer, err := s.offer(now, &r, keys)
	if err != nil {
		return challenge.Started{}, err
	}
	c := s.build(now, r, action.Flow, offer, plan)
	keys.mark(&c, plan)
	if c.Brief = r.Brief; action.Brief != nil {
		c.Brief = action.Brief(r.Command)
	}
	if action.KeepsFilter {
		c.Filter = r.Account.Countries
	}
	if r.Proven {
		c.Off = r.Account.Off
	}

	used, err := s.recall(ctx, now, &c, plan, r.Key)
	if err != nil {
		return challenge.Started{}, err
	}
	letters := s.letters(c, r)
	if r.Proven {
		if letters, err = s.withinBudget(ctx, now, &c, letters); err != nil {
			return challenge.Started{}, err
		}
	}
	grant, err := s.reserve(ctx, now, c, letters, keys)
	if err != nil {
		return challenge.Started{}, err
	}
	pushed, err := s.bounded(ctx, &c, letters, r.Account, grant)
	if err != nil {
		return challenge.Started{}, err
	}
	if r.Proven {
		if letters, err = s.withinCaps(ctx, now, &c, letters, grant); err != nil {
			return challenge.Started{}, err
		}
	}
	wakes, err := s.wakes(ctx, c)
	if err != nil {
		return challenge.Started{}, err
	}
	writes := make([]commit.Write, 0, 5+len(letters)+len(wakes)+len(grant.Supersede)+len(r.With))
	writes = append(append(writes, Credentials(c)), pushed...)
	for i := range letters {
		l := &letters[i]
		name := c.Methods[l.method].Name
		off := r.Account.Off.Has(c.Flow, name) || slices.Contains(r.Withheld, name) // not offered when the start is proven
		s.seal(l, &c.Methods[l.method], c, r.Proven || grant.Send[i] && !off)
		writes = append(writes, outbox.Add{Message: l.row})
	}
	for _, w := range wakes {
		writes = append(writes, outbox.Add{Message: w.row})
	}
	for _, old := range grant.Supersede {
		writes = append(writes, challenge.Supersede{ID: old})
	}
	insert := challenge.Insert{Challenge: c}
	if r.Command != nil {
		insert.Commanded = true
		insert.Command = s.Ring.Seal(r.Command, challenge.CommandData(c.ID))
	}
	insert.Intent = s.describe(&insert.Challenge, r, action.Describe, insert.Command)
	var result *challenge.Result
	committer := s.Commit
	if insert.State == challenge.Executing {
		committer = cmp.Or(s.Finishes, s.Commit)
		if action.Build != nil {
			var done []commit.Write
			if insert.Challenge, result, done, err = s.finish(ctx, now, action, insert.Challenge, r.Command); err != nil {
				return challenge.Started{}, err
			}
			writes = append(writes, done...)
		}
	}
	writes = append(append(append(writes, insert), r.With...), used...)
	if r.Bind != nil {
		writes = append(writes, r.Bind(c)...)
	}
	insert.Version = 1
	if c.Off == 0 && c.Service == "" && !c.Passkeys && !c.Resistant && c.Entry == challenge.Password &&
		used == nil {
		// a primed state has none of these; the owner reads the row
		s.Challenges.Prime(insert)
	}
	if err := committer.Commit(ctx, writes...); err != nil {
		s.Challenges.Refresh(c.ID)
		return challenge.Started{}, err
	}
	for _, old := range grant.Supersede {
		s.Challenges.Refresh(old)
	}
	for _, l := range append(letters, wakes...) {
		s.deliver(l)
	}
	if insert.State == challenge.Executing {
		result = s.executed(ctx, c.ID)
	}
	started, err := s.started(insert.Challenge)
	started.Result = result
	started.WebAuthn = keys.options(insert.Challenge)
	return started, err
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

// offer decides which methods the account must complete. A login by a passkey that needs no further method gets the
// entry Alone.
func (s *Starter) offer(now time.Time, r *challenge.StartRequest, keys keys) (mfa.Plan, []mfa.Planned, error) {
	userID := r.Account.UserID
	if !r.Proven { // a rule for one user only would distinguish the user from a decoy (D-PWD-01)
		userID = ""
	}
	plan := s.Catalog().Plan(now, r.Action, userID, r.Starter.IP)
	if r.Entry == challenge.Key && plan.PasskeyAlone {
		r.Entry, plan = challenge.Alone, plan.ByPasskey()
	}
	action, _ := s.Actions.Of(r.Action, r.Service)
	flow := action.Flow
	offer, err := plan.Offer(func(n challenge.Name) bool {
		owns := keys.owns(r.Account, plan, r.Entry, n) || r.Decoy != "" // a decoy owns every required method
		if r.Proven && r.Account.Off.Has(flow, n) {
			return false
		}
		return owns && s.reaches(n)
	})
	return plan, offer, err
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
			SignIntent: plan.SignIntent, PolicyID: plan.PolicyID, Entry: r.Entry, Service: r.Service, Starter: r.Starter,
			Methods: make([]challenge.Method, len(offer))},
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
			// The starter of a reset typed the number, not the address (D-2FA-26).
			if r.Proven || r.Applicant != "" || p.Name == challenge.SMS {
				m.Hint = Hint(p.Name, destination(a, p.Name), a.Dial)
			}
		}
		if p.Name == challenge.PUSH && plan.NumberMatching {
			m.Number = newNumber()
			sum := s.Ring.Hash("otp", c.ID, m.ID, approved+":"+m.Number)
			m.Digest = challenge.Digest{Key: sum.Key, Sum: sum.Sum}
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
		to := destination(r.Account, m.Name)
		row := s.row(c, m, c.Owner(), to, r.Starter.IP)
		row.Proven = r.Proven
		ls = append(ls, letter{method: i, to: to, lang: s.language(r.Starter.Language, r.Account.Language), row: row})
	}
	return ls
}
