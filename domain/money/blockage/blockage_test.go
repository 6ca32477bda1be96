package blockage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/money/ledger"
	"castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// desk is the service with the users jane, who has money, and mark, who has none.
type desk struct {
	*blockage.Service
	*persistencetest.Money
	t   *testing.T
	now time.Time
}

var by = audit.By{UserID: "boss"}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, now: time.UnixMilli(1_700_000_000_000).UTC()}
	now := func() time.Time { d.now = d.now.Add(time.Millisecond); return d.now }
	d.Money = persistencetest.MoneyIn(t, persistencetest.SQLite(t), now)
	d.Service = &blockage.Service{Store: money.NewBlockages(d.DB), Ledger: d.Money.Ledger,
		Users: account.NewUsers(d.DB), Currencies: d.Money.Currencies, Now: now}
	d.User("jane", func(u *user.User) { u.Name, u.Surname, u.Phone = "Jane", "Doe", "+905321234567" })
	d.User("mark", func(u *user.User) { u.Phone = "+905321234568" })
	for pair, sum := range map[string]string{"BTC/BTC": "10", "USDT/ETH": "5", "USDT/TRX": "3"} {
		storetest.Must(t, d.Pay("jane", pair, sum))
	}
	return d
}

func (d *desk) insert(userID, code, sum string) blockage.Blockage {
	d.t.Helper()
	b, err := d.Insert(d.t.Context(), by, blockage.Request{UserID: userID, CurrencyCode: code, TypeID: 12, SourceID: 4,
		Amount: amount.Must(sum), Description: "d", DescriptionJSON: json.RawMessage(`{"a":1}`)})
	storetest.Must(d.t, err)
	return b
}

// has checks "posted locked available".
func (d *desk) has(userID, pair, want string) {
	d.t.Helper()
	storetest.Equal(d.t, d.Has(userID, pair), want, userID, "has", "of", pair)
}

func (d *desk) update(id int64, to blockage.Status, comment *string) blockage.Blockage {
	d.t.Helper()
	return storetest.Value(d.Update(d.t.Context(), by, id, to, comment))(d.t)
}

// move executes the plan of Close or Reopen.
func (d *desk) move(plan func(ctx context.Context, has []ledger.Balance) (ledger.Movement, string, error)) string {
	d.t.Helper()
	var told string
	var accounts []ledger.Account
	for _, pair := range []string{"BTC/BTC", "USDT/ETH", "USDT/TRX"} {
		accounts = append(accounts, d.Account("jane", pair))
	}
	_, err := d.Decide(d.t.Context(), by, accounts, func(ctx context.Context, has []ledger.Balance) (m ledger.Movement,
		err error) {
		m, told, err = plan(ctx, has)
		return m, err
	})
	storetest.Must(d.t, err)
	return told
}

func (d *desk) close() string {
	return d.move(func(ctx context.Context, has []ledger.Balance) (ledger.Movement, string, error) {
		return d.Close(ctx, d.now, "jane", 7, has)
	})
}

func (d *desk) reopen() string {
	return d.move(func(ctx context.Context, _ []ledger.Balance) (ledger.Movement, string, error) {
		return d.Reopen(ctx, d.now, "jane")
	})
}

// A closure that an administrator activated again stays when the account is reopened.
func TestReactivatedClosureStays(t *testing.T) {
	d := newDesk(t)
	d.close()
	closures := storetest.Value(d.Service.Store.Closures(t.Context(), "jane"))(t)
	for _, b := range closures {
		d.update(b.ID, blockage.Released, nil)
		if b := d.update(b.ID, blockage.Active, nil); b.Closure {
			t.Errorf("%+v", b)
		}
	}
	storetest.Equal(t, d.reopen(), "", "opened")
	d.has("jane", "BTC/BTC", "10 10 0")
}

// The audit of a blockage has its amount, its type and what changed.
func TestAuditOfBlockages(t *testing.T) {
	d := newDesk(t)
	b := d.insert("jane", "BTC", "4")
	d.update(b.ID, blockage.Active, new("why"))
	d.update(b.ID, blockage.Active, new("why")) // the same again, which changes nothing
	d.update(b.ID, blockage.Released, nil)
	_, err := d.Delete(t.Context(), by, b.ID)
	storetest.Must(t, err)
	var acts []string
	for _, act := range persistencetest.Acts(t, d.DB) {
		if strings.HasPrefix(act, "BLOCKAGE") {
			acts = append(acts, act)
		}
	}
	row := func(action, detail string) string {
		return fmt.Sprint(action, "|boss|jane|", b.ID, "|4 BTC, type 12", detail)
	}
	storetest.Same(t, acts, []string{row("BLOCKAGE_ADD", ""),
		row("BLOCKAGE_UPDATE", ", active -> active, comment changed"), row("BLOCKAGE_UPDATE", ", active -> released"),
		row("BLOCKAGE_DELETE", ", released")})
}
