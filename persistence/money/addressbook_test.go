package money_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/addressbook"
	"castellan/domain/money/addressbook/addressbooktest"
	"castellan/domain/money/currency"
	"castellan/domain/money/currency/currencytest"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestCurrencyStore(t *testing.T) {
	persistencetest.RunBoth(t, currencytest.Run,
		func(db *persistence.DB) currency.Store { return money.NewCurrencies(db) },
		"currency_of_network", "currency_network", "currency")
}

func TestAddressBookStore(t *testing.T) {
	persistencetest.RunBoth(t, addressbooktest.Run, func(db *persistence.DB) addressbooktest.Fixture {
		currencies := money.NewCurrencies(db)
		cur, err := currencies.AddCurrency(t.Context(), currency.Currency{Code: "BTC"})
		storetest.Must(t, err)
		net, err := currencies.AddNetwork(t.Context(), currency.Network{Code: "BTC"})
		storetest.Must(t, err)
		return addressbooktest.Fixture{Store: money.NewAddressBooks(db), CurrencyID: cur, NetworkID: net}
	}, "withdrawal_address", "withdrawal_book", "currency_of_network", "currency_network", "currency")
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
