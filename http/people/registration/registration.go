// Package registration serves the extension with which users sign up (D-INT-07). It is off by
// default outside development mode; its endpoints then answer as if they did not exist.
//
// Start reading at Endpoints. Every rule is in domain/people/registration.
package registration

import (
	"context"
	"encoding/json"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/office/contract"
	"castellan/domain/people/registration"
	"castellan/http/rest"
)

const section = "Extensions: registration"

// Group serves the section.
type Group struct {
	Service   *registration.SignUps
	Contracts *contract.Service
	Enabled   bool // registration.enabled
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Start2FA("POST", "/auth/register", "Sign up with codes by SMS and mail", rest.NoAuth,
			registration.ActionRegister, g.register, fault.NotFound, fault.InvalidField, fault.RateLimited,
			fault.MFANotAvailable, fault.Overloaded).
			Try(`{"countryCode":"90","phoneNumber":"5337654321","email":"ece@example.com","name":"Ece",
				"password":"tall lantern orchard","passwordVerify":"tall lantern orchard",
				"contracts":[${listRegistrationContracts.data.0.id},${listRegistrationContracts.data.1.id}]}`).
			Doc("register", "Starts a challenge with one code by SMS and one by mail. When it is complete, the account "+
				"exists. execResult.data then contains userId and sessionKey, and the header x-auth contains the token of the "+
				"first session. The response is the same whether or not the phone number or the mail address has an account; "+
				"a code is sent only to a destination without an account. 404 NOT_FOUND if registration.enabled is false."),
		rest.Get("/auth/register/contracts", "List the contracts required for sign-up", rest.NoAuth, g.contracts,
			fault.NotFound).
			Doc("listRegistrationContracts", "Returns the active contracts with their details in order, with names in "+
				"the language of the request. A sign-up sends all their ids in contracts."),
	).For(rest.Public).Extended().Disable(!g.Enabled)
}

// Public starts the challenges that the section's public endpoints prepare (auth.Starter).
func (g Group) Public() map[string]func(context.Context, challenge.Starter, []byte) (challenge.Started, error) {
	return map[string]func(context.Context, challenge.Starter, []byte) (challenge.Started, error){
		registration.ActionRegister: g.start}
}

type registerRequest struct {
	CountryCode    string    `json:"countryCode" maxLength:"16" doc:"dialling code" example:"90"`
	PhoneNumber    string    `json:"phoneNumber" maxLength:"40" doc:"without the dialling code" example:"5321234567"`
	Email          string    `json:"email" maxLength:"320" example:"ayse@example.com"`
	Name           string    `json:"name" maxLength:"100" example:"Ayşe"`
	Surname        *string   `json:"surname" maxLength:"100" example:"Yılmaz"`
	Language       *string   `json:"language" enum:"tr,en,ar" doc:"language of messages; default: the request's"`
	Password       string    `json:"password" blank:"ok" maxLength:"1024"`
	PasswordVerify string    `json:"passwordVerify" blank:"ok" maxLength:"1024" doc:"repeats password"`
	Contracts      []rest.ID `json:"contracts,omitempty" maxItems:"100" doc:"ids of the contracts that the user accepts"`
}

func (g Group) register(_ context.Context, _ rest.Caller, in registerRequest) (registration.SignUp, error) {
	return registration.SignUp{
		Newcomer: registration.Newcomer{CountryCode: in.CountryCode, Phone: in.PhoneNumber, Email: in.Email, Name: in.Name,
			Surname: rest.Or(in.Surname, ""), Language: rest.Or(in.Language, "")},
		Password: in.Password, Verify: in.PasswordVerify,
		Contracts: rest.Each(in.Contracts, func(id rest.ID) int64 { return int64(id) })}, nil
}

func (g Group) start(ctx context.Context, from challenge.Starter, command []byte) (challenge.Started, error) {
	var r registration.SignUp
	if err := json.Unmarshal(command, &r); err != nil {
		return challenge.Started{}, err
	}
	return g.Service.Start(ctx, r, from)
}

type registrationContract struct {
	ID      int64                        `json:"id"`
	Code    string                       `json:"code" example:"TERMS_OF_USE"`
	Name    string                       `json:"name" doc:"plain text" example:"Terms of use"`
	Version *string                      `json:"version" example:"2026-1"`
	Details []registrationContractDetail `json:"details"`
}

type registrationContractDetail struct {
	Title   string `json:"title" doc:"plain text" example:"Scope"`
	Content string `json:"content" doc:"sanitized HTML" example:"<p>What this is about.</p>"`
}

func (g Group) contracts(
	ctx context.Context, who rest.Caller, _ rest.None,
) (out rest.Data[[]registrationContract], err error) {
	all, err := g.Service.Required(ctx)
	if err != nil {
		return out, err
	}
	out.Data = []registrationContract{}
	for _, c := range all {
		details, err := g.Contracts.Details(ctx, c.ID)
		if err != nil {
			return out, err
		}
		out.Data = append(out.Data, registrationContract{c.ID, c.Code, c.Title(who.Language), rest.Filled(c.Version),
			rest.Each(details, func(d contract.Detail) registrationContractDetail {
				return registrationContractDetail{d.Title, d.Content}
			})})
	}
	return out, nil
}
