package demo

import (
	"fmt"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/money/blockage"
	"castellan/domain/money/ledger"
)

// block blocks a part of the money of some users: for some permanently, for others temporarily or by mistake. For an
// account that is not active, everything is blocked, as closing it does.
func (u *purse) block(at time.Time) {
	a, state := u.part(25), u.place%6
	closure := u.Status != user.Active
	if closure {
		a = u.b.Balance(u.user).Available()
	}
	if a.Sign() == 0 || state > 2 && !closure {
		return
	}
	b := blockage.Blockage{ID: at.UnixMilli()<<11 | int64(u.place), UserID: u.ID, CurrencyID: u.a.currencyID,
		TypeID: int64(1 + u.place%3), SourceID: int64(1 + u.place%2), Amount: a, Status: blockage.Active,
		Description: "mahkeme kararı", Closure: closure, Holds: 1, CreatedAt: at, Version: 1}
	if closure {
		b.TypeID, b.Description = 1, "hesap kapatıldı"
	}
	h := ledger.Hold{ID: u.id(at), Account: u.user, Source: "blockage", Ref: fmt.Sprint(b.ID, "/1"), Type: "blockage",
		Amount: a, State: ledger.Active, Version: 1, Beyond: true}
	u.move(ledger.Movement{Take: []ledger.Hold{h}})
	var end []ledger.End
	if state > 0 && !closure {
		end = []ledger.End{{Hold: h.ID}}
		b.Status, b.UpdatedAt, b.Comment = blockage.Released, at.Add(48*time.Hour), "karar kaldırıldı"
		if state == 2 {
			b.UpdatedAt, b.DeletedAt = time.Time{}, at.Add(time.Hour)
		}
	}
	u.move(ledger.Movement{End: end, With: []commit.Write{blockage.Add{Blockage: b}}})
}
