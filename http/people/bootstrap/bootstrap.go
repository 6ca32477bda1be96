// Package bootstrap serves the extension with which a setup link makes the first administrator (D-EXT-20).
//
// Start reading at Endpoints. Every rule is in domain/people/bootstrap.
package bootstrap

import (
	"context"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/people/bootstrap"
	"castellan/domain/proof/device"
	"castellan/http/rest"
)

const section = "Extensions: first administrator"

// Group serves the section.
type Group struct{ Service *bootstrap.Service }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/auth/setup/begin", "Begin the account of the first administrator", rest.NoAuth, g.begin,
			fault.InvalidField, fault.NotFound, fault.RateLimited, fault.Overloaded).
			Secret("data.ticket", "data.authenticator").
			Try(`{"token":"JBSWY3DPEHPK3PXPJBSWY3DPEH","email":"admin@example.com","countryCode":"90",
				"phoneNumber":"5321234567","password":"tall lantern orchard","method":"TOTP"}`, fault.NotFound).
			Doc("beginSetup", "For the page of castellan setup-link. Checks the details of the account and returns a ticket "+
				"with a new authenticator, or with the creation options of a passkey. Nothing is stored. 404 NOT_FOUND if the "+
				"link has expired, was replaced or used, or if an administrator exists."),
		rest.Post("/auth/setup/complete", "Create the first administrator", rest.NoAuth, g.complete,
			fault.InvalidField, fault.NotFound, fault.OTPInvalid, fault.DeviceSignatureInvalid, fault.RecordAlreadyExist,
			fault.RateLimited).
			Try(`{"token":"JBSWY3DPEHPK3PXPJBSWY3DPEH","ticket":"c2VhbGVk","value":"123456"}`, fault.NotFound).
			Doc("completeSetup", "Creates the account with its second factor and uses up the link. value is a code of the "+
				"authenticator; attestation is the RegistrationResponseJSON of the passkey. After a lost answer, send the same "+
				"ticket again: it gets the same answer."),
	).For(rest.Public).Extended()
}

type beginRequest struct {
	Token       string           `json:"token" maxLength:"64" doc:"from the link" example:"JBSWY3DPEHPK3PXPJBSWY3DPEH"`
	Email       string           `json:"email" maxLength:"320" example:"admin@example.com"`
	CountryCode string           `json:"countryCode" maxLength:"16" doc:"dialling code" example:"90"`
	PhoneNumber string           `json:"phoneNumber" maxLength:"40" doc:"without the dialling code" example:"5321234567"`
	Name        *string          `json:"name" maxLength:"100" example:"Ayşe"`
	Surname     *string          `json:"surname" maxLength:"100" example:"Yılmaz"`
	Password    string           `json:"password" blank:"ok" maxLength:"1024"`
	Method      bootstrap.Method `json:"method" enum:"PASSKEY,TOTP" doc:"the second factor"`
}

// begun has the part of the method; the other one is null.
type begun struct {
	Ticket        string         `json:"ticket" doc:"for completeSetup; sealed" example:"c2VhbGVk"`
	PublicKey     *rest.JSON     `json:"publicKey" schema:"PasskeyCreation" doc:"for navigator.credentials.create"`
	Authenticator *authenticator `json:"authenticator"`
}

type authenticator struct {
	Base32        string   `json:"base32" doc:"the secret"`
	OTPAuthURL    string   `json:"otpAuthUrl" doc:"the secret as otpauth://totp/…"`
	QRDataURL     string   `json:"qrDataUrl" doc:"the URL as a QR code: a PNG as data:image/png;base64,…"`
	RecoveryCodes []string `json:"recoveryCodes" doc:"returned only once"`
}

func (authenticator) SchemaName() string { return "SetupAuthenticator" }

func (g Group) begin(ctx context.Context, who rest.Caller, in beginRequest) (out rest.Data[begun], err error) {
	b, err := g.Service.Begin(ctx, by(who), in.Token, bootstrap.Details{CountryCode: in.CountryCode,
		Phone: in.PhoneNumber, Email: in.Email, Name: rest.Or(in.Name, ""), Surname: rest.Or(in.Surname, ""),
		Password: in.Password, Method: in.Method})
	out.Data = begun{Ticket: b.Ticket}
	if b.PublicKey != nil {
		out.Data.PublicKey = (*rest.JSON)(&b.PublicKey)
	}
	if a := b.Authenticator; a != nil {
		out.Data.Authenticator = &authenticator{a.Base32, a.URL, a.QRDataURL, a.Codes}
	}
	return out, err
}

// by names the actor of the audit: the link, whose holder has no account yet.
func by(who rest.Caller) audit.By {
	b := who.By()
	b.UserID = "setup-link"
	return b
}

type completeRequest struct {
	Token       string     `json:"token" maxLength:"64" doc:"from the link" example:"JBSWY3DPEHPK3PXPJBSWY3DPEH"`
	Ticket      string     `json:"ticket" maxLength:"8192" doc:"from beginSetup" example:"c2VhbGVk"`
	Value       *string    `json:"value" maxLength:"16" doc:"for TOTP: the current code" example:"123456"`
	Attestation *rest.JSON `json:"attestation" schema:"PasskeyAttestation" doc:"for PASSKEY"`
	Brand       *string    `json:"brand" maxLength:"128" doc:"of the browser" example:"Chromium"`
	Model       *string    `json:"model" maxLength:"128" doc:"of the machine" example:"Linux"`
}

type completed struct {
	UserID string `json:"userId"`
}

func (g Group) complete(
	ctx context.Context, who rest.Caller, in completeRequest,
) (out rest.Data[completed], err error) {
	out.Data.UserID, err = g.Service.Complete(ctx, by(who), bootstrap.Proof{Token: in.Token, Ticket: in.Ticket,
		Code: rest.Or(in.Value, ""), Attestation: rest.Or(in.Attestation, nil),
		About: device.Registration{Brand: rest.Or(in.Brand, ""), Model: rest.Or(in.Model, ""), Platform: "passkey"}})
	return out, err
}
