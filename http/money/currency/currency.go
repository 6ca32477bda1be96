// Package currency serves section 4.7 of the interface, currencies and assets: what
// there is, what an account has of it, how administrators set it up, and exchange
// rates. It reads and writes the wire shapes of its section 2.5 (decisions D-CUR-01
// to D-CUR-11) and leaves every rule to domain/money/currency and domain/money/rate.
//
// Start reading at Endpoints, then setup.go for what administrators send.
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

// Group serves the section. What everybody asks for is answered from the node's
// snapshot; an administrator's list is read from the table.
type Group struct {
	Service *currency.Service
	Live    *currency.Live
	Rates   *rate.Service
	Ledger  ledger.Store
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section(title,
		rest.Get("/currency/get-currency-info", "Tell about one currency", rest.NoAuth, g.info, fault.RecordNotFound).
			For(rest.Public).
			Doc("getCurrencyInfo", "The first currency and network that match, in any case; without filters the first "+
				"active currency."),
		rest.Get("/get-all-currency-network", "List every currency on every network", rest.Tenant, g.pairs).
			For(rest.SelfUser).
			Doc("listCurrencyNetworks", "What may be deposited and withdrawn, and where."),
		rest.Get("/admin/currency/get-all", "List currencies, networks or the links of both", rest.Tenant, g.all).
			Doc("listCurrencyRecords", "A filter that belongs to another type is ignored."),
		rest.Get("/user/asset", "List what the caller has", rest.Tenant, g.assets).For(rest.SelfUser).
			Doc("listAssets", "One item for each currency on each network of which the caller ever had something. "+
				"Blocked amounts are locked; what is available is never below 0."),
		rest.Post("/admin/assets/setup", "Add a currency, a network and their link", rest.Tenant, g.setup,
			fault.RecordAlreadyExist).
			Try(fmt.Sprintf(trySetup, "", "", "", "Avalanche")).
			NamesNoUser("the ids are those of networks, wallets and market data").
			Doc("setUpAssets", "All or nothing. A section that is not enabled is left out; what it would add must "+
				"exist where another section refers to it."),
		rest.Post("/admin/assets/setup-update", "Change a currency, a network and their link", rest.Tenant, g.update,
			fault.RecordNotFound, fault.RecordAlreadyExist).
			Try(fmt.Sprintf(trySetup, `"id":${setUpAssets.currencyId},`, `"id":${setUpAssets.currencyNetworkId},`,
				`"id":${setUpAssets.currencyOfNetworkId},`, "Avalanche (AVAX)")).
			Doc("updateAssets", "All or nothing. A section that is not enabled stays as it is. Whether something is "+
				"active stays too. A link keeps its currency, its network and at least its decimals.").
			NamesNoUser("the ids are those of currencies, networks and links"),
		rest.Post("/admin/currency-activate", "Say whether a currency and its link are active", rest.Tenant, g.activate,
			fault.RecordNotFound).
			Try(`{"currency":{"id":${setUpAssets.currencyId},"isActive":true},`+
				`"currencyOfNetwork":{"id":${setUpAssets.currencyOfNetworkId},"isActive":false}}`).
			NamesNoUser("the ids are those of a currency and a link").
			Doc("activateCurrency", "Both or neither. The link must be one of the currency."),
		rest.Get("/rates/get-currency-rates", "Tell an exchange rate", rest.TenantOrCron, g.rate, fault.RecordNotFound).
			For(rest.SelfUser).
			Try("base=usd&quote=USD").
			Doc("getCurrencyRate", "One unit of base costs so much of quote. A rate that is stored in neither "+
				"direction is computed over USD."),
		rest.Get("/admin/get-last-rates-by-date", "List the last rates before a date", rest.Tenant, g.lastRates).
			Doc("listLastRates", "The date is moved back two hours; of each pair the last rate until then."),
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
	Active *bool `json:"currencyOfNetworkIsActive" doc:"only links that are active, or that are not"`
}

// listed is a pair as everybody sees it.
type listed struct {
	ID              int64  `json:"id"`
	CurrencyCode    string `json:"currencyCode"`
	CurrencyName    string `json:"currencyName" example:"Tether USD"`
	NetworkCode     string `json:"networkCode"`
	NetworkName     string `json:"networkName" example:"TRON"`
	IsActive        bool   `json:"isActive" doc:"of the link"`
	DepositEnable   bool   `json:"depositEnable"`
	WithdrawEnable  bool   `json:"withdrawEnable"`
	FormatPrecision string `json:"formatPrecision" example:"6"`
	Decimals        int    `json:"decimals" example:"6"`
}

func (listed) SchemaName() string { return "CurrencyNetworkListed" }

func (g Group) pairs(_ context.Context, _ rest.Caller, in pairsRequest) ([]listed, error) {
	return rest.Each(g.Live.Catalog().Pairs(in.Active), func(l currency.Listed) listed {
		return listed{l.ID, l.Currency.Code, l.Currency.Name, l.Network.Code, l.Network.Name, l.Active, l.Deposit,
			l.Withdraw, l.FormatPrecision, l.Decimals()}
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
	Base  string `json:"base" default:"USD" doc:"in any case"`
	Quote string `json:"quote" default:"TRY" doc:"in any case"`
}

type exchangeRate struct {
	Base  string       `json:"base" example:"USD"`
	Quote string       `json:"quote" example:"TRY"`
	Rate  rest.Decimal `json:"rate" example:"41.7352"`
}

func (exchangeRate) SchemaName() string { return "ExchangeRate" }

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

type lastRate struct {
	Base  string       `json:"base" example:"USD"`
	Quote string       `json:"quote" example:"TRY"`
	Rate  rest.Decimal `json:"rate" example:"41.7352"`
	Date  rest.Time    `json:"date" doc:"since when it holds" example:"2026-01-31T07:55:00.000Z"`
}

func (lastRate) SchemaName() string { return "DatedExchangeRate" }

func (g Group) lastRates(ctx context.Context, _ rest.Caller, in lastRequest) ([]lastRate, error) {
	all, err := g.Rates.LastBy(ctx, in.Date.Time)
	return rest.Each(all, func(q rate.Quote) lastRate {
		return lastRate{q.Base, q.Quote, rest.Decimal(q.Rate.String()), rest.Time{Time: q.At}}
	}), err
}
