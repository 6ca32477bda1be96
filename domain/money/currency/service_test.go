package currency_test

import (
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// Enabled sections are added, active and linked; the others are found by their codes. A rejected set-up adds nothing.
func TestSetup(t *testing.T) {
	db := persistencetest.SQLite(t)
	store := money.NewCurrencies(db)
	s := &currency.Service{Store: store, Changes: admin.Changes{Commit: db, Now: time.Now}}
	by, ctx := audit.By{UserID: "admin"}, t.Context()
	link := func(c, n string) currency.Section[currency.Link] {
		return currency.Section[currency.Link]{Enabled: true, Record: currency.Link{CurrencyCode: c, NetworkCode: n,
			Pair: currency.Pair{FormatPrecision: "8"}}}
	}
	both := currency.Setup{
		Currency: currency.Section[currency.Currency]{Enabled: true, Record: currency.Currency{Code: "NEW", Name: "New",
			Image: "https://cdn.example/new.png"}},
		Network: currency.Section[currency.Network]{Enabled: true, Record: currency.Network{Code: "NET", Name: "Net"}},
		Pair:    link("NEW", "NET")}
	all, err := s.Setup(ctx, by, both)
	storetest.Must(t, err)
	if !all.Currency.Done || !all.Network.Done || !all.Pair.Done || all.Currency.ID == 0 || all.Network.ID == 0 {
		t.Errorf("%+v", all)
	}
	catalog, err := currency.Load(ctx, store)
	storetest.Must(t, err)
	code, network := "NEW", "NET"
	got, known := catalog.Info(&code, &network)
	if !known || got.Currency.ID != all.Currency.ID || got.Network.ID != all.Network.ID || got.ID != all.Pair.ID ||
		!got.Active || !got.Currency.Active || !got.Network.Active || got.Currency.Name != "New" {
		t.Errorf("%+v %v", got, known)
	}

	other := currency.Setup{Currency: currency.Section[currency.Currency]{Record: currency.Currency{Code: "NEW"}},
		Network: currency.Section[currency.Network]{Enabled: true, Record: currency.Network{Code: "NET2", Name: "Net 2"}},
		Pair:    link("NEW", "NET2")}
	second, err := s.Setup(ctx, by, other)
	storetest.Must(t, err)
	if second.Currency.Done || second.Currency.ID != all.Currency.ID || !second.Network.Done || !second.Pair.Done {
		t.Errorf("%+v", second)
	}

	_, err = s.Setup(ctx, by, both)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	refused := both
	refused.Currency.Record.Code, refused.Network.Record.Code = "THIRD", "NET"
	_, err = s.Setup(ctx, by, refused)
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	catalog, err = currency.Load(ctx, store)
	storetest.Must(t, err)
	third := "THIRD"
	if _, known := catalog.Info(&third, nil); known {
		t.Error("a refused set-up added its currency")
	}
}
