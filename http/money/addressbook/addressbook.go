// Package addressbook serves section 4.18 of the interface, the withdrawal address book of
// the caller. It reads and writes the wire shapes of its section 2.10 (decisions
// D-WAD-01, D-WAD-07) and leaves every rule to domain/money/addressbook.
//
// Start reading at Endpoints.
package addressbook

import (
	"context"
	"strconv"

	"castellan/domain/kit/fault"
	"castellan/domain/money/addressbook"
	"castellan/http/rest"
)

const section = "4.18 Withdrawal address book"

// Group serves the section.
type Group struct{ Service *addressbook.Service }

func (g Group) Endpoints() []rest.Endpoint {
	const path = "/asset/withdrawal-addresses"
	return rest.Section(section,
		rest.Get(path, "List the caller's withdrawal addresses, oldest first", rest.User, g.list).
			Doc("listWithdrawalAddresses", "Returns only entries of the caller."),
		rest.Post(path, "Create a withdrawal address", rest.User, g.add,
			fault.InvalidField, fault.WDNetworkAssetMismatch, fault.CharLimitExceeded, fault.RecordAlreadyExist,
			fault.RecordLimitReached).
			Body(rest.LargeBody).
			Doc("addWithdrawalAddress",
				"The address must be valid on the network, including its checksum if the network defines one. Names, and "+
					"addresses with their tags, are unique within the address book of an account."),
		rest.Patch(path, "Update a withdrawal address", rest.User, g.change,
			fault.InvalidField, fault.RecordNotFound, fault.WDNetworkAssetMismatch, fault.CharLimitExceeded,
			fault.RecordAlreadyExist).
			Body(rest.LargeBody).
			Try(`{"id":${addWithdrawalAddress.data.id},"name":"Warm wallet"}`).
			Doc("updateWithdrawalAddress",
				"Send address, addressTag, name or several of them. A new address or tag is validated as in "+
					"addWithdrawalAddress, and its waiting time starts again."),
		rest.Delete(path, "Delete a withdrawal address", rest.User, g.remove, fault.InvalidField, fault.RecordNotFound).
			Try(`{"id":${addWithdrawalAddress.data.id}}`).
			Doc("deleteWithdrawalAddress", "The caller can delete only own entries."),
	)
}

// withdrawalAddress is the withdrawal address record, and the extension usableFrom.
type withdrawalAddress struct {
	ID           string `json:"id" doc:"digits" example:"12"`
	Name         string `json:"name" example:"Cold wallet"`
	Address      string `json:"address"`
	AddressTag   string `json:"addressTag,omitempty" doc:"tag or memo; absent without one" example:"104723"`
	CurrencyID   int64  `json:"currencyId"`
	NetworkID    int64  `json:"networkId"`
	CurrencyCode string `json:"currencyCode"`
	NetworkCode  string `json:"networkCode"`
	// UsableFrom is omitted if no waiting time is configured.
	UsableFrom *rest.Time `json:"usableFrom,omitempty" doc:"earliest withdrawal; present if a waiting time is configured"`
}

func shown(r addressbook.Record) withdrawalAddress {
	return withdrawalAddress{strconv.FormatInt(r.ID, 10), r.Name, r.Address, r.AddressTag, r.CurrencyID, r.NetworkID,
		r.CurrencyCode, r.NetworkCode, rest.At(r.UsableFrom)}
}

func (g Group) list(ctx context.Context, who rest.Caller, _ rest.None) ([]withdrawalAddress, error) {
	all, err := g.Service.List(ctx, who.By())
	return rest.Each(all, shown), err
}

type addRequest struct {
	CurrencyCode string  `json:"currencyCode" example:"USDT"`
	NetworkCode  string  `json:"networkCode" example:"TRX"`
	Address      string  `json:"address" doc:"an address on the network" doc.pattern:"^[A-Za-z0-9:_.-]{10,128}$"`
	AddressTag   *string `json:"addressTag" doc:"tag or memo, on networks that have one" maxLength:"128" example:"104723"`
	Name         string  `json:"name" doc.maxLength:"32" example:"Cold wallet"`
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (rest.Data[withdrawalAddress], error) {
	r, err := g.Service.Add(ctx, who.By(), addressbook.New{CurrencyCode: in.CurrencyCode, NetworkCode: in.NetworkCode,
		Address: in.Address, AddressTag: rest.Or(in.AddressTag, ""), Name: in.Name})
	return rest.Data[withdrawalAddress]{Data: shown(r)}, err
}

type changeRequest struct {
	ID         rest.ID `json:"id"`
	Address    *string `json:"address" doc:"send address, name or both" doc.pattern:"^[A-Za-z0-9:_.-]{10,128}$"`
	AddressTag *string `json:"addressTag" doc:"empty: none; it restarts the wait" maxLength:"128" example:"104723"`
	Name       *string `json:"name" doc:"send name, address or both" doc.maxLength:"32" example:"Cold wallet"`
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (rest.Data[withdrawalAddress], error) {
	r, err := g.Service.Change(ctx, who.By(), addressbook.Change{ID: int64(in.ID), Address: in.Address,
		AddressTag: in.AddressTag, Name: in.Name})
	return rest.Data[withdrawalAddress]{Data: shown(r)}, err
}

type withdrawalAddressRemoved struct {
	ID string `json:"id" doc:"digits" example:"12"`
}

func (g Group) remove(
	ctx context.Context, who rest.Caller, in rest.ByID,
) (rest.Data[withdrawalAddressRemoved], error) {
	return rest.Data[withdrawalAddressRemoved]{Data: withdrawalAddressRemoved{strconv.FormatInt(int64(in.ID), 10)}},
		g.Service.Remove(ctx, who.By(), int64(in.ID))
}
