// Package balance serves the balances of users for administrators, a part of section 4.9 of
// the interface (decision D-PRC-06). domain/money/balance adds them up.
//
// Start reading at Endpoints.
package balance

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/sorting"
	"castellan/domain/money/balance"
	"castellan/domain/money/currency"
	"castellan/domain/money/ledger"
	"castellan/http/rest"
	"castellan/http/wire"
)

// Group serves the endpoints.
type Group struct {
	Service *balance.Service
	Ledger  ledger.Store
	Live    *currency.Cache
	// User finds an account; RECORD_NOT_FOUND.
	User func(ctx context.Context, id string) (user.User, error)
}

func (g Group) Endpoints() []rest.Endpoint {
	return rest.Section("4.9 Process and balance",
		rest.Get("/admin/get-member-asset-balances", "List the balances of a user", rest.Tenant, g.member,
			fault.InvalidField).
			Try("userId=${user.id}").
			Doc("listMemberBalances", "One item for each currency and network on which the user has ever had a balance. An "+
				"unknown user, or a user of another type, gives an empty list."),
		rest.Get("/admin/get-member-asset-balances-sum", "Get the total balances of all users", rest.Tenant, g.sum,
			fault.InvalidField).
			Try("code=BTC").
			Doc("sumMemberBalances", "Totals by currency over all its networks. available sums the available balances of "+
				"all accounts. A blockage that exceeds the balance of an account does not reduce the sum further."),
		rest.Get("/balance/get-daily-position", "List deposits and withdrawals by day", rest.Tenant, g.positions,
			fault.InvalidField).
			Try("limit=10").
			Doc("listDailyPositions", "Totals of all users by day (UTC) and currency, newest first, starting with the "+
				"first movement of the currency. Days without movements are included. Without dates, the last 30 days. The "+
				"dates select whole days. balance is the closing balance of the day; for today, the current balance."),
	)
}

type memberRequest struct {
	UserID string  `json:"userId" maxLength:"64" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	Type   *string `json:"type" maxLength:"64" example:"bireysel" doc:"type of the user"`
}

// memberBalance is a user asset with its user.
type memberBalance struct {
	UserID string `json:"userId" example:"01JD3X4Q7V0S8D4T2M6B9N1ZKA"`
	wire.UserAsset
}

func (g Group) member(ctx context.Context, _ rest.Caller, in memberRequest) ([]memberBalance, error) {
	if wanted := rest.Or(in.Type, ""); wanted != "" {
		u, err := g.User(ctx, in.UserID)
		switch {
		case fault.CodeOf(err) == fault.RecordNotFound, err == nil && string(u.Type) != wanted:
			return []memberBalance{}, nil
		case err != nil:
			return nil, err
		}
	}
	balances, err := g.Ledger.Owned(ctx, in.UserID)
	if err != nil {
		return nil, err
	}
	assets, err := wire.UserAssets(balances, g.Live.Asset)
	return rest.Each(assets, func(a wire.UserAsset) memberBalance { return memberBalance{in.UserID, a} }), err
}

type sumRequest struct {
	UserID     *string  `json:"userId" maxLength:"64"`
	Code       *string  `json:"code" maxLength:"64" example:"USDT" doc:"currency code, not case-sensitive"`
	CurrencyID *rest.ID `json:"currencyId"`
}

// assets are the assets that the filters select, nil for all. The code of an asset that is no
// longer in the catalogue is its number.
func (g Group) assets(code string, id *rest.ID) []int64 {
	if code == "" && id == nil {
		return nil
	}
	out := g.Live.Catalog().IDs(func(p currency.Listed) bool {
		return (code == "" || strings.EqualFold(p.Currency.Code, code)) && (id == nil || p.Currency.ID == int64(*id))
	})
	if asset, err := strconv.ParseInt(code, 10, 64); err == nil && id == nil {
		if _, known := g.Live.Catalog().Pair(asset); !known {
			out = append(out, asset)
		}
	}
	return out
}

// currencySum is the total balance of users in a currency.
type currencySum struct {
	CurrencyCode string     `json:"currencyCode" example:"USDT"`
	CurrencyID   int64      `json:"currencyId" doc:"0: the currency is no longer in the catalogue"`
	Balance      amount.Sum `json:"balance" example:"120.5"`
	Available    amount.Sum `json:"available" example:"100"`
	Locked       amount.Sum `json:"locked" example:"20.5"`
}

func (g Group) sum(ctx context.Context, _ rest.Caller, in sumRequest) ([]currencySum, error) {
	q := balance.Query{Assets: g.assets(strings.TrimSpace(rest.Or(in.Code, "")), in.CurrencyID)}
	if rest.Or(in.UserID, "") != "" {
		q.UserID = in.UserID
	}
	sums, err := g.Service.Store.Sums(ctx, q)
	if err != nil {
		return nil, err
	}
	out := []currencySum{}
	for _, s := range sums {
		p, err := g.Live.Asset(s.Asset)
		if err != nil {
			return nil, err
		}
		c := currencySum{CurrencyCode: p.Currency.Code, CurrencyID: p.Currency.ID}
		i := slices.IndexFunc(out, func(o currencySum) bool {
			return o.CurrencyCode == c.CurrencyCode && o.CurrencyID == c.CurrencyID
		})
		if i < 0 {
			i, out = len(out), append(out, c)
		}
		o := &out[i]
		o.Balance, o.Available, o.Locked = o.Balance.Add(s.Posted), o.Available.Add(s.Available), o.Locked.Add(s.Locked)
	}
	sorting.Stable(out, func(a, b currencySum) int { return strings.Compare(a.CurrencyCode, b.CurrencyCode) })
	return out, nil
}

type positionRequest struct {
	StartDate *rest.Time `json:"startDate"`
	EndDate   *rest.Time `json:"endDate" doc:"inclusive"`
	Symbol    *string    `json:"symbol" maxLength:"64" example:"USDT" doc:"currency code, not case-sensitive"`
	rest.Paging
}

type dailyPosition struct {
	Date       rest.Time  `json:"date" example:"2026-01-31T00:00:00.000Z"`
	Symbol     string     `json:"symbol" example:"USDT"`
	Deposit    amount.Sum `json:"deposit" example:"120.5"`
	Withdrawal amount.Sum `json:"withdrawal" example:"20.5"`
	Net        amount.Sum `json:"net" example:"100" doc:"deposits minus withdrawals"`
	Balance    amount.Sum `json:"balance" example:"1100"`
}

// days is the default range, today included.
const days = 30

func (g Group) positions(ctx context.Context, who rest.Caller, in positionRequest) (out rest.Reply[[]dailyPosition],
	err error) {
	from, to, err := rest.Span("startDate", in.StartDate, in.EndDate)
	if err != nil {
		return out, err
	}
	if in.EndDate == nil {
		to = g.Service.Now()
	}
	symbol := strings.TrimSpace(rest.Or(in.Symbol, ""))
	r := balance.Range{First: balance.DayOf(from), Last: balance.DayOf(to), Symbol: symbol}
	if in.StartDate == nil {
		r.First = min(r.Last, balance.DayOf(g.Service.Now())) - days + 1
	}
	return rest.List(ctx, who, in.Paging, r, g.Service.Positions, show)
}

func show(p balance.Position) dailyPosition {
	return dailyPosition{rest.Time{Time: balance.Start(p.Day)}, p.Symbol, p.Deposit, p.Withdrawal, p.Net, p.Balance}
}
