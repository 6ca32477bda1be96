// Package mfa serves section 4.4 of the interface, the administration of the second factor:
// nine endpoints for methods, actions and policies. An extension explains which policy
// applies. It reads and writes the wire shapes of section 2.2 of the interface and leaves
// every rule to domain/factor/mfa.
//
// Start reading at Endpoints, then request.go for the fields of a body.
package mfa

import (
	"context"

	"castellan/domain/factor/intent"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/http/rest"
)

const section = "4.4 MFA administration"

const PolicyPath = "/admin/system/mfa/policies/common"

// Group serves the section. Lists show the stored records, not this node's snapshot, so that
// administrators see writes of other nodes at once.
type Group struct {
	Admin *mfa.Admin
	// Service reports whether a service key or a route of gateways starts an action.
	Service func(code string) bool
}

func (g Group) Endpoints() []rest.Endpoint {
	const (
		methods  = "/admin/system/mfa/methods"
		actions  = "/admin/system/mfa/actions"
		policies = "/admin/system/mfa/policies"
		common   = PolicyPath
	)
	return rest.Section(section,
		rest.Get(methods, "List MFA methods", rest.Tenant, g.methods, fault.InvalidField).
			Try("methodCode=SMS").
			Doc("listMfaMethods", "An unknown methodCode gives an empty list."),
		rest.Post(methods, "Create an MFA method", rest.Tenant, g.addMethod, fault.InvalidField, fault.RecordAlreadyExist).
			Try(`{"methodCode":"VOICE","expireMs":180000,"renewStartMs":60000}`).
			Doc("addMfaMethod",
				"A method defines how long its codes are valid and when they can be renewed."),
		rest.Patch(methods, "Update an MFA method", rest.Tenant, g.changeMethod, fault.InvalidField, fault.RecordNotFound).
			Try(`{"methodCode":"VOICE","expireMs":120000}`).
			Doc("updateMfaMethod",
				"Fields that are not sent stay unchanged. Open challenges keep the old values."),
		rest.Get(actions, "List MFA actions", rest.Tenant, g.actions, fault.InvalidField).
			Try("actionCode=LOGIN").
			Doc("listMfaActions", "An unknown actionCode gives an empty list. `service` marks the actions that a service key "+
				"or a route of gateways starts."),
		rest.Post(actions, "Create an MFA action", rest.Tenant, g.addAction, fault.InvalidField, fault.RecordAlreadyExist).
			Body(rest.LargeBody).
			Try(`{"actionCode":"EXPORT","title":{"en":"Export","tr":"Dışa aktarma"},"infoTableHeaders":{}}`).
			Doc("addMfaAction",
				"An action is an operation that a challenge guards. Its texts are shown to the account owner who approves it."),
		rest.Patch(actions, "Update the texts of an MFA action", rest.Tenant, g.changeAction, fault.InvalidField,
			fault.RecordNotFound).
			Body(rest.LargeBody).
			Try(`{"actionCode":"EXPORT","title":{"en":"Export of data"}}`).
			Doc("updateMfaAction", "Fields that are not sent stay unchanged."),
		rest.Get(policies, "List MFA policies", rest.Tenant, g.policies, fault.InvalidField).
			Doc("listMfaPolicies",
				"A policy defines which methods guard an action: for all users, for one user or for one address."),
		rest.Post(common, "Create the COMMON policy of an action", rest.Tenant, g.addCommon, fault.InvalidField,
			fault.RecordAlreadyExist).
			Try(`{"actionCode":"EXPORT","name":"SMS or mail","expireAt":0,"required":1,"methods":[["SMS","MAIL"]]}`).
			Doc("addMfaPolicy",
				"The policy applies to all accounts without a more specific policy. An action has at most one COMMON policy."),
		rest.Patch(common, "Update a COMMON policy", rest.Tenant, g.changeCommon, fault.InvalidField,
			fault.RecordNotFound).
			Try(`{"id":${listMfaPolicies.0.id},"name":"Login by SMS"}`).
			NamesNoUser("a COMMON policy holds for every account").
			Doc("updateMfaPolicy",
				"Fields that are not sent stay unchanged. Open challenges keep the policy with which they were started."),
	).For(rest.Admin).MarkSensitive()
}

type method struct {
	MethodCode   string `json:"methodCode"`
	ExpireMs     int64  `json:"expireMs" doc:"validity in ms; 0: until the challenge ends"`
	RenewStartMs int64  `json:"renewStartMs" doc:"ms after creation before a renewal is possible; 0: never"`
}

func (g Group) methods(ctx context.Context, _ rest.Caller, in methodFilter) ([]method, error) {
	codes, err := filter("methodCode", in.MethodCode)
	if err != nil {
		return nil, err
	}
	all, err := g.Admin.Store.Methods(ctx, codes...)
	return rest.Each(all, func(m mfa.Method) method { return method{m.Code, m.ExpireMs, m.RenewStartMs} }), err
}

type mfaMethodCode struct {
	MethodCode string `json:"methodCode"`
}

func (g Group) addMethod(ctx context.Context, who rest.Caller, in addMethodRequest) (mfaMethodCode, error) {
	m := mfa.Method{Code: in.MethodCode, ExpireMs: in.ExpireMs, RenewStartMs: in.RenewStartMs}
	return mfaMethodCode{m.Code}, g.Admin.AddMethod(ctx, who.By(), m)
}

