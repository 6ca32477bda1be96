package resource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/kit/change"
)

// Verdict is the permission of an account at one endpoint.
type Verdict struct {
	Admin      bool       // holds the role admin, which has all permissions
	Permission Permission // of all its roles combined; None without a grant
}

// MayAdminister reports whether the account may use endpoints for administrators, by the role admin or by a grant
// (D-AUTH-03).
func (v Verdict) MayAdminister() bool { return v.Admin || v.Permission.acts() }

// Denied reports whether the account may not use endpoints that are open to users.
func (v Verdict) Denied() bool { return !v.Admin && v.Permission == Deny }

// Audited reports whether the call itself needs an audit row.
func (v Verdict) Audited() bool { return !v.Admin && v.Permission == Audit }

// Accounts is the part of the account store that Cache and Admin read.
type Accounts interface {
	// Holders lists the given roles: role → ids of the accounts.
	Holders(ctx context.Context) (map[string][]string, error)
	// RolesOf lists the given roles of accounts: id → roles.
	RolesOf(ctx context.Context, ids []string) (map[string][]string, error)
	// Get reads an account; RECORD_NOT_FOUND if it does not exist.
	Get(ctx context.Context, id string) (user.User, error)
}

// Cache is the node's snapshot of roles and grants, which checks requests without a database read. A writer updates it
// before the caller is answered. Every node updates it on a note of the change feed: of topic change.Roles by Follow,
// of topic change.Users by FollowAccounts. It is safe for concurrent use.
type Cache struct {
	store    Store
	accounts Accounts
	held     *change.Snapshot[snapshot]
	// open holds the endpoints that users may use unless denied. usersOnly holds those of them where a grant gives no
	// right to act for others. Both are fixed.
	open, usersOnly map[target]bool
}

type target struct{ method, path string }

// snapshot contains every account with a role beyond user. Accounts with the same roles share one profile.
type snapshot struct {
	byRole   map[string][]Grant
	holders  map[string]*profile
	everyone *profile            // of an account with only the role user
	roles    map[string]*profile // permissions of admin and of each role with grants, by itself
}

// profile holds the permissions of a set of roles, computed once.
type profile struct {
	roles  []string // sorted, without user
	admin  bool
	grants map[target]Permission
	denied []target // targets of DENY grants
}

// NewCache returns a Cache without roles and grants. Until Reload it permits no endpoint for administrators.
func NewCache(s Store, a Accounts, t Table) *Cache {
	l := &Cache{store: s, accounts: a, open: map[target]bool{}, usersOnly: map[target]bool{}}
	for _, e := range t {
		at := target{e.Method, e.Path}
		l.open[at], l.usersOnly[at] = e.Open, e.Open && !e.ForOthers
	}
	l.held = change.NewSnapshot(&snapshot{everyone: &profile{}}, l.load, l.apply)
	return l
}

// Judge returns the permission of an account at an endpoint.
func (l *Cache) Judge(userID, method, path string) Verdict {
	p := l.held.Current().of(userID)
	return Verdict{Admin: p.admin, Permission: p.grants[target{method, path}]}
}

// JudgeRole returns the permission of a role by itself at an endpoint, without the grants of the role user. A role
// without grants has no permissions.
func (l *Cache) JudgeRole(role, method, path string) Verdict {
	p := l.held.Current().roles[role]
	if p == nil {
		return Verdict{}
	}
	return Verdict{Admin: p.admin, Permission: p.grants[target{method, path}]}
}

func (s *snapshot) of(userID string) *profile {
	if p := s.holders[userID]; p != nil {
		return p
	}
	return s.everyone
}

// accountKey is the prefix of the keys of change.Roles that name an account.
const accountKey = "user/"

// AccountKey is the key of change.Roles for an account that gained or lost a role.
func AccountKey(userID string) string { return accountKey + userID }

// GrantsKey is the key of change.Roles for a change of grants.
const GrantsKey = "grants"

// Reload reads roles and grants. If it fails, the snapshot is unchanged.
func (l *Cache) Reload(ctx context.Context) error { return l.held.Reload(ctx) }

// Follow reads the changes under keys of change.Roles: the roles of accounts (AccountKey), all grants (GrantsKey), or
// everything for any other key.
func (l *Cache) Follow(ctx context.Context, keys ...string) error { return l.held.Follow(ctx, keys...) }

