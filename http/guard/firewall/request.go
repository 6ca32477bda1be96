package firewall

import (
	"castellan/domain/guard/firewall"
	"castellan/http/rest"
)

type filter struct {
	AppID  *string `json:"appId" doc:"returns only rules of this application; default: all"`
	Status *string `json:"status" enum:"ACTIVE,INACTIVE"`
}

// The fields of both writes. A list that is sent replaces the list of the rule.
type addRequest struct {
	// AppID is documented as required but has a default (D-WAF-01).
	AppID *string `json:"appId" doc:"application; default API" example:"API" doc.minLength:"1" doc.maxLength:"64"`

	Label string `json:"label" doc:"unique across all applications" example:"login-ip" doc.maxLength:"200"`
	Type  string `json:"type" enum:"rate_limit,whitelist,blacklist,whitelist_force"`

	// Period is a rolling window in ms. It and Limit are required for rate_limit.
	Period *int64 `json:"period" doc:"in ms; for rate_limit" doc.minimum:"1" doc.maximum:"2678400000" example:"60000"`
	Limit  *int64 `json:"limit" doc:"allowed requests in period" doc.minimum:"1" doc.maximum:"1000000000" example:"10"`

	ExpireAt           rest.Time `json:"expireAt" doc:"epoch ms; 0: never"`
	TargetEntityType   string    `json:"targetEntityType" enum:"USER_ID,IP,COUNTRY_CODE,APP_ID"`
	TargetEntities     *[]string `json:"targetEntities" doc:"user ids; addresses, networks; or country codes"`
	TargetResources    *[]string `json:"targetResources" doc:"'<METHOD> <path>'" example:"[\"POST /auth/login\"]"`
	TargetAllEntities  *bool     `json:"targetAllEntities" doc:"default: true without targetEntities, otherwise false"`
	TargetAllResources *bool     `json:"targetAllResources" doc:"default false"`
	Status             *string   `json:"status" enum:"ACTIVE,INACTIVE" doc:"default INACTIVE"`
	// The rest are extensions.
	DryRun *bool `json:"dryRun" doc:"extension: the rule counts and reports without refusing"`
	Force  *bool `json:"force" doc:"extension: save the rule even if it blocks the caller"`
}

func (in addRequest) rule() firewall.Rule {
	r := firewall.Rule{AppID: firewall.DefaultApp, Label: in.Label, Type: firewall.Type(in.Type), PeriodMs: in.Period,
		Limit: in.Limit, ExpireAt: in.ExpireAt.UnixMilli(),
		EntityType: firewall.EntityType(in.TargetEntityType), Status: firewall.Inactive,
		AllResources: rest.Or(in.TargetAllResources, false), DryRun: rest.Or(in.DryRun, false)}
	rest.Set(&r.AppID, in.AppID)
	rest.Set(&r.Entities, in.TargetEntities)
	rest.Set(&r.Resources, in.TargetResources)
	rest.Set(&r.Status, (*firewall.Status)(in.Status))
	// A literal default would turn a block of one address into a block of all clients (D-WAF-02).
	r.AllEntities = rest.Or(in.TargetAllEntities, len(r.Entities) == 0)
	return r
}

type changeRequest struct {
	Label string `json:"label" doc:"label of the rule" example:"login-ip"`

	Period rest.Nullable[int64] `json:"period" doc:"rolling window in ms" doc.minimum:"1" doc.maximum:"2678400000"`
	Limit  rest.Nullable[int64] `json:"limit" doc:"allowed requests in period" doc.minimum:"1" doc.maximum:"1000000000"`

	ExpireAt           *rest.Time `json:"expireAt" doc:"epoch ms; 0: never"`
	TargetEntities     *[]string  `json:"targetEntities" doc:"replaces the stored list"`
	TargetResources    *[]string  `json:"targetResources" doc:"replaces the stored list"`
	TargetAllEntities  *bool      `json:"targetAllEntities"`
	TargetAllResources *bool      `json:"targetAllResources"`
	Status             *string    `json:"status" enum:"ACTIVE,INACTIVE"`
	// The rest are extensions.
	DryRun *bool `json:"dryRun" doc:"extension: the rule counts and reports without refusing"`
	Force  *bool `json:"force" doc:"extension: save the rule even if it blocks the caller"`
}

func (in changeRequest) change() firewall.Change {
	c := firewall.Change{Label: in.Label, Period: number(in.Period), Limit: number(in.Limit),
		Entities: in.TargetEntities, Resources: in.TargetResources, AllEntities: in.TargetAllEntities,
		AllResources: in.TargetAllResources, Status: (*firewall.Status)(in.Status), DryRun: in.DryRun}
	if in.ExpireAt != nil {
		c.ExpireAt = new(in.ExpireAt.UnixMilli())
	}
	return c
}

func number(n rest.Nullable[int64]) firewall.Number {
	return firewall.Number{Sent: n.Sent, Value: n.Pointer()}
}
