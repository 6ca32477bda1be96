package currency_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

// source is a store that is only read.
type source struct {
	currency.Store
	currencies []currency.Currency
	pairs      []currency.Pair
	reads      int
	err        error
}

func (s *source) Currencies(context.Context, currency.Query) ([]currency.Currency, error) {
	s.reads++
	return s.currencies, s.err
}
func (s *source) Networks(context.Context, currency.Query) ([]currency.Network, error) {
	return []currency.Network{{ID: 1, Code: "N", Active: true}}, nil
}
func (s *source) Pairs(context.Context) ([]currency.Pair, error) { return s.pairs, nil }

// The snapshot is read on loading and when a record is missing, and never otherwise; a failed reload leaves it
// unchanged.
func TestLive(t *testing.T) {
	s := &source{currencies: []currency.Currency{{ID: 1, Code: "AAA", Active: true}}}
	l := currency.NewCache(s)
	if _, _, ok := l.Catalog().FindByIDs(1, 1); ok {
		t.Error("knows something before it was loaded")
	}
	storetest.Must(t, l.Reload(t.Context()))
	for range 3 {
		if c, n, err := l.FindByIDs(1, 1); err != nil || c.Code != "AAA" || n.Code != "N" {
			t.Errorf("%+v %+v %v", c, n, err)
		}
	}
	storetest.Equal(t, s.reads, 1)
	s.currencies = append(s.currencies, currency.Currency{ID: 2, Code: "BBB"})
	if c, _, err := l.FindByIDs(2, 1); err != nil || c.Code != "BBB" || s.reads != 2 {
		t.Errorf("%+v %v after %d reads", c, err, s.reads)
	}
	storetest.Wants(t, storetest.Err(l.Pair(7)), fault.RecordNotFound, "an unknown pair")
	if _, _, err := l.FindByIDs(3, 1); err == nil || fault.CodeOf(err) != fault.Internal {
		t.Errorf("an unknown currency: %v", err)
	}
	s.err, s.currencies = errors.New("away"), nil
	storetest.Is(t, l.Reload(t.Context()), s.err)
	if _, _, err := l.FindByIDs(9, 9); !errors.Is(err, s.err) {
		t.Errorf("got %v", err)
	}
	if _, _, ok := l.Catalog().FindByIDs(2, 1); !ok {
		t.Error("a failed reload emptied the snapshot")
	}
}

// An asset that the catalogue has lost is shown under its number, and its decimals are unknown. If the catalogue cannot
// be read, nothing is shown.
func TestLostAsset(t *testing.T) {
	s := &source{currencies: []currency.Currency{{ID: 1, Code: "AAA", Active: true}},
		pairs: []currency.Pair{{ID: 7, CurrencyID: 1, NetworkID: 1, FormatPrecision: "6"}}}
	l := currency.NewCache(s)
	storetest.Must(t, l.Reload(t.Context()))
	for id, code := range map[int64]string{7: "AAA", 8: "8"} {
		if got, err := l.Asset(id); err != nil || got.ID != id || got.Currency.Code != code {
			t.Errorf("%d: %+v, %v", id, got, err)
		}
	}
	storetest.Equal(t, storetest.Value(l.Catalog().Decimals(7))(t), 6)
	if n, err := l.Catalog().Decimals(8); fault.CodeOf(err) != fault.RecordNotFound || n != 0 {
		t.Errorf("%d decimals, %v", n, err)
	}
	s.err = errors.New("away")
	if got, err := l.Asset(8); !errors.Is(err, s.err) {
		t.Errorf("%+v, %v", got, err)
	}
}

// D-CUR-11: a number is the number of decimals; for a pattern the digits after its point count.
func TestDecimals(t *testing.T) {
	for format, want := range map[string]int{"0": 0, "8": 8, "18": 18, "08": 8, "0.00": 2, "#,##0.000": 3, "#.##": 0,
		"1.0.5": 2, "none": 0, "-5": 0, "+5": 0} {
		storetest.Equal(t, (currency.Pair{FormatPrecision: format}).Decimals(), want, format)
	}
}

// A deposit needs the treasury beyond the limit of its pair, or beyond 10¹⁵ units.
func TestOverMax(t *testing.T) {
	for text, want := range map[string][2]bool{"10": {false, false}, "10.000000000000000001": {true, false},
		"1000000000000000": {true, false}, "1000000000000000.000000000000000001": {true, true}} {
		a := amount.Must(text)
		storetest.Equal(t, [2]bool{currency.Pair{MaxDeposit: new(amount.Must("10"))}.OverMax(a),
			currency.Pair{}.OverMax(a)}, want, text)
	}
}

