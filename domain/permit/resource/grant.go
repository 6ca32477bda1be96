package resource

import (
	"context"
	"fmt"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
)

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
