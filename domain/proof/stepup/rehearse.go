package stepup

import (
	"context"
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
)

// Rehearsal is the effect that a policy for all users would have had in the last 24 hours (D-MFA-14).
type Rehearsal struct {
	Considered int // challenges of the action that ended, according to the audit
	// Changed are the challenges that would have had other requirements. Stopped are those of them that could not
	// have started, because the account now lacks methods.
	Changed, Stopped int
	Users            int  // accounts among those changed
	Truncated        bool // the audit has more rows than were read
	Examples         []audit.Stored
	// Forgotten are the remembered clients, of all accounts, that the policy would not accept any more; at most 1000 are
	// looked at.
	Forgotten int
	// Stronger is the policy if it requires more than the addition of a device; for DEVICE_ADD, the policies that require
	// more than it.
	Stronger []mfa.Policy
	// Accounts are all active accounts. Lost are those of them that can complete the action now and could not under the
	// policy. You reports whether the author of the policy is one of them.
	Accounts, Lost int
	You            bool
}

// Bounds of a rehearsal.
const (
	rehearsedTime = 24 * time.Hour
	rehearsedRows = 1000
	examples      = 5
)

// Rehearse applies a policy for all users to the challenges in the audit, and to the methods of all accounts. It does
// not affect users and addresses with their own policy.
func (s *Starter) Rehearse(ctx context.Context, rows audit.Store, by audit.By, p mfa.Policy) (
	out Rehearsal, err error) {
	now, c := s.Now(), s.Catalog()
	p.Type, p.EntityType, p.EntityID = mfa.Common, mfa.General, ""
	if err := s.shutOut(ctx, by, c, p, &out); err != nil {
		return out, err
	}
	read, err := rows.List(ctx, audit.Query{Action: p.ActionCode, From: now.Add(-rehearsedTime)},
		page.Query[audit.Place]{Limit: rehearsedRows})
	if err != nil {
		return out, err
	}
	out.Truncated = read.More
	next := c.PlanOf(p)
	if p.ActionCode == mfa.DeviceAdd {
		out.Stronger = c.Stronger(now, &next, c.Policies())
	} else {
		out.Stronger = c.Stronger(now, nil, []mfa.Policy{p})
	}
	f := s.Actions[p.ActionCode].Flow
	reset := f == challenge.FlowReset || f == challenge.FlowRegister // never started with a proof
	users, seen, accounts := map[string]bool{}, map[string]bool{}, map[string]*challenge.Account{}
	var changed, stopped []audit.Stored
	for _, row := range read.Records {
		// Other rows of the action belong to attempts that started no challenge: they name the account itself.
		if row.UserID == "" || row.Target == row.UserID || seen[row.Target] {
			continue
		}
		seen[row.Target] = true
		out.Considered++
		who := row.UserID
		if reset {
			who = ""
		}
		before := c.Plan(now, p.ActionCode, who, row.IP)
		if before.EntityType != mfa.General || same(before, next) {
			continue
		}
		changed, users[row.UserID] = append(changed, row), true
		account, known := accounts[row.UserID]
		if !known {
			a, err := s.Accounts.Account(ctx, row.UserID)
			switch {
			case err == nil:
				account = &a
			case fault.CodeOf(err) != fault.RecordNotFound:
				return out, err
			}
			accounts[row.UserID] = account
		}
		if account == nil { // no longer active
			continue
		}
		can, err := s.couldStart(ctx, p.ActionCode, *account, next)
		if err != nil {
			return out, err
		}
		if !can {
			stopped = append(stopped, row)
		}
	}
	out.Changed, out.Stopped, out.Users = len(changed), len(stopped), len(users)
	if out.Examples = stopped; len(stopped) == 0 {
		out.Examples = changed
	}
	out.Examples = out.Examples[:min(len(out.Examples), examples)]
	return out, s.forgotten(ctx, now, next, p.ActionCode, &out)
}

// couldStart reports whether an account has the methods of a plan.
func (s *Starter) couldStart(ctx context.Context, action string, a challenge.Account, next mfa.Plan) (bool, error) {
	var k keys
	if r := (challenge.StartRequest{Action: action, Account: a, Proven: true}); next.PhishingResistant ||
		mfa.ChangesFactors(action) {
		var err error
		if k, err = s.passkeys(ctx, r, next); err != nil {
			return false, err
		}
		next = s.byPasskeyToo(r, k, next)
	}
	_, err := next.Offer(func(n challenge.Name) bool {
		return k.owns(a, next, challenge.Password, n) && s.reaches(n)
	})
	alone := next.PasskeyAlone && a.Passkeys && (!next.PhishingResistant || k.Request != nil)
	return err == nil || alone, nil
}

// shutOut counts the accounts that lose an action by a policy for all users.
func (s *Starter) shutOut(ctx context.Context, by audit.By, c *mfa.Catalog, p mfa.Policy, out *Rehearsal) error {
	if s.Owners == nil {
		return nil
	}
	all, err := s.Owners(ctx)
	if err != nil {
		return err
	}
	after := c.With(p)
	before, next := c.Plan(s.Now(), p.ActionCode, "", ""), after.Plan(s.Now(), p.ActionCode, "", "")
	for _, o := range all {
		out.Accounts += o.Count
		if s.completes(p.ActionCode, o.Account, before) && !s.completes(p.ActionCode, o.Account, next) {
			out.Lost += o.Count
		}
	}
	can, err := s.Can(ctx, c, p.ActionCode, by.UserID, by.IP)
	if err != nil || !can {
		return err
	}
	can, err = s.Can(ctx, after, p.ActionCode, by.UserID, by.IP)
	out.You = !can
	return err
}

