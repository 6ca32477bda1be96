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
	"castellan/domain/kit/fault"
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
	d.Money = persistencetest.NewMoney(t, now)
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
	b, err := d.Insert(d.t.Context(), by, blockage.Request{UserID: userID, CurrencyCode: code, TypeID: 3, SourceID: 4,
		Amount: amount.Must(sum), Description: "d", DescriptionJSON: json.RawMessage(`{"a":1}`)})
	storetest.Must(d.t, err)
	return b
}

// has checks "posted locked available".
func (d *desk) has(userID, pair, want string) {
	d.t.Helper()
	if got := d.Has(userID, pair); got != want {
		d.t.Errorf("%s has %s of %s, want %s", userID, got, pair, want)
	}
}

func (d *desk) update(id int64, to blockage.Status, comment *string) blockage.Blockage {
	d.t.Helper()
	b, err := d.Update(d.t.Context(), by, id, to, comment)
	storetest.Must(d.t, err)
	return b
}

// acts returns the audit rows of blockages.
func (d *desk) acts() (acts []string) {
	for _, act := range persistencetest.Acts(d.t, d.DB) {
		if strings.HasPrefix(act, "BLOCKAGE") {
			acts = append(acts, act)
		}
	}
	return acts
}

// An amount is locked, even beyond the balance, and released again.
func TestInsertUpdateDelete(t *testing.T) {
	d := newDesk(t)
	first := d.insert("jane", "btc", "4")
	d.has("jane", "BTC/BTC", "10 4 6")
	second := d.insert("jane", "BTC", "8")
	d.has("jane", "BTC/BTC", "10 12 0")
	want := blockage.Blockage{ID: first.ID, UserID: "jane", CurrencyID: d.Pair("BTC/BTC").CurrencyID, TypeID: 3,
		SourceID: 4, Amount: amount.Must("4"), Status: blockage.Active,
		Description: "d", DescriptionJSON: json.RawMessage(`{"a":1}`),
		Holds: 1, CreatedAt: first.CreatedAt, Version: 1, CurrencyCode: "BTC", FullName: "Jane Doe"}
	got, err := d.Service.Store.Get(t.Context(), first.ID)
	storetest.Must(t, err)
	storetest.Same(t, got, want)

	if b := d.update(first.ID, blockage.Active, nil); b.UpdatedAt != (time.Time{}) {
		t.Errorf("the same status: %+v", b)
	}
	b := d.update(first.ID, blockage.Active, new("why"))
	if b.Comment != "why" || b.UpdatedAt.IsZero() {
		t.Errorf("a comment: %+v", b)
	}
	d.has("jane", "BTC/BTC", "10 12 0")
	d.update(first.ID, blockage.Active, new("why")) // the same again, which changes nothing
	d.update(first.ID, blockage.Released, nil)
	d.has("jane", "BTC/BTC", "10 8 2")
	b = d.update(first.ID, blockage.Active, new("again"))
	if d.has("jane", "BTC/BTC", "10 12 0"); b.Holds != 2 || b.Comment != "again" || b.Status != blockage.Active {
		t.Errorf("active again: %+v", b)
	}
	for _, id := range []int64{first.ID, second.ID} {
		b, err := d.Delete(t.Context(), by, id)
		if err != nil || b.Status != blockage.Released || b.DeletedAt.IsZero() {
			t.Errorf("%+v, %v", b, err)
		}
		_, err = d.Delete(t.Context(), by, id)
		storetest.Wants(t, err, fault.RecordNotFound)
		_, err = d.Update(t.Context(), by, id, blockage.Active, nil)
		storetest.Wants(t, err, fault.RecordNotFound)
	}
	d.has("jane", "BTC/BTC", "10 0 10")
	row := func(action string, id int64, detail string) string {
		return fmt.Sprint(action, "|boss|jane|", id, "|", detail)
	}
	storetest.Same(t, d.acts(), []string{row("BLOCKAGE_ADD", first.ID, "4 BTC, type 3"),
		row("BLOCKAGE_ADD", second.ID, "8 BTC, type 3"),
		row("BLOCKAGE_UPDATE", first.ID, "4 BTC, type 3, active -> active, comment changed"),
		row("BLOCKAGE_UPDATE", first.ID, "4 BTC, type 3, active -> released"),
		row("BLOCKAGE_UPDATE", first.ID, "4 BTC, type 3, released -> active, comment changed"),
		row("BLOCKAGE_DELETE", first.ID, "4 BTC, type 3, active"),
		row("BLOCKAGE_DELETE", second.ID, "8 BTC, type 3, active")})
}

