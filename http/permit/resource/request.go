package resource

import (
	"encoding/json"

	"castellan/domain/permit/resource"
	"castellan/http/rest"
)

type resourceFilter struct {
	ResourceContext *string `json:"resourceContext" enum:"UI,API"`
	Stored          *bool   `json:"stored" doc:"true: each record includes its status and context"`
}

type resourceRequest struct {
	ResourceID *rest.ID `json:"resourceId" doc:"the resource to update; without it, a resource is created"`

	// Code is <METHOD> <path> for API, and a page's path or WIDGET <name> for UI.
	Code string `json:"code" doc:"unique within its context" example:"GET /admin/list-users" maxLength:"500"`

	Name            string  `json:"name" maxLength:"500" example:"List users"`
	Status          int     `json:"status" minimum:"0" maximum:"1" doc:"1 active, 0 passive"`
	ResourceTypeID  rest.ID `json:"resourceTypeId" doc:"a type of the same context"`
	ResourceContext string  `json:"resourceContext" enum:"UI,API"`

	// Extensions: fields of the record that the interface cannot write (D-RES-02, 06).
	ParentResourceID rest.Nullable[rest.ID] `json:"parentResourceId" doc:"extension: in the same context; null: none"`

	AllResourceActions rest.Nullable[json.RawMessage] `json:"allResourceActions" doc:"extension: any JSON"`
	MenuItemProperties rest.Nullable[json.RawMessage] `json:"menuItemProperties" doc:"extension: any JSON"`
}

func (in resourceRequest) draft() resource.Draft {
	d := resource.Draft{Code: in.Code, Name: in.Name, Status: resource.Status(in.Status),
		TypeID:  int64(in.ResourceTypeID),
		Context: resource.Context(in.ResourceContext), Actions: anyJSON(in.AllResourceActions),
		MenuItem: anyJSON(in.MenuItemProperties)}
	if in.ParentResourceID.Sent {
		parent := int64(in.ParentResourceID.Value) // 0 for null
		d.Parent = &parent
	}
	return d
}

type removeRequest struct {
	ResourceID rest.ID `json:"resourceId"`
}

type typeRequest struct {
	ResourceTypeID  *rest.ID `json:"resourceTypeId" doc:"the type to update; without it, a type is created"`
	Name            string   `json:"name" maxLength:"500" example:"Widget"`
	Code            string   `json:"code" doc:"unique within its context" example:"WIDGET" maxLength:"500"`
	Status          int      `json:"status" minimum:"0" maximum:"1" doc:"1 active, 0 passive"`
	ResourceContext string   `json:"resourceContext" enum:"UI,API"`

	AllResourceActions rest.Nullable[json.RawMessage] `json:"allResourceActions" doc:"extension: any JSON"`
}

func (in typeRequest) draft() resource.TypeDraft {
	return resource.TypeDraft{Code: in.Code, Name: in.Name, Status: resource.Status(in.Status),
		Context: resource.Context(in.ResourceContext),
		Actions: anyJSON(in.AllResourceActions)}
}

type removeTypeRequest struct {
	ResourceTypeID rest.ID `json:"resourceTypeId"`
}

// anyJSON is nil for a field that was not sent; the record keeps its value.
func anyJSON(n rest.Nullable[json.RawMessage]) *json.RawMessage {
	switch {
	case !n.Sent:
		return nil
	case n.Null:
		null := json.RawMessage("null")
		return &null
	}
	return &n.Value
}

type logRequest struct {
	ID         *rest.ID `json:"id"`
	RoleID     *rest.ID `json:"roleId"`
	ResourceID *rest.ID `json:"resourceId"`
	rest.Paging
}
