package firewall

import (
	"slices"

	"castellan/domain/kit/fault"
)

// Change is a partial update of a rule (section 4.5 of the interface). A nil field is unchanged; a change without
// fields is allowed (D-WAF-14).
type Change struct {
	Label         string // of the rule
	Period, Limit Number
	ExpireAt      *int64
	Entities      *[]string
	Resources     *[]string
	AllEntities   *bool
	AllResources  *bool
	Status        *Status
	DryRun        *bool
}

// Number is the new value of a nullable field; nil clears the field.
type Number struct {
	Sent  bool
	Value *int64
}

// Apply returns the changed rule after checking all of it. INVALID_FIELD when it is not valid, including a rate limit
// without one of its numbers.
func (c Change) Apply(r Rule, known Resources) (Rule, error) {
	before := r
	if c.Period.Sent {
		r.PeriodMs = c.Period.Value
	}
	if c.Limit.Sent {
		r.Limit = c.Limit.Value
	}
	set(&r.ExpireAt, c.ExpireAt)
	set(&r.AllEntities, c.AllEntities)
	set(&r.AllResources, c.AllResources)
	set(&r.Status, c.Status)
	set(&r.DryRun, c.DryRun)
	set(&r.Entities, c.Entities)
	set(&r.Resources, c.Resources)
	r.Entities, r.Resources = slices.Clone(r.Entities), slices.Clone(r.Resources)
	r.Canonical(known)
	return r, fault.Since(before.Check(), r.Check(), map[string]bool{"period": c.Period.Sent, "limit": c.Limit.Sent,
		"expireAt": c.ExpireAt != nil, "targetEntities": !slices.Equal(r.Entities, before.Entities),
		"targetResources": !slices.Equal(r.Resources, before.Resources), "status": c.Status != nil})
}

func set[T any](field *T, value *T) {
	if value != nil {
		*field = *value
	}
}
