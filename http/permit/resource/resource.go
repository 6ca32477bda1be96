// Package resource serves section 4.6 of the interface, the resource registry: resources,
// their types, and the log of grants to roles; and the extension for roles (role.go). It reads
// and writes the wire shapes of section 2.4 of the interface and leaves every rule to
// domain/permit/resource.
//
// Every endpoint is reserved to the role admin: a change of the registry changes permissions (D-AUTH-03).
//
// Start reading at Endpoints, then request.go for the fields of a body.
package resource

import (
	"context"
	"strconv"

	"castellan/domain/kit/fault"
	"castellan/domain/permit/resource"
	"castellan/http/rest"
)

const section = "4.6 Resource registry"

// Group serves the section.
type Group struct{ Admin *resource.Admin }

func (g Group) Endpoints() []rest.Endpoint {
	const (
		one = "/resource/resource"
		typ = "/resource/resource-type"
	)
	return rest.Section(section,
		rest.Get("/resource/resources", "List resources", rest.Tenant, g.resources, fault.InvalidField).
			Try("resourceContext=API").
			Doc("listResources",
				"Roles are granted permissions on resources. A resource is an endpoint (context API), or a page or a part of "+
					"a page (context UI)."),
		rest.Post(one, "Create or update a resource", rest.Tenant, g.save,
			fault.InvalidField, fault.RecordAlreadyExist, fault.RecordNotFound, fault.InvalidState).
			Try(`{"code":"/home","name":"Home","status":1,"resourceTypeId":${saveResourceType.id},"resourceContext":"UI"}`).
			Doc("saveResource",
				"With resourceId the resource is updated, without it a resource is created. Resources of the context API for "+
					"the endpoints of this service always exist."),
		rest.Delete(one, "Delete a resource and its grants", rest.Tenant, g.remove,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Try(`{"resourceId":${saveResource.id}}`).
			Doc("deleteResource",
				"A resource with nested resources cannot be deleted, nor can a resource of an endpoint of this service."),
		rest.Get("/resource/resource-types", "List resource types", rest.Tenant, g.types).
			Doc("listResourceTypes",
				"A type groups resources. In the context API, the type is the HTTP method."),
		rest.Post(typ, "Create or update a resource type", rest.Tenant, g.saveType,
			fault.InvalidField, fault.RecordAlreadyExist, fault.RecordNotFound, fault.InvalidState).
			Try(`{"code":"page","name":"Page","status":1,"resourceContext":"UI"}`).
			Doc("saveResourceType", "With resourceTypeId the type is updated, without it a type is created."),
		rest.Delete(typ, "Delete a resource type", rest.Tenant, g.removeType,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			Try(`{"resourceTypeId":${saveResourceType.id}}`).
			Doc("deleteResourceType", "A type with resources cannot be deleted."),
		rest.Get("/admin/role-resource-permission-log", "List permission changes, newest first", rest.Tenant,
			g.log, fault.InvalidField).
			Try("limit=10").
			Doc("listPermissionLog",
				"Each row records one permission granted or revoked, with the role, the administrator and the time."),
	).For(rest.Admin).Reserve().MarkSensitive().NamesNoUser("the ids are those of resources and their types")
}

type record struct {
	ResourceID         int64     `json:"resourceId"`
	ResourceCode       string    `json:"resourceCode"`
	ResourceName       string    `json:"resourceName"`
	ResourceTypeID     int64     `json:"resourceTypeId"`
	ResourceTypeCode   string    `json:"resourceTypeCode"`
	SubResources       *[]record `json:"subResources" doc:"nested resources; null if there are none"`
	AllResourceActions rest.JSON `json:"allResourceActions" doc:"any JSON, returned as sent"`
	MenuItemProperties rest.JSON `json:"menuItemProperties" doc:"any JSON, returned as sent"`

	// Present only on request: the interface lists the record without them (D-RES-01).
	Status          *int    `json:"status,omitempty" doc:"1 active, 0 passive; present if stored is true"`
	ResourceContext *string `json:"resourceContext,omitempty" enum:"UI,API" doc:"present if stored is true"`
}

// resources lists the resources without a parent, each with its nested ones. A resource and
// its parent have the same context, so the filter keeps trees whole.
func (g Group) resources(ctx context.Context, _ rest.Caller, in resourceFilter) ([]record, error) {
	var of []resource.Context
	if in.ResourceContext != nil {
		of = append(of, resource.Context(*in.ResourceContext))
	}
	all, err := g.Admin.Store.Resources(ctx, of...)
	below := map[int64][]resource.Resource{}
	for _, r := range all {
		below[r.ParentID] = append(below[r.ParentID], r)
	}
	return tree(below, 0, in.Stored != nil && *in.Stored), err
}

func tree(below map[int64][]resource.Resource, parent int64, stored bool) []record {
	out := make([]record, 0, len(below[parent]))
	for _, r := range below[parent] {
		x := record{ResourceID: r.ID, ResourceCode: r.Code, ResourceName: r.Name, ResourceTypeID: r.TypeID,
			ResourceTypeCode:   r.TypeCode,
			AllResourceActions: rest.JSON(r.Actions), MenuItemProperties: rest.JSON(r.MenuItem)}
		if nested := tree(below, r.ID, stored); len(nested) > 0 {
			x.SubResources = &nested
		}
		if stored {
			x.Status, x.ResourceContext = new(int(r.Status)), new(string(r.Context))
		}
		out = append(out, x)
	}
	return out
}

type id struct {
	ID int64 `json:"id"`
}

func (g Group) save(ctx context.Context, who rest.Caller, in resourceRequest) (id, error) {
	if in.ResourceID == nil {
		n, err := g.Admin.AddResource(ctx, who.By(), in.draft())
		return id{n}, err
	}
	n := int64(*in.ResourceID)
	return id{n}, g.Admin.ChangeResource(ctx, who.By(), n, in.draft())
}

func (g Group) remove(ctx context.Context, who rest.Caller, in removeRequest) (id, error) {
	n := int64(in.ResourceID)
	return id{n}, g.Admin.RemoveResource(ctx, who.By(), n)
}

type resourceType struct {
	ID                 int64     `json:"id"`
	Name               string    `json:"name" example:"Widget"`
	Code               string    `json:"code" example:"WIDGET"`
	ResourceContext    string    `json:"resourceContext" enum:"UI,API"`
	Status             int       `json:"status" doc:"1 active, 0 passive"`
	AllResourceActions rest.JSON `json:"allResourceActions" doc:"any JSON, returned as sent"`
	CUserID            string    `json:"cuserid" doc:"the administrator who created the record"`
	CDate              rest.Time `json:"cdate"`
	UUserID            string    `json:"uuserid" doc:"the administrator who last updated the record"`
	UDate              rest.Time `json:"udate"`
}

func (g Group) types(ctx context.Context, _ rest.Caller, _ rest.None) ([]resourceType, error) {
	all, err := g.Admin.Store.Types(ctx)
	out := make([]resourceType, len(all))
	for i, t := range all {
		out[i] = resourceType{ID: t.ID, Name: t.Name, Code: t.Code, ResourceContext: string(t.Context),
			Status:             int(t.Status),
			AllResourceActions: rest.JSON(t.Actions), CUserID: t.CreatedBy, CDate: rest.Time{Time: t.CreatedAt},
			UUserID: t.UpdatedBy, UDate: rest.Time{Time: t.UpdatedAt}}
	}
	return out, err
}

func (g Group) saveType(ctx context.Context, who rest.Caller, in typeRequest) (id, error) {
	if in.ResourceTypeID == nil {
		n, err := g.Admin.AddType(ctx, who.By(), in.draft())
		return id{n}, err
	}
	n := int64(*in.ResourceTypeID)
	return id{n}, g.Admin.ChangeType(ctx, who.By(), n, in.draft())
}

func (g Group) removeType(ctx context.Context, who rest.Caller, in removeTypeRequest) (id, error) {
	n := int64(in.ResourceTypeID)
	return id{n}, g.Admin.RemoveType(ctx, who.By(), n)
}

// permissionLogEntry of the log writes its ids as strings, as the record states them.
type permissionLogEntry struct {
	ID         string    `json:"id"`
	RoleID     string    `json:"roleId"`
	ResourceID string    `json:"resourceId"`
	Permission string    `json:"permission" doc:"ALLOW, DENY or AUDIT for a grant; REVOKE for a revocation"`
	CreatedAt  rest.Time `json:"createdAt"`
}

func (g Group) log(ctx context.Context, who rest.Caller, in logRequest) (rest.Reply[[]permissionLogEntry], error) {
	q := resource.LogQuery{ID: (*int64)(in.ID), RoleID: (*int64)(in.RoleID), ResourceID: (*int64)(in.ResourceID)}
	return rest.List(ctx, who, in.Paging, q, g.Admin.Store.Log, showEntry)
}

func showEntry(e resource.LogEntry) permissionLogEntry {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	return permissionLogEntry{text(e.ID), text(e.RoleID), text(e.ResourceID), string(e.Permission),
		rest.Time{Time: e.CreatedAt}}
}
