// Package currencytest is the test suite of the contract currency.Store.
package currencytest

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
)

// Run checks a store. open returns an empty one and the committer whose
// transactions it joins; both end with the test.
func Run(t *testing.T, open storetest.Open[currency.Store]) {
	storetest.Run(t, open, storetest.Cases[currency.Store]{
		"RoundTrip":         roundTrip,
		"Changes":           changes,
		"Queries":           queries,
		"CodesAreUnique":    codesAreUnique,
		"JoinsTransactions": joinsTransactions,
		"Seed":              seed,
	})
}

type content struct {
	currencies []currency.Currency
	networks   []currency.Network
	pairs      []currency.Pair
}

func read(t *testing.T, ctx context.Context, s currency.Store) (c content) {
	t.Helper()
	var err error
	c.currencies, err = s.Currencies(ctx, currency.Query{})
	storetest.Must(t, err)
	c.networks, err = s.Networks(ctx, currency.Query{})
	storetest.Must(t, err)
	c.pairs, err = s.Pairs(ctx)
	storetest.Must(t, err)
	return c
}

func roundTrip(t *testing.T, s currency.Store, _ commit.Committer) {
	ctx := t.Context()
	if c := read(t, ctx, s); len(c.currencies)+len(c.networks)+len(c.pairs) > 0 {
		t.Fatalf("an empty store holds %+v", c)
	}
	want := content{
		[]currency.Currency{{Code: "ZZ", Name: "Ünïcode 'quoted' ?", Network: "n", Image: "i", PNGImage: "p",
			MarketDataID: "m", MarketListingSlug: "s", PriceFormat: amount.Must("0.01"),
			QuantityFormat: amount.Must("0.000000000000000001"), Threshold: amount.Must("999999999999999999.5"),
			Deposit: true, Active: true}, {Code: "AA", Withdraw: true}},
		[]currency.Network{{Code: "ZZ"}, {Code: "AA", Name: "n", KYTName: "k", Active: true}},
		nil,
	}
	var err error
	for i := range want.currencies {
		want.currencies[i].ID, err = s.AddCurrency(ctx, want.currencies[i])
		storetest.Must(t, err)
		want.networks[i].ID, err = s.AddNetwork(ctx, want.networks[i])
		storetest.Must(t, err)
	}
	c, n := want.currencies, want.networks
	want.pairs = []currency.Pair{
		{CurrencyID: c[1].ID, NetworkID: n[0].ID, FormatPrecision: "0.00", ScreeningSymbol: "s", MintAddress: "m",
			DepositAddress: true, WalletProviderID: 1, WalletCurrencyID: 2, ProviderNetworkID: 1<<53 - 1, Deposit: true,
			Active: true},
		{CurrencyID: c[0].ID, NetworkID: n[0].ID, Withdraw: true},
		{CurrencyID: c[0].ID, NetworkID: n[1].ID, Active: true, Withdraw: true},
	}
	for i := range want.pairs {
		want.pairs[i].ID, err = s.AddPair(ctx, want.pairs[i])
		storetest.Must(t, err)
	}
	if got := read(t, ctx, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := s.AddPair(ctx, currency.Pair{CurrencyID: c[0].ID, NetworkID: n[1].ID + 1000}); err == nil {
		t.Error("a pair of an unknown network was added")
	}
}

// A change keeps the ids, including those of a pair's currency and network; a rejected change changes nothing.
func changes(t *testing.T, s currency.Store, tx commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, tx.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, s) }))
	before := read(t, ctx, s)
	c, n, p := before.currencies[1], before.networks[1], before.pairs[1]
	c.Code, c.Threshold, c.Active = "NEW", amount.Must("1.5"), false
	n.Code, n.KYTName, n.Active = "NEW", "k", false
	p.FormatPrecision, p.MintAddress, p.Active = "0.0", "m", false
	storetest.Must(t, s.ChangeCurrency(ctx, c.ID, func(currency.Currency) (currency.Currency, error) { return c, nil }))
	storetest.Must(t, s.ChangeNetwork(ctx, n.ID, func(currency.Network) (currency.Network, error) { return n, nil }))
	storetest.Must(t, s.ChangePair(ctx, p.ID, func(have currency.Pair) (currency.Pair, error) {
		storetest.Same(t, have, before.pairs[1])
		next := p
		next.ID, next.CurrencyID, next.NetworkID = 99, 98, 97
		return next, nil
	}))
	want := before
	want.currencies[1], want.networks[1], want.pairs[1] = c, n, p
	storetest.Same(t, read(t, ctx, s), want)

	taken := func(have currency.Currency) (currency.Currency, error) {
		have.Code = before.currencies[0].Code
		return have, nil
	}
	storetest.Wants(t, s.ChangeCurrency(ctx, c.ID, taken), fault.RecordAlreadyExist)
	refusal := errors.New("no")
	refuse := func(have currency.Network) (currency.Network, error) { have.Name = "x"; return have, refusal }
	if err := s.ChangeNetwork(ctx, n.ID, refuse); !errors.Is(err, refusal) {
		t.Errorf("got %v", err)
	}
	never := func(have currency.Pair) (currency.Pair, error) { t.Error("asked"); return have, nil }
	storetest.Wants(t, s.ChangePair(ctx, 1<<40, never), fault.RecordNotFound)
	storetest.Same(t, read(t, ctx, s), want)
}

