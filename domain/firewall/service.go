package firewall

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"castellan/domain/audit"
	"castellan/domain/change"
	"castellan/domain/commit"
)

// RulesPath is where the rules are administered; being kept from it is being
// locked out (D-WAF-12).
const RulesPath = "/admin/system/waf/rules"

// Author is who makes a change: for the audit, and for not locking himself out.
type Author struct {
	Client
	RequestID string
	// Force lets a write shut its own author out.
	Force bool
	// Trusted is the command line, which no rule applies to.
	Trusted bool
}

// Admin carries out the writes of section 4.5. Each commits together with its
// audit row (D-EXT-03) and a note to all nodes, and this node judges by it
// before the call returns. Besides the errors named at each method all return
// UNAVAILABLE when the database, or the reading back, fails.
type Admin struct {
	Store  Store
	Commit commit.Committer
	// Live is reloaded; nil where nothing is judged, as on the command line.
	Live *Live
	// App is the application whose rules apply here, Bypass the networks to which
	// they do not.
	App    string
	Bypass []netip.Prefix
	Known  Resources
	Actor  string // of the audit where the author has no user id
	Now    func() time.Time
}

// Add adds a rule. INVALID_FIELD, also for field force (D-WAF-12);
// RECORD_ALREADY_EXIST.
func (a *Admin) Add(ctx context.Context, by Author, r Rule) error {
	r.Canonical(a.Known)
	if err := r.Check(); err != nil {
		return err
	}
	return a.write(ctx, by, "FIREWALL_RULE_ADD", func(ctx context.Context) (string, string, error) {
		before, err := a.before(ctx, by)
		if err == nil {
			err = a.Store.Add(ctx, r)
		}
		if err == nil {
			err = a.admits(by, before, append(before[:len(before):len(before)], r))
		}
		return r.Label, r.describe(), err
	})
}

// Change changes a rule. INVALID_FIELD, also for field force; RECORD_NOT_FOUND.
// What changes nothing is done all the same (D-WAF-14).
func (a *Admin) Change(ctx context.Context, by Author, c Change) error {
	return a.write(ctx, by, "FIREWALL_RULE_UPDATE", func(ctx context.Context) (target, detail string, err error) {
		before, err := a.before(ctx, by)
		if err != nil {
			return "", "", err
		}
		err = a.Store.Change(ctx, c.Label, func(r Rule) (Rule, error) {
			next, err := c.Apply(r, a.Known)
			if err != nil {
				return r, err
			}
			detail = r.describe() + " -> " + next.describe()
			after := append([]Rule(nil), before...)
			for i := range after {
				if after[i].Label == r.Label {
					after[i] = next
				}
			}
			return next, a.admits(by, before, after)
		})
		return c.Label, detail, err
	})
}

// before reads what is stored, where it is needed to judge what a write does to
// its author: this node's snapshot may not have what was written elsewhere a
// moment ago.
func (a *Admin) before(ctx context.Context, by Author) ([]Rule, error) {
	if by.Force || by.Trusted || a.bypasses(by.IP) {
		return nil, nil
	}
	return a.Store.Rules(ctx)
}

func (a *Admin) bypasses(ip netip.Addr) bool {
	for _, p := range a.Bypass {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// admits refuses what would shut the author out of one of the endpoints that he
// can reach now.
func (a *Admin) admits(by Author, before, after []Rule) error {
	if by.Force || by.Trusted || a.bypasses(by.IP) {
		return nil
	}
	now := a.Now().UnixMilli()
	for _, method := range []string{"GET ", "POST ", "PATCH "} {
		if shutOut(after, a.App, method+RulesPath, by.Client, now) && !shutOut(before, a.App, method+RulesPath, by.Client, now) {
			return lockedOut()
		}
	}
	return nil
}

// reloadTimeout bounds the reading back after a write.
const reloadTimeout = 5 * time.Second

// write runs do, which returns the rule's label and what to say of the change,
// and commits the change with its audit row and note.
func (a *Admin) write(ctx context.Context, by Author, action string, do func(context.Context) (target, detail string, err error)) error {
	err := a.Commit.InTx(ctx, func(ctx context.Context) error {
		target, detail, err := do(ctx)
		if err != nil {
			return err
		}
		row := audit.Record{At: a.Now(), ActorID: by.UserID, Action: action, Target: target, Outcome: audit.Success, RequestID: by.RequestID, Detail: detail}
		if by.UserID == "" {
			row.ActorID = a.Actor
		}
		if by.IP.IsValid() {
			row.IP = by.IP.String()
		}
		return a.Commit.Commit(ctx, row, change.Note{Topic: change.Firewall})
	})
	if err != nil || a.Live == nil {
		return err
	}
	// A context of its own: that the caller has gone away must not keep this
	// node from judging by the change.
	fresh, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	return a.Live.Reload(fresh)
}

// describe says what a rule does, for the audit, in bounded length.
func (r Rule) describe() string {
	s := fmt.Sprintf("%s %s %s for %s of %s on %s", r.AppID, r.Status, r.Type, scope(r.AllEntities, r.Entities), r.EntityType, scope(r.AllResources, r.Resources))
	if r.PeriodMs != nil && r.Limit != nil {
		s += fmt.Sprintf(", %d in %d ms", *r.Limit, *r.PeriodMs)
	}
	if r.ExpireAt != 0 {
		s += fmt.Sprintf(", expireAt %d", r.ExpireAt)
	}
	if r.DryRun {
		s += ", dryRun"
	}
	return s
}

// maxDetailBytes keeps an audit row short where lists are long.
const maxDetailBytes = 300

func scope(all bool, list []string) string {
	if all {
		return "all"
	}
	b, _ := json.Marshal(list) // texts always encode
	if len(b) > maxDetailBytes {
		return strings.ToValidUTF8(string(b[:maxDetailBytes]), "") + "…"
	}
	return string(b)
}
