package money_test

import (
	"context"
	"testing"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/currency"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestAddressBookStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) addressBookFixture {
		currencies := money.NewCurrencies(db)
		cur := storetest.Value(currencies.AddCurrency(t.Context(), currency.Currency{Code: "BTC"}))(t)
		net := storetest.Value(currencies.AddNetwork(t.Context(), currency.Network{Code: "BTC"}))(t)
		return addressBookFixture{Store: money.NewAddressBooks(db), CurrencyID: cur, NetworkID: net, Commit: db, t: t}
	},
		storetest.Cases[addressBookFixture]{"UniquePerUser": addressBookUniquePerUser},
		"withdrawal_address", "withdrawal_book", "currency_of_network", "currency_network", "currency")
}

// addressBookFixture is an empty store with an existing currency and network.
type addressBookFixture struct {
	Store                 addressbook.Store
	CurrencyID, NetworkID int64
	Commit                commit.Committer
	t                     *testing.T
}

func (f addressBookFixture) entry(name, address string) addressbook.Entry {
	return persistencetest.Whole(f.t, func(e *addressbook.Entry) {
		e.Name, e.Address, e.CurrencyID, e.NetworkID = name, address, f.CurrencyID, f.NetworkID
	})
}

// in runs one write in a transaction.
func (f addressBookFixture) in(t *testing.T, do func(ctx context.Context) error) error {
	t.Helper()
	return f.Commit.InTx(t.Context(), do)
}

func (f addressBookFixture) insert(t *testing.T, userID string, e addressbook.Entry) (id int64, err error) {
	t.Helper()
	err = f.in(t, func(ctx context.Context) error { id, err = f.Store.Insert(ctx, userID, e); return err })
	return id, err
}

// The database keeps names and addresses unique by itself.
func addressBookUniquePerUser(t *testing.T, f addressBookFixture, _ commit.Committer) {
	first := storetest.Value(f.insert(t, "u1", f.entry("a", "0xABCDEFabcdef")))(t)
	second, err := f.insert(t, "u1", f.entry("A", "0XABCDEFabcdef")) // differs by case only
	storetest.Must(t, err)
	for _, e := range []addressbook.Entry{f.entry("a", "other"), f.entry("other", "0xABCDEFabcdef"),
		f.entry("other", "0xabcdefabcdef")} {
		_, err := f.insert(t, "u1", e)
		storetest.Wants(t, err, fault.RecordAlreadyExist)
		e.ID = second
		storetest.Wants(t, f.in(t, func(ctx context.Context) error { return f.Store.Replace(ctx, "u1", e) }),
			fault.RecordAlreadyExist)
	}
	_, err = f.insert(t, "u2", f.entry("a", "0xABCDEFabcdef"))
	storetest.Must(t, err)
	e := f.entry("a", "0xabcdefABCDEF")
	e.ID = first
	storetest.Must(t, f.in(t, func(ctx context.Context) error { return f.Store.Replace(ctx, "u1", e) }))
}
