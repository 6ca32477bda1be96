package demo

import (
	"fmt"
	"math"
	"slices"
	"time"

	"castellan/config"
	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/geo"
	"castellan/domain/kit/sorting"
	"castellan/domain/people/standing"
	"castellan/domain/session/session"
)

// person is a new account, with the values that decide about the rest of it.
type person struct {
	user.User
	source
	country string // country of residence, ISO 3166-1 alpha-2
	// place is the place among the people who are shown with everything, from 0; -1: one of the others, who have logins
	// and money at most.
	place int
	named *named // if the person can log in
	// ref begins the external ids of the account and of its records.
	ref   string
	found string // the AML status that a screening service reports; "" for none
	purse *purse // the purse that the wallet works with; nil: none
}

// shown is how many accounts are shown with everything.
const shown = 300

// The states come in a fixed order for the shown people, so that every one occurs, and at random for the others. The
// lengths have no common divisor, so that every combination occurs among many.
var (
	kycStates = states[string](user.ManuelApproved, 6, user.OCROrNFCApproved, 5, user.WaitingApproval, 4, user.Rejected, 2)
	statuses  = states[user.Status](user.Active, 15, user.Passive, 2, user.Blocked, 1, user.Closed, 1)
	findings  = states[string]("", 11, standing.Risky, 1, standing.HighRisk, 1)
	types     = states[user.Type](user.Individual, 9, user.Corporate, 2)
	homes     = states[string](user.ManuelApproved, 6, user.WaitingApproval, 2, user.Rejected, 1)
	origins   = states[int](0, 7, 1, 2, 2, 1) // in cultures
)

// states spreads values, each as often as the number after it says.
func states[T comparable](pairs ...any) []T {
	var all []T
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, slices.Repeat([]T{pairs[i].(T)}, pairs[i+1].(int))...)
	}
	spread := make([]T, len(all))
	for i, v := range all { // 7 is coprime with all of the lengths
		spread[i*7%len(all)] = v
	}
	return spread
}

// in chooses a state: in turn for the shown people.
func in[T any](p *person, of []T) T {
	if p.place >= 0 {
		return of[p.place%len(of)]
	}
	return pick(p.source, of)
}

// registered returns when the n-th of all accounts was created: a growing number per month, by day, and fewer at a
// weekend.
func (r *run) registered(s source, n int) time.Time {
	share := math.Sqrt(float64(n+1) / float64(r.Users+1)) // of the time; every processor rounds it alike
	day := r.start.AddDate(0, 0, int(share*days))
	if w := day.Weekday(); (w == time.Saturday || w == time.Sunday) && s.chance(45) {
		day = day.AddDate(0, 0, -2)
	}
	at := s.between(day.Add(5*time.Hour), day.Add(22*time.Hour))
	if at.Before(r.start) || !at.Before(r.Now) {
		at = s.between(r.start, r.start.AddDate(0, 0, 1))
	}
	return at
}

// person creates the n-th account, from 0.
func (r *run) person(n int) *person {
	p := &person{source: sourceOf(r.Seed, "person", n), place: -1, ref: fmt.Sprintf("demo-%07d", n)}
	if k := min(r.Users, shown); n*k/r.Users != (n-1)*k/r.Users || n == 0 {
		p.place = n * k / r.Users
	}
	at := r.registered(p.source, n)
	p.User = user.New(p.id(at), at)
	c := cultures[in(p, origins)]
	first, last := p.IntN(len(c.first)), p.IntN(len(c.last))
	p.Name, p.Surname, p.Language, p.country = c.first[first], c.last[last], c.language, pick(p.source, c.countries)
	if c.firstIn != nil {
		p.Email = mailAddress(c.firstIn[first], c.lastIn[last], n)
	} else {
		p.Email = mailAddress(p.Name, p.Surname, n)
	}
	p.EmailVerified = p.chance(80)
	p.CountryCode = dialling[p.country]
	p.Phone = "+" + p.CountryCode + nationalNumber(p.country, r.Seed, n)
	p.Status, p.Type = in(p, statuses), in(p, types)
	p.KYCConfirm, p.found = in(p, kycStates), in(p, findings)
	r.identify(p)
	if p.place%25 == 3 {
		p.Countries = geo.NewFilter(p.country, "TR")
	}
	p.Campaigns = user.Campaigns{SMS: p.chance(70), Mail: p.chance(85), Push: p.chance(90)}
	p.WithdrawProhibited = p.place%29 == 5
	return p
}

