package app

import (
	"context"
	"slices"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/money/policy"
	httppolicy "castellan/http/money/policy"
	"castellan/persistence/account"
	"castellan/persistence/money"
)

// policy builds the rules of the money policy.
func (s *service) policy() error {
	rules := s.PolicyAdmin(s.changes(change.Policy, s.rules))
	rules.Second = func(ctx context.Context, by audit.By) error {
		others, err := s.roleMembers(ctx, user.RoleAdmin, by.UserID)
		if err == nil && others == 0 {
			err = fault.New(fault.InvalidState, "no other administrator: run castellan money rule on the host")
		}
		return err
	}
	rules.Rehearse = s.judges.Rehearse
	s.join(part{groups: groups(httppolicy.Group{Admin: rules, Rules: s.rules.Current, Stored: s.judges.Stored,
		Now: time.Now})})
	return nil
}

// PolicyAdmin returns the administration of the money policy, without its second person.
func (d *Deployment) PolicyAdmin(changes admin.Changes) *policy.Admin {
	store := money.NewRules(d.DB)
	changes.Lock = store.Lock
	return &policy.Admin{Store: store, Changes: changes,
		Members: func(ctx context.Context, role string) (int, error) { return d.roleMembers(ctx, role, "") }}
}

// roleMembers returns how many active accounts other than one have a role.
func (d *Deployment) roleMembers(ctx context.Context, role, other string) (n int, err error) {
	users := account.NewUsers(d.DB)
	held, err := users.Holders(ctx)
	if err != nil {
		return 0, err
	}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(held[role]))) {
		if id == other {
			continue
		}
		u, err := users.Get(ctx, id)
		if fault.CodeOf(err) == fault.RecordNotFound {
			continue
		}
		if err != nil {
			return 0, err
		}
		if u.Active() {
			n++
		}
	}
	return n, nil
}