func queries(t *testing.T, s currency.Store, _ commit.Committer) {
	ctx := t.Context()
	for _, code := range []string{"usdt", "BTC", "USDT"} {
		_, err := s.AddCurrency(ctx, currency.Currency{Code: code, Active: code == "BTC"})
		storetest.Must(t, err)
		_, err = s.AddNetwork(ctx, currency.Network{Code: code, Active: code == "BTC"})
		storetest.Must(t, err)
	}
	text, on := func(s string) *string { return &s }, true
	for _, tc := range []struct {
		q    currency.Query
		want string
	}{
		{currency.Query{}, "usdt BTC USDT "}, {currency.Query{Code: text("usdt")}, "usdt "},
		{currency.Query{Active: &on}, "BTC "}, {currency.Query{Active: new(bool)}, "usdt USDT "},
		{currency.Query{Code: text("BTC"), Active: new(bool)}, ""}, {currency.Query{Code: text("%")}, ""},
		{currency.Query{Code: text("Usdt")}, ""},
	} {
		currencies, err := s.Currencies(ctx, tc.q)
		storetest.Must(t, err)
		networks, err := s.Networks(ctx, tc.q)
		storetest.Must(t, err)
		got, other := "", ""
		for i, c := range currencies {
			got, other = got+c.Code+" ", other+networks[i].Code+" "
		}
		if got != tc.want || other != tc.want {
			t.Errorf("%+v: %s and %s, want %s", tc.q, got, other, tc.want)
		}
	}
}

func codesAreUnique(t *testing.T, s currency.Store, _ commit.Committer) {
	ctx := t.Context()
	cur, err := s.AddCurrency(ctx, currency.Currency{Code: "X"})
	storetest.Must(t, err)
	net, err := s.AddNetwork(ctx, currency.Network{Code: "X"})
	storetest.Must(t, err)
	for name, add := range map[string]func() (int64, error){
		"currency": func() (int64, error) { return s.AddCurrency(ctx, currency.Currency{Code: "AA"}) },
		"network":  func() (int64, error) { return s.AddNetwork(ctx, currency.Network{Code: "AA"}) },
		"pair":     func() (int64, error) { return s.AddPair(ctx, currency.Pair{CurrencyID: cur, NetworkID: net}) },
	} {
		var wg sync.WaitGroup
		var won atomic.Int64
		for range 6 {
			wg.Go(func() {
				switch _, err := add(); {
				case err == nil:
					won.Add(1)
				case fault.CodeOf(err) != fault.RecordAlreadyExist:
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%s: added %d times", name, won.Load())
		}
	}
}

func joinsTransactions(t *testing.T, s currency.Store, tx commit.Committer) {
	refusal := errors.New("no")
	err := tx.InTx(t.Context(), func(ctx context.Context) error {
		storetest.Must(t, currency.Seed(ctx, s))
		if c := read(t, ctx, s); len(c.pairs) != 8 {
			t.Errorf("a transaction does not see what it wrote: %+v", c)
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v", err)
	}
	if c := read(t, t.Context(), s); len(c.currencies)+len(c.networks)+len(c.pairs) > 0 {
		t.Errorf("rolled back, and still there: %+v", c)
	}
}

// D-WAD-05: the pairs enabled for withdrawals in a new installation.
func seed(t *testing.T, s currency.Store, tx commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, tx.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, s) }))
	c, err := currency.Load(ctx, s)
	storetest.Must(t, err)
	usable := 0
	content := read(t, ctx, s)
	for _, cur := range content.currencies {
		for _, net := range content.networks {
			if _, _, err := c.Withdrawal(cur.Code, net.Code); err == nil {
				usable++
			}
		}
	}
	for _, p := range [][2]string{{"BTC", "BTC"}, {"ETH", "ETH"}, {"USDT", "ETH"}, {"USDT", "TRX"}, {"TRX", "TRX"},
		{"XRP", "XRP"}, {"SOL", "SOL"}, {"USDC", "SOL"}} {
		cur, net, err := c.Withdrawal(p[0], p[1])
		if err != nil || cur.Code != p[0] || net.Code != p[1] || cur.Name == "" || net.Name == "" || cur.ID < 1 ||
			net.ID < 1 {
			t.Errorf("%v: %+v, %+v, %v", p, cur, net, err)
		}
	}
	if usable != 8 {
		t.Errorf("%d pairs can be withdrawn, want 8", usable)
	}
}
