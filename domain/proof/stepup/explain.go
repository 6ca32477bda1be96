package stepup

import (
	"context"
	"slices"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
)

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
