package integration

import (
	"context"

	"castellan/domain/account/user"
	"castellan/domain/kit/fault"
	"castellan/domain/people/registration"
	"castellan/http/rest"
)

// Users serves the accounts that other services create (D-INT-07).
type Users struct{ Service *registration.Service }

func (g Users) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/integration/users", "Create an account", rest.TenantOrService, g.add,
			fault.InvalidField, fault.RecordAlreadyExist, fault.InvalidState).
			Try(`{"externalId":"crm-4711","countryCode":"90","phoneNumber":"5331234567","email":"deniz@example.com",
				"name":"Deniz","surname":"Kaya","language":"tr"}`).
			Doc("addIntegrationUser", "The account is active and has no password. The user sets the first password with "+
				"resetPassword, which requires a mail address. The same externalId with the same body returns the account; "+
				"another body gives 409 INVALID_STATE. A phone number or mail address of another account gives 409 "+
				"RECORD_ALREADY_EXIST."),
		rest.Post("/integration/users/bulk", "Create accounts in the background", rest.TenantOrService, g.addAll,
			fault.InvalidField).Body(rest.LargeBody).
			Try(`{"users":[{"externalId":"crm-4712","countryCode":"90","phoneNumber":"5331234568","name":"Ege"}]}`).
			Doc("addIntegrationUsers", "The job jobId creates the accounts one by one, by the rules of addIntegrationUser. "+
				"A refused user does not affect the others: getJob returns the failures by reason, with externalIds. A "+
				"repeated request starts another job, which finds the accounts and changes nothing."),
		rest.Get("/integration/users/{id}", "Get an account", rest.TenantOrService, g.get, fault.RecordNotFound).
			Try("id=${addIntegrationUser.data.id}").
			Doc("getIntegrationUser", "externalId is null for an account that another service did not create."),
	).For(rest.Admin).Extended().NamesNoUser("the account does not exist yet")
}

// integrationUserCreation is an account to be created.
type integrationUserCreation struct {
	ExternalID  string  `json:"externalId" maxLength:"128" doc:"id that the client assigns" example:"crm-4711"`
	CountryCode string  `json:"countryCode" maxLength:"16" doc:"dialling code" example:"90"`
	PhoneNumber string  `json:"phoneNumber" maxLength:"40" doc:"number without the dialling code" example:"5321234567"`
	Email       *string `json:"email" maxLength:"320" example:"ayse@example.com"`
	Name        string  `json:"name" maxLength:"100" example:"Ayşe"`
	Surname     *string `json:"surname" maxLength:"100" example:"Yılmaz"`
	Language    *string `json:"language" enum:"tr,en,ar" doc:"language of messages; default: the installation's"`
	Type        *string `json:"type" enum:"bireysel,kurumsal" doc:"a person (default) or a company"`
}

func (n integrationUserCreation) read() registration.Newcomer {
	return registration.Newcomer{ExternalID: n.ExternalID, CountryCode: n.CountryCode, Phone: n.PhoneNumber,
		Email: rest.Or(n.Email, ""), Name: n.Name, Surname: rest.Or(n.Surname, ""), Language: rest.Or(n.Language, ""),
		Type: user.Type(rest.Or(n.Type, ""))}
}

// integrationUser is the wire shape of an account for other services.
type integrationUser struct {
	ID         string    `json:"id" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	ExternalID *string   `json:"externalId" example:"crm-4711"`
	Status     string    `json:"status" example:"active"`
	CreatedAt  rest.Time `json:"createdAt"`
}

func answer(r registration.Record, err error) (rest.Data[integrationUser], error) {
	return rest.Data[integrationUser]{Data: integrationUser{r.ID, rest.Filled(r.ExternalID), string(r.Status),
		rest.Time{Time: r.CreatedAt}}}, err
}

func (g Users) add(
	ctx context.Context, who rest.Caller, in integrationUserCreation,
) (rest.Data[integrationUser], error) {
	return answer(g.Service.Add(ctx, who.By(), in.read()))
}

type bulkRequest struct {
	Users []integrationUserCreation `json:"users" doc.maxItems:"1000" doc:"at least one, each externalId once"`
}

// integrationJob names the job of a request.
type integrationJob struct {
	JobID string `json:"jobId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
}

func (g Users) addAll(ctx context.Context, who rest.Caller, in bulkRequest) (out rest.Data[integrationJob], err error) {
	out.Data.JobID, err = g.Service.AddAll(ctx, who.By(), rest.Each(in.Users, integrationUserCreation.read))
	return out, err
}

type getRequest struct {
	ID string `json:"id"`
}

func (g Users) get(ctx context.Context, _ rest.Caller, in getRequest) (rest.Data[integrationUser], error) {
	return answer(g.Service.Get(ctx, in.ID))
}
