// Package currency serves section 4.7 of the interface: currencies, the assets of an account,
// their setup by administrators, and exchange rates. It reads and writes the wire shapes of
// its section 2.5 (decisions D-CUR-01 to D-CUR-11) and leaves every rule to
// domain/money/currency and domain/money/rate.
//
// Start reading at Endpoints, then setup.go for the requests of administrators.
package currency

import (
	"context"
	"fmt"

	"castellan/domain/kit/fault"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/domain/money/rate"
	"castellan/http/rest"
	"castellan/http/wire"
)

const title = "4.7 Currency and assets"

// Group serves the section. Public requests are answered from the node's snapshot; lists for
// administrators are read from the table.
type Group struct {
	Service *currency.Service
	Live    *currency.Cache
	Rates   *rate.Service
	Ledger  ledger.Store
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(title,
		rest.Get("/currency/get-currency-info", "Get a currency", rest.NoAuth, g.info, fault.RecordNotFound).
			For(rest.Public).
			Try("symbol=BTC&network=BTC").
			Doc("getCurrencyInfo", "Returns the first match of currency and network, not case-sensitive. Without filters, "+
				"returns the first active currency."),
		rest.Get("/get-all-currency-network", "List currencies with their networks", rest.Tenant, g.pairs).
			For(rest.SelfUser).
			Try("currencyOfNetworkIsActive=true").
			Doc("listCurrencyNetworks", "Shows which currencies can be deposited and withdrawn, and on which networks."),
		rest.Get("/admin/currency/get-all", "List currencies, networks or their links", rest.Tenant, g.all).
			Doc("listCurrencyRecords", "Filters of other types are ignored."),
		rest.Get("/user/asset", "List the caller's assets", rest.Tenant, g.assets).For(rest.SelfUser).
			Doc("listAssets", "One item for each currency and network on which the caller has ever had a balance. Blocked "+
				"amounts count as locked; available is never negative."),
		rest.Post("/admin/assets/setup", "Create a currency, a network and their link", rest.Tenant, g.setup,
			fault.RecordAlreadyExist).
			Try(fmt.Sprintf(trySetup, "", "", "", "Avalanche")).
			NamesNoUser("the ids are those of networks, wallets and market data").
			Doc("setUpAssets", "Either all sections are saved or none. A section that is not enabled is skipped; its "+
				"record must exist if another section refers to it."),
		rest.Post("/admin/assets/setup-update", "Update a currency, a network and their link", rest.Tenant, g.update,
			fault.RecordNotFound, fault.RecordAlreadyExist).
			Try(fmt.Sprintf(trySetup, `"id":${setUpAssets.currencyId},`, `"id":${setUpAssets.currencyNetworkId},`,
				`"id":${setUpAssets.currencyOfNetworkId},`, "Avalanche (AVAX)")).
			Doc("updateAssets", "Either all sections are saved or none. A section that is not enabled stays unchanged, and "+
				"so does the active status. The currency and network of a link cannot change, and its decimals cannot "+
				"decrease. A deposit above maxDeposit of its link waits for the treasury; null is 10^15 units. Without the "+
				"field it does not change.").
			NamesNoUser("the ids are those of currencies, networks and links"),
		rest.Post("/admin/currency-activate", "Activate or deactivate a currency and its link", rest.Tenant, g.activate,
			fault.RecordNotFound).
			Try(`{"currency":{"id":${setUpAssets.currencyId},"isActive":true},`+
				`"currencyOfNetwork":{"id":${setUpAssets.currencyOfNetworkId},"isActive":false}}`).
			NamesNoUser("the ids are those of a currency and a link").
			Doc("activateCurrency", "Either both changes are saved or none. The link must belong to the currency."),
		rest.Get("/rates/get-currency-rates", "Get an exchange rate", rest.TenantOrCron, g.rate, fault.RecordNotFound).
			For(rest.SelfUser).
			Try("base=usd&quote=USD").
			Doc("getCurrencyRate", "The price of one unit of base in quote. A rate that is not stored in either direction "+
				"is computed through USD."),
		rest.Get("/admin/get-last-rates-by-date", "List the last rates before a date", rest.Tenant, g.lastRates).
			Doc("listLastRates", "Returns the last rate of each pair up to two hours before the date."),
	)
}

