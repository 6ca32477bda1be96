package resource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"castellan/domain/change"
	"castellan/domain/fault"
	"castellan/domain/user"
)

// Verdict is what an account may do at one endpoint.
type Verdict struct {
	Admin      bool       // holds the role admin, which passes everything
	Permission Permission // of all its roles together; None where none has a grant
}

// Acts reports whether the account passes what is meant for administrators:
// by the role admin, or by a grant (D-AUTH-03).
func (v Verdict) Acts() bool { return v.Admin || v.Permission == Allow || v.Permission == Audit }

// Denied reports whether the account is kept out of what is open to users.
func (v Verdict) Denied() bool { return !v.Admin && v.Permission == Deny }

// Audited reports whether the call itself is worth an audit row.
func (v Verdict) Audited() bool { return !v.Admin && v.Permission == Audit }

// Accounts is what Live reads of accounts.
type Accounts interface {
	// Holders lists the given roles: role → ids of the accounts.
	Holders(ctx context.Context) (map[string][]string, error)
	// Get reads an account; RECORD_NOT_FOUND when there is none.
	Get(ctx context.Context, id string) (user.User, error)
}

// Live is the node's snapshot of roles and grants, by which requests are
// judged without a database read. Whoever changes them reloads it before
// answering, and every node does when the change feed brings a note of topic
// change.Roles. A snapshot is immutable and replaced whole. It is safe for
// concurrent use.
type Live struct {
	store    Store
	accounts Accounts
	held     *change.Snapshot[snapshot]
}

type target struct{ method, path string }

// snapshot knows every account that holds more than the role user. Accounts
// with the same roles share one profile.
type snapshot struct {
	holders  map[string]*profile
	everyone *profile // of an account that has the role user alone
}

// profile is what a set of roles may do, judged once.
type profile struct {
	roles  []string // sorted, without user
	admin  bool
	grants map[target]Permission
}

// NewLive returns a Live that knows no role and no grant until Reload: nothing
// meant for administrators can be used.
func NewLive(s Store, a Accounts) *Live {
	return &Live{s, a, change.NewSnapshot(&snapshot{everyone: &profile{}})}
}

// Judge looks up what an account may do at an endpoint.
func (l *Live) Judge(userID, method, path string) Verdict {
	p := l.held.Current().of(userID)
	return Verdict{Admin: p.admin, Permission: p.grants[target{method, path}]}
}

func (s *snapshot) of(userID string) *profile {
	if p := s.holders[userID]; p != nil {
		return p
	}
	return s.everyone
}

// Reload reads roles and grants. When it fails the snapshot stays as it is.
func (l *Live) Reload(ctx context.Context) error {
	return l.held.Update(ctx, l.read)
}

func (l *Live) read(ctx context.Context, _ *snapshot) (*snapshot, error) {
	grants, err := l.store.Grants(ctx, GrantQuery{})
	if err != nil {
		return nil, fmt.Errorf("reload the grants: %w", err)
	}
	held, err := l.accounts.Holders(ctx)
	if err != nil {
		return nil, fmt.Errorf("reload the roles: %w", err)
	}
	return newSnapshot(grants, held), nil
}

// Follow reloads when an account no longer has the roles that the snapshot
// knows of it. Notes about accounts are many, and few are about roles.
func (l *Live) Follow(ctx context.Context, userID string) error {
	return l.held.Update(ctx, func(ctx context.Context, present *snapshot) (*snapshot, error) {
		u, err := l.accounts.Get(ctx, userID)
		if err != nil && fault.CodeOf(err) != fault.RecordNotFound {
			return nil, fmt.Errorf("follow the roles of an account: %w", err)
		}
		if slices.Equal(beyondUser(u.Roles), present.of(userID).roles) {
			return present, nil
		}
		return l.read(ctx, present)
	})
}

func beyondUser(roles []string) []string {
	out := slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == user.RoleUser })
	slices.Sort(out)
	return out
}

func newSnapshot(grants []Grant, held map[string][]string) *snapshot {
	byRole := map[string][]Grant{}
	for _, g := range grants {
		if g.Context == API {
			byRole[g.RoleCode] = append(byRole[g.RoleCode], g)
		}
	}
	rolesOf := map[string][]string{}
	for role, ids := range held {
		for _, id := range ids {
			rolesOf[id] = append(rolesOf[id], role)
		}
	}
	s := &snapshot{holders: make(map[string]*profile, len(rolesOf)), everyone: newProfile(nil, byRole)}
	same := map[string]*profile{}
	for id, roles := range rolesOf {
		roles = beyondUser(roles)
		key := strings.Join(roles, ",")
		if same[key] == nil {
			same[key] = newProfile(roles, byRole)
		}
		s.holders[id] = same[key]
	}
	return s
}

// newProfile joins the grants of roles and of the role user: DENY wins over
// AUDIT, and AUDIT over ALLOW.
func newProfile(roles []string, byRole map[string][]Grant) *profile {
	p := &profile{roles: roles, admin: slices.Contains(roles, user.RoleAdmin), grants: map[target]Permission{}}
	weight := map[Permission]int{Allow: 1, Audit: 2, Deny: 3}
	for _, role := range append([]string{user.RoleUser}, roles...) {
		for _, g := range byRole[role] {
			method, path, _ := strings.Cut(g.ResourceCode, " ")
			if at := (target{method, path}); weight[g.Permission] > weight[p.grants[at]] {
				p.grants[at] = g.Permission
			}
		}
	}
	return p
}
