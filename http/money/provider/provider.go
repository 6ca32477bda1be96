// Package provider serves the company's balances at other platforms, a part of section 4.9 of
// the interface (decisions D-PRC-01 to D-PRC-03): readings every five minutes, for
// administrators. domain/money/provider reads and stores them.
//
// Start reading at Endpoints.
package provider

import (
	"context"
	"slices"
	"strings"

	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/money/provider"
	"castellan/http/rest"
)

// Group serves the endpoints.
type Group struct{ Store provider.Store }

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section("4.9 Process and balance",
		rest.Get("/process/get-provider-balances-of-asset", "List provider balances of an asset", rest.Tenant,
			g.listAssetBalances, fault.InvalidField).
			Try("provider=spot&account=AllAccounts&asset=BTC").
			Doc("listProviderBalancesOfAsset", "With from or to, returns every reading in the range, newest first. Without "+
				"them, returns the last reading of each account. AllAccounts selects all accounts of the provider."),
		rest.Get("/process/get-provider-balances", "List provider balances", rest.Tenant, g.latest, fault.InvalidField).
			Try("provider=spot").
			Doc("listProviderBalances", "Returns the last reading of each account, without zero balances."),
		rest.Get("/process/get-provider-balances-total", "Get the total balances of a provider", rest.Tenant,
			g.total, fault.InvalidField).
			Try("provider=spot&datetime5min=1767225600000").
			Doc("getProviderBalancesTotal", "Adds up the readings of one five-minute interval. Returns an array of all "+
				"assets, or one object if asset is given. Without readings, the array is empty."),
	)
}

// providerBalance is a balance of an account at a provider.
type providerBalance struct {
	AccountName string        `json:"accountname" example:"main"`
	Asset       providerAsset `json:"assetObject"`
}

type providerAsset struct {
	Asset  string        `json:"asset" example:"BTC"`
	Free   amount.Amount `json:"free" example:"1.5"`
	Locked amount.Amount `json:"locked" example:"0.25"`
}

func show(e provider.Entry) providerBalance {
	return providerBalance{e.Account, providerAsset{e.Asset, e.Free, e.Locked}}
}

// accountOf is the account filter of a store; "" for all.
func accountOf(text string) string {
	if text = strings.TrimSpace(text); text == provider.AllAccounts {
		return ""
	}
	return text
}

// assetOf is the code of an asset in the spelling of snapshots.
func assetOf(text string) string { return strings.ToUpper(strings.TrimSpace(text)) }

type ofAssetRequest struct {
	Account  string     `json:"account" maxLength:"64" example:"main" doc:"an account name, or AllAccounts"`
	Provider string     `json:"provider" maxLength:"64" example:"spot"`
	Asset    string     `json:"asset" maxLength:"32" example:"BTC" doc:"not case-sensitive"`
	From     *rest.Time `json:"from"`
	To       *rest.Time `json:"to" doc:"inclusive; a date includes the whole day"`
	rest.Paging
}

func (g Group) listAssetBalances(
	ctx context.Context, who rest.Caller, in ofAssetRequest,
) (out rest.Reply[[]providerBalance], err error) {
	q := provider.History{Provider: in.Provider, Account: accountOf(in.Account), Asset: assetOf(in.Asset)}
	if q.From, q.To, err = rest.Span("from", in.From, in.To); err != nil {
		return out, err
	}
	read := g.Store.History
	if in.From == nil && in.To == nil {
		read = func(ctx context.Context, q provider.History, _ page.Query[provider.Place]) (page.Of[provider.Entry], error) {
			all, err := g.Store.Latest(ctx, q.Provider, q.Account, q.Asset)
			return page.Of[provider.Entry]{Records: all, Total: len(all)}, err
		}
	}
	return rest.List(ctx, who, in.Paging, q, read, show)
}

type latestRequest struct {
	Provider string `json:"provider" maxLength:"64" example:"spot"`
	Account  string `json:"account" default:"AllAccounts" maxLength:"64" doc:"an account name; empty: AllAccounts"`
}

func (g Group) latest(ctx context.Context, _ rest.Caller, in latestRequest) ([]providerBalance, error) {
	all, err := g.Store.Latest(ctx, in.Provider, accountOf(in.Account), "")
	return rest.Each(all, show), err
}

type totalRequest struct {
	Provider string    `json:"provider" maxLength:"64" example:"spot"`
	At       rest.Time `json:"datetime5min" example:"1767225600000" doc:"rounded down to five minutes"`
	Asset    *string   `json:"asset" maxLength:"32" example:"BTC" doc:"not case-sensitive"`
}

// total is the balance of all accounts of a provider in an asset.
type total struct {
	Provider string     `json:"provider" example:"spot"`
	Asset    string     `json:"asset" example:"BTC"`
	At       int64      `json:"datetime5min" example:"1767225600000"`
	Total    amount.Sum `json:"total" example:"1.75"`
	Free     amount.Sum `json:"free" example:"1.5"`
	Locked   amount.Sum `json:"locked" example:"0.25"`
}

type totals = rest.Either[total, []total]

func (g Group) total(ctx context.Context, _ rest.Caller, in totalRequest) (out totals, err error) {
	slot := in.At.Truncate(provider.Every)
	all, found, err := g.Store.At(ctx, in.Provider, slot)
	if err != nil {
		return out, err
	}
	shown := rest.Each(provider.Sum(all), func(t provider.Total) total {
		return total{in.Provider, t.Asset, slot.UnixMilli(), t.Total, t.Free, t.Locked}
	})
	asset := assetOf(rest.Or(in.Asset, ""))
	if asset == "" || !found {
		return totals{Value: shown}, nil
	}
	i := slices.IndexFunc(shown, func(t total) bool { return t.Asset == asset })
	if i < 0 { // it was read, and the balance is zero
		return totals{Value: total{Provider: in.Provider, Asset: asset, At: slot.UnixMilli()}}, nil
	}
	return totals{Value: shown[i]}, nil
}
