package stepup

import (
	"context"
	"slices"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/access/mfa"
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
}

// Bounds of a rehearsal.
const (
	rehearsedTime = 24 * time.Hour
	rehearsedRows = 1000
	examples      = 5
)

// Rehearse applies a policy for all users to the challenges in the audit. It does not affect users and addresses with
// their own policy.
func (s *Starter) Rehearse(ctx context.Context, rows audit.Store, p mfa.Policy) (out Rehearsal, err error) {
	now, c := s.Now(), s.Catalog()
	read, err := rows.List(ctx, audit.Query{Action: p.ActionCode, From: now.Add(-rehearsedTime)},
		page.Query[audit.Place]{Limit: rehearsedRows})
	if err != nil {
		return out, err
	}
	out.Truncated = read.More
	next := c.PlanOf(p)
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
		if _, err := next.Offer(func(n challenge.Name) bool { return owns(*account, next, n) && s.reaches(n) }); err != nil {
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