// identify gives an account the data of an identity check, and its level.
func (r *run) identify(p *person) {
	if p.Type == user.Corporate {
		p.Name = pick(p.source, companies.place) + " " + pick(p.source, companies.trade)
		p.Surname, p.TaxNumber = pick(p.source, companies.form), p.number(10)
	}
	if p.KYCConfirm == user.WaitingApproval && p.chance(50) {
		return // nothing was sent yet
	}
	born := p.between(r.Now.AddDate(-68, 0, 0), r.Now.AddDate(-18, 0, 0))
	p.BirthDate = born.Format(time.DateOnly)
	number := p.number(11)
	p.IdentityHash = r.HashIdentity(number)
	if !p.KYCApproved() {
		return
	}
	p.AddressConfirmed = in(p, homes)
	if p.Level = 1 + p.IntN(2); p.Type == user.Corporate {
		p.Level = 10
	}
}

// devices are the devices of logins.
var devices = [][3]string{
	{"Apple", "iPhone 15", "Castellan 4.2, iOS 18"}, {"Apple", "iPhone 13 mini", "Castellan 4.1, iOS 17"},
	{"Samsung", "Galaxy S24", "Castellan 4.2, Android 15"}, {"Samsung", "Galaxy A54", "Castellan 4.0, Android 14"},
	{"Xiaomi", "Redmi Note 13", "Castellan 4.2, Android 14"}, {"Google", "Pixel 8", "Castellan 4.2, Android 15"},
	{"Mozilla", "Firefox 132", "Windows 11"}, {"Google", "Chrome 130", "macOS 15"},
}

// networks are documentation networks (RFC 5737): no real addresses.
var networks = []string{"192.0.2.", "198.51.100.", "203.0.113."}

// passwordTries is the limit of wrong passwords from one network by default.
var passwordTries = config.Default().Limits.WrongPasswords

// refusal returns the cause of a refused login from a country.
func (p *person) refusal(country string) session.Reason {
	switch {
	case p.Status != user.Active:
		return session.Inactive
	case p.Countries != "" && !p.Countries.Has(country):
		return session.NotAdmitted
	}
	return session.WrongPassword
}

// logins returns the login history of an account since its registration.
func (r *run) logins(p *person) (writes []commit.Write) {
	count := p.IntN(5)
	if p.place >= 0 {
		count = 3 + p.IntN(12)
	}
	at := make([]time.Time, count)
	for i := range at {
		at[i] = p.between(p.CreatedAt, r.Now)
	}
	sorting.Func(at, time.Time.Compare)
	ip, device, last := fmt.Sprint(pick(p.source, networks), 1+p.IntN(254)), pick(p.source, devices), time.Time{}
	tries := 0 // refused since the last login
	for _, at := range at {
		if p.chance(15) {
			ip, device = fmt.Sprint(pick(p.source, networks), 1+p.IntN(254)), pick(p.source, devices)
		}
		l := session.Login{ID: p.id(at), UserID: p.ID, At: at, IP: ip, Country: p.country, Brand: device[0],
			Model: device[1], Description: device[2], Success: !p.chance(12)}
		if p.chance(4) {
			l.Country = pick(p.source, []string{"DE", "FR", "AE", "GR"})
		}
		if l.Success {
			writes, last, tries = append(writes, session.Remember{Login: l}), at, 0
			continue
		}
		tries++
		l.Refusal = session.Refusal{Reason: p.refusal(l.Country),
			Standing: password.Standing{Tries: tries, Limit: passwordTries}}
		writes = append(writes, session.RememberRefused{Login: l})
	}
	if !last.IsZero() {
		writes = append(writes, user.LoggedIn{UserID: p.ID, At: last})
	}
	return writes
}
