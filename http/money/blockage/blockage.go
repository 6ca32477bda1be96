// Package blockage serves section 4.17 of the interface, blockages.
package blockage

import (
	"context"
	"encoding/json"
	"strconv"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/money/blockage"
	"castellan/http/rest"
)

const section = "4.17 Blockage"

// Group serves the section.
type Group struct{ Service *blockage.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Get("/blockage/get-blockage-history", "List blockages, newest first", rest.Tenant, g.list, fault.InvalidField).
			For(rest.Admin).Try("userId=${user.id}&blockTypeId=2,3&status=active").
			Doc("listBlockages", "Filters are combined: a blockage must match all of them, and any of the given types. "+
				"Deleted blockages are omitted."),
		rest.Get("/admin/blockage/get-all-block-histories", "List the blockages of all users, newest first", rest.Tenant,
			g.listAll, fault.InvalidField).
			Try("currencyCode=BTC").
			Doc("listAllBlockages", "Includes the names of the users. Deleted blockages are omitted."),
		rest.Post("/blockage/insert-blockage-history", "Create a blockage", rest.Tenant, g.insert,
			fault.InvalidField, fault.RecordNotFound).For(rest.Admin).Idempotent().
			Try(`{"userId":"${user.id}","currencyCode":"BTC","blockTypeId":2,"amount":0.1,"description":"Court order"}`).
			Names(rest.Standing, "userId").
			Doc("addBlockage", "The available balance falls by the amount. An amount above the available balance also "+
				"holds later deposits. If the currency has several networks, available balances are locked first."),
		rest.NamesBy(rest.Post("/blockage/update-blockage-history", "Release or reactivate a blockage",
			rest.Tenant, g.update, fault.InvalidField, fault.RecordNotFound).For(rest.Admin).
			Try(`{"id":"${addBlockage.data.id}","status":"released","comment":"The order was withdrawn"}`).
			Doc("updateBlockage", "Setting the current status changes nothing. Closing an account creates blockages. If an "+
				"administrator reactivates one, it stays active when the account is reopened."),
			func(ctx context.Context, _ rest.Caller, in updateRequest) (rest.Named, error) {
				return g.owner(ctx, in.ID)
			}),
		rest.NamesBy(rest.Post("/blockage/delete-blockage-history", "Delete a blockage", rest.Tenant, g.remove,
			fault.InvalidField, fault.RecordNotFound).For(rest.Admin).
			TryLast(`{"id":"${addBlockage.data.id}"}`).
			Doc("deleteBlockage", "The amount is released, and the blockage no longer appears in lists."),
			func(ctx context.Context, _ rest.Caller, in rest.ByID) (rest.Named, error) {
				return g.owner(ctx, in.ID)
			}),
	)
}

// owner returns the user of a blockage.
func (g Group) owner(ctx context.Context, id rest.ID) (rest.Named, error) {
	b, err := g.Service.Store.Get(ctx, int64(id))
	return rest.Named{Users: []string{b.UserID}, Matter: rest.Standing}, err
}

// record is a blockage with its user and currency.
type record struct {
	ID           string        `json:"id" example:"3677386137600123"`
	UserID       string        `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyCode string        `json:"currencyCode" example:"BTC"`
	BlockTypeID  int64         `json:"blockTypeId" example:"2"`
	Amount       amount.Amount `json:"amount" example:"0.1"`
	Status       string        `json:"status" enum:"active,released"`
	Description  *string       `json:"description" example:"Court order"`
	CreatedAt    rest.Time     `json:"createdAt"`
	UpdatedAt    *rest.Time    `json:"updatedAt" doc:"null: never" example:"2026-11-22T10:00:00.000Z"`
}

// namedBlockage is a blockage in the list of all users.
type namedBlockage struct {
	ID           string        `json:"id" example:"3677386137600123"`
	UserID       string        `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	FullName     *string       `json:"fullName" example:"Jane Doe"`
	CurrencyCode string        `json:"currencyCode" example:"BTC"`
	BlockTypeID  int64         `json:"blockTypeId" example:"2"`
	Amount       amount.Amount `json:"amount" example:"0.1"`
	Status       string        `json:"status" enum:"active,released"`
	CreatedAt    rest.Time     `json:"createdAt"`
}

func show(b blockage.Blockage) record {
	return record{strconv.FormatInt(b.ID, 10), b.UserID, b.CurrencyCode, b.TypeID, b.Amount, string(b.Status),
		rest.Filled(b.Description), rest.Time{Time: b.CreatedAt}, rest.At(b.UpdatedAt)}
}

