package mfa

import (
	"context"
	"net/netip"

	"castellan/domain/factor/challenge"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/proof/stepup"
	"castellan/http/rest"
	"castellan/http/wire"
)

const extension = "Extensions: multi-factor administration"

// Explain serves the extension: Start explains the decision about the start of a challenge.
type Explain struct {
	Admin *mfa.Admin // deletes policies
	Start func(ctx context.Context, action, userID, ip string) (stepup.Explanation, error)
	// Rehearse validates a policy and simulates it on recent challenges.
	Rehearse func(ctx context.Context, by audit.By, p mfa.Policy) (stepup.Rehearsal, error)
}

func (g Explain) Endpoints() []rest.Endpoint {
	return rest.Section(extension,
		rest.Post("/admin/system/mfa/explain", "Explain which policy and methods apply to an action", rest.Tenant, g.explain,
			fault.InvalidField, fault.RecordNotFound).
			Doc("explainMfa",
				"No challenge is started and no code is sent. The response follows the same rules as a real start.").
			NamesNoUser("it changes nothing"),
		rest.Post("/admin/system/mfa/rehearse", "Simulate a policy on the challenges of the last 24 hours",
			rest.Tenant, g.rehearse, fault.InvalidField).
			Try(`{"actionCode":"DURING_VIDEO_KYC","name":"Both","expireAt":0,"required":2,
				"methods":[["SMS"],["MAIL"]]}`).
			Doc("rehearseMfaPolicy",
				"Nothing is saved. The policy is validated as in addMfaPolicy and applied to every account without a more "+
					"specific policy. The challenges come from the audit log; the methods of an account are its current ones. "+
					"lost counts all active accounts, also those without a challenge."),
		rest.Delete(PolicyPath, "Delete a COMMON policy", rest.Tenant, g.remove, fault.InvalidField,
			fault.RecordNotFound).
			TryLast(`{"id":${listMfaPolicies.0.id}}`).
			NamesNoUser("a COMMON policy holds for every account").MarkSensitive().
			Doc("removeMfaPolicy", "The built-in default applies to the action again. Open challenges keep the policy."),
	).For(rest.Admin).Extended()
}

func (g Explain) remove(ctx context.Context, who rest.Caller, in removeCommonRequest) (rest.None, error) {
	return rest.None{}, forced(g.Admin, in.Force).RemoveCommon(ctx, who.By(), int64(in.ID))
}

type explainRequest struct {
	ActionCode string  `json:"actionCode"`
	UserID     *string `json:"userId" doc:"the account; without it, an account with every method is assumed"`
	IP         *string `json:"ip" doc:"the client address of the simulated request"`
}

// Validate reports both invalid fields at once.
func (in explainRequest) Validate() error {
	var ps fault.Problems
	ps.Require(mfa.CheckCode("actionCode", in.ActionCode) == nil, "actionCode", "is not the code of an action")
	ps.Require(in.UserID == nil || *in.UserID != "", "userId", "must not be blank")
	if in.IP != nil {
		_, err := netip.ParseAddr(*in.IP)
		ps.Require(err == nil, "ip", "is not an IP address")
	}
	return fault.All(ps)
}

type explanation struct {
	PolicyID   *int64      `json:"policyId" doc:"the policy that applies; null: the built-in default"`
	EntityType *string     `json:"entityType" enum:"GENERAL,USER_ID,IP" doc:"entity type of the policy"`
	Required   int         `json:"required" doc:"number of methods to complete; with fewer offered, the start fails"`
	Offered    []string    `json:"offered" doc:"methods that the challenge would list, in order"`
	Missing    []string    `json:"missing" doc:"methods that the account lacks or that cannot be delivered"`
	Candidates []candidate `json:"candidates" doc:"every policy of the action, the most specific first"`
	// The others are present if they are not 0.
	RememberDays int `json:"rememberDays,omitempty" example:"30" doc:"for how many days a browser is remembered"`
	Remembered   int `json:"remembered,omitempty" example:"2" doc:"browsers of the account that complete a method now"`
	// Stronger is present if it is not empty.
	Stronger []stronger `json:"strongerThanDeviceAdd,omitempty" doc:"policies of the action; of DEVICE_ADD, all of them"`
}

