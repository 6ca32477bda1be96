package demo

import (
	"context"

	"castellan/domain/factor/mfa"
	"castellan/domain/gate/gateway"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/persistence/factor"
	"castellan/persistence/gate"
)

// payout is the action of the demo shop.
const payout = "SHOP_PAYOUT"

// shop puts the withdrawals of the demo shop (examples/shop) behind the guard: an action, its policy and its route. Its
// owner approves a withdrawal in the authenticator, or with a code.
func (r *run) shop(ctx context.Context) {
	r.Clock.set(r.start)
	by, store := audit.By{UserID: r.team[0].ID}, factor.NewMFA(r.DB)
	m := mfa.Admin{Store: store, Changes: r.changes(change.MFA, nil)}
	check(m.AddAction(ctx, by, mfa.Action{Code: payout, Title: mfa.Text{"en": "Withdrawal from the shop",
		"tr": "Mağazadan çekim", "ar": "سحب من المتجر"}}))
	value(m.AddCommon(ctx, by, mfa.Policy{ActionCode: payout, Name: "demo shop", Required: 1, NumberMatching: true,
		SignIntent: true, Methods: []mfa.Choice{{Code: "PUSH"}, {Code: "SMS"}, {Code: "MAIL"}}}))
	routes := gateway.Admin{Store: gate.NewGateways(r.DB), Changes: r.changes(change.Gateways, nil),
		BuiltIn: mfa.BuiltIn,
		Action:  mfa.ServiceActions(store, mfa.BuiltIn)}
	value(routes.Add(ctx, by, gateway.Route{Method: "POST", Path: "/withdrawals", Mode: gateway.Guarded,
		ActionCode: payout, Status: gateway.Active, Rows: []gateway.Row{
			{Key: "amount", Label: "Amount (EUR)", From: gateway.FromQuery, Name: "amount"},
			{Key: "iban", Label: "IBAN", From: gateway.FromQuery, Name: "iban"}}}))
}
