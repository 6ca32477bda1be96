package dropdown

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/people/dropdown"
	"castellan/http/rest"
)

// administration are the endpoints with which administrators manage the options.
func (g Group) administration() rest.Endpoints {
	const path = "/admin/dropdown-options"
	return rest.Section("Extensions: dropdown options",
		rest.Get(path, "List dropdown options with all names", rest.Tenant, g.listAll, fault.InvalidField).
			Try("dropdownCode=SOURCE_OF_FUNDING").
			Doc("listAllDropdownOptions", "Sorted by orderNo, then by id, with inactive options."),
		rest.Post(path, "Create a dropdown option", rest.Tenant, g.add, fault.InvalidField, fault.RecordAlreadyExist).
			Try(`{"dropdownCode":"SOURCE_OF_FUNDING","code":"SCHOLARSHIP","nameEn":"Scholarship","nameTr":"Burs",`+
				`"nameAr":"منحة دراسية"}`).
			Doc("addDropdownOption", "The code must be unique in its dropdown. Without orderNo, the option is the last of "+
				"its dropdown."),
		rest.Patch(path, "Update a dropdown option", rest.Tenant, g.change, fault.InvalidField, fault.RecordNotFound).
			Try(`{"id":${addDropdownOption.data.id},"isActive":false}`).
			Doc("changeDropdownOption", "Fields that are not sent stay unchanged. An inactive option is neither offered nor "+
				"accepted. Users who chose it keep it."),
	).For(rest.Admin).Extended().NamesNoUser("the ids are those of options")
}

// full is an option with all names.
type full struct {
	ID                 int64  `json:"id"`
	DropdownCode       string `json:"dropdownCode" doc:"code of the dropdown" example:"SOURCE_OF_FUNDING"`
	Code               string `json:"code" doc:"code of the option" example:"SCHOLARSHIP"`
	NameEn             string `json:"nameEn" doc:"plain text" example:"Scholarship"`
	NameTr             string `json:"nameTr" doc:"plain text" example:"Burs"`
	NameAr             string `json:"nameAr" doc:"plain text" example:"منحة دراسية"`
	IsExplainMandatory bool   `json:"isExplainMandatory" doc:"whether the choice requires an explanation"`
	OrderNo            int64  `json:"orderNo" example:"6"`
	IsActive           bool   `json:"isActive"`
}

func (full) SchemaName() string { return "FullDropdownOption" }

func showAll(o dropdown.Option) full {
	return full{o.ID, o.Group, o.Code, o.English, o.Turkish, o.Arabic, o.ExplainMandatory, o.OrderNo, !o.Inactive}
}

type listAllRequest struct {
	DropdownCode *string `json:"dropdownCode" doc:"code of a dropdown; default: all" example:"SOURCE_OF_FUNDING"`
}

func (g Group) listAll(ctx context.Context, _ rest.Caller, in listAllRequest) ([]full, error) {
	all, err := g.Service.Store.List(ctx, dropdown.Query{Group: in.DropdownCode, Inactive: true})
	return rest.Each(all, showAll), err
}

type addRequest struct {
	DropdownCode       string `json:"dropdownCode" maxLength:"64" doc:"code of the dropdown" example:"SOURCE_OF_FUNDING"`
	Code               string `json:"code" maxLength:"64" doc.pattern:"^[A-Z][A-Z0-9_]{1,63}$" example:"SCHOLARSHIP"`
	NameEn             string `json:"nameEn" maxLength:"200" doc:"plain text" example:"Scholarship"`
	NameTr             string `json:"nameTr" maxLength:"200" doc:"plain text" example:"Burs"`
	NameAr             string `json:"nameAr" maxLength:"200" doc:"plain text" example:"منحة دراسية"`
	IsExplainMandatory bool   `json:"isExplainMandatory" default:"false" doc:"whether the choice requires an explanation"`
	OrderNo            *int64 `json:"orderNo" minimum:"0" maximum:"1000000000" example:"6"`
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (out rest.Data[full], err error) {
	o, err := g.Service.Add(ctx, who.By(), dropdown.Option{Group: in.DropdownCode, Code: in.Code, English: in.NameEn,
		Turkish: in.NameTr, Arabic: in.NameAr, ExplainMandatory: in.IsExplainMandatory}, in.OrderNo)
	return rest.Data[full]{Data: showAll(o)}, err
}

type changeRequest struct {
	ID                 rest.ID `json:"id"`
	NameEn             *string `json:"nameEn" maxLength:"200" blank:"no" doc:"plain text" example:"Scholarship"`
	NameTr             *string `json:"nameTr" maxLength:"200" blank:"no" doc:"plain text" example:"Burs"`
	NameAr             *string `json:"nameAr" maxLength:"200" blank:"no" doc:"plain text" example:"منحة دراسية"`
	IsExplainMandatory *bool   `json:"isExplainMandatory" doc:"whether the choice requires an explanation"`
	OrderNo            *int64  `json:"orderNo" minimum:"0" maximum:"1000000000" example:"6"`
	IsActive           *bool   `json:"isActive"`
}

func (in changeRequest) edit(o *dropdown.Option) {
	rest.Set(&o.English, in.NameEn)
	rest.Set(&o.Turkish, in.NameTr)
	rest.Set(&o.Arabic, in.NameAr)
	rest.Set(&o.ExplainMandatory, in.IsExplainMandatory)
	rest.Set(&o.OrderNo, in.OrderNo)
	if in.IsActive != nil {
		o.Inactive = !*in.IsActive
	}
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (out rest.Data[full], err error) {
	o, err := g.Service.Change(ctx, who.By(), int64(in.ID), in.edit)
	return rest.Data[full]{Data: showAll(o)}, err
}
