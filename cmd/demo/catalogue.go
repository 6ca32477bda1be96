package demo

import (
	"context"
	"fmt"
	"time"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/parameter"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/rate"
	"castellan/domain/people/agreement"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
)

// offered are the currencies added to those of a new installation.
var offered = []struct {
	currency.Currency
	networks []string
	decimals string
}{
	{currency.Currency{Code: "TRY", Name: "Türk Lirası", Network: "BANK", Deposit: true, Withdraw: true, Active: true},
		[]string{"BANK"}, "2"},
	{currency.Currency{Code: "AVAX", Name: "Avalanche", Network: "AVAX", Deposit: true, Withdraw: true, Active: true},
		[]string{"AVAX"}, "18"},
	{currency.Currency{Code: "BNB", Name: "BNB", Network: "BSC", Deposit: true, Withdraw: true, Active: true},
		[]string{"BSC"}, "18"},
	{currency.Currency{Code: "LUNC", Name: "Terra Classic", Network: "TERRA"}, []string{"TERRA"}, "6"},
}

var networkNames = map[string]string{"BANK": "Bank transfer", "AVAX": "Avalanche C-Chain", "BSC": "BNB Smart Chain",
	"TERRA": "Terra Classic"}

// prices are the prices of one unit at the end, in cents of a dollar.
var prices = map[string]int64{"BTC": 9_500_000, "ETH": 340_000, "USDT": 100, "USDC": 100, "TRX": 20, "XRP": 110,
	"SOL": 24_000, "TRY": 3, "AVAX": 4_000, "BNB": 62_000}

// catalogue creates the catalogue of the platform.
func (r *run) catalogue(ctx context.Context) {
	r.once(ctx, "catalogue", func(ctx context.Context) {
		for _, part := range []struct {
			name string
			make func(context.Context)
		}{{"currencies", r.currencies}, {"people", r.recruit}, {"roles", r.roles}, {"rates", r.rates},
			{"treasury", r.addresses}, {"fees", r.fees}, {"contracts", r.contracts}, {"announcements", r.announcements},
			{"agreements", r.publish}, {"rules", r.rules}, {"shop", r.shop}} {
			within(part.name, func() { part.make(ctx) })
		}
	})
	r.loadAssets(ctx)
	for _, a := range value(people.NewAgreements(r.DB).List(ctx, agreement.Query{})) {
		if a.AcceptRequired {
			r.agreements = append(r.agreements, a.ID)
		}
	}
}

// currencies adds currencies, networks and pairs.
func (r *run) currencies(ctx context.Context) {
	store := money.NewCurrencies(r.DB)
	for _, c := range offered {
		id := value(store.AddCurrency(ctx, c.Currency))
		for _, code := range c.networks {
			network := value(store.AddNetwork(ctx, currency.Network{Code: code, Name: networkNames[code], Active: c.Active}))
			value(store.AddPair(ctx, currency.Pair{CurrencyID: id, NetworkID: network, FormatPrecision: c.decimals,
				DepositAddress: true, Deposit: c.Deposit, Withdraw: c.Withdraw, Active: c.Active}))
		}
	}
	r.loadAssets(ctx)
	var writes []commit.Write
	for _, a := range r.assets {
		writes = append(writes, ledger.AddAsset{ID: a.id, Unit: int64(amount.Unit(a.decimals))})
	}
	check(r.DB.Commit(ctx, writes...))
}

// loadAssets reads the pairs that have a price.
func (r *run) loadAssets(ctx context.Context) {
	r.assets = nil
	for _, p := range value(currency.Load(ctx, money.NewCurrencies(r.DB))).Pairs(new(true)) {
		if cents := prices[p.Currency.Code]; cents > 0 {
			r.assets = append(r.assets, asset{p.ID, p.CurrencyID, p.Currency.Code, p.Network.Code, p.Decimals(), cents})
		}
	}
}

// rates creates the rates of every day, and of every hour of the last two days. They vary backwards from the final
// prices.
func (r *run) rates(ctx context.Context) {
	var at []time.Time
	for t := r.Now; t.After(r.start); {
		at = append(at, t)
		if t = t.Add(-time.Hour); t.Before(r.Now.AddDate(0, 0, -2)) {
			t = t.Add(-23 * time.Hour)
		}
	}
	const parts = 1_000_000 // of a dollar
	micros := map[rate.Pair]int64{{Base: "USD", Quote: "TRY"}: 41_500_000, {Base: "EUR", Quote: "TRY"}: 47_800_000,
		{Base: "EUR", Quote: "USD"}: 1_152_000}
	for code, cents := range prices {
		if code != "TRY" {
			micros[rate.Pair{Base: code, Quote: "USD"}] = cents * parts / 100
		}
	}
	var quotes []rate.Quote
	for pair, now := range micros {
		s := sourceOf(r.Seed, "rate "+pair.Base+pair.Quote, 0)
		for _, at := range at {
			text := fmt.Sprintf("%d.%06d", now/parts, now%parts)
			quotes = append(quotes, rate.Quote{Pair: pair, Rate: rate.Must(text), At: at})
			step := now / 10_000 * (s.Int64N(301) - 152) // at most 1.5 hundredths
			if prices[pair.Base] == 100 {
				step /= 100 // it is worth a dollar
			}
			now += step
		}
	}
	r.Clock.set(r.Now)
	value(money.NewRates(r.DB).Add(ctx, "demo", quotes))
}

// addresses gives the treasury an address for every pair (D-TX-10).
func (r *run) addresses(ctx context.Context) {
	all := parameter.Addresses{}
	for i, a := range r.assets {
		if all[a.currency] == nil {
			all[a.currency] = map[string]string{}
		}
		all[a.currency][a.network] = outside(sourceOf(r.Seed, "treasury", i), a.network)
	}
	r.Clock.set(r.start.Add(time.Hour))
	setParameter(ctx, r, parameter.Treasury, all)
}

// setParameter replaces the value of a parameter.
func setParameter[T parameter.Shape](ctx context.Context, r *run, kind parameter.Kind[T], to T) {
	r.do(ctx, change.Parameters, "PARAMETER_UPDATE", kind.Code, func(ctx context.Context) error {
		return kind.Change(ctx, kit.NewParameters(r.DB), func(T) (T, error) { return to, nil })
	})
}

// fees sets the withdrawal fee and the least amount of every currency.
func (r *run) fees(ctx context.Context) {
	fees, least := parameter.Fees{}, parameter.Fees{}
	for _, a := range r.assets {
		for _, b := range r.assets { // a currency has one fee, which fits all of its networks
			if b.currency == a.currency {
				a.decimals = min(a.decimals, b.decimals)
			}
		}
		fees[a.currency], least[a.currency] = quantity(a, 50), quantity(a, 500)
	}
	r.Clock.set(r.start.Add(2 * time.Hour))
	setParameter(ctx, r, parameter.Fee, fees)
	setParameter(ctx, r, parameter.Minimum, least)
}