// Deleting a released blockage ends no hold twice.
func TestDeleteReleased(t *testing.T) {
	d := newDesk(t)
	b := d.insert("jane", "BTC", "4")
	d.update(b.ID, blockage.Released, nil)
	_, err := d.Delete(t.Context(), by, b.ID)
	storetest.Must(t, err)
	d.has("jane", "BTC/BTC", "10 0 10")
}

// A currency on several networks is locked first where it is available; the excess is locked on the account with the
// most decimals.
func TestNetworks(t *testing.T) {
	d := newDesk(t)
	b := d.insert("jane", "USDT", "6")
	if eth, trx := d.Has("jane", "USDT/ETH"), d.Has("jane", "USDT/TRX"); b.Holds != 2 ||
		eth+", "+trx != "5 5 0, 3 1 2" && eth+", "+trx != "5 3 2, 3 3 0" {
		t.Errorf("%s, %s, %d holds", eth, trx, b.Holds)
	}
	d.insert("jane", "USDT", "100.000001")
	eth, trx := d.Has("jane", "USDT/ETH"), d.Has("jane", "USDT/TRX")
	if !strings.HasSuffix(eth, " 0") || !strings.HasSuffix(trx, " 0") {
		t.Errorf("%s, %s", eth, trx)
	}
	storetest.Must(t, d.Pay("jane", "USDT/ETH", "50"))
	storetest.Must(t, d.Pay("jane", "USDT/TRX", "50"))
	if _, err := d.Delete(t.Context(), by, b.ID); err != nil {
		t.Error(err)
	}
}

// A user without an account of the currency gets one.
func TestNoAccount(t *testing.T) {
	d := newDesk(t)
	d.insert("mark", "BTC", "1")
	d.has("mark", "BTC/BTC", "0 1 0")
	if storetest.Must(t, d.Pay("mark", "BTC/BTC", "3")); d.Has("mark", "BTC/BTC") != "3 1 2" {
		t.Error(d.Has("mark", "BTC/BTC"))
	}
}

