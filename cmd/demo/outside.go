package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/money/provider"
	"castellan/domain/people/corporate"
)

// byPlace returns one of the shown people.
func (r *run) byPlace(place int) *person {
	k := min(r.Users, shown)
	return r.person((place*r.Users + k - 1) / k)
}

// companies creates applications over the months, and the users of the shown corporate accounts.
func (r *run) companies(ctx context.Context) {
	admin := audit.By{UserID: r.team[0].ID}
	const many = 40
	for n := range many {
		s := sourceOf(r.Seed, "application", n)
		name := pick(s, companies.place) + " " + pick(s, companies.trade) + " " + pick(s, companies.form)
		status := []string{"APPROVED", "APPROVED", "REJECTED", "PENDING"}[n%4]
		if n > many-6 {
			status = "PENDING"
		}
		r.Clock.set(r.Now.AddDate(0, 0, -9*(many-n)).Add(time.Duration(s.IntN(600)) * time.Minute))
		a := value(r.doors.corporate.Report(ctx, corporateDesk, corporate.Application{CompanyName: name,
			ExternalID: fmt.Sprint("demo-application-", n), TaxNumber: s.number(10), Status: "PENDING"}))
		if status == a.Status {
			continue
		}
		r.Clock.set(r.Clock.Now().Add(26 * time.Hour))
		value(r.doors.corporate.SetStatus(ctx, corporateDesk, a.ID, status))
	}
	for place := range min(r.Users, shown) {
		p := r.byPlace(place)
		if p.Type != user.Corporate {
			continue
		}
		r.Clock.set(p.CreatedAt.Add(time.Hour))
		u := corporate.User{UserID: p.ID, CorporateUserID: fmt.Sprintf("CORP-%04d", place), Role: "owner", Status: "active",
			CountryCode: p.CountryCode, PhoneNumber: strings.TrimPrefix(p.Phone, "+"+p.CountryCode), Email: &p.Email}
		if place%3 == 0 {
			u.Role, u.Status, u.Email = "accountant", "passive", nil
		}
		value(r.doors.corporate.Insert(ctx, admin, u, ""))
	}
}

// providers creates readings for every hour of the last two days, and at the end: two accounts at an exchange, and a
// safe one.
func (r *run) providers(ctx context.Context) {
	var writes []commit.Write
	for i, account := range []string{"spot/main", "spot/reserve", "custody/vault"} {
		name, of, _ := strings.Cut(account, "/")
		for hour := range 49 {
			at := r.Now.Add(-time.Duration(hour) * time.Hour)
			s := sourceOf(r.Seed, "provider "+account, hour)
			a := provider.Arrived{Provider: name, Account: of, At: at}
			for _, asset := range r.assets[:8] {
				if a.Balances != nil && a.Balances[len(a.Balances)-1].Asset == asset.currency {
					continue // it has two networks
				}
				b := provider.Balance{Asset: asset.currency, Free: quantity(asset, (50_000_000+s.Int64N(1_000_000))*int64(1+i))}
				if of == "main" {
					b.Locked = quantity(asset, s.Int64N(900_000)+1)
				}
				a.Balances = append(a.Balances, b)
			}
			writes = append(writes, a)
		}
	}
	check(r.DB.Commit(ctx, writes...))
}
