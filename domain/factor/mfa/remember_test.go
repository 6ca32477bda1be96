package mfa

import (
	"slices"
	"testing"
	"time"

	"castellan/domain/kit/fault"
)

// The option remember is refused where it moves money or changes credentials, unless rememberAnyway is set.
func TestRemember(t *testing.T) {
	c := NewCatalog([]Method{{Code: SMS}}, []Action{{Code: "EXPORT"}, {Code: "PAYOUT"}}, nil)
	c.grave = []string{"PAYOUT"}
	for _, one := range []struct {
		action string
		days   int
		anyway bool
		ok     bool
	}{
		{Login, 0, false, true}, {Login, 1, false, true}, {Login, MaxRememberDays, false, true},
		{Login, MaxRememberDays + 1, false, false}, {Login, -1, false, false}, {Login, -1, true, false},
		{"EXPORT", 30, false, true}, {DuringVideoKYC, 30, false, true},
		{"PAYOUT", 30, false, false}, {"PAYOUT", 0, false, true}, {"PAYOUT", 30, true, true},
		{Withdraw, 30, false, false}, {Withdraw, 0, false, true}, {Withdraw, 30, true, true},
		{UpdatePassword, 1, false, false}, {ApproveRequest, 1, false, false}, {DeviceAdd, 1, false, false},
		{TOTPDeactivate, 1, false, false}, {VerifyEmail, 1, false, false},
	} {
		p := Policy{ActionCode: one.action, Name: "n", Methods: []Choice{{Code: SMS}}, Required: 1,
			RememberDays: one.days, RememberAnyway: one.anyway}
		err := p.Check(c)
		f, _ := err.(*fault.Error)
		if (err == nil) != one.ok || !one.ok && (f.Code != fault.InvalidField || f.Field != "remember") {
			t.Errorf("%+v: %v", one, err)
		}
	}
}

// A plan has the days of its policy, and a change checks the whole policy.
func TestRememberInPlansAndChanges(t *testing.T) {
	p := Policy{ID: 1, ActionCode: Withdraw, Name: "n", EntityType: General, Type: Common,
		Methods: []Choice{{Code: SMS}}, Required: 1, RememberDays: 7, RememberAnyway: true}
	c := NewCatalog([]Method{{Code: SMS}}, nil, []Policy{p})
	at := time.UnixMilli(1_750_000_000_000)
	if got := c.Plan(at, Withdraw, "u", ""); got.RememberDays != 7 || c.PlanOf(p).RememberDays != 7 {
		t.Errorf("%+v", got)
	}
	if got := c.Plan(at, Login, "u", ""); got.RememberDays != 0 {
		t.Errorf("the built-in default remembers: %+v", got)
	}
	for _, change := range []PolicyChange{{RememberAnyway: new(false)}, {RememberDays: new(400)}} {
		if _, err := change.Apply(p, c); fault.CodeOf(err) != fault.InvalidField {
			t.Errorf("%+v: %v", change, err)
		}
	}
	next, err := PolicyChange{RememberDays: new(0), RememberAnyway: new(false)}.Apply(p, c)
	if err != nil || next.RememberDays != 0 || next.RememberAnyway || next.Equal(p) {
		t.Errorf("%+v, %v", next, err)
	}
	if slices.Contains(grave, Login) {
		t.Error("LOGIN is refused")
	}
}