func showNamed(b blockage.Blockage) namedBlockage {
	return namedBlockage{strconv.FormatInt(b.ID, 10), b.UserID, rest.Filled(b.FullName), b.CurrencyCode,
		b.TypeID, b.Amount, string(b.Status), rest.Time{Time: b.CreatedAt}}
}

type listRequest struct {
	UserID       *string    `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyID   *rest.ID   `json:"currencyId" doc:"id of the currency"`
	CurrencyCode *string    `json:"currencyCode" maxLength:"64" example:"BTC"`
	BlockTypeID  *[]rest.ID `json:"blockTypeId" maxItems:"100" doc:"any of these types"`
	Status       *string    `json:"status" enum:"active,released"`
	rest.Paging
}

func (g Group) list(ctx context.Context, who rest.Caller, in listRequest) (rest.Reply[[]record], error) {
	q := blockage.Query{UserID: in.UserID, CurrencyID: (*int64)(in.CurrencyID), Status: (*blockage.Status)(in.Status)}
	for _, t := range rest.Or(in.BlockTypeID, nil) {
		q.TypeIDs = append(q.TypeIDs, int64(t))
	}
	g.filterByCode(&q, in.CurrencyCode)
	return rest.List(ctx, who, in.Paging, q, g.Service.Store.List, show)
}

// filterByCode limits a query to the currency of a code; to currency 0, which does not exist, if nothing can match.
func (g Group) filterByCode(q *blockage.Query, code *string) {
	if code == nil {
		return
	}
	id, _ := g.Service.Currency(*code)
	if q.CurrencyID != nil && *q.CurrencyID != id {
		id = 0
	}
	q.CurrencyID = &id
}

type listAllRequest struct {
	CurrencyCode *string `json:"currencyCode" maxLength:"64" example:"BTC"`
	rest.Paging
}

func (g Group) listAll(ctx context.Context, who rest.Caller, in listAllRequest) (rest.Reply[[]namedBlockage], error) {
	var q blockage.Query
	g.filterByCode(&q, in.CurrencyCode)
	return rest.List(ctx, who, in.Paging, q, g.Service.Store.List, showNamed)
}

// object is any JSON object.
type object map[string]any

type insertRequest struct {
	UserID          string        `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	CurrencyCode    string        `json:"currencyCode" maxLength:"64" example:"BTC"`
	BlockTypeID     int64         `json:"blockTypeId" minimum:"1" maximum:"9007199254740991" doc:"reason id" example:"2"`
	Amount          amount.Amount `json:"amount" doc.exclusiveMinimum:"0" example:"0.1"`
	Description     *string       `json:"description" maxLength:"2000" example:"Court order"`
	BlockSourceID   *int64        `json:"blockSourceId" minimum:"1" maximum:"9007199254740991" doc:"requester" example:"1"`
	DescriptionJSON *object       `json:"descriptionJson" doc:"any JSON, returned as sent"`
}

func (g Group) insert(ctx context.Context, who rest.Caller, in insertRequest) (rest.Data[record], error) {
	r := blockage.Request{UserID: in.UserID, CurrencyCode: in.CurrencyCode, TypeID: in.BlockTypeID,
		SourceID: rest.Or(in.BlockSourceID, 0), Amount: in.Amount, Description: rest.Or(in.Description, "")}
	if in.DescriptionJSON != nil {
		r.DescriptionJSON, _ = json.Marshal(*in.DescriptionJSON) // it was read from JSON
	}
	b, err := g.Service.Insert(ctx, who.By(), r)
	return rest.Data[record]{Data: show(b)}, err
}

type updateRequest struct {
	ID      rest.ID `json:"id"`
	Status  string  `json:"status" enum:"active,released"`
	Comment *string `json:"comment" maxLength:"2000" example:"The order was withdrawn"`
}

func (g Group) update(ctx context.Context, who rest.Caller, in updateRequest) (rest.Data[record], error) {
	b, err := g.Service.Update(ctx, who.By(), int64(in.ID), blockage.Status(in.Status), in.Comment)
	return rest.Data[record]{Data: show(b)}, err
}

type deletedBlockage struct {
	ID      string `json:"id" example:"3677386137600123"`
	Deleted bool   `json:"deleted" example:"true"`
}

func (g Group) remove(ctx context.Context, who rest.Caller, in rest.ByID) (rest.Data[deletedBlockage], error) {
	b, err := g.Service.Delete(ctx, who.By(), int64(in.ID))
	return rest.Data[deletedBlockage]{Data: deletedBlockage{strconv.FormatInt(b.ID, 10), true}}, err
}