// stronger is a policy that requires more than the addition of the device that completes it.
type stronger struct {
	PolicyID   int64  `json:"policyId,omitempty" example:"7" doc:"absent for a policy that is not saved"`
	ActionCode string `json:"actionCode" example:"WITHDRAW"`
	Name       string `json:"name" example:"Passkey"`
}

func (stronger) SchemaName() string { return "StrongerPolicy" }

func listStronger(all []mfa.Policy) []stronger {
	return rest.Each(all, func(p mfa.Policy) stronger { return stronger{p.ID, p.ActionCode, p.Name} })
}

type candidate struct {
	PolicyID   int64   `json:"policyId"`
	Name       string  `json:"name" example:"Login by SMS"`
	EntityType string  `json:"entityType" enum:"GENERAL,USER_ID,IP"`
	EntityID   *string `json:"entityId" doc:"the user or the address; null for GENERAL"`
	ExpireAt   int64   `json:"expireAt" doc:"epoch ms; 0: never"`
	Verdict    string  `json:"verdict" enum:"CHOSEN,OUTRANKED,EXPIRED,OTHER_ENTITY,UNKNOWN_TYPE" doc:"the decision"`
}

func (g Explain) explain(ctx context.Context, _ rest.Caller, in explainRequest) (explanation, error) {
	x, err := g.Start(ctx, in.ActionCode, rest.Or(in.UserID, ""), rest.Or(in.IP, ""))
	if err != nil {
		return explanation{}, err
	}
	out := explanation{Required: x.Plan.Required, Offered: names(x.Offered), Missing: names(x.Missing),
		Candidates: rest.Each(x.Candidates, showCandidate), RememberDays: x.Plan.RememberDays, Remembered: x.Remembered,
		Stronger: listStronger(x.Stronger)}
	if x.Plan.PolicyID != 0 {
		entity := string(x.Plan.EntityType)
		out.PolicyID, out.EntityType = &x.Plan.PolicyID, &entity
	}
	return out, nil
}

func showCandidate(c mfa.Candidate) candidate {
	return candidate{c.Policy.ID, c.Policy.Name, string(c.Policy.EntityType), rest.Filled(c.Policy.EntityID),
		c.Policy.ExpireAt, string(c.Verdict)}
}

func names(list []challenge.Name) []string {
	return rest.Each(list, func(n challenge.Name) string { return string(n) })
}

type rehearsal struct {
	Considered int            `json:"considered" example:"312" doc:"challenges of the action in the audit log"`
	Changed    int            `json:"changed" example:"41" doc:"challenges that would have required other methods"`
	Stopped    int            `json:"stopped" example:"12" doc:"changed challenges whose account lacks the methods"`
	Users      int            `json:"users" example:"3" doc:"accounts with a changed challenge"`
	Truncated  bool           `json:"truncated" doc:"true: only the newest 1000 rows of the audit log were read"`
	Examples   []wire.Example `json:"examples" doc:"at most 5 stopped challenges, otherwise changed ones"`
	// Forgotten is present if it is not 0.
	Forgotten int `json:"forgotten,omitempty" example:"7" doc:"remembered browsers that would not count any more"`
	// Stronger is present if it is not empty.
	Stronger []stronger `json:"strongerThanDeviceAdd,omitempty" doc:"the policy; of DEVICE_ADD, every policy beyond it"`

	Accounts int  `json:"accounts" example:"3009" doc:"all active accounts"`
	Lost     int  `json:"lost" example:"12" doc:"active accounts that can complete the action now, not under the policy"`
	You      bool `json:"you" doc:"true: your account is one of those"`
}

func (g Explain) rehearse(ctx context.Context, who rest.Caller, in addCommonRequest) (out rehearsal, err error) {
	p, err := in.policy()
	if err != nil {
		return out, err
	}
	x, err := g.Rehearse(ctx, who.By(), p)
	return rehearsal{x.Considered, x.Changed, x.Stopped, x.Users, x.Truncated, wire.Examples(x.Examples), x.Forgotten,
		listStronger(x.Stronger), x.Accounts, x.Lost, x.You}, err
}
