// Package identity serves the additional information and the identity of users, a part of section 4.15 of the
// interface (D-INF-02 to D-INF-06, D-AUTH-15).
package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"castellan/domain/kit/fault"
	"castellan/domain/people/identity"
	"castellan/domain/session/session"
	"castellan/http/rest"
)

const section = "4.15 Additional info and identity"

// Group serves the endpoints.
type Group struct{ Service *identity.Service }

// example selects the first options of a new installation.
const example = `"purposeOfTransactionId":"1","sourceOfFundingId":"7","monthlyIncomeAmountId":"14",` +
	`"estimatedMonthlyDWAmountId":"19","estimatedMonthlyDWCountId":"23"`

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(section,
		rest.Post("/user/insert-additional-info", "Submit the additional information of the caller", rest.Tenant, g.inform,
			fault.InvalidField).
			IPFiltered().Body(rest.LargeBody).
			Try("{"+example+"}").
			Doc("insertAdditionalInfo", "The answers replace the previous ones; the id stays the same. An option with "+
				"isExplainMandatory requires an explanation."),
		rest.Post("/user/confirm-user-identity", "Confirm the caller's identity", rest.Tenant, g.confirm,
			fault.InvalidField, fault.Forbidden, fault.RecordLimitReached, fault.InvalidState, fault.RateLimited,
			fault.TokenRevoked, fault.Unavailable).
			IPFiltered().Gives("x-auth").Secret("token").Body(rest.LargeBody).
			Try(`{"userIdentityNumber":"10000000146","name":"Ayşe","secondName":"Nur","surname":"Yılmaz",`+
				`"birthDate":"1990-05-01","cityId":"34","additionalInfo":{`+example+`}}`).
			Doc("confirmUserIdentity", "Checks, in this order: the AML status, accounts with the same number, check digits "+
				"and, with useTCKNService, the national register. Then all data is saved. The new token has the current "+
				"claims, the key and the expiry of the old one, which stays valid too. If the register reports another "+
				"person, nothing is saved, and token and data are null. Without a configured register, useTCKNService gives "+
				"503."),
	).For(rest.SelfUser)
}

// additionalInfo are the five choices, each with its explanation.
type additionalInfo struct {
	Purpose rest.ID `json:"purposeOfTransactionId" example:"1"`
	Source  rest.ID `json:"sourceOfFundingId" example:"7"`
	Income  rest.ID `json:"monthlyIncomeAmountId" example:"14"`
	Amount  rest.ID `json:"estimatedMonthlyDWAmountId" example:"19"`
	Count   rest.ID `json:"estimatedMonthlyDWCountId" example:"23"`

	PurposeText *string `json:"explainPurposeOfTransaction" maxLength:"1000" example:"Donations"`
	SourceText  *string `json:"explainSourceOfFunding" maxLength:"1000" example:"A prize"`
	IncomeText  *string `json:"explainMonthlyIncomeAmount" maxLength:"1000" example:"Rents"`
	AmountText  *string `json:"explainEstimatedMonthlyDWAmount" maxLength:"1000" example:"Sales"`
	CountText   *string `json:"explainEstimatedMonthlyDWCount" maxLength:"1000" example:"Every day"`
}

func (in additionalInfo) info() identity.Info {
	c := func(id rest.ID, text *string) identity.Choice {
		return identity.Choice{OptionID: int64(id), Explanation: rest.Or(text, "")}
	}
	return identity.Info{Choices: [5]identity.Choice{c(in.Purpose, in.PurposeText), c(in.Source, in.SourceText),
		c(in.Income, in.IncomeText), c(in.Amount, in.AmountText), c(in.Count, in.CountText)}}
}

// additionalInfoSaved has the four keys of the interface (D-INF-05).
type additionalInfoSaved struct {
	ID      *string `json:"id" example:"1"`
	Purpose *string `json:"purposeOfTransactionId" example:"1"`
	Source  *string `json:"sourceOfFundingId" example:"7"`
	Income  *string `json:"monthlyIncomeAmountId" example:"14"`
}

