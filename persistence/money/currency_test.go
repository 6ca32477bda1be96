package money_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/currency"
	"castellan/persistence"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
)

func TestCurrencyStore(t *testing.T) {
	persistencetest.RunCases(t, func(db *persistence.DB) currency.Store { return money.NewCurrencies(db) },
		storetest.Cases[currency.Store]{
			"RoundTrip":         currencyRoundTrip,
			"Changes":           currencyChanges,
			"Queries":           currencyQueries,
			"CodesAreUnique":    currencyCodesAreUnique,
			"JoinsTransactions": currencyJoinsTransactions,
			"Seed":              currencySeed,
		}, "currency_of_network", "currency_network", "currency")
}

type currencyContent struct {
	currencies []currency.Currency
	networks   []currency.Network
	pairs      []currency.Pair
}

func readCurrencies(t *testing.T, ctx context.Context, s currency.Store) (c currencyContent) {
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

func currencyRoundTrip(t *testing.T, s currency.Store, _ commit.Committer) {
	ctx := t.Context()
	if c := readCurrencies(t, ctx, s); len(c.currencies)+len(c.networks)+len(c.pairs) > 0 {
		t.Fatalf("an empty store holds %+v", c)
	}
	want := currencyContent{
		[]currency.Currency{persistencetest.Whole(t, func(c *currency.Currency) {
			c.QuantityFormat, c.Threshold = amount.Must("0.000000000000000001"), amount.Must("999999999999999999.5")
		}), {Code: "AA", Withdraw: true}},
		[]currency.Network{{Code: "ZZ"}, persistencetest.Whole[currency.Network](t)},
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
		persistencetest.Whole(t, func(p *currency.Pair) {
			p.CurrencyID, p.NetworkID, p.ProviderNetworkID = c[1].ID, n[0].ID, 1<<53-1
		}),
		{CurrencyID: c[0].ID, NetworkID: n[0].ID, Withdraw: true},
		{CurrencyID: c[0].ID, NetworkID: n[1].ID, Active: true, Withdraw: true},
	}
	for i := range want.pairs {
		want.pairs[i].ID, err = s.AddPair(ctx, want.pairs[i])
		storetest.Must(t, err)
	}
	if got := readCurrencies(t, ctx, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if _, err := s.AddPair(ctx, currency.Pair{CurrencyID: c[0].ID, NetworkID: n[1].ID + 1000}); err == nil {
		t.Error("a pair of an unknown network was added")
	}
}

// A change keeps the ids, including those of a pair's currency and network; a rejected change changes nothing.
func currencyChanges(t *testing.T, s currency.Store, tx commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, tx.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, s) }))
	before := readCurrencies(t, ctx, s)
	c := persistencetest.Whole(t, func(c *currency.Currency) {
		old := before.currencies[1]
		c.ID, c.Deposit, c.Withdraw, c.Active = old.ID, !old.Deposit, !old.Withdraw, !old.Active
	})
	n := persistencetest.Whole(t, func(n *currency.Network) { n.ID, n.Active = before.networks[1].ID, false })
	p := persistencetest.Whole(t, func(p *currency.Pair) {
		old := before.pairs[1]
		p.ID, p.CurrencyID, p.NetworkID = old.ID, old.CurrencyID, old.NetworkID
		p.DepositAddress, p.Deposit, p.Withdraw, p.Active = !old.DepositAddress, !old.Deposit, !old.Withdraw, !old.Active
	})
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
	storetest.Same(t, readCurrencies(t, ctx, s), want)

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
	storetest.Same(t, readCurrencies(t, ctx, s), want)
}

func currencyQueries(t *testing.T, s currency.Store, _ commit.Committer) {
	ctx := t.Context()
	for _, code := range []string{"usdt", "BTC", "USDT"} {
		_, err := s.AddCurrency(ctx, currency.Currency{Code: code, Active: code == "BTC"})
		storetest.Must(t, err)
		_, err = s.AddNetwork(ctx, currency.Network{Code: code, Active: code == "BTC"})
		storetest.Must(t, err)
	}
	for _, tc := range []struct {
		q    currency.Query
		want string
	}{
		{currency.Query{}, "usdt BTC USDT "}, {currency.Query{Code: new("usdt")}, "usdt "},
		{currency.Query{Active: new(true)}, "BTC "}, {currency.Query{Active: new(bool)}, "usdt USDT "},
		{currency.Query{Code: new("BTC"), Active: new(bool)}, ""}, {currency.Query{Code: new("%")}, ""},
		{currency.Query{Code: new("Usdt")}, ""},
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

func currencyCodesAreUnique(t *testing.T, s currency.Store, _ commit.Committer) {
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
		won := storetest.Race(t, 6, fault.RecordAlreadyExist, func(int) error { return storetest.Err(add()) })
		storetest.Equal(t, won, 1, name)
	}
}

func currencyJoinsTransactions(t *testing.T, s currency.Store, tx commit.Committer) {
	refusal := errors.New("no")
	err := tx.InTx(t.Context(), func(ctx context.Context) error {
		storetest.Must(t, currency.Seed(ctx, s))
		if c := readCurrencies(t, ctx, s); len(c.pairs) != 8 {
			t.Errorf("a transaction does not see what it wrote: %+v", c)
		}
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v", err)
	}
	if c := readCurrencies(t, t.Context(), s); len(c.currencies)+len(c.networks)+len(c.pairs) > 0 {
		t.Errorf("rolled back, and still there: %+v", c)
	}
}

// D-WAD-05: the pairs enabled for withdrawals in a new installation.
func currencySeed(t *testing.T, s currency.Store, tx commit.Committer) {
	ctx := t.Context()
	storetest.Must(t, tx.InTx(ctx, func(ctx context.Context) error { return currency.Seed(ctx, s) }))
	c, err := currency.Load(ctx, s)
	storetest.Must(t, err)
	usable := 0
	content := readCurrencies(t, ctx, s)
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