type infoRequest struct {
	Symbol  *string `json:"symbol" example:"USDT"`
	Network *string `json:"network" example:"TRX"`
}

type info struct {
	Symbol   string `json:"symbol" example:"USDT"`
	Name     string `json:"name" example:"Tether USD"`
	Network  string `json:"network" example:"TRX"`
	Decimals int    `json:"decimals" example:"6"`
}

func (g Group) info(_ context.Context, _ rest.Caller, in infoRequest) (info, error) {
	l, ok := g.Live.Catalog().Info(in.Symbol, in.Network)
	if !ok {
		return info{}, fault.New(fault.RecordNotFound, "no such currency")
	}
	return info{l.Currency.Code, l.Currency.Name, l.Network.Code, l.Decimals()}, nil
}

type pairsRequest struct {
	Active *bool `json:"currencyOfNetworkIsActive" doc:"filter by the active status of the link"`
}

// currencyNetworkListed is the public shape of a pair.
type currencyNetworkListed struct {
	ID              int64  `json:"id"`
	CurrencyCode    string `json:"currencyCode"`
	CurrencyName    string `json:"currencyName" example:"Tether USD"`
	NetworkCode     string `json:"networkCode"`
	NetworkName     string `json:"networkName" example:"TRON"`
	IsActive        bool   `json:"isActive" doc:"whether the link is active"`
	DepositEnable   bool   `json:"depositEnable"`
	WithdrawEnable  bool   `json:"withdrawEnable"`
	FormatPrecision string `json:"formatPrecision" example:"6"`
	Decimals        int    `json:"decimals" example:"6"`
}

func (g Group) pairs(_ context.Context, _ rest.Caller, in pairsRequest) ([]currencyNetworkListed, error) {
	return rest.Each(g.Live.Catalog().Pairs(in.Active), func(l currency.Listed) currencyNetworkListed {
		return currencyNetworkListed{l.ID, l.Currency.Code, l.Currency.Name, l.Network.Code, l.Network.Name,
			l.Active, l.Deposit, l.Withdraw, l.FormatPrecision, l.Decimals()}
	}), nil
}

func (g Group) assets(ctx context.Context, who rest.Caller, _ rest.None) ([]wire.UserAsset, error) {
	balances, err := g.Ledger.Owned(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	return wire.UserAssets(balances, g.Live.Asset)
}

type rateRequest struct {
	Base  string `json:"base" default:"USD" doc:"not case-sensitive"`
	Quote string `json:"quote" default:"TRY" doc:"not case-sensitive"`
}

type exchangeRate struct {
	Base  string       `json:"base" example:"USD"`
	Quote string       `json:"quote" example:"TRY"`
	Rate  rest.Decimal `json:"rate" example:"41.7352"`
}

func (g Group) rate(ctx context.Context, _ rest.Caller, in rateRequest) (exchangeRate, error) {
	q, err := g.Rates.Rate(ctx, in.Base, in.Quote)
	if err != nil {
		return exchangeRate{}, err
	}
	return exchangeRate{q.Base, q.Quote, rest.Decimal(q.Rate.String())}, nil
}

type lastRequest struct {
	Date rest.Time `json:"date" example:"2026-01-31T10:00:00.000Z"`
}

type datedExchangeRate struct {
	Base  string       `json:"base" example:"USD"`
	Quote string       `json:"quote" example:"TRY"`
	Rate  rest.Decimal `json:"rate" example:"41.7352"`
	Date  rest.Time    `json:"date" doc:"time of the rate" example:"2026-01-31T07:55:00.000Z"`
}

func (g Group) lastRates(ctx context.Context, _ rest.Caller, in lastRequest) ([]datedExchangeRate, error) {
	all, err := g.Rates.LastBy(ctx, in.Date.Time)
	return rest.Each(all, func(q rate.Quote) datedExchangeRate {
		return datedExchangeRate{q.Base, q.Quote, rest.Decimal(q.Rate.String()), rest.Time{Time: q.At}}
	}), err
}