func (g Group) inform(ctx context.Context, who rest.Caller, in additionalInfo) (additionalInfoSaved, error) {
	i, err := g.Service.Inform(ctx, who.By(), in.info())
	text := func(id int64) *string { return new(strconv.FormatInt(id, 10)) }
	return additionalInfoSaved{text(i.ID), text(i.Choices[0].OptionID), text(i.Choices[1].OptionID),
		text(i.Choices[2].OptionID)}, err
}

// code is a number of an external list, sent as a string or as a number and stored as sent.
type code string

func (c *code) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(c))
	}
	if len(b) == 0 || len(b) > 16 || len(bytes.Trim(b, "0123456789")) > 0 {
		return errors.New("neither a text nor a whole number")
	}
	*c = code(b)
	return nil
}

type confirmRequest struct {
	Number       code           `json:"userIdentityNumber" maxLength:"32" schema:"IdentityCode" example:"10000000146"`
	Name         string         `json:"name" maxLength:"100" example:"Ayşe"`
	Surname      string         `json:"surname" maxLength:"100" example:"Yılmaz"`
	SecondName   *string        `json:"secondName" maxLength:"100" example:"Nur"`
	BirthDate    string         `json:"birthDate" maxLength:"10" doc:"YYYY-MM-DD or DD.MM.YYYY" example:"1990-05-01"`
	CountryCode  *code          `json:"countryCode" maxLength:"16" schema:"IdentityCode" doc:"stored as sent" example:"TR"`
	CityID       *code          `json:"cityId" maxLength:"64" schema:"IdentityCode" example:"34"`
	DistrictID   *code          `json:"districtId" maxLength:"64" schema:"IdentityCode" example:"1"`
	Address      *string        `json:"address" maxLength:"500" example:"Moda Cd. 1, Kadıköy"`
	OccupationID *code          `json:"occupationId" maxLength:"64" schema:"IdentityCode" example:"7"`
	Register     *bool          `json:"useTCKNService" doc:"check the national register"`
	Info         additionalInfo `json:"additionalInfo"`
}

// confirmed is the answer; both are null if the register reports another person (D-AUTH-15).
type confirmed struct {
	Token *string  `json:"token" example:"eyJhbGciOiJFZERTQSIsImtpZCI6…"`
	Data  *account `json:"data"`
}

type account struct {
	UserID     string `json:"userId"`
	FullName   string `json:"fullName" example:"Ayşe Nur Yılmaz"`
	KYCConfirm string `json:"kycConfirm" example:"waitingApproval"`
	LevelID    int    `json:"levelId" example:"0"`
}

func (g Group) confirm(ctx context.Context, who rest.Caller, in confirmRequest) (rest.Reply[confirmed], error) {
	or := func(c *code) string { return string(rest.Or(c, "")) }
	c, err := g.Service.Confirm(ctx, who.By(), identity.Request{
		Session: session.Presented{SessionID: who.SessionID, Thumbprint: who.KeyThumbprint, ExpiresAt: who.TokenExpires},
		Person: identity.Person{Number: identity.Number(in.Number), Name: in.Name, SecondName: rest.Or(in.SecondName, ""),
			Surname: in.Surname, BirthDate: in.BirthDate, Country: or(in.CountryCode), CityID: or(in.CityID),
			DistrictID: or(in.DistrictID), Address: rest.Or(in.Address, ""), OccupationID: or(in.OccupationID)},
		Info: in.Info.info(), Register: rest.Or(in.Register, false)})
	if err != nil || c.Token == "" {
		return rest.Reply[confirmed]{}, err
	}
	return rest.Reply[confirmed]{Headers: []rest.Header{{Name: "x-auth", Value: c.Token}}, Body: confirmed{&c.Token,
		&account{c.User.ID, c.User.FullName(), c.User.KYCConfirm, c.User.Level}}}, nil
}