// D-CUR-01: the lowest id of the matches, in any case; without filters the first active one.
func TestInfo(t *testing.T) {
	c := currency.NewCatalog(
		[]currency.Currency{{ID: 1, Code: "OFF"}, {ID: 2, Code: "USDT", Active: true}, {ID: 3, Code: "BTC", Active: true}},
		[]currency.Network{{ID: 1, Code: "ETH"}, {ID: 2, Code: "TRX"}},
		[]currency.Pair{{ID: 1, CurrencyID: 3, NetworkID: 1, Active: true}, {ID: 2, CurrencyID: 2, NetworkID: 2},
			{ID: 3, CurrencyID: 2, NetworkID: 1, Active: true}, {ID: 4, CurrencyID: 1, NetworkID: 1, Active: true}})
	text := func(s string) *string {
		if s == "-" {
			return nil
		}
		return &s
	}
	for _, tc := range []struct {
		symbol, network string
		pair            int64
	}{{"-", "-", 3}, {"usdt", "-", 2}, {"USDT", "eth", 3}, {"-", "ETH", 4}, {"off", "-", 4}, {"-", "trx", 2},
		{"BTC", "TRX", 0}, {"ETH", "-", 0}, {"", "-", 0}} {
		got, ok := c.Info(text(tc.symbol), text(tc.network))
		storetest.Equal(t, got.ID, tc.pair, tc.symbol, tc.network)
		storetest.Equal(t, ok, (tc.pair > 0), tc.symbol, tc.network)
	}
	if p, ok := c.Pair(4); !ok || p.Currency.Code != "OFF" || p.Network.Code != "ETH" {
		t.Errorf("%+v", p)
	}
	active := true
	if all, some := c.Pairs(nil), c.Pairs(&active); len(all) != 4 || len(some) != 3 || all[0].ID != 4 {
		t.Errorf("%+v\n%+v", all, some)
	}
}

// Each limit of a set-up is exact, and the refusal names the field of its section.
func TestSetupIsValidated(t *testing.T) {
	db := persistencetest.SQLite(t)
	s := &currency.Service{Store: money.NewCurrencies(db), Changes: admin.Changes{Commit: db, Now: time.Now}}
	text := func(n int) string { return strings.Repeat("ü", n) }
	address := func(n int) string { return "https://a.example/" + strings.Repeat("x", n-len("https://a.example/")) }
	for _, c := range []struct {
		edit   func(*currency.Currency, *currency.Network, *currency.Link)
		fields string
	}{
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.Code, n.Code = strings.Repeat("C", 33), ""
		}, "currency.code currencyNetwork.networkCode"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.Network, c.Name, c.MarketDataID, c.MarketListingSlug = text(201), "a\nb", text(201), text(201)
			n.Name, n.KYTName, l.ScreeningSymbol, l.MintAddress = text(201), "\x00", text(201), text(201)
		}, "currency.network currency.name currency.marketdataid currency.marketlistingslug currencyNetwork.networkName " +
			"currencyNetwork.kytNetworkName currencyOfNetwork.screeningSymbol currencyOfNetwork.mintAddress"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			c.Image, c.PNGImage = address(2049), "ftp://a.example/x"
		}, "currency.image currency.pngimage"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			l.FormatPrecision = strings.Repeat("#", 65)
		}, "currencyOfNetwork.formatPrecision"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			l.FormatPrecision = "0." + strings.Repeat("0", 19)
		}, "currencyOfNetwork.formatPrecision"},
		{func(c *currency.Currency, n *currency.Network, l *currency.Link) {
			*c = currency.Currency{Code: strings.Repeat("C", 32), Network: text(200), Name: text(200), MarketDataID: text(200),
				MarketListingSlug: text(200), Image: address(2048), PNGImage: "/own/path.png"}
			*n = currency.Network{Code: strings.Repeat("N", 32), Name: text(200), KYTName: text(200)}
			l.CurrencyCode, l.NetworkCode, l.ScreeningSymbol, l.MintAddress = c.Code, n.Code, text(200), text(200)
			l.FormatPrecision = strings.Repeat("#", 45) + "." + strings.Repeat("0", 18)
		}, ""},
	} {
		in := currency.Setup{
			Currency: currency.Section[currency.Currency]{Enabled: true, Record: currency.Currency{Code: "NEXT",
				Name: "New", Image: "https://cdn.example/new.png"}},
			Network: currency.Section[currency.Network]{Enabled: true, Record: currency.Network{Code: "NEXT", Name: "Net"}},
			Pair: currency.Section[currency.Link]{Enabled: true, Record: currency.Link{CurrencyCode: "NEXT",
				NetworkCode: "NEXT", Pair: currency.Pair{FormatPrecision: "0.00"}}}}
		c.edit(&in.Currency.Record, &in.Network.Record, &in.Pair.Record)
		_, err := s.Setup(t.Context(), audit.By{UserID: "admin"}, in)
		storetest.WantsFields(t, err, c.fields)
	}
}

// D-WAD-05: the currencies of a new installation are active, with their networks and pairs. A failure ends the seed.
func TestSeed(t *testing.T) {
	db := persistencetest.SQLite(t)
	store, tables := money.NewCurrencies(db), "currency_of_network currency_network currency"
	persistencetest.Empty(t, db, strings.Fields(tables)...)
	persistencetest.Fails(t, db, tables, func(ctx context.Context) error {
		return db.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, store) })
	})
	catalog := storetest.Value(currency.Load(t.Context(), store))(t)
	var codes []string
	for _, p := range catalog.Pairs(nil) {
		codes = append(codes, p.Currency.Code+"/"+p.Network.Code)
		if !p.Active || !p.Deposit || !p.Withdraw || !p.DepositAddress || !p.Currency.Active || !p.Currency.Deposit ||
			!p.Currency.Withdraw || !p.Network.Active || p.Currency.Name == "" || p.Network.Name == "" {
			t.Errorf("%+v", p)
		}
	}
	storetest.Equal(t, strings.Join(codes, " "), "BTC/BTC ETH/ETH USDT/ETH USDT/TRX TRX/TRX XRP/XRP SOL/SOL USDC/SOL")
}
