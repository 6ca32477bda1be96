package currency_test

import (
	"context"
	"errors"
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

var errDown = errors.New("the database is down")

// failing is a store of which one method fails.
type failing struct {
	currency.Store
	method string
}

func (f *failing) err(method string, err error) error {
	if f.method == method {
		return errDown
	}
	return err
}

func (f *failing) Currencies(ctx context.Context, q currency.Query) ([]currency.Currency, error) {
	all, err := f.Store.Currencies(ctx, q)
	return all, f.err("Currencies", err)
}

func (f *failing) Networks(ctx context.Context, q currency.Query) ([]currency.Network, error) {
	all, err := f.Store.Networks(ctx, q)
	return all, f.err("Networks", err)
}

func (f *failing) Pairs(ctx context.Context) ([]currency.Pair, error) {
	all, err := f.Store.Pairs(ctx)
	return all, f.err("Pairs", err)
}

func (f *failing) AddCurrency(ctx context.Context, c currency.Currency) (int64, error) {
	id, err := f.Store.AddCurrency(ctx, c)
	return id, f.err("AddCurrency", err)
}

func (f *failing) AddNetwork(ctx context.Context, n currency.Network) (int64, error) {
	id, err := f.Store.AddNetwork(ctx, n)
	return id, f.err("AddNetwork", err)
}

func (f *failing) AddPair(ctx context.Context, p currency.Pair) (int64, error) {
	id, err := f.Store.AddPair(ctx, p)
	return id, f.err("AddPair", err)
}

func (f *failing) ChangeCurrency(ctx context.Context, id int64,
	change func(currency.Currency) (currency.Currency, error)) error {
	return f.err("ChangeCurrency", f.Store.ChangeCurrency(ctx, id, change))
}

func (f *failing) ChangeNetwork(ctx context.Context, id int64,
	change func(currency.Network) (currency.Network, error)) error {
	return f.err("ChangeNetwork", f.Store.ChangeNetwork(ctx, id, change))
}

func (f *failing) ChangePair(ctx context.Context, id int64, change func(currency.Pair) (currency.Pair, error)) error {
	return f.err("ChangePair", f.Store.ChangePair(ctx, id, change))
}

// assets is the service with the currency NEW on the network NET, and their ids.
type assets struct {
	currency.Service
	store *failing
	made  currency.Result
}

func newAssets(t *testing.T) *assets {
	t.Helper()
	db := persistencetest.SQLite(t)
	a := &assets{store: &failing{Store: money.NewCurrencies(db)}}
	a.Service = currency.Service{Store: a.store, Changes: admin.Changes{Commit: db, Now: time.Now}}
	var err error
	a.made, err = a.Setup(t.Context(), by, a.setup())
	storetest.Must(t, err)
	return a
}

var by = audit.By{UserID: "admin"}

// setup has all sections enabled, for the records with their ids.
func (a *assets) setup() currency.Setup {
	return currency.Setup{
		Currency: currency.Section[currency.Currency]{Enabled: true, Record: currency.Currency{ID: a.made.Currency.ID,
			Code: "NEW", Name: "New", Image: "https://cdn.example/new.png"}},
		Network: currency.Section[currency.Network]{Enabled: true, Record: currency.Network{ID: a.made.Network.ID,
			Code: "NET", Name: "Net"}},
		Pair: currency.Section[currency.Link]{Enabled: true, Record: currency.Link{CurrencyCode: "NEW",
			NetworkCode: "NET", Pair: currency.Pair{ID: a.made.Pair.ID, FormatPrecision: "0.00"}}}}
}

// info is the pair NEW on NET.
func (a *assets) info(t *testing.T) currency.Listed {
	t.Helper()
	catalog, err := currency.Load(t.Context(), a.store.Store)
	storetest.Must(t, err)
	code, network := "NEW", "NET"
	got, known := catalog.Info(&code, &network)
	if !known {
		t.Fatal("the pair is missing")
	}
	return got
}

// An update changes the enabled records alone, and none becomes active or inactive.
func TestUpdate(t *testing.T) {
	a := newAssets(t)
	before := a.info(t)
	storetest.Must(t, a.Activate(t.Context(), by, before.Currency.ID, true, before.ID, false))
	in := a.setup()
	in.Currency.Record.Name, in.Network.Record.Name = "Newer", "Nets"
	in.Pair.Record.FormatPrecision = "0.000"
	got, err := a.Update(t.Context(), by, in)
	storetest.Must(t, err)
	if p := a.info(t); p.Currency.Name != "Newer" || !p.Currency.Active || p.Network.Name != "Nets" || !p.Network.Active ||
		p.FormatPrecision != "0.000" || p.Active || got != a.made {
		t.Errorf("%+v, %+v", p, got)
	}
	for _, disable := range []func(*currency.Setup){
		func(s *currency.Setup) { s.Currency.Enabled = false },
		func(s *currency.Setup) { s.Network.Enabled = false },
		func(s *currency.Setup) { s.Pair.Enabled = false },
	} {
		in := a.setup()
		in.Currency.Record.Name, in.Network.Record.Name, in.Pair.Record.FormatPrecision = "Newer", "Nets", "0.0000"
		if disable(&in); !in.Currency.Enabled {
			in.Currency.Record.Name = "ignored"
		} else if !in.Network.Enabled {
			in.Network.Record.Name = "ignored"
		} else {
			in.Pair.Record.FormatPrecision = "0.00000000"
		}
		_, err := a.Update(t.Context(), by, in)
		storetest.Must(t, err)
		if p := a.info(t); p.Currency.Name != "Newer" || p.Network.Name != "Nets" || p.FormatPrecision != "0.0000" {
			t.Errorf("%+v", p)
		}
	}
}

// A pair keeps its currency and its network, and never has fewer decimals.
func TestUpdateKeepsThePair(t *testing.T) {
	a := newAssets(t)
	for field, change := range map[string]func(*currency.Link){
		"currencyOfNetwork.currencyCode":    func(l *currency.Link) { l.CurrencyCode = "BTC" },
		"currencyOfNetwork.networkCode":     func(l *currency.Link) { l.NetworkCode = "BTC" },
		"currencyOfNetwork.formatPrecision": func(l *currency.Link) { l.FormatPrecision = "0.0" },
	} {
		in := a.setup()
		in.Currency.Record.Name = "must not be stored"
		change(&in.Pair.Record)
		_, err := a.Update(t.Context(), by, in)
		storetest.WantsFields(t, err, field)
	}
	if p := a.info(t); p.Currency.Name != "New" || p.FormatPrecision != "0.00" {
		t.Errorf("%+v", p)
	}
}

// Activate switches a currency and one of its pairs, both or none.
func TestActivate(t *testing.T) {
	a := newAssets(t)
	other := a.setup()
	other.Currency.Record.Code, other.Network.Enabled = "OTHER", false
	other.Pair.Record.CurrencyCode = "OTHER"
	of, err := a.Setup(t.Context(), by, other)
	storetest.Must(t, err)
	id, pair := a.made.Currency.ID, a.made.Pair.ID
	storetest.Must(t, a.Activate(t.Context(), by, id, false, pair, true))
	if p := a.info(t); p.Currency.Active || !p.Active {
		t.Errorf("%+v", p)
	}
	storetest.Wants(t, a.Activate(t.Context(), by, id, true, of.Pair.ID, false), fault.RecordNotFound)
	storetest.Wants(t, a.Activate(t.Context(), by, 999, true, pair, false), fault.RecordNotFound)
	storetest.Wants(t, a.Activate(t.Context(), by, id, true, 999, false), fault.RecordNotFound)
	if p := a.info(t); p.Currency.Active || !p.Active {
		t.Errorf("changed by a refused call: %+v", p)
	}
}

// The first currencies are active, with their networks and pairs.
func TestSeed(t *testing.T) {
	db := persistencetest.SQLite(t)
	store := &failing{Store: money.NewCurrencies(db)}
	seed := func() error {
		persistencetest.Empty(t, db, "currency_of_network", "currency_network", "currency")
		return db.InTx(t.Context(), func(ctx context.Context) error { return currency.Seed(ctx, store) })
	}
	storetest.Must(t, seed())
	catalog, err := currency.Load(t.Context(), store)
	storetest.Must(t, err)
	pairs := catalog.Pairs(nil)
	if len(pairs) == 0 {
		t.Fatal("no pairs")
	}
	for _, p := range pairs {
		if !p.Active || !p.Deposit || !p.Withdraw || !p.DepositAddress || !p.Currency.Active || !p.Currency.Deposit ||
			!p.Currency.Withdraw || !p.Network.Active || p.Currency.Name == "" || p.Network.Name == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, method := range []string{"AddCurrency", "AddNetwork", "AddPair"} {
		store.method = method
		if err := seed(); !errors.Is(err, errDown) {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// An error of the store is returned by every change that needs the record.
func TestStoreFails(t *testing.T) {
	a := newAssets(t)
	next := func(enabled bool) currency.Setup {
		in := a.setup()
		in.Currency.Record.Code, in.Network.Record.Code = "NEXT", "NEXT"
		in.Pair.Record.CurrencyCode, in.Pair.Record.NetworkCode = "NEXT", "NEXT"
		in.Currency.Enabled, in.Network.Enabled, in.Pair.Enabled = enabled, enabled, enabled
		return in
	}
	for _, c := range []struct {
		name    string
		methods []string
		do      func() error
	}{
		{"Setup", []string{"AddCurrency", "AddNetwork", "AddPair", "Currencies", "Networks"}, func() error {
			_, err := a.Setup(t.Context(), by, next(true))
			return err
		}},
		{"Setup without sections", []string{"Currencies", "Networks", "Pairs"}, func() error {
			_, err := a.Setup(t.Context(), by, next(false))
			return err
		}},
		{"Update", []string{"ChangeCurrency", "ChangeNetwork", "ChangePair", "Currencies", "Networks"}, func() error {
			_, err := a.Update(t.Context(), by, a.setup())
			return err
		}},
		{"Activate", []string{"ChangeCurrency", "ChangePair"}, func() error {
			return a.Activate(t.Context(), by, a.made.Currency.ID, false, a.made.Pair.ID, false)
		}},
	} {
		for _, method := range c.methods {
			a.store.method = method
			if err := c.do(); !errors.Is(err, errDown) {
				t.Errorf("%s without %s: %v", c.name, method, err)
			}
		}
	}
	a.store.method = ""
	if p := a.info(t); !p.Currency.Active || !p.Active {
		t.Errorf("changed by a failed call: %+v", p)
	}
	in := next(true)
	in.Currency.Enabled, in.Network.Enabled = false, false
	_, err := a.Setup(t.Context(), by, in)
	storetest.WantsFields(t, err, "currencyOfNetwork.currencyCode currencyOfNetwork.networkCode")
	in.Pair.Enabled = false
	if got, err := a.Setup(t.Context(), by, in); err != nil || got != (currency.Result{}) {
		t.Errorf("nothing to set up: %+v, %v", got, err)
	}
	in = a.setup()
	in.Currency.Enabled, in.Network.Enabled, in.Pair.Enabled = false, false, false
	want := a.made
	want.Currency.Done, want.Network.Done, want.Pair.Done = false, false, false
	if got, err := a.Setup(t.Context(), by, in); err != nil || got != want {
		t.Errorf("existing records: %+v, %v, want %+v", got, err, want)
	}
}

// The catalog is not loaded where a part of it cannot be read.
func TestLoadFails(t *testing.T) {
	a := newAssets(t)
	for _, method := range []string{"Pairs", "Networks", "Currencies"} {
		a.store.method = method
		if c, err := currency.Load(t.Context(), a.store); c != nil || !errors.Is(err, errDown) {
			t.Errorf("without %s: %v, %v", method, c, err)
		}
	}
	a.store.method = ""
	if c, err := currency.Load(t.Context(), a.store); c == nil || err != nil {
		t.Errorf("%v, %v", c, err)
	}
}