// FollowAccounts reads the roles of accounts. Notes about accounts are many, and few concern roles: if the roles
// equal those of the snapshot, it is not rebuilt.
func (l *Cache) FollowAccounts(ctx context.Context, ids ...string) error {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = AccountKey(id)
	}
	return l.held.Follow(ctx, keys...)
}

func (l *Cache) load(ctx context.Context) (*snapshot, error) {
	byRole, err := l.grants(ctx)
	if err != nil {
		return nil, err
	}
	held, err := l.accounts.Holders(ctx)
	if err != nil {
		return nil, fmt.Errorf("reload the roles: %w", err)
	}
	rolesOf := map[string][]string{}
	for role, ids := range held {
		for _, id := range ids {
			rolesOf[id] = append(rolesOf[id], role)
		}
	}
	return newSnapshot(byRole, rolesOf), nil
}

func (l *Cache) grants(ctx context.Context) (map[string][]Grant, error) {
	all, err := l.store.Grants(ctx, GrantQuery{})
	if err != nil {
		return nil, fmt.Errorf("reload the grants: %w", err)
	}
	byRole := map[string][]Grant{}
	for _, g := range all {
		if g.Context == API {
			byRole[g.RoleCode] = append(byRole[g.RoleCode], g)
		}
	}
	return byRole, nil
}

func (l *Cache) apply(ctx context.Context, present *snapshot, keys []string) (next *snapshot, err error) {
	var ids []string
	for _, k := range keys {
		if id, ofAccount := strings.CutPrefix(k, accountKey); ofAccount {
			ids = append(ids, id)
		} else if k != GrantsKey {
			return l.load(ctx)
		}
	}
	byRole, granted := present.byRole, len(ids) < len(keys)
	if granted {
		if byRole, err = l.grants(ctx); err != nil {
			return nil, err
		}
	}
	var given map[string][]string
	if len(ids) > 0 {
		if given, err = l.accounts.RolesOf(ctx, ids); err != nil {
			return nil, fmt.Errorf("follow the roles of accounts: %w", err)
		}
	}
	same := func(id string) bool { return slices.Equal(beyondUser(given[id]), present.of(id).roles) }
	if ids = slices.DeleteFunc(ids, same); len(ids) == 0 && !granted {
		return present, nil
	}
	rolesOf := make(map[string][]string, len(present.holders)+len(ids))
	for id, p := range present.holders {
		rolesOf[id] = p.roles
	}
	for _, id := range ids {
		rolesOf[id] = given[id]
	}
	return newSnapshot(byRole, rolesOf), nil
}

func beyondUser(roles []string) []string {
	out := slices.DeleteFunc(slices.Clone(roles), func(r string) bool { return r == user.RoleUser })
	slices.Sort(out)
	return out
}

func newSnapshot(byRole map[string][]Grant, rolesOf map[string][]string) *snapshot {
	s := &snapshot{byRole: byRole, holders: make(map[string]*profile, len(rolesOf)),
		everyone: newProfile(nil, byRole, user.RoleUser),
		roles:    map[string]*profile{user.RoleAdmin: newProfile([]string{user.RoleAdmin}, byRole)}}
	for role := range byRole {
		s.roles[role] = newProfile([]string{role}, byRole)
	}
	same := map[string]*profile{}
	for id, roles := range rolesOf {
		if roles = beyondUser(roles); len(roles) == 0 {
			continue
		}
		key := strings.Join(roles, ",")
		if same[key] == nil {
			same[key] = newProfile(roles, byRole, user.RoleUser)
		}
		s.holders[id] = same[key]
	}
	return s
}

// newProfile combines the grants of roles and of more: DENY wins over AUDIT, and AUDIT over ALLOW.
func newProfile(roles []string, byRole map[string][]Grant, more ...string) *profile {
	p := &profile{roles: roles, admin: slices.Contains(roles, user.RoleAdmin), grants: map[target]Permission{}}
	weight := map[Permission]int{Allow: 1, Audit: 2, Deny: 3}
	for _, role := range append(more, roles...) {
		for _, g := range byRole[role] {
			method, path, _ := strings.Cut(g.ResourceCode, " ")
			if at := (target{method, path}); weight[g.Permission] > weight[p.grants[at]] {
				p.grants[at] = g.Permission
			}
		}
	}
	for at, permission := range p.grants {
		if permission == Deny {
			p.denied = append(p.denied, at)
		}
	}
	return p
}
