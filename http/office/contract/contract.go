// Package contract serves section 4.8 of the interface: the contracts that users
// agree to, and their details. It reads and writes the wire shapes of section 2.6
// of the interface and leaves every rule to domain/office/contract. The administration of
// contracts and their versions is an extension (D-INT-14).
//
// Start reading at Endpoints.
package contract

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/office/contract"
	"castellan/http/rest"
)

const section = "4.8 Contracts"

// Group serves the section.
type Group struct{ Service *contract.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return append(rest.Section(section,
		rest.Get("/admin/get-contracts", "List contracts", rest.Tenant, g.contracts, fault.InvalidField).
			Try("code=TERMS_OF_USE").
			Doc("listContracts", "Sorted by id. The versions of a contract have the same code."),
		rest.Get("/admin/get-contract-details", "List the details of a contract", rest.Tenant, g.details,
			fault.InvalidField).
			Try("contractId=${listContracts.0.id}").
			Doc("listContractDetails", "Sorted by orderNo, then by id. An unknown contractId gives an empty list."),
		rest.Post("/admin/create-contract-detail", "Create a contract detail", rest.Tenant, g.add,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			Try(`{"contractId":${listContracts.0.id},"title":"Scope","content":"<p>What this is about.</p>"}`).
			Doc("addContractDetail", "Without orderNo, the detail is added at the end. The response has the stored HTML, "+
				"without scripts, styles and trackers."),
		rest.Post("/admin/update-contract-detail", "Update a contract detail", rest.Tenant, g.change,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			Try(`{"id":${addContractDetail.data.id},"title":"The scope"}`).
			Doc("updateContractDetail", "Fields that are not sent stay unchanged."),
		rest.Post("/admin/delete-contract-detail", "Delete a contract detail", rest.Tenant, g.remove,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).
			TryLast(`{"id":${addContractDetail.data.id}}`).
			Doc("deleteContractDetail", "The detail is permanently deleted."),
		rest.Post("/admin/delete-multiple-contract-details", "Delete several contract details", rest.Tenant, g.removeMany,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			TryLast(`{"ids":[${addContractDetails.data.0.id},${addContractDetails.data.1.id}]}`).
			Doc("deleteContractDetails", "Either all details are deleted, or none if one of them does not exist."),
		rest.Post("/admin/bulk-create-contract-details", "Create several contract details", rest.Tenant, g.addMany,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			Try(`{"contractId":${listContracts.0.id},"details":[{"title":"Fees","content":"<p>None.</p>"},
				{"title":"End","content":"<p>At any time.</p>"}]}`).
			Doc("addContractDetails", "Either all details are created or none."),
		rest.Post("/admin/bulk-update-contract-details", "Update several contract details", rest.Tenant, g.changeMany,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			Try(`{"details":[{"id":${addContractDetails.data.0.id},"content":"<p>See the list.</p>"}]}`).
			Doc("updateContractDetails", "Either all details are updated, or none if one of them does not exist. The "+
				"response lists the details in the order of the request."),
		rest.Post("/admin/reorder-contract-details", "Reorder the details of a contract", rest.Tenant, g.reorder,
			fault.InvalidField, fault.RecordNotFound, fault.InvalidState).Body(rest.LargeBody).
			Try(`{"contractId":${listContracts.0.id},"details":[{"id":${addContractDetails.data.1.id},"orderNo":0}]}`).
			Doc("reorderContractDetails", "Either all places are set or none. The response lists all details of the "+
				"contract in the new order."),
	).NamesNoUser("the ids are those of contracts and their details"), g.administration()...)
}

type record struct {
	ID        int64     `json:"id"`
	Code      string    `json:"code" example:"TERMS_OF_USE"`
	Name      string    `json:"name" doc:"plain text" example:"Terms of use"`
	Version   *string   `json:"version" example:"2026-1"`
	IsActive  bool      `json:"isActive"`
	CreatedAt rest.Time `json:"createdAt"`
}

func show(c contract.Contract) record {
	return record{ID: c.ID, Code: c.Code, Name: c.Name, Version: rest.Filled(c.Version), IsActive: c.Active,
		CreatedAt: rest.Time{Time: c.CreatedAt}}
}

type detail struct {
	ID         int64  `json:"id"`
	ContractID int64  `json:"contractId"`
	Title      string `json:"title" doc:"plain text"`
	Content    string `json:"content" doc:"sanitized HTML"`
	OrderNo    int64  `json:"orderNo"`
}

func showDetail(d contract.Detail) detail {
	return detail{d.ID, d.ContractID, d.Title, d.Content, d.OrderNo}
}

type contractsRequest struct {
	ID   *rest.ID `json:"id"`
	Code *string  `json:"code"`
}

func (g Group) contracts(ctx context.Context, _ rest.Caller, in contractsRequest) ([]record, error) {
	all, err := g.Service.Store.Contracts(ctx, contract.Query{ID: (*int64)(in.ID), Code: in.Code})
	return rest.Each(all, show), err
}

type detailsRequest struct {
	ContractID rest.ID `json:"contractId"`
}

func (g Group) details(ctx context.Context, _ rest.Caller, in detailsRequest) ([]detail, error) {
	all, err := g.Service.Details(ctx, int64(in.ContractID))
	return rest.Each(all, showDetail), err
}

type addRequest struct {
	ContractID rest.ID `json:"contractId"`
	Title      *string `json:"title" maxLength:"500" doc:"plain text; default empty"`
	Content    *string `json:"content" maxLength:"200000" doc:"HTML; default empty"`
	OrderNo    *int64  `json:"orderNo" minimum:"0" maximum:"1000000000"`
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (out rest.Data[detail], err error) {
	added, err := g.Service.AddDetails(ctx, who.By(), int64(in.ContractID),
		[]contract.Draft{{Title: rest.Or(in.Title, ""), Content: rest.Or(in.Content, ""), OrderNo: in.OrderNo}})
	return first(added, err)
}

// first is the answer of an endpoint that writes one detail.
func first(written []contract.Detail, err error) (out rest.Data[detail], _ error) {
	if err == nil {
		out.Data = showDetail(written[0])
	}
	return out, err
}

func all(written []contract.Detail, err error) (rest.Data[[]detail], error) {
	return rest.Data[[]detail]{Data: rest.Each(written, showDetail)}, err
}

type changes struct {
	ID      rest.ID `json:"id"`
	Title   *string `json:"title" maxLength:"500" doc:"plain text"`
	Content *string `json:"content" maxLength:"200000" doc:"HTML"`
	OrderNo *int64  `json:"orderNo" minimum:"0" maximum:"1000000000"`
}

func (in changes) change() contract.Change {
	return contract.Change{ID: int64(in.ID), Title: in.Title, Content: in.Content, OrderNo: in.OrderNo}
}

type changeRequest struct {
	changes
	ContractID *rest.ID `json:"contractId" doc:"moves the detail to another contract"`
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (rest.Data[detail], error) {
	c := in.change()
	c.ContractID = (*int64)(in.ContractID)
	return first(g.Service.ChangeDetails(ctx, who.By(), []contract.Change{c}))
}

type id struct {
	ID int64 `json:"id"`
}

func (g Group) remove(ctx context.Context, who rest.Caller, in rest.ByID) (rest.Data[id], error) {
	one := int64(in.ID)
	return rest.Data[id]{Data: id{one}}, g.Service.RemoveDetails(ctx, who.By(), []int64{one})
}

type removeManyRequest struct {
	IDs []rest.ID `json:"ids" doc.maxItems:"500" doc:"at least one, each once"`
}

type ids struct {
	IDs   []rest.ID `json:"ids"`
	Count int       `json:"count" example:"2"`
}

func (g Group) removeMany(ctx context.Context, who rest.Caller, in removeManyRequest) (rest.Data[ids], error) {
	err := g.Service.RemoveDetails(ctx, who.By(), rest.Each(in.IDs, func(id rest.ID) int64 { return int64(id) }))
	return rest.Data[ids]{Data: ids{in.IDs, len(in.IDs)}}, err
}

type addManyRequest struct {
	ContractID rest.ID `json:"contractId"`
	Details    []draft `json:"details" doc.maxItems:"500" doc:"at least one"`
}

type draft struct {
	Title   string `json:"title" maxLength:"500" doc:"plain text"`
	Content string `json:"content" maxLength:"200000" doc:"HTML"`
	OrderNo *int64 `json:"orderNo" minimum:"0" maximum:"1000000000"`
}

func (g Group) addMany(ctx context.Context, who rest.Caller, in addManyRequest) (rest.Data[[]detail], error) {
	return all(g.Service.AddDetails(ctx, who.By(), int64(in.ContractID), rest.Each(in.Details,
		func(d draft) contract.Draft { return contract.Draft(d) })))
}

type changeManyRequest struct {
	Details []changes `json:"details" doc.maxItems:"500" doc:"at least one, each detail once"`
}

func (g Group) changeMany(ctx context.Context, who rest.Caller, in changeManyRequest) (rest.Data[[]detail], error) {
	return all(g.Service.ChangeDetails(ctx, who.By(), rest.Each(in.Details, changes.change)))
}

type reorderRequest struct {
	ContractID rest.ID `json:"contractId"`
	Details    []place `json:"details" doc.maxItems:"500" doc:"at least one, each detail once"`
}

type place struct {
	ID      rest.ID `json:"id"`
	OrderNo int64   `json:"orderNo" minimum:"0" maximum:"1000000000"`
}

func (g Group) reorder(ctx context.Context, who rest.Caller, in reorderRequest) (rest.Data[[]detail], error) {
	return all(g.Service.Reorder(ctx, who.By(), int64(in.ContractID), rest.Each(in.Details,
		func(p place) contract.Change { return contract.Change{ID: int64(p.ID), OrderNo: &p.OrderNo} })))
}
