package firewall

import (
	"context"
	"strconv"
	"time"

	"castellan/domain/guard/ratelimit"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

// Counting lists and resets the counters of rate limits (D-WAF-20).
type Counting struct {
	Rules    func() *Snapshot
	Counters ratelimit.Counters
	Changes  admin.Changes
}

// CounterQuery selects counters of rules; nil and "" select all.
type CounterQuery struct {
	Label, Entity string
	Least         float64 // the smallest used share of the limit, from 0 to 1
	Most          int
}

// maxCounters is the largest number of counters in a list.
const maxCounters = 500

// List returns the fullest counters of all nodes, and the nodes that did not answer within 500 ms.
func (c *Counting) List(ctx context.Context, q CounterQuery) (all []ratelimit.Counter, silent []string) {
	below := ratelimit.CountersQuery{Entity: q.Entity, Least: min(max(q.Least, 0), 1),
		Most: min(max(q.Most, 1), maxCounters)}
	for _, r := range c.Rules().Rules() {
		if r.Type == RateLimit && r.Limit != nil && r.PeriodMs != nil && (q.Label == "" || q.Label == r.Label) {
			below.Rules = append(below.Rules, ratelimit.CountersRule{Label: r.Label, Limit: *r.Limit,
				Period: time.Duration(*r.PeriodMs) * time.Millisecond})
		}
	}
	return c.Counters.Fullest(ctx, below)
}

// EntityType returns what a rate limit counts by; false if there is no such rule.
func (c *Counting) EntityType(label string) (EntityType, bool) {
	for _, r := range c.Rules().Rules() {
		if r.Label == label && r.Type == RateLimit {
			return r.EntityType, true
		}
	}
	return "", false
}

// Reset removes the admissions of an entity and returns how many counted. Its audit row is committed first, so a reset
// without one is impossible. RECORD_NOT_FOUND without such a rule or counter; UNAVAILABLE if the nodes that keep the
// counter do not answer.
func (c *Counting) Reset(ctx context.Context, by audit.By, label, entity, reason string) (usedBefore int64, err error) {
	if _, ok := c.EntityType(label); !ok {
		return 0, fault.New(fault.RecordNotFound, "there is no such rate limit")
	}
	key := ratelimit.KeyOf(label, entity)
	used, err := c.Counters.Used(ctx, key)
	if err != nil {
		return 0, err
	}
	if used == 0 {
		return 0, fault.New(fault.RecordNotFound, "there is no such counter")
	}
	err = c.Changes.Do(ctx, by, "FIREWALL_COUNTER_RESET", func(context.Context) (admin.Done, error) {
		return admin.Done{Target: key.ID(), Detail: "used " + strconv.FormatInt(used, 10) + ": " + reason}, nil
	})
	if err != nil {
		return 0, err
	}
	usedBefore, err = c.Counters.Reset(ctx, key)
	return max(used, usedBefore), err
}
