package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
)

// Store keeps the versions of rules. Every method joins the transaction of its context. It is safe for concurrent use.
type Store interface {
	// Rules returns the current versions of the rules that are not deleted, by label; of all labels if none is given.
	Rules(ctx context.Context, labels ...string) ([]Rule, error)
	// Last returns the highest version of a label, 0 if it never had a rule.
	Last(ctx context.Context, label string) (version int64, err error)
	// Put adds a version. RECORD_ALREADY_EXIST if the label has it.
	Put(ctx context.Context, r Rule, deleted bool, at time.Time) error
}

// Admin changes the rules. All fields but Second and Rehearse are required. It is safe for concurrent use.
type Admin struct {
	Store   Store
	Changes admin.Changes // of topic change.Policy, with the lock of Store
	// Members returns how many active accounts have a role.
	Members func(ctx context.Context, role string) (int, error)
	// Second refuses a change or removal that no second person could approve. nil: none is needed, as on the host.
	Second func(ctx context.Context, by audit.By) error
	// Rehearse judges the movements since an instant by each of some rules alone (transaction.Judge). It is required with
	// Second.
	Rehearse func(ctx context.Context, from time.Time, rules ...Rule) (_ []Rehearsal, truncated bool, err error)
}

// Paired reports whether two persons must add rules: an active one that denies or holds would have concerned more than
// 1 % of the movements of the last day (D-POL-20). Faulty rules need one person, since Add refuses them. Errors of
// Second, if two are needed.
func (a *Admin) Paired(ctx context.Context, by audit.By, rules ...Rule) (bool, error) {
	var stop []Rule
	for _, r := range rules {
		if r.Check() != nil {
			return false, nil
		}
		if r.Status == Active && r.Effect.Type != Owner {
			stop = append(stop, r)
		}
	}
	if a.Second == nil || len(stop) == 0 {
		return false, nil
	}
	found, wide, err := a.Rehearse(ctx, a.Changes.Now().Add(-Day), stop...)
	if err != nil {
		return false, err
	}
	if wide = wide || slices.ContainsFunc(found, Rehearsal.wide); wide {
		err = a.Second(ctx, by)
	}
	return wide, err
}

// errVersion refuses a change that was decided on an older version.
var errVersion = fault.New(fault.InvalidState, "the rule was changed meanwhile")

// Add adds rules, all or none. INVALID_FIELD; RECORD_ALREADY_EXIST.
func (a *Admin) Add(ctx context.Context, by audit.By, rules ...Rule) error {
	return a.Changes.Do(ctx, by, "MONEY_RULE_ADD", func(ctx context.Context) (done admin.Done, err error) {
		all, err := a.Store.Rules(ctx)
		if err != nil {
			return done, err
		}
		for _, r := range rules {
			if slices.ContainsFunc(all, func(o Rule) bool { return o.Label == r.Label }) {
				return done, fault.New(fault.RecordAlreadyExist, "there is a rule labelled %q", r.Label)
			}
			all = append(all, r)
			if err := a.put(ctx, r, all, true); err != nil {
				return done, err
			}
			done = noted(done, r, "added")
		}
		return done, nil
	})
}

// Change replaces the current version of a rule by what change makes of it. RECORD_NOT_FOUND; INVALID_FIELD;
// INVALID_STATE if another change was faster; errors of Second. A change without effect succeeds and makes no version.
func (a *Admin) Change(ctx context.Context, by audit.By, label string, change func(Rule) (Rule, error)) error {
	return a.edit(ctx, by, "MONEY_RULE_UPDATE", label, func(ctx context.Context, all []Rule, i int) (bool, string, error) {
		before := all[i]
		next, err := change(before)
		if err != nil {
			return false, "", err
		}
		next.Label, next.Version = label, before.Version
		fields := admin.Differ(before, next)
		if fields == "" {
			return false, "", nil
		}
		all[i] = next
		// A group that shrank must not keep its rule in force.
		staffed := next.Status == Active || next.Effect != before.Effect
		return true, fields, a.put(ctx, next, all, staffed)
	})
}

// Remove ends a rule. RECORD_NOT_FOUND; INVALID_STATE if another change was faster; errors of Second.
func (a *Admin) Remove(ctx context.Context, by audit.By, label string) error {
	return a.edit(ctx, by, "MONEY_RULE_DELETE", label, func(ctx context.Context, all []Rule, i int) (bool, string, error) {
		r := all[i]
		r.Version++
		return true, "", raced(a.Store.Put(ctx, r, true, a.Changes.Now()))
	})
}

func (a *Admin) edit(ctx context.Context, by audit.By, action, label string,
	do func(ctx context.Context, all []Rule, i int) (did bool, detail string, err error)) error {
	return a.Changes.Do(ctx, by, action, func(ctx context.Context) (done admin.Done, err error) {
		all, err := a.Store.Rules(ctx)
		if err != nil {
			return done, err
		}
		i := slices.IndexFunc(all, func(r Rule) bool { return r.Label == label })
		if i < 0 {
			return done, fault.New(fault.RecordNotFound, "there is no rule with this label")
		}
		r := all[i]
		did, detail, err := do(ctx, all, i)
		if err != nil || !did {
			return done, err
		}
		if a.Second != nil {
			if err := a.Second(ctx, by); err != nil {
				return done, err
			}
		}
		r.Version++
		return noted(done, r, detail), nil
	})
}

// put stores the next version of a rule that is valid among all rules. staffed also requires the members of its group.
func (a *Admin) put(ctx context.Context, r Rule, all []Rule, staffed bool) (err error) {
	if err := r.Check(); err != nil {
		return err
	}
	if err := Fits(all); err != nil {
		return err
	}
	if e := r.Effect; staffed && e.Type == Approval && r.Status != Inactive {
		n, err := a.Members(ctx, e.Group)
		if err != nil {
			return err
		}
		if n < e.Required {
			return fault.Invalid("effect.group", "has %d members who may approve, fewer than required", n)
		}
	}
	last := r.Version
	if last == 0 { // a label that was deleted keeps its versions
		if last, err = a.Store.Last(ctx, r.Label); err != nil {
			return err
		}
	}
	r.Version = last + 1
	return raced(a.Store.Put(ctx, r, false, a.Changes.Now()))
}

// raced is the error of a version that exists already.
func raced(err error) error {
	if fault.CodeOf(err) == fault.RecordAlreadyExist {
		return errVersion
	}
	return err
}

// noted adds a version to what a change did.
func noted(d admin.Done, r Rule, detail string) admin.Done {
	said := strings.TrimSpace(fmt.Sprintf("version %d %s", max(r.Version, 1), detail))
	if d.Target == "" {
		return admin.Done{Target: r.Label, Detail: said}
	}
	d.Detail += "; " + r.Label + " " + said
	return d
}

// Cache is the set in force on this node. It is safe for concurrent use.
type Cache struct{ *change.Snapshot[Set] }

// NewCache returns a Cache of the rules of a store. It has none until the first Reload.
func NewCache(store Store) *Cache {
	load := func(ctx context.Context) (*Set, error) {
		rules, err := store.Rules(ctx)
		if err != nil {
			return nil, fmt.Errorf("reload the rules of the money policy: %w", err)
		}
		return Compile(rules), nil
	}
	apply := func(ctx context.Context, _ *Set, _ []string) (*Set, error) { return load(ctx) }
	return &Cache{change.NewSnapshot(Compile(nil), load, apply)}
}