// Can reports whether an account could complete an action under a configuration; false for an unknown account and for
// one that is not active.
func (s *Starter) Can(ctx context.Context, c *mfa.Catalog, action, userID, ip string) (bool, error) {
	a, err := s.Accounts.Account(ctx, userID)
	if err != nil {
		if fault.CodeOf(err) == fault.RecordNotFound {
			err = nil
		}
		return false, err
	}
	return s.couldStart(ctx, action, a, c.Plan(s.Now(), action, userID, ip))
}

// completes is couldStart for many accounts with the same methods: each of their passkeys counts.
func (s *Starter) completes(action string, a challenge.Account, p mfa.Plan) bool {
	if a.Passkeys && mfa.ChangesFactors(action) {
		p = s.Catalog().ByPasskeyToo(p)
	}
	_, err := p.Offer(func(n challenge.Name) bool { return owns(a, p, n) && s.reaches(n) })
	return err == nil || p.PasskeyAlone && a.Passkeys
}

// forgotten counts the remembered clients that the plan of a policy for all users would not accept.
func (s *Starter) forgotten(ctx context.Context, now time.Time, next mfa.Plan, action string, out *Rehearsal) error {
	if s.Remembered == nil {
		return nil
	}
	clients, err := s.Remembered.Of(ctx, action, now, rehearsedRows)
	if err != nil {
		return err
	}
	for _, one := range clients {
		before := s.Catalog().Plan(now, action, one.UserID, "")
		if before.EntityType == mfa.General && one.Counts(now, one.CV, before.RememberDays) &&
			(!one.Counts(now, one.CV, next.RememberDays) || !next.Lists(one.Method)) {
			out.Forgotten++
		}
	}
	return nil
}

// same reports whether two plans have the same requirements.
func same(a, b mfa.Plan) bool {
	return a.Required == b.Required && a.NumberMatching == b.NumberMatching && a.RememberDays == b.RememberDays &&
		a.PhishingResistant == b.PhishingResistant &&
		slices.EqualFunc(a.Methods, b.Methods, func(x, y mfa.Planned) bool {
			return x.Name == y.Name && x.Mandatory == y.Mandatory
		})
}

// Explanation describes how the start of a challenge would be decided now.
type Explanation struct {
	Plan       mfa.Plan
	Candidates []mfa.Candidate // every policy of the action, the most specific first
	// Offered are the methods that the challenge would list. Without a user they are those of the plan that this
	// installation can offer. A start is refused when they are fewer than the plan requires or lack a mandatory one.
	Offered []challenge.Name
	// Missing are the methods of the plan that are not offered.
	Missing []challenge.Name
	// Remembered counts the clients of the user that would complete a method, if they show their keys.
	Remembered int
	// Stronger are the policies of the action that require more than the addition of a device; for DEVICE_ADD, all that
	// do.
	Stronger []mfa.Policy
}

// Explain decides as Start would, for a user or, with userID "", without a particular user. It starts nothing.
//
// Errors: RECORD_NOT_FOUND for an action that is neither configured nor registered, and for a user who is unknown or
// not active.
func (s *Starter) Explain(ctx context.Context, action, userID, ip string) (Explanation, error) {
	c := s.Catalog()
	if _, listed := c.Action(action); !listed && s.Actions[action].Code == "" {
		return Explanation{}, fault.New(fault.RecordNotFound, "there is no such action")
	}
	known, r := userID != "", challenge.StartRequest{Action: action, Starter: challenge.Starter{IP: ip}, Proven: true}
	if known {
		var err error
		if r.Account, err = s.Accounts.Account(ctx, userID); err != nil {
			return Explanation{}, err
		}
	}
	if f := s.Actions[action].Flow; f == challenge.FlowReset || f == challenge.FlowRegister { // never with a proof
		userID, r.Proven = "", false
	}
	now := s.Now()
	x := Explanation{Candidates: c.Candidates(now, action, userID, ip)}
	var keys keys
	var err error
	if x.Plan, keys, err = s.required(ctx, now, &r); err != nil {
		return x, err
	}
	if action == mfa.DeviceAdd {
		x.Stronger = c.Stronger(now, nil, c.Policies())
	}
	for _, one := range x.Candidates {
		x.Stronger = append(x.Stronger, c.Stronger(now, nil, []mfa.Policy{one.Policy})...)
	}
	for _, m := range x.Plan.Methods {
		if (!known || keys.owns(r.Account, x.Plan, challenge.Password, m.Name)) && s.reaches(m.Name) {
			x.Offered = append(x.Offered, m.Name)
		} else {
			x.Missing = append(x.Missing, m.Name)
		}
	}
	for _, n := range x.Plan.Mandatory { // without a configuration it is not even in the plan
		if !slices.Contains(x.Offered, n) && !slices.Contains(x.Missing, n) {
			x.Missing = append(x.Missing, n)
		}
	}
	if userID != "" && s.Remembered != nil && x.Plan.RememberDays > 0 {
		clients, err := s.Remembered.List(ctx, userID, now, rehearsedRows)
		if err != nil {
			return x, err
		}
		for _, one := range clients {
			if one.Action == action && one.Counts(now, one.CV, x.Plan.RememberDays) && slices.Contains(x.Offered, one.Method) {
				x.Remembered++
			}
		}
	}
	return x, nil
}
