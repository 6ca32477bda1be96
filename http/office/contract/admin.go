package contract

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/office/contract"
	"castellan/http/rest"
)

// administration are the endpoints with which administrators manage contracts and their versions (D-INT-14).
func (g Group) administration() rest.Endpoints {
	const path = "/admin/contracts"
	return rest.Section("Extensions: contracts",
		rest.Get(path, "List contracts with all versions", rest.Tenant, g.versions).
			Doc("listContractVersions", "Sorted by id. A sign-up must accept the active version of each code."),
		rest.Post(path, "Create a contract", rest.Tenant, g.create, fault.InvalidField, fault.RecordAlreadyExist).
			Try(`{"code":"DISTANCE_SALES","name":"Distance sales agreement","nameTr":"Mesafeli satış sözleşmesi",`+
				`"version":"2026-1"}`).
			Doc("addContract", "The code must be new. The contract is a draft: its details can be written before it is "+
				"published."),
		rest.Patch(path, "Update a contract", rest.Tenant, g.edit, fault.InvalidField, fault.RecordNotFound,
			fault.InvalidState, fault.RecordAlreadyExist).
			Try(`{"id":${addContract.data.id},"nameAr":"اتفاقية البيع عن بعد"}`).
			Doc("updateContract", "Fields that are not sent stay unchanged. Only a draft can get another version. A replaced "+
				"version cannot change."),
		rest.Post(path+"/versions", "Create a version of a contract", rest.Tenant, g.addVersion, fault.InvalidField,
			fault.RecordNotFound, fault.RecordAlreadyExist).
			Try(`{"id":${addContract.data.id},"version":"2026-2"}`).
			Doc("addContractVersion", "Creates a draft with the code, the names and copies of the details of the contract "+
				"`id`. 409 RECORD_ALREADY_EXIST if the code has the version."),
		rest.Post(path+"/publish", "Publish a version of a contract", rest.Tenant, g.publish, fault.InvalidField,
			fault.RecordNotFound, fault.InvalidState).
			Try(`{"id":${addContractVersion.data.id}}`).
			Doc("publishContract", "Sign-ups must accept this version from now on. The version that was active is replaced "+
				"in the same transaction: it and its details can no longer change. Publishing the active version changes "+
				"nothing. 409 INVALID_STATE if a later version was published."),
		rest.Post(path+"/deactivate", "Deactivate a contract", rest.Tenant, g.deactivate, fault.InvalidField,
			fault.RecordNotFound).
			TryLast(`{"id":${addContractVersion.data.id}}`).
			Doc("deactivateContract", "Sign-ups no longer accept the contract. It can be published again. Deactivating an "+
				"inactive contract changes nothing."),
	).For(rest.Admin).Extended().NamesNoUser("the ids are those of contracts")
}

// version is a contract with the fields that the interface does not have.
type version struct {
	record
	NameTr      *string    `json:"nameTr" doc:"plain text; null: name" example:"Kullanım koşulları"`
	NameAr      *string    `json:"nameAr" doc:"plain text; null: name" example:"شروط الاستخدام"`
	Status      string     `json:"status" enum:"draft,active,inactive,replaced" doc:"replaced: by a later version"`
	PublishedAt *rest.Time `json:"publishedAt" doc:"first publication" example:"2026-11-24T10:00:00.000Z"`
}

func (version) SchemaName() string { return "ContractVersion" }

func showVersion(c contract.Contract, status contract.Status) version {
	return version{show(c), rest.Filled(c.Turkish), rest.Filled(c.Arabic), string(status), rest.At(c.PublishedAt)}
}

// shown is the answer of an endpoint that writes one contract.
func shown(c contract.Contract, status contract.Status, err error) (rest.Data[version], error) {
	return rest.Data[version]{Data: showVersion(c, status)}, err
}

func (g Group) versions(ctx context.Context, _ rest.Caller, _ rest.None) ([]version, error) {
	all, err := g.Service.Store.Contracts(ctx, contract.Query{})
	return rest.Each(all, func(c contract.Contract) version { return showVersion(c, c.Status(all)) }), err
}

type createRequest struct {
	Code    string  `json:"code" maxLength:"64" doc.pattern:"^[A-Z][A-Z0-9_]{1,63}$" example:"DISTANCE_SALES"`
	Name    string  `json:"name" maxLength:"200" doc:"plain text, English" example:"Distance sales agreement"`
	NameTr  *string `json:"nameTr" maxLength:"200" doc:"plain text; default: name" example:"Mesafeli satış sözleşmesi"`
	NameAr  *string `json:"nameAr" maxLength:"200" doc:"plain text; default: name" example:"اتفاقية البيع عن بعد"`
	Version *string `json:"version" maxLength:"200" example:"2026-1"`
}

func (g Group) create(ctx context.Context, who rest.Caller, in createRequest) (rest.Data[version], error) {
	c, err := g.Service.Add(ctx, who.By(), contract.Contract{Code: in.Code, Name: in.Name, Turkish: rest.Or(in.NameTr, ""),
		Arabic: rest.Or(in.NameAr, ""), Version: rest.Or(in.Version, "")})
	return shown(c, contract.StatusDraft, err)
}

type editRequest struct {
	ID      rest.ID               `json:"id"`
	Name    *string               `json:"name" maxLength:"200" blank:"no" doc:"plain text, English" example:"Sales"`
	NameTr  rest.Nullable[string] `json:"nameTr" maxLength:"200" doc:"plain text; null: name" example:"Mesafeli satış"`
	NameAr  rest.Nullable[string] `json:"nameAr" maxLength:"200" doc:"plain text; null: name" example:"البيع عن بعد"`
	Version rest.Nullable[string] `json:"version" maxLength:"200" doc:"of a draft" example:"2026-1"`
}

func (in editRequest) apply(c *contract.Contract) {
	rest.Set(&c.Name, in.Name)
	in.NameTr.Set(&c.Turkish)
	in.NameAr.Set(&c.Arabic)
	in.Version.Set(&c.Version)
}

func (g Group) edit(ctx context.Context, who rest.Caller, in editRequest) (rest.Data[version], error) {
	return shown(g.Service.Edit(ctx, who.By(), int64(in.ID), in.apply))
}

type versionRequest struct {
	ID      rest.ID `json:"id" doc:"contract that is copied"`
	Version string  `json:"version" maxLength:"200" example:"2026-2"`
}

func (g Group) addVersion(ctx context.Context, who rest.Caller, in versionRequest) (rest.Data[version], error) {
	c, err := g.Service.AddVersion(ctx, who.By(), int64(in.ID), in.Version)
	return shown(c, contract.StatusDraft, err)
}

func (g Group) publish(ctx context.Context, who rest.Caller, in rest.ByID) (rest.Data[version], error) {
	return shown(g.Service.Publish(ctx, who.By(), int64(in.ID)))
}

func (g Group) deactivate(ctx context.Context, who rest.Caller, in rest.ByID) (rest.Data[version], error) {
	return shown(g.Service.Deactivate(ctx, who.By(), int64(in.ID)))
}
