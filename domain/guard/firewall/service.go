package firewall

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
)

// RulesPath is the path of the rules' administration. Losing access to it or to the login counts as being locked out
// (D-WAF-12).
const RulesPath = "/admin/system/waf/rules"

// Author is the author of a change, as the rules see the author's requests: a change must not lock its author out.
type Author struct {
	audit.By
	Client
	// Force lets a change lock its author out. The command line always forces, because no rule applies to it.
	Force bool
}

// Admin makes the writes of section 4.5 of the interface. Besides its documented errors, every method returns
// UNAVAILABLE if the database or the reload fails.
type Admin struct {
	Store   Store
	Changes admin.Changes // of topic change.Firewall
	// App is the application whose rules apply here. Bypass holds the networks to which they do not apply.
	App    string
	Bypass []netip.Prefix
	Known  Resources
	// InForce returns the rules written before the call, on any node. They decide whether a write locks its author
	// out. It is not called if no rule applies to the author.
	InForce func(ctx context.Context) ([]Rule, error)
}

// Add adds a rule. INVALID_FIELD, also for field force (D-WAF-12); RECORD_ALREADY_EXIST.
func (a *Admin) Add(ctx context.Context, by Author, r Rule) error {
	r.Canonical(a.Known)
	if err := r.Check(); err != nil {
		return err
	}
	before, err := a.before(ctx, by)
	if err != nil {
		return err
	}
	return a.Changes.Do(ctx, by.By, "FIREWALL_RULE_ADD", func(ctx context.Context) (admin.Done, error) {
		err := a.Store.Add(ctx, r)
		if err == nil {
			err = a.admits(by, before, append(before[:len(before):len(before)], r))
		}
		return admin.Done{Target: r.Label, Detail: admin.Values(r)}, err
	})
}

// Change changes a rule. INVALID_FIELD, also for field force; RECORD_NOT_FOUND. A change without effect succeeds
// (D-WAF-14).
func (a *Admin) Change(ctx context.Context, by Author, c Change) error {
	before, err := a.before(ctx, by)
	if err != nil {
		return err
	}
	return a.Changes.Do(ctx, by.By, "FIREWALL_RULE_UPDATE", func(ctx context.Context) (admin.Done, error) {
		done := admin.Done{Target: c.Label}
		err := a.Store.Change(ctx, c.Label, func(r Rule) (Rule, error) {
			next, err := c.Apply(r, a.Known)
			if err != nil {
				return r, err
			}
			done.Detail = admin.Difference(r, next)
			after := append([]Rule(nil), before...)
			for i := range after {
				if after[i].Label == r.Label {
					after[i] = next
				}
			}
			return next, a.admits(by, before, after)
		})
		return done, err
	})
}

// before returns the rules before a write that could lock its author out. It is called outside the transaction,
// because others wait for that.
func (a *Admin) before(ctx context.Context, by Author) ([]Rule, error) {
	if by.Force || within(a.Bypass, by.Client.IP) {
		return nil, nil
	}
	return a.InForce(ctx)
}

// admits refuses a change that locks its author out of an endpoint that the author can reach now (D-WAF-12).
func (a *Admin) admits(by Author, before, after []Rule) error {
	if by.Force || within(a.Bypass, by.Client.IP) ||
		!shutOut(a.App, by.Client, before, after, a.Changes.Now().UnixMilli()) {
		return nil
	}
	return fault.Invalid("force", "you could not log in or reach the rules any more after this; send force: true if "+
		"that is what you want")
}

// waysIn are the endpoints of a login, which has no session; waysOn are those at which an administrator changes rules.
var (
	waysIn = []string{"POST /auth/login", "POST /auth/2fa/challenge/complete"}
	waysOn = []string{"GET " + RulesPath, "POST " + RulesPath, "PATCH " + RulesPath}
)

// shutOut reports whether rules lock a client out of the login or of the rules, where the rules before do not.
func shutOut(app string, c Client, before, after []Rule, nowMs int64) bool {
	blocks := func(c Client) func(string) bool {
		return func(resource string) bool {
			return blocksClient(after, app, resource, c, nowMs) && !blocksClient(before, app, resource, c, nowMs)
		}
	}
	anonymous := Client{IP: c.IP, Country: c.Country}
	return slices.ContainsFunc(waysIn, blocks(anonymous)) || slices.ContainsFunc(waysOn, blocks(c))
}

// Store keeps the rules. Every method joins the transaction of its context (commit.Committer.InTx), and otherwise runs
// in its own. It is safe for concurrent use.
type Store interface {
	// Rules lists the selected rules in order of creation.
	Rules(ctx context.Context, q Query) ([]Rule, error)
	// Add inserts a rule; RECORD_ALREADY_EXIST when a rule of any application has its label, even under concurrent
	// calls.
	Add(ctx context.Context, r Rule) error
	// Change loads the rule of a label, passes it to change and saves the result, as one step: no other change of the
	// rule comes between. If change returns an error, nothing is saved and Change returns the error. The application,
	// label, type and type of entity are unchanged. RECORD_NOT_FOUND when the rule does not exist.
	Change(ctx context.Context, label string, change func(Rule) (Rule, error)) error
}

// Query selects rules; nil: any application, any status.
type Query struct {
	AppID  *string
	Status *Status
	Labels []string // each selects at most one rule
}

// Cache is the node's current snapshot. A writer of a rule updates it before the caller is answered. Every node
// updates it on a note of topic change.Firewall, whose key is the label of the rule: it reads only that rule. It is
// safe for concurrent use.
type Cache struct{ *change.Snapshot[Snapshot] }

// NewCache returns a Cache over the rules of an application. It is empty until the first Reload.
func NewCache(store Store, app string, now func() time.Time) *Cache {
	load := func(ctx context.Context) (*Snapshot, error) {
		rules, err := store.Rules(ctx, Query{})
		if err != nil {
			return nil, fmt.Errorf("reload the firewall rules: %w", err)
		}
		return Compile(rules, app, now().UnixMilli()), nil
	}
	apply := func(ctx context.Context, present *Snapshot, labels []string) (*Snapshot, error) {
		changed, err := store.Rules(ctx, Query{Labels: labels})
		if err != nil {
			return nil, fmt.Errorf("follow the firewall rules: %w", err)
		}
		return present.With(changed, now().UnixMilli()), nil
	}
	return &Cache{change.NewSnapshot(Compile(nil, app, now().UnixMilli()), load, apply)}
}
