package money_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
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

// A change of a book commits with its audit row, or not at all. The row names
// the address and never the user's own text.
func TestAddressBookAudit(t *testing.T) {
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		currencies := money.NewCurrencies(db)
		storetest.Must(t, db.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, currencies) }))
		books := &addressbook.Service{Store: money.NewAddressBooks(db), Changes: admin.Changes{Commit: db, Now: time.Now},
			Currencies: currency.NewCache(currencies)}
		storetest.Must(t, books.Currencies.Reload(ctx))
		who := audit.By{UserID: "u1", IP: "192.0.2.9", RequestID: "r1"}
		const first, second = "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"
		var r addressbook.Record
		for _, step := range []struct {
			action, detail string
			do             func() error
		}{
			{"WITHDRAWAL_ADDRESS_ADD", "BTC on BTC: " + first, func() (err error) {
				r, err = books.Add(ctx, who, addressbook.New{CurrencyCode: "BTC", NetworkCode: "BTC", Address: first,
					Name: "own words"})
				return err
			}},
			{"WITHDRAWAL_ADDRESS_UPDATE", first + " -> " + second + ", name changed", func() error {
				_, err := books.Change(ctx, who, addressbook.Change{ID: r.ID, Address: new(second),
					Name: new("other words")})
				return err
			}},
			{"WITHDRAWAL_ADDRESS_REMOVE", second, func() error { return books.Remove(ctx, who, r.ID) }},
		} {
			// Without its audit row there is no change.
			books.Changes.Commit = persistencetest.Unaudited(db)
			if err := step.do(); !errors.Is(err, persistencetest.ErrNoAudit) {
				t.Errorf("%s: %v", step.action, err)
			}
			books.Changes.Commit = db
			storetest.Must(t, step.do())
			rows := persistencetest.Did(t, db, step.action)
			if len(rows) != 1 {
				t.Fatalf("%s: %d rows", step.action, len(rows))
			}
			a := rows[0]
			if a.ActorID != "u1" || a.UserID != "u1" || a.IP != "192.0.2.9" || a.RequestID != "r1" ||
				a.Target != strconv.FormatInt(r.ID, 10) || a.Detail != step.detail || a.Outcome != "success" {
				t.Errorf("%s: audit %+v", step.action, a)
			}
		}
		if book, err := books.List(ctx, who); err != nil || len(book) != 0 {
			t.Errorf("%+v, %v", book, err)
		}
	})
}
