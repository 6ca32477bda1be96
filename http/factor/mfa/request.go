package mfa

import (
	"encoding/json"
	"slices"

	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

type methodFilter struct {
	MethodCode *string `json:"methodCode"`
}

type addMethodRequest struct {
	MethodCode string `json:"methodCode" example:"SMS" doc.pattern:"^[A-Z][A-Z0-9_]{1,63}$"`

	// ExpireMs is the validity of a code. 0: until the challenge ends (D-2FA-03, D-MFA-13).
	ExpireMs int64 `json:"expireMs" doc:"0: none; >= 10000; SMS, MAIL <= 600000" doc.minimum:"0" doc.maximum:"86400000"`

	// RenewStartMs counts from the creation.
	RenewStartMs int64 `json:"renewStartMs" doc:"ms; 0: never; at most expireMs" doc.minimum:"0" doc.maximum:"86400000"`
}

type changeMethodRequest struct {
	MethodCode string `json:"methodCode" example:"SMS" doc.pattern:"^[A-Z][A-Z0-9_]{1,63}$"`

	// ExpireMs is the validity of a code. 0: until the challenge ends (D-2FA-03, D-MFA-13).
	ExpireMs *int64 `json:"expireMs" doc:"0: none; >= 10000; SMS, MAIL <= 600000" doc.minimum:"0" doc.maximum:"86400000"`

	// RenewStartMs counts from the creation.
	RenewStartMs *int64 `json:"renewStartMs" doc:"ms; 0: never; at most expireMs" doc.minimum:"0" doc.maximum:"86400000"`
}

type actionFilter struct {
	ActionCode *string `json:"actionCode"`
}

type addActionRequest struct {
	ActionCode       string    `json:"actionCode" example:"LOGIN" doc.pattern:"^[A-Z][A-Z0-9_]{1,63}$"`
	Title            rest.JSON `json:"title" schema:"LocalizedText" doc:"texts by language, at least one"`
	InfoTableHeaders rest.JSON `json:"infoTableHeaders" schema:"InfoTableHeaders"`
}

func (in addActionRequest) action() (mfa.Action, error) {
	a := mfa.Action{Code: in.ActionCode}
	var ps []fault.Problem
	ps = read(ps, "title", in.Title, &a.Title)
	ps = read(ps, "infoTableHeaders", in.InfoTableHeaders, &a.Headers)
	return a, join(ps, a.Check())
}

type changeActionRequest struct {
	ActionCode       string     `json:"actionCode" example:"LOGIN" doc.pattern:"^[A-Z][A-Z0-9_]{1,63}$"`
	Title            *rest.JSON `json:"title" schema:"LocalizedText" doc:"texts by language, at least one"`
	InfoTableHeaders *rest.JSON `json:"infoTableHeaders" schema:"InfoTableHeaders"`
}

func (in changeActionRequest) change() (mfa.ActionChange, error) {
	c := mfa.ActionChange{Code: in.ActionCode}
	var ps []fault.Problem
	if in.Title != nil {
		c.Title = &mfa.Text{}
		ps = read(ps, "title", *in.Title, c.Title)
	}
	if in.InfoTableHeaders != nil {
		c.Headers = &mfa.Headers{}
		ps = read(ps, "infoTableHeaders", *in.InfoTableHeaders, c.Headers)
	}
	return c, join(ps, c.Check())
}

type addCommonRequest struct {
	ActionCode string    `json:"actionCode" example:"LOGIN" doc.pattern:"^[A-Z][A-Z0-9_]{1,63}$"`
	Name       string    `json:"name" doc.maxLength:"200" example:"Login by SMS"`
	ExpireAt   rest.Time `json:"expireAt" doc:"epoch ms; 0: never"`
	Required   int       `json:"required" doc:"number of methods to complete" doc.minimum:"1"`
	// Preferred is documented as required, but missing in the interface's own example.
	Preferred *int      `json:"preffered" alias:"preferred" doc:"no effect; defaults to required" doc.minimum:"0"`
	Methods   rest.JSON `json:"methods" schema:"MethodChoices"`
	// NumberMatching is an extension.
	NumberMatching *bool `json:"numberMatching" doc:"extension: a push is approved with matchNumber; default false"`
	// Intent is an extension.
	Intent *string `json:"intent" enum:"optional,required" doc:"extension: must a push sign the intent; default optional"`
	// Remember and RememberAnyway are extensions.
	Remember       *int  `json:"remember" example:"30" doc:"extension: days a browser is remembered" doc.maximum:"365"`
	RememberAnyway *bool `json:"rememberAnyway" doc:"extension: remember also where it moves money; default false"`
	// PhishingResistant and PasskeyAlone are extensions.
	PhishingResistant *bool `json:"phishingResistant" doc:"extension: a passkey must approve; default false"`
	PasskeyAlone      *bool `json:"passkeyAlone" doc:"extension: LOGIN by a passkey needs no other method; default false"`
	// Force is an extension.
	Force *bool `json:"force" doc:"extension: save the policy even if the caller cannot log in any more"`
}

func (in addCommonRequest) policy() (mfa.Policy, error) {
	p := mfa.Policy{ActionCode: in.ActionCode, Name: in.Name, ExpireAt: in.ExpireAt.UnixMilli(), Required: in.Required,
		Preferred: in.Preferred, NumberMatching: rest.Or(in.NumberMatching, false),
		SignIntent:   rest.Or(in.Intent, "") == intent.Required,
		RememberDays: rest.Or(in.Remember, 0), RememberAnyway: rest.Or(in.RememberAnyway, false),
		PhishingResistant: rest.Or(in.PhishingResistant, false), PasskeyAlone: rest.Or(in.PasskeyAlone, false)}
	ps := read(nil, "methods", in.Methods, (*mfa.Choices)(&p.Methods))
	return p, join(ps, p.CheckForm())
}

type changeCommonRequest struct {
	ID        rest.ID    `json:"id"`
	Name      *string    `json:"name" doc.maxLength:"200" example:"Login by SMS"`
	ExpireAt  *rest.Time `json:"expireAt" doc:"epoch ms; 0: never"`
	Required  *int       `json:"required" doc:"number of methods to complete" doc.minimum:"1"`
	Preferred *int       `json:"preffered" alias:"preferred" doc:"no effect" doc.minimum:"0"`
	Methods   *rest.JSON `json:"methods" schema:"MethodChoices"`
	// NumberMatching is an extension.
	NumberMatching *bool `json:"numberMatching" doc:"extension: a push is approved with matchNumber"`
	// Intent is an extension.
	Intent *string `json:"intent" enum:"optional,required" doc:"extension: must the proof of a push sign the intent"`
	// Remember and RememberAnyway are extensions.
	Remember       *int  `json:"remember" example:"30" doc:"extension: days a browser is remembered" doc.maximum:"365"`
	RememberAnyway *bool `json:"rememberAnyway" doc:"extension: remember also where it moves money"`
	// PhishingResistant and PasskeyAlone are extensions.
	PhishingResistant *bool `json:"phishingResistant" doc:"extension: a passkey must approve"`
	PasskeyAlone      *bool `json:"passkeyAlone" doc:"extension: LOGIN by a passkey needs no other method"`
	// Force is an extension.
	Force *bool `json:"force" doc:"extension: save the policy even if the caller cannot log in any more"`
}

type removeCommonRequest struct {
	ID    rest.ID `json:"id"`
	Force *bool   `json:"force" doc:"delete the policy even if the caller cannot log in any more"`
}

func (in changeCommonRequest) change() (mfa.PolicyChange, error) {
	c := mfa.PolicyChange{ID: int64(in.ID), Name: in.Name, Required: in.Required, Preferred: in.Preferred,
		NumberMatching: in.NumberMatching, RememberDays: in.Remember, RememberAnyway: in.RememberAnyway,
		PhishingResistant: in.PhishingResistant, PasskeyAlone: in.PasskeyAlone}
	if in.Intent != nil {
		c.SignIntent = new(*in.Intent == intent.Required)
	}
	if in.ExpireAt != nil {
		c.ExpireAt = new(in.ExpireAt.UnixMilli())
	}
	var ps []fault.Problem
	if in.Methods != nil {
		c.Methods = &[]mfa.Choice{}
		ps = read(ps, "methods", *in.Methods, (*mfa.Choices)(c.Methods))
	}
	return c, join(ps, c.Check())
}

// read decodes a field, which the kit has checked to be strict JSON, into its record.
func read(ps []fault.Problem, field string, from rest.JSON, to json.Unmarshaler) []fault.Problem {
	if err := to.UnmarshalJSON(from); err != nil {
		return append(ps, fault.Problem{Field: field, Message: err.Error()})
	}
	return ps
}

// join combines the unreadable fields with those that the rules refuse, so that an answer
// names every invalid field once.
func join(unread []fault.Problem, refusal error) error {
	if len(unread) == 0 {
		return refusal
	}
	ps := unread
	if f, ok := refusal.(*fault.Error); ok {
		for _, p := range f.Fields {
			if !slices.ContainsFunc(unread, func(u fault.Problem) bool { return u.Field == p.Field }) {
				ps = append(ps, p)
			}
		}
	}
	return fault.All(ps)
}
