package kyc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/domain/people/kyc"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// raisesTo sets the parameter KYC_LEVEL.
func (d *desk) raisesTo(object parameter.Reached) {
	d.t.Helper()
	store := kit.NewParameters(d.db)
	storetest.Must(d.t, d.db.InTx(d.t.Context(), func(ctx context.Context) error {
		if err := parameter.Seed(ctx, store); err != nil {
			return err
		}
		return parameter.KYCLevel.Change(ctx, store, func(parameter.Reached) (parameter.Reached, error) {
			return object, nil
		})
	}))
	live := parameter.NewCache(store)
	storetest.Must(d.t, live.Reload(d.t.Context()))
	d.Values = live.Set
}

// The second of the two approvals raises the level, in either order; a level is never lowered and a special one is
// kept.
func TestLevelAfterBothApprovals(t *testing.T) {
	to := func(id int64) parameter.Reached { return parameter.Reached{LevelID: &id} }
	for name, c := range map[string]struct {
		to               parameter.Reached
		has, want        int
		identity, street string
	}{
		"raised":               {to(1), 0, 1, user.ManuelApproved, user.ManuelApproved},
		"by OCR or NFC":        {to(2), 1, 2, user.OCROrNFCApproved, user.ManuelApproved},
		"no parameter":         {parameter.Reached{}, 0, 0, user.ManuelApproved, user.ManuelApproved},
		"never lowered":        {to(1), 2, 2, user.ManuelApproved, user.ManuelApproved},
		"of that level":        {to(1), 1, 1, user.ManuelApproved, user.ManuelApproved},
		"no such level":        {to(7), 0, 0, user.ManuelApproved, user.ManuelApproved},
		"to a special level":   {to(10), 0, 0, user.ManuelApproved, user.ManuelApproved},
		"of a special level":   {to(12), 10, 10, user.ManuelApproved, user.ManuelApproved},
		"identity rejected":    {to(1), 0, 0, user.Rejected, user.ManuelApproved},
		"address rejected":     {to(1), 0, 0, user.ManuelApproved, user.Rejected},
		"address not decided":  {to(1), 0, 0, user.ManuelApproved, user.WaitingApproval},
		"identity not decided": {to(1), 0, 0, "", user.ManuelApproved},
	} {
		for _, identityFirst := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				d := newDesk(t)
				d.raisesTo(c.to)
				storetest.Must(t, d.Levels.Add(t.Context(), level.Level{ID: 12, Label: "Twelve"}))
				storetest.Must(t, d.db.Commit(t.Context(), user.SetLevel{UserID: "u1", Level: c.has}))
				paper := d.document("f", "u1", 1, "png")
				decide := func() {
					if c.identity == "" {
						return
					}
					v := kyc.Verdict{UserID: "u1", KYCConfirm: c.identity, DocumentIDs: []string{paper}, DocumentID: paper}
					if c.identity == user.Rejected {
						v.Reason = new("blurred")
					}
					storetest.Must(t, d.Decide(t.Context(), by, v))
				}
				confirm := func() { storetest.Must(t, d.Confirm(t.Context(), by, "u1", c.street, "")) }
				steps := []func(){decide, confirm}
				if !identityFirst {
					slices.Reverse(steps)
				}
				steps[0]()
				if got := d.user("u1").Level; got != c.has {
					t.Errorf("level %d after the first decision", got)
				}
				steps[1]()
				if got := d.user("u1").Level; got != c.want {
					t.Errorf("level %d, want %d", got, c.want)
				}
				acts := strings.Join(persistencetest.Acts(t, d.db), "\n")
				if got := strings.Count(acts, "USER_LEVEL|boss|u1|u1|"); got == 1 != (c.has != c.want) {
					t.Errorf("audited\n%s", acts)
				}
			})
		}
	}
}

// broken is a store that fails to list levels.
type broken struct{ level.Store }

func (broken) List(context.Context, level.Query) ([]level.Level, error) {
	return nil, errors.New("broken")
}

// The level is part of the decision's unit: if it cannot be set, nothing is decided.
func TestDecisionFailsWithItsLevel(t *testing.T) {
	d := newDesk(t)
	d.raisesTo(parameter.Reached{LevelID: new(int64(1))})
	paper := d.document("f", "u1", 1, "png")
	storetest.Must(t, d.Decide(t.Context(), by, kyc.Verdict{UserID: "u1", KYCConfirm: user.ManuelApproved,
		DocumentIDs: []string{paper}, DocumentID: paper}))
	levels := d.Levels
	d.Levels = broken{levels}
	if err := d.Confirm(t.Context(), by, "u1", user.ManuelApproved, ""); err == nil {
		t.Error("decided without the level")
	}
	if u := d.user("u1"); u.AddressConfirmed != user.WaitingApproval || u.Level != 0 {
		t.Errorf("half a decision: %+v", u)
	}
	d.Levels = levels
	storetest.Must(t, d.Confirm(t.Context(), by, "u1", user.ManuelApproved, ""))
	if u := d.user("u1"); u.AddressConfirmed != user.ManuelApproved || u.Level != 1 {
		t.Errorf("after the repetition: %+v", u)
	}
}
