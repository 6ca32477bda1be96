package resource

import (
	"context"
	"fmt"
	"regexp"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
)

// roleCode is the form of a role's code: accounts store their roles as one text, separated by commas.
var roleCode = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$`)

// builtIn reports whether a role exists from the start (D-AUTH-03).
func builtIn(code string) bool { return code == user.RoleAdmin || code == user.RoleUser }

// AddRole adds a role. INVALID_FIELD, RECORD_ALREADY_EXIST.
func (a *Admin) AddRole(ctx context.Context, by audit.By, code, name string) (r Role, err error) {
	var ps fault.Problems
	ps.Require(roleCode.MatchString(code), "code",
		"must be 1 to 64 letters, digits and . _ : -, beginning with a letter or digit")
	checkText(&ps, "name", name)
	if err := fault.All(ps); err != nil {
		return r, err
	}
	r = Role{Code: code, Name: name, CreatedAt: a.Changes.Now()}
	err = a.Changes.Do(ctx, by, "ROLE_ADD", func(ctx context.Context) (admin.Done, error) {
		r.ID, err = a.Store.AddRole(ctx, r)
		return admin.Done{Target: code, Detail: "name " + name}, err
	})
	return r, err
}

// RemoveRole deletes a role and returns it. RECORD_NOT_FOUND; INVALID_STATE while an account or a service key
// holds it or it has grants, and for the built-in roles.
func (a *Admin) RemoveRole(ctx context.Context, by audit.By, code string) (r Role, err error) {
	err = a.Changes.Do(ctx, by, "ROLE_DELETE", func(ctx context.Context) (admin.Done, error) {
		if r, err = a.role(ctx, code); err != nil {
			return admin.Done{}, err
		}
		if builtIn(code) {
			return admin.Done{}, state("the role %s is part of every installation", code)
		}
		held, err := a.Store.Members(ctx, MemberQuery{RoleCode: code}, page.Query[Member]{Limit: 1, Count: true})
		if err != nil {
			return admin.Done{}, err
		}
		if held.Total > 0 {
			return admin.Done{}, state("%d accounts hold the role", held.Total)
		}
		if a.Keyed != nil {
			if keyed, err := a.Keyed(ctx, code); err != nil {
				return admin.Done{}, err
			} else if keyed {
				return admin.Done{}, state("a service key holds the role")
			}
		}
		grants, err := a.Store.Grants(ctx, GrantQuery{RoleID: &r.ID})
		if err != nil {
			return admin.Done{}, err
		}
		if len(grants) > 0 {
			return admin.Done{}, state("the role has grants, such as %s on %q", grants[0].Permission,
				grants[0].ResourceCode)
		}
		return admin.Done{Target: code, Detail: "name " + r.Name}, a.Store.RemoveRole(ctx, r.ID)
	})
	return r, err
}

func (a *Admin) role(ctx context.Context, code string) (Role, error) {
	all, err := a.Store.Roles(ctx)
	return one("role", func(r Role) bool { return r.Code == code }, all, err)
}

// AssignRole gives an account a role. Browsers that were remembered without it are forgotten, and open challenges
// close. RECORD_NOT_FOUND for an unknown account or role; RECORD_ALREADY_EXIST when the account already holds it, as
// every account has the role user.
func (a *Admin) AssignRole(ctx context.Context, by audit.By, userID, code string) (m Member, err error) {
	m = Member{UserID: userID, RoleCode: code, CreatedAt: a.Changes.Now()}
	err = a.Changes.Do(ctx, by, "USER_ROLE_ADD", func(ctx context.Context) (admin.Done, error) {
		if _, err := a.Accounts.Get(ctx, userID); err != nil {
			return admin.Done{}, err
		}
		if _, err := a.role(ctx, code); err != nil {
			return admin.Done{}, err
		}
		held, err := a.Store.Members(ctx, MemberQuery{UserID: userID, RoleCode: code}, page.Query[Member]{})
		if err != nil {
			return admin.Done{}, err
		}
		if len(held.Records) > 0 || code == user.RoleUser {
			return admin.Done{}, fault.New(fault.RecordAlreadyExist, "the account already has the role %s", code)
		}
		return admin.Done{UserID: userID, Target: code, Key: AccountKey(userID), Detail: "role " + code,
			Writes: []commit.Write{user.Grant{UserID: userID, Role: code, At: m.CreatedAt}, user.Touch{UserID: userID}}}, nil
	})
	return m, err
}

// RevokeRole removes a role from an account and returns it. RECORD_NOT_FOUND when the account does not hold it.
// INVALID_STATE for the role user, which every account holds, and for the role admin of the last active
// administrator, even with concurrent calls.
func (a *Admin) RevokeRole(ctx context.Context, by audit.By, userID, code string) (m Member, err error) {
	err = a.Changes.Do(ctx, by, "USER_ROLE_DELETE", func(ctx context.Context) (admin.Done, error) {
		u, err := a.Accounts.Get(ctx, userID)
		if err != nil {
			return admin.Done{}, err
		}
		if code == user.RoleUser {
			return admin.Done{}, state("every account has the role user")
		}
		held, err := a.Store.Members(ctx, MemberQuery{UserID: userID, RoleCode: code}, page.Query[Member]{})
		if err != nil {
			return admin.Done{}, err
		}
		if len(held.Records) == 0 {
			return admin.Done{}, fault.New(fault.RecordNotFound, "the account does not have the role")
		}
		m = held.Records[0]
		if code == user.RoleAdmin && u.Active() && (a.Dev || !u.Demo) {
			others, err := a.Store.HeldByAnother(ctx, code, userID, a.Dev)
			if err != nil {
				return admin.Done{}, err
			}
			if !others {
				return admin.Done{}, state("the account is the last active administrator")
			}
		}
		return admin.Done{UserID: userID, Target: code, Key: AccountKey(userID), Detail: "role " + code,
			Writes: []commit.Write{user.Revoke{UserID: userID, Role: code}}}, nil
	})
	return m, err
}

// Members lists the roles of accounts, newest first. The roles of one account are one page that ends with the role
// user, which has no row. An unknown account has no roles.
func (a *Admin) Members(ctx context.Context, q MemberQuery, p page.Query[Member]) (page.Of[Member], error) {
	if q.UserID == "" {
		return a.Store.Members(ctx, q, p)
	}
	held, err := a.Store.Members(ctx, q, page.Query[Member]{})
	if err == nil && (q.RoleCode == "" || q.RoleCode == user.RoleUser) {
		var u user.User
		switch u, err = a.Accounts.Get(ctx, q.UserID); {
		case err == nil:
			held.Records = append(held.Records, Member{UserID: u.ID, RoleCode: user.RoleUser, CreatedAt: u.CreatedAt})
		case fault.CodeOf(err) == fault.RecordNotFound:
			err = nil
		}
	}
	held.Total = len(held.Records)
	return held, err
}

// Grant gives a role a permission on a resource and replaces an existing one. RECORD_NOT_FOUND for an unknown role or
// resource; INVALID_STATE for the role admin, which has all permissions; INVALID_FIELD for an endpoint that cannot be
// granted and an unknown permission; RECORD_ALREADY_EXIST when the role already has this permission.
func (a *Admin) Grant(ctx context.Context, by audit.By, roleID, resourceID int64, p Permission) (g Grant, err error) {
	if p != Allow && p != Deny && p != Audit {
		return g, fault.Invalid("permission", "must be one of ALLOW, DENY, AUDIT")
	}
	err = a.Changes.Do(ctx, by, "PERMISSION_SET", func(ctx context.Context) (admin.Done, error) {
		if g, err = a.grant(ctx, roleID, resourceID); err != nil {
			return admin.Done{}, err
		}
		if e, ours := a.Table.find(g.Context, g.ResourceCode); ours && e.Reserved {
			return admin.Done{}, fault.Invalid("resourceId", "%s is reserved for the role admin and cannot be granted",
				e.Code())
		}
		if g.Permission == p {
			return admin.Done{}, fault.New(fault.RecordAlreadyExist, "the role already has this permission")
		}
		was := g.Permission
		g.Permission, g.CreatedAt = p, a.Changes.Now()
		g.ID, err = a.Store.SetGrant(ctx, roleID, resourceID, p, g.CreatedAt)
		detail := fmt.Sprintf("%s on %s", p, g.ResourceCode)
		if was != None {
			detail += fmt.Sprintf(", was %s", was)
		}
		return admin.Done{Target: g.RoleCode, Key: GrantsKey, Detail: detail}, err
	})
	return g, err
}

// Revoke removes a grant and returns it. RECORD_NOT_FOUND if it does not exist; INVALID_STATE for the role admin.
func (a *Admin) Revoke(ctx context.Context, by audit.By, roleID, resourceID int64) (g Grant, err error) {
	err = a.Changes.Do(ctx, by, "PERMISSION_DELETE", func(ctx context.Context) (admin.Done, error) {
		if g, err = a.grant(ctx, roleID, resourceID); err != nil {
			return admin.Done{}, err
		}
		if g.Permission == None {
			return admin.Done{}, notFound("grant")
		}
		return admin.Done{Target: g.RoleCode, Key: GrantsKey,
				Detail: fmt.Sprintf("%s on %s", g.Permission, g.ResourceCode)},
			a.Store.RemoveGrant(ctx, roleID, resourceID, a.Changes.Now())
	})
	return g, err
}

// grant returns the grant of a role on a resource; its permission is None without a grant.
func (a *Admin) grant(ctx context.Context, roleID, resourceID int64) (Grant, error) {
	roles, err := a.Store.Roles(ctx)
	role, err := one("role", func(r Role) bool { return r.ID == roleID }, roles, err)
	if err != nil {
		return Grant{}, err
	}
	r, _, err := a.resource(ctx, resourceID)
	if err != nil {
		return Grant{}, err
	}
	if role.Code == user.RoleAdmin {
		return Grant{}, state("the role admin has all permissions and cannot have grants")
	}
	held, err := a.Store.Grants(ctx, GrantQuery{RoleID: &roleID, ResourceID: &resourceID})
	if err != nil {
		return Grant{}, err
	}
	if len(held) > 0 {
		return held[0], nil
	}
	return Grant{RoleID: roleID, RoleCode: role.Code, ResourceID: resourceID, ResourceCode: r.Code, Context: r.Context},
		nil
}