func TestInsertRefuses(t *testing.T) {
	d := newDesk(t)
	for name, c := range map[string]struct {
		user, currency, sum string
		code                fault.Code
	}{
		"nothing":   {"jane", "BTC", "0", fault.InvalidField},
		"negative":  {"jane", "BTC", "-1", fault.InvalidField},
		"user":      {"nobody", "BTC", "1", fault.RecordNotFound},
		"currency":  {"jane", "XXX", "1", fault.RecordNotFound},
		"too fine":  {"jane", "BTC", "0.000000001", fault.InvalidField},
		"too large": {"mark", "BTC", "0.000000000000000001", fault.InvalidField},
	} {
		r := blockage.Request{UserID: c.user, CurrencyCode: c.currency, TypeID: 1, Amount: amount.Must(c.sum)}
		if _, err := d.Insert(t.Context(), by, r); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if len(d.acts()) != 0 {
		t.Errorf("%v", d.acts())
	}
	if id, known := d.Currency("btc"); !known || id != d.Pair("BTC/BTC").CurrencyID {
		t.Errorf("%d, %t", id, known)
	}
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

// Closing an account locks all available funds, once for each currency; reopening releases only these.
func TestCloseAndReopen(t *testing.T) {
	d := newDesk(t)
	d.insert("jane", "BTC", "4")
	told := d.close()
	for pair, want := range map[string]string{"BTC/BTC": "10 10 0", "USDT/ETH": "5 5 0", "USDT/TRX": "3 3 0"} {
		d.has("jane", pair, want)
	}
	closures, err := d.Service.Store.Closures(t.Context(), "jane")
	storetest.Must(t, err)
	for _, b := range closures {
		if want := fmt.Sprintf(", %d %s %s", b.ID, b.Amount, b.CurrencyCode); !strings.Contains(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if !b.Closure || b.TypeID != 7 || b.Status != blockage.Active || b.UserID != "jane" || b.Version != 1 {
			t.Errorf("%+v", b)
		}
	}
	if len(closures) != 2 || !strings.Contains(told, " 6 BTC") || !strings.Contains(told, " 8 USDT") {
		t.Errorf("told %q of %+v", told, closures)
	}
	if told := d.close(); told != "" { // nothing is available
		t.Errorf("closed again: %s", told)
	}
	storetest.Must(t, d.Pay("jane", "BTC/BTC", "2"))
	if told := d.close(); !strings.HasSuffix(told, " 8 BTC") || strings.Count(told, ",") != 1 {
		t.Errorf("after more came in: %s", told)
	}
	d.has("jane", "BTC/BTC", "12 12 0")
	if told := d.reopen(); strings.Count(told, ",") != 2 || !strings.Contains(told, " 8 BTC") {
		t.Errorf("opened: %s", told)
	}
	for pair, want := range map[string]string{"BTC/BTC": "12 4 8", "USDT/ETH": "5 0 5", "USDT/TRX": "3 0 3"} {
		d.has("jane", pair, want)
	}
	if told := d.reopen(); told != "" {
		t.Errorf("opened again: %s", told)
	}
	all, err := d.Service.Store.Get(t.Context(), closures[0].ID)
	if err != nil || all.Status != blockage.Released || all.UpdatedAt.IsZero() {
		t.Errorf("%+v, %v", all, err)
	}
}

// A closure that an administrator activated again stays when the account is reopened.
func TestReactivatedClosureStays(t *testing.T) {
	d := newDesk(t)
	d.close()
	closures, err := d.Service.Store.Closures(t.Context(), "jane")
	storetest.Must(t, err)
	for _, b := range closures {
		d.update(b.ID, blockage.Released, nil)
		if b := d.update(b.ID, blockage.Active, nil); b.Closure {
			t.Errorf("%+v", b)
		}
	}
	if told := d.reopen(); told != "" {
		t.Errorf("opened: %s", told)
	}
	d.has("jane", "BTC/BTC", "10 10 0")
}

// If a read or write fails, the whole operation fails.
func TestFailures(t *testing.T) {
	d := newDesk(t)
	b := d.insert("jane", "BTC", "4")
	persistencetest.Fails(t, d.DB, "users balance blockage", func(ctx context.Context) error {
		_, err := d.Insert(ctx, by, blockage.Request{UserID: "jane", CurrencyCode: "BTC", TypeID: 1,
			Amount: amount.Must("1")})
		return err
	})
	for _, to := range []blockage.Status{blockage.Released, blockage.Active} {
		persistencetest.Fails(t, d.DB, "blockage hold", func(ctx context.Context) error {
			_, err := d.Update(ctx, by, b.ID, to, nil)
			return err
		})
	}
	has, err := d.Service.Ledger.Store.Owned(t.Context(), "jane")
	storetest.Must(t, err)
	persistencetest.Fails(t, d.DB, "blockage", func(ctx context.Context) error {
		_, _, err := d.Close(ctx, d.now, "jane", 7, has)
		return err
	})
	d.close()
	persistencetest.Fails(t, d.DB, "blockage hold", func(ctx context.Context) error {
		_, _, err := d.Reopen(ctx, d.now, "jane")
		return err
	})
	has[0].Asset = 999
	if _, _, err := d.Close(t.Context(), d.now, "jane", 7, has); err == nil {
		t.Error("an asset that is not in the catalogue was closed")
	}
}
