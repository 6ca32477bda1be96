package resource

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/permit/resource"
	"castellan/http/rest"
)

const rolesSection = "Extensions: roles and permissions"

// Roles serves the extension for roles: the roles, their members and their grants (decisions
// D-EXT-01, D-AUTH-03). Every endpoint is reserved to the role admin: an account that may
// grant could grant itself everything.
type Roles struct{ Admin *resource.Admin }

// anEndpoint is the resource of the examples.
const anEndpoint = `"resourceId":${listResources.resourceCode=GET /admin/audit.resourceId}`

func (g Roles) Endpoints() []rest.Endpoint {
	const (
		roles       = "/admin/roles"
		members     = "/admin/user-roles"
		permissions = "/admin/role-resource-permission"
	)
	return rest.Section(rolesSection,
		rest.Get(roles, "List roles", rest.Tenant, g.roles).
			Doc("listRoles", "The roles admin and user always exist."),
		rest.Post(roles, "Create a role", rest.Tenant, g.addRole, fault.InvalidField, fault.RecordAlreadyExist).
			Doc("addRole", "A new role has no permissions."),
		rest.Delete(roles, "Delete a role", rest.Tenant, g.removeRole,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Doc("deleteRole", "A role with members, service keys or grants cannot be deleted, nor can admin and user."),
		rest.Get(members, "List role memberships", rest.Tenant, g.members,
			fault.InvalidField).
			Try("limit=10").
			Doc("listRoleMembers",
				"With userId, returns all roles of the account on one page. Without it, returns all memberships page by page, "+
					"newest first."),
		rest.Post(members, "Assign a role to an account", rest.Tenant, g.give, fault.InvalidField, fault.RecordNotFound,
			fault.RecordAlreadyExist).
			Try(`{"userId":"${user.id}","roleCode":"auditor"}`).Names(rest.General, "userId").
			Doc("addRoleMember", "The role takes effect at once, without a new login."),
		rest.Delete(members, "Remove a role from an account", rest.Tenant, g.take, fault.InvalidField,
			fault.RecordNotFound, fault.InvalidState).
			Try(`{"userId":"${user.id}","roleCode":"auditor"}`).Names(rest.General, "userId").
			Doc("removeRoleMember", "The last administrator cannot lose the role admin."),
		rest.Get(permissions, "List role permissions", rest.Tenant, g.permissions, fault.InvalidField).
			Try("roleId=${addRole.data.id}").
			Doc("listRolePermissions", "With roleId, returns only the grants of this role."),
		rest.Post(permissions, "Grant a role a permission on a resource",
			rest.Tenant, g.grant,
			fault.InvalidField, fault.RecordNotFound, fault.RecordAlreadyExist, fault.InvalidState).
			Try(`{"roleId":${addRole.data.id},"permission":"ALLOW",`+anEndpoint+`}`).
			Doc("grantRolePermission",
				"A role has one permission on a resource. A new grant replaces the existing one."),
		rest.Delete(permissions, "Revoke a permission of a role", rest.Tenant, g.revoke,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Try(`{"roleId":${addRole.data.id},`+anEndpoint+`}`).
			Doc("revokeRolePermission", "The change is recorded in the permission log."),
	).For(rest.Admin).Reserve().MarkSensitive().Extended().NamesNoUser("the ids are those of roles and resources")
}

type role struct {
	ID        int64     `json:"id"`
	Code      string    `json:"code" example:"auditor"`
	Name      string    `json:"name" example:"Auditor"`
	CreatedAt rest.Time `json:"createdAt"`
}

func (role) SchemaName() string { return "Role" }

func showRole(r resource.Role) role { return role{r.ID, r.Code, r.Name, rest.Time{Time: r.CreatedAt}} }

func (g Roles) roles(ctx context.Context, _ rest.Caller, _ rest.None) ([]role, error) {
	all, err := g.Admin.Store.Roles(ctx)
	return rest.Each(all, showRole), err
}

type addRoleRequest struct {
	Code string `json:"code" example:"auditor" doc.pattern:"^[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}$"`
	Name string `json:"name" maxLength:"500" example:"Auditor"`
}

func (g Roles) addRole(ctx context.Context, who rest.Caller, in addRoleRequest) (rest.Data[role], error) {
	r, err := g.Admin.AddRole(ctx, who.By(), in.Code, in.Name)
	return rest.Data[role]{Data: showRole(r)}, err
}

type removeRoleRequest struct {
	Code string `json:"code" example:"auditor"`
}

func (g Roles) removeRole(ctx context.Context, who rest.Caller, in removeRoleRequest) (rest.Data[role], error) {
	r, err := g.Admin.RemoveRole(ctx, who.By(), in.Code)
	return rest.Data[role]{Data: showRole(r)}, err
}

type roleMember struct {
	UserID    string    `json:"userId"`
	RoleCode  string    `json:"roleCode"`
	CreatedAt rest.Time `json:"createdAt"`
}

func showMember(m resource.Member) roleMember {
	return roleMember{m.UserID, m.RoleCode, rest.Time{Time: m.CreatedAt}}
}

type membersRequest struct {
	UserID   *string `json:"userId" doc:"returns all roles of this account, including the role user"`
	RoleCode *string `json:"roleCode" doc:"returns the members of this role"`
	rest.Paging
}

func (g Roles) members(
	ctx context.Context, who rest.Caller, in membersRequest,
) (out rest.Reply[[]roleMember], err error) {
	q := resource.MemberQuery{UserID: rest.Or(in.UserID, ""), RoleCode: rest.Or(in.RoleCode, "")}
	if in.UserID != nil && q.UserID == "" {
		return out, fault.Invalid("userId", "must not be blank")
	}
	return rest.List(ctx, who, in.Paging, q, g.Admin.Members, showMember)
}

type memberRequest struct {
	UserID   string `json:"userId"`
	RoleCode string `json:"roleCode"`
}

func (g Roles) give(ctx context.Context, who rest.Caller, in memberRequest) (rest.Data[roleMember], error) {
	m, err := g.Admin.AssignRole(ctx, who.By(), in.UserID, in.RoleCode)
	return rest.Data[roleMember]{Data: showMember(m)}, err
}

func (g Roles) take(ctx context.Context, who rest.Caller, in memberRequest) (rest.Data[roleMember], error) {
	m, err := g.Admin.RevokeRole(ctx, who.By(), in.UserID, in.RoleCode)
	return rest.Data[roleMember]{Data: showMember(m)}, err
}

type rolePermission struct {
	ID           int64     `json:"id"`
	RoleID       int64     `json:"roleId"`
	ResourceID   int64     `json:"resourceId"`
	ResourceCode string    `json:"resourceCode"`
	Permission   string    `json:"permission" enum:"ALLOW,DENY,AUDIT"`
	CreatedAt    rest.Time `json:"createdAt"`
}

func showPermission(g resource.Grant) rolePermission {
	return rolePermission{g.ID, g.RoleID, g.ResourceID, g.ResourceCode, string(g.Permission),
		rest.Time{Time: g.CreatedAt}}
}

type permissionsRequest struct {
	RoleID *rest.ID `json:"roleId"`
}

func (g Roles) permissions(ctx context.Context, _ rest.Caller, in permissionsRequest) ([]rolePermission, error) {
	all, err := g.Admin.Store.Grants(ctx, resource.GrantQuery{RoleID: (*int64)(in.RoleID)})
	return rest.Each(all, showPermission), err
}

type grantRequest struct {
	RoleID     rest.ID `json:"roleId"`
	ResourceID rest.ID `json:"resourceId"`
	Permission string  `json:"permission" enum:"ALLOW,DENY,AUDIT" doc:"DENY overrides other roles; AUDIT: ALLOW, audited"`
}

func (g Roles) grant(ctx context.Context, who rest.Caller, in grantRequest) (rest.Data[rolePermission], error) {
	x, err := g.Admin.Grant(ctx, who.By(), int64(in.RoleID), int64(in.ResourceID), resource.Permission(in.Permission))
	return rest.Data[rolePermission]{Data: showPermission(x)}, err
}

type revokeRequest struct {
	RoleID     rest.ID `json:"roleId"`
	ResourceID rest.ID `json:"resourceId"`
}

func (g Roles) revoke(ctx context.Context, who rest.Caller, in revokeRequest) (rest.Data[rolePermission], error) {
	x, err := g.Admin.Revoke(ctx, who.By(), int64(in.RoleID), int64(in.ResourceID))
	return rest.Data[rolePermission]{Data: showPermission(x)}, err
}
