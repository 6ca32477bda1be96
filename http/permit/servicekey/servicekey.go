// Package servicekey serves the keys of service clients (D-INT-01): an extension with which
// administrators list, create, rotate and delete them.
//
// Start reading at Group.Endpoints.
package servicekey

import (
	"context"
	"net/netip"

	"castellan/domain/kit/fault"
	"castellan/domain/permit/servicekey"
	"castellan/http/rest"
)

const section = "Extensions: service clients"

// Group serves the endpoints.
type Group struct{ Service *servicekey.Service }

func (g Group) Endpoints() []rest.Endpoint {
	const path = "/admin/service-keys"
	return rest.Section(section,
		rest.Get(path, "List service keys", rest.Tenant, g.list).
			Doc("listServiceKeys", "Sorted by name. Secrets are never returned."),
		rest.Post(path, "Create a service key", rest.Tenant, g.add,
			fault.InvalidField, fault.RecordAlreadyExist).
			Secret("data.key").
			Try(`{"name":"wallet","role":"admin","ip":["192.0.2.0/24"]}`).
			Doc("addServiceKey", "The client sends `key` in the header service-auth. The key is returned only once. The "+
				"client may use the endpoints that accept service-auth and are granted to its role. With actions, it may "+
				"start challenges of these codes at POST /guard/challenges; their outcomes are sent to the callback. A key "+
				"needs a role, an action or both."),
		rest.Patch(path, "Update a service key", rest.Tenant, g.change, fault.InvalidField, fault.RecordNotFound).
			Try(`{"name":"${addServiceKey.data.name}","actions":["PAYOUT"]}`).
			Doc("updateServiceKey", "Changes actions and callback; a field that is not sent stays unchanged, and an empty "+
				"callback removes it. In effect on every node within one second. Challenges that were started before go on."),
		rest.Post(path+"/rotate", "Rotate a service key", rest.Tenant, g.rotate, fault.RecordNotFound).
			Secret("data.key").
			Try(`{"name":"${addServiceKey.data.name}"}`).
			Doc("rotateServiceKey", "The previous key stays valid for one hour."),
		rest.Delete(path, "Delete a service key", rest.Tenant, g.remove, fault.RecordNotFound).
			Try(`{"name":"${addServiceKey.data.name}"}`).
			Doc("removeServiceKey", "All nodes refuse the key within one second."),
	).For(rest.Admin).Reserve().MarkSensitive().Extended().NamesNoUser("a service client has no account")
}

type serviceKey struct {
	Name      string     `json:"name" example:"wallet"`
	Role      string     `json:"role" example:"wallet" doc:"empty for a key that has only actions"`
	IP        []string   `json:"ip" doc:"allowed client addresses and networks; empty: every address"`
	Actions   []string   `json:"actions" doc:"codes of the challenges that the client may start" example:"[\"PAYOUT\"]"`
	Callback  *string    `json:"callback" doc:"URL for outcomes" example:"https://shop.example/castellan"`
	CreatedAt rest.Time  `json:"createdAt"`
	RotatedAt *rest.Time `json:"rotatedAt" doc:"time of the last rotation" example:"2026-11-24T10:00:00.000Z"`
	// OldUntil is present while two keys are valid.
	OldUntil *rest.Time `json:"oldUntil" doc:"expiry of the previous key" example:"2026-11-24T11:00:00.000Z"`
}

func show(k servicekey.Key) serviceKey {
	return serviceKey{Name: k.Name, Role: k.Role, IP: rest.Each(k.Networks, netip.Prefix.String),
		Actions: append([]string{}, k.Actions...), Callback: rest.Filled(k.Callback), CreatedAt: rest.Time{Time: k.CreatedAt},
		RotatedAt: rest.At(k.RotatedAt), OldUntil: rest.At(k.OldUntil)}
}

func (g Group) list(ctx context.Context, _ rest.Caller, _ rest.None) ([]serviceKey, error) {
	all, err := g.Service.Store.List(ctx)
	return rest.Each(all, show), err
}

// newServiceKey is a key with its secret.
type newServiceKey struct {
	serviceKey
	Key string `json:"key" doc:"value of the header service-auth; returned only once" example:"wallet.1Jm0…"`
}

type addRequest struct {
	Name string   `json:"name" maxLength:"64" example:"wallet" doc.pattern:"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"`
	Role *string  `json:"role" maxLength:"64" example:"wallet" doc:"grants the permissions; required without actions"`
	IP   []string `json:"ip,omitempty" maxItems:"32" doc:"addresses and networks, such as 192.0.2.0/24"`
	// Actions and Callback are for the guard (D-EXT-10).
	Actions  []string `json:"actions,omitempty" maxItems:"64" doc:"codes of challenges that the client may start"`
	Callback *string  `json:"callback" maxLength:"512" doc:"https URL for outcomes" example:"https://shop.example/in"`
}

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (out rest.Data[newServiceKey], err error) {
	networks, err := servicekey.ParseNetworks(in.IP)
	if err != nil {
		return out, err
	}
	k, header, err := g.Service.Add(ctx, who.By(), servicekey.New{Name: in.Name, Role: rest.Or(in.Role, ""),
		Networks: networks, Actions: in.Actions, Callback: rest.Or(in.Callback, "")})
	return rest.Data[newServiceKey]{Data: newServiceKey{show(k), header}}, err
}

type changeRequest struct {
	Name     string    `json:"name" maxLength:"64" example:"wallet"`
	Actions  *[]string `json:"actions" maxItems:"64" doc:"codes of challenges that the client may start"`
	Callback *string   `json:"callback" maxLength:"512" doc:"https URL, or empty" example:"https://shop.example/in"`
}

func (g Group) change(ctx context.Context, who rest.Caller, in changeRequest) (out rest.Data[serviceKey], err error) {
	k, err := g.Service.Change(ctx, who.By(), in.Name, servicekey.Edit{Actions: in.Actions, Callback: in.Callback})
	return rest.Data[serviceKey]{Data: show(k)}, err
}

type nameRequest struct {
	Name string `json:"name" maxLength:"64" example:"wallet"`
}

func (g Group) rotate(ctx context.Context, who rest.Caller, in nameRequest) (out rest.Data[newServiceKey], err error) {
	k, header, err := g.Service.Rotate(ctx, who.By(), in.Name)
	return rest.Data[newServiceKey]{Data: newServiceKey{show(k), header}}, err
}

// removedServiceKey names the deleted key.
type removedServiceKey struct {
	Name string `json:"name" example:"wallet"`
}

func (g Group) remove(
	ctx context.Context, who rest.Caller, in nameRequest,
) (out rest.Data[removedServiceKey], err error) {
	return rest.Data[removedServiceKey]{Data: removedServiceKey(in)}, g.Service.Remove(ctx, who.By(), in.Name)
}