func (g Group) changeMethod(ctx context.Context, who rest.Caller, in changeMethodRequest) (rest.None, error) {
	c := mfa.MethodChange{Code: in.MethodCode, ExpireMs: in.ExpireMs, RenewStartMs: in.RenewStartMs}
	return rest.None{}, g.Admin.ChangeMethod(ctx, who.By(), c)
}

type action struct {
	ActionCode       string      `json:"actionCode"`
	Title            mfa.Text    `json:"title" schema:"LocalizedText"`
	InfoTableHeaders mfa.Headers `json:"infoTableHeaders" schema:"InfoTableHeaders"`
	Service          bool        `json:"service,omitempty" doc:"true: a service key or a gateway starts it"`
}

func (g Group) actions(ctx context.Context, _ rest.Caller, in actionFilter) ([]action, error) {
	codes, err := filter("actionCode", in.ActionCode)
	if err != nil {
		return nil, err
	}
	all, err := g.Admin.Store.Actions(ctx, codes...)
	return rest.Each(all, func(a mfa.Action) action {
		return action{a.Code, a.Title, a.Headers, g.Service(a.Code)}
	}), err
}

type mfaActionCode struct {
	ActionCode string `json:"actionCode"`
}

func (g Group) addAction(ctx context.Context, who rest.Caller, in addActionRequest) (mfaActionCode, error) {
	a, err := in.action()
	if err != nil {
		return mfaActionCode{}, err
	}
	return mfaActionCode{a.Code}, g.Admin.AddAction(ctx, who.By(), a)
}

func (g Group) changeAction(ctx context.Context, who rest.Caller, in changeActionRequest) (rest.None, error) {
	c, err := in.change()
	if err != nil {
		return rest.None{}, err
	}
	return rest.None{}, g.Admin.ChangeAction(ctx, who.By(), c)
}

type policy struct {
	ID         int64           `json:"id"`
	ActionCode string          `json:"actionCode"`
	Name       string          `json:"name" example:"Login by SMS"`
	EntityType string          `json:"entityType" enum:"GENERAL,USER_ID,IP"`
	ExpireAt   int64           `json:"expireAt" doc:"epoch ms; 0: never"`
	Type       string          `json:"type"`
	Detail     mfaPolicyDetail `json:"detail"`
	// Intent is an extension, present if the option is not the default.
	Intent string `json:"intent,omitempty" enum:"required" doc:"extension: the proof of a push must sign the intent"`
	// Remember and RememberAnyway are extensions, present if they are set.
	Remember       int  `json:"remember,omitempty" example:"30" doc:"extension: days that a browser is remembered"`
	RememberAnyway bool `json:"rememberAnyway,omitempty" doc:"extension: remember also where it moves money"`
	// PhishingResistant and PasskeyAlone are extensions, present if they are on.
	PhishingResistant bool `json:"phishingResistant,omitempty" doc:"extension: a passkey must approve"`
	PasskeyAlone      bool `json:"passkeyAlone,omitempty" doc:"extension: a login by a passkey needs no further method"`
}

// mfaPolicyDetail of a COMMON policy. The interface spells the last one "preffered" and has it only in
// requests; it is listed so that clients can read it back.
type mfaPolicyDetail struct {
	Methods   [][]string `json:"methods" schema:"MethodChoices"`
	Required  int        `json:"required" doc:"number of methods to complete"`
	Preferred int        `json:"preffered" doc:"no effect"`
	// NumberMatching is an extension, present if it is on.
	NumberMatching bool `json:"numberMatching,omitempty" doc:"extension: approve a push with the starter's number"`
}

func (g Group) policies(ctx context.Context, _ rest.Caller, _ rest.None) ([]policy, error) {
	all, err := g.Admin.Store.Policies(ctx)
	return rest.Each(all, showPolicy), err
}

func showPolicy(p mfa.Policy) policy {
	d := mfaPolicyDetail{Methods: rest.Each(p.Methods, mfa.Choice.Tuple), Required: p.Required,
		Preferred: p.Preference(), NumberMatching: p.NumberMatching}
	shown := policy{ID: p.ID, ActionCode: p.ActionCode, Name: p.Name, EntityType: string(p.EntityType),
		ExpireAt: p.ExpireAt, Type: p.Type, Detail: d, PhishingResistant: p.PhishingResistant,
		PasskeyAlone: p.PasskeyAlone, Remember: p.RememberDays, RememberAnyway: p.RememberAnyway}
	if p.SignIntent {
		shown.Intent = intent.Required
	}
	return shown
}

type mfaPolicyID struct {
	ID int64 `json:"id"`
}

func (g Group) addCommon(ctx context.Context, who rest.Caller, in addCommonRequest) (mfaPolicyID, error) {
	p, err := in.policy()
	if err != nil {
		return mfaPolicyID{}, err
	}
	id, err := forced(g.Admin, in.Force).AddCommon(ctx, who.By(), p)
	return mfaPolicyID{id}, err
}

func (g Group) changeCommon(ctx context.Context, who rest.Caller, in changeCommonRequest) (rest.None, error) {
	c, err := in.change()
	if err != nil {
		return rest.None{}, err
	}
	return rest.None{}, forced(g.Admin, in.Force).ChangeCommon(ctx, who.By(), c)
}

func forced(a *mfa.Admin, force *bool) *mfa.Admin {
	if rest.Or(force, false) {
		return a.Forced()
	}
	return a
}

// filter is the optional code of a list: an unknown code matches nothing (D-MFA-10).
// INVALID_FIELD for a value that cannot be a code.
func filter(field string, code *string) ([]string, error) {
	if code == nil {
		return nil, nil
	}
	return []string{*code}, mfa.CheckCode(field, *code)
}
