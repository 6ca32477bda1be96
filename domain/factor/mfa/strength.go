package mfa

import (
	"slices"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/sorting"
)

// ChangesFactors reports whether an action adds or removes a device, a passkey or an authenticator. Of an account with
// a settled passkey it needs one, whatever the policy.
func ChangesFactors(action string) bool {
	return action == DeviceAdd || action == DeviceRemove || action == TOTPSetup || action == TOTPDeactivate
}

// ByPasskeyToo returns the plan of a change of factors of an account with a settled passkey: that of the policy, and a
// passkey. It is the push of a policy that lists one, and else a further method.
func (c *Catalog) ByPasskeyToo(p Plan) Plan {
	p.PhishingResistant = true
	p.Methods = slices.Clone(p.Methods)
	if !p.Lists(challenge.PUSH) {
		p.Methods = append(p.Methods, Planned{Code: PUSH, Name: challenge.PUSH, LifetimeMs: c.methods[PUSH].ExpireMs})
		p.Required++
	}
	if !slices.Contains(p.Mandatory, challenge.PUSH) {
		p.Mandatory = append(slices.Clone(p.Mandatory), challenge.PUSH)
	}
	p.Required = max(p.Required, len(p.Mandatory))
	for i, m := range p.Methods {
		p.Methods[i].Mandatory = m.Mandatory || m.Name == challenge.PUSH
	}
	if p.Required == len(p.Mandatory) {
		p.Methods = slices.DeleteFunc(p.Methods, func(m Planned) bool { return !m.Mandatory })
	}
	return p
}

// Stronger returns those of the policies that require more than the addition of a device does, and that a device may
// complete. An account without a device gets one by less than such a policy requires. added is the plan of DEVICE_ADD
// to compare with; nil compares with that of the catalog for the same user or address. The policies need not be stored.
func (c *Catalog) Stronger(now time.Time, added *Plan, of []Policy) (stronger []Policy) {
	for _, p := range of {
		plan := planOf(c.methods, p)
		if p.ActionCode == DeviceAdd || p.Type != Common || p.Expired(now.UnixMilli()) || !plan.Lists(challenge.PUSH) {
			continue
		}
		than := added
		if than == nil {
			userID, ip := "", ""
			switch p.EntityType {
			case UserID:
				userID = p.EntityID
			case IP:
				ip = p.EntityID
			}
			by := c.Plan(now, DeviceAdd, userID, ip)
			than = &by
		}
		if plan.Required > than.Required || plan.PhishingResistant && !than.PhishingResistant {
			stronger = append(stronger, p)
		}
	}
	return stronger
}

// Policies returns the stored policies of the snapshot, in the order of their ids.
func (c *Catalog) Policies() (all []Policy) {
	for _, list := range c.byAction {
		for _, p := range list {
			all = append(all, p.Policy)
		}
	}
	sorting.Func(all, func(a, b Policy) int { return int(a.ID - b.ID) })
	return all
}
