package ledger_test

import (
	"errors"
	"testing"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/money/ledger"
)

// A transfer or a hold without a positive amount of the unit of its asset, or on the wrong accounts, is refused.
func TestRefusedMovements(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	house, other := ledger.Account{Kind: ledger.Treasury, Asset: 7}, ledger.Account{Kind: ledger.Treasury, Asset: 8}
	ada, eve := ledger.Account{Kind: ledger.User, Owner: "ada", Asset: 7},
		ledger.Account{Kind: ledger.User, Owner: "eve", Asset: 7}
	unit := int64(amount.Unit(2))
	b := &ledger.Batch{By: audit.Operator, Units: map[int64]int64{7: unit, 8: unit}}
	move := func(from, to ledger.Account, a string) ledger.Movement {
		return ledger.Movement{Transfers: []ledger.Transfer{ledger.New(now, "test", a, from, to, amount.Must(a))}}
	}
	hold := func(of ledger.Account, a string, beyond bool) ledger.Movement {
		h := ledger.NewHold(now, "test", a, "order", of, amount.Must(a))
		h.Beyond = beyond
		return ledger.Movement{Take: []ledger.Hold{h}}
	}
	anyError := errors.New("any error")
	for _, c := range []struct {
		name string
		m    ledger.Movement
		want error
	}{
		{"nothing", move(house, ada, "0"), ledger.ErrAmount},
		{"less than nothing", move(house, ada, "-1"), ledger.ErrAmount},
		{"a part of a unit", move(house, ada, "1.001"), ledger.ErrPrecision},
		{"to itself", move(ada, ada, "1"), anyError},
		{"of another asset", move(other, ada, "1"), anyError},
		{"one unit", move(house, ada, "0.01"), nil},
		{"all of it", move(ada, eve, "0.01"), nil},
		{"a unit too many", move(ada, eve, "0.01"), ledger.ErrInsufficient},
		{"a hold of nothing", hold(eve, "0", false), ledger.ErrAmount},
		{"a hold of less", hold(eve, "-1", false), ledger.ErrAmount},
		{"a hold of a part", hold(eve, "0.001", false), ledger.ErrPrecision},
		{"a hold on the treasury", hold(house, "1", false), anyError},
		{"a hold of a unit too many", hold(eve, "0.02", false), ledger.ErrInsufficient},
		{"a hold of all", hold(eve, "0.01", false), nil},
		{"a hold beyond the balance", hold(eve, "3", true), nil},
	} {
		err := b.Do(c.m)
		if wrong := !errors.Is(err, c.want); wrong && c.want != anyError || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	if a, e := b.Balance(ada), b.Balance(eve); a.Posted.Sign() != 0 || e.Posted != amount.Must("0.01") ||
		e.Locked != amount.Must("3.01") {
		t.Errorf("%+v, %+v", a, e)
	}
}
