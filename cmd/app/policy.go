package app

import (
	"context"
	"log/slog"
	"time"

	"castellan/cmd/app/metrics"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/money/policy"
	"castellan/domain/money/transaction"
	httppolicy "castellan/http/money/policy"
	"castellan/http/rest"
	"castellan/persistence/account"
	"castellan/persistence/money"
)

// policy builds the rules of the money policy.
func (s *service) policy() error {
	rules := s.PolicyAdmin(s.changes(change.Policy, s.rules))
	rules.Second = func(ctx context.Context, by audit.By) error {
		others, err := policy.Members(ctx, s.users, user.RoleAdmin, by.UserID)
		if err == nil && others == 0 {
			err = fault.New(fault.InvalidState, "no other administrator: run castellan money rule on the host")
		}
		return err
	}
	rules.Rehearse = s.judges.Rehearse
	hits := money.NewRules(s.DB)
	s.join(part{groups: groups(httppolicy.Group{Admin: rules, Rules: s.rules.Current, Stored: s.judges.Stored,
		Hits: hits, Now: time.Now}),
		tasks: []task{{flushHits, "the hits of the money policy could not be stored", func(ctx context.Context) error {
			return s.judges.Hits.Flush(ctx, hits, time.Now())
		}}},
		purge:   after(2*policy.Day, hits.PurgeHits),
		metrics: func(m *metrics.Registry) { m.Scrape(s.scrapeHolds) }})
	return nil
}

// flushHits is how often the hits of rules are stored.
const flushHits = 10 * time.Second

// governs judges a call by the money policy (edge.Options.Governs). Without a rule for such calls it reads nothing.
func (s *service) governs(ctx context.Context, who rest.Caller,
	find func(context.Context) (rest.Governed, error)) (second bool, err error) {
	if !s.rules.Current().Governs() {
		return false, nil
	}
	g, err := find(ctx)
	if err != nil || g.Kind == "" {
		return false, err
	}
	return s.judges.Governed(ctx, s.commit, who.By(), policy.Kind(g.Kind), g.Setting, time.Now())
}

// PolicyAdmin returns the administration of the money policy, without its second person.
func (d *Deployment) PolicyAdmin(changes admin.Changes) *policy.Admin {
	store, users := money.NewRules(d.DB), account.NewUsers(d.DB)
	changes.Lock = store.Lock
	return &policy.Admin{Store: store, Changes: changes,
		Members: func(ctx context.Context, role string) (int, error) { return policy.Members(ctx, users, role, "") }}
}

// newDatabase marks a database that begins with this version: its platform begins with rules in force.
const newDatabase = "money-policy-new"

// seedPolicy adds the default rules once, if there are no rules. On a new database in production mode they are active,
// otherwise on trial. Their groups may have no members yet; the doctor says so.
func (d *Deployment) seedPolicy(ctx context.Context, dev bool, log *slog.Logger) error {
	return d.DB.Exclusive(ctx, func(ctx context.Context) error {
		_, err := d.DB.Once(ctx, "money-policy", func(ctx context.Context) error {
			rules := d.PolicyAdmin(d.Changes(change.Policy))
			rules.Members = func(context.Context, string) (int, error) { return 1, nil }
			all, err := rules.Store.Rules(ctx)
			if err != nil || len(all) > 0 {
				return err
			}
			status := policy.Trial
			if fresh, err := d.DB.Seeded(ctx, newDatabase); err != nil {
				return err
			} else if fresh && !dev {
				status = policy.Active
			}
			log.Info("the default rules of the money policy were added", "status", string(status))
			return rules.Add(ctx, audit.By{UserID: job.ScheduleActor}, policy.Defaults(status)...)
		})
		return err
	})
}

// scrapeHolds counts the held withdrawals.
func (s *service) scrapeHolds(to metrics.Samples) {
	ctx, cancel := context.WithTimeout(context.Background(), readyTime)
	defer cancel()
	all, err := money.NewTransactions(s.DB).HeldCounts(ctx)
	if err != nil {
		return // castellan_ready reports the database
	}
	now, found := time.Now(), map[transaction.HeldFor]transaction.HeldCount{}
	for _, c := range all {
		found[c.Reason] = c
	}
	for _, reason := range transaction.HeldReasons { // an alert needs to see a zero too
		c, age := found[reason], 0.0
		if c.Number > 0 {
			age = now.Sub(c.Oldest).Seconds()
		}
		to.Gauge("castellan_money_held", "Held withdrawals by reason, of all nodes.", float64(c.Number), "reason",
			string(reason))
		to.Gauge("castellan_money_held_oldest_seconds", "Age of the oldest hold by reason; 0: none.", age, "reason",
			string(reason))
	}
}
