package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
)

// named is a person who can log in.
type named struct {
	who, first, last, mail, language string
	roles                            []string
	kind                             user.Type
	kyc                              string
	see                              string // what to look at
}

// team are the people who can log in: the staff, and some of the users. They were created before all others.
var team = []named{
	{"administrator", "Defne", "Aksoy", "admin", "tr", []string{user.RoleAdmin}, user.Individual, user.ManuelApproved,
		"all endpoints: start with GET /admin/list-users and GET /admin/audit"},
	{"identity checks", "Kerem", "Aydın", "kyc", "tr", []string{"kyc-reviewer"}, user.Individual, user.ManuelApproved,
		"GET /user/get-documents?reason=waitingApproval, POST /user/update-kyc, and endpoints that refuse the role"},
	{"treasury", "Selin", "Kaya", "treasury", "tr", []string{"treasury"}, user.Individual, user.ManuelApproved,
		"GET /admin/get-waiting-info-transactions, GET /admin/get-withdrawal-crypto-queue, adjust-balance"},
	{"support", "Onur", "Polat", "support", "tr", []string{"support"}, user.Individual, user.ManuelApproved,
		"GET /admin/login-history, GET /admin/list-users?fullName=..."},
	{"user", "Ayşe", "Demir", "ayse", "tr", nil, user.Individual, user.ManuelApproved,
		"GET /user/asset, /user/notifications, /asset/withdrawal-addresses"},
	{"waiting user", "Omar", "Haddad", "omar", "ar", nil, user.Individual, user.WaitingApproval,
		"an account in Arabic with unchecked documents"},
	{"company", "Marmara Yazılım", "A.Ş.", "sirket", "tr", nil, user.Corporate, user.OCROrNFCApproved,
		"a corporate account of level 10"},
}

// firstNumber is the first national number of the team.
const firstNumber = 5000000001

// member creates the i-th member of the team.
func (r *run) member(i int) *person {
	n := &team[i]
	p := &person{source: sourceOf(r.Seed, "team", i), country: "TR", place: shown + i, named: n,
		ref: fmt.Sprint("demo-team-", i)}
	at := r.start.Add(time.Duration(i+1) * time.Minute)
	p.User = user.New(p.id(at), at)
	p.Name, p.Surname, p.Language, p.Roles, p.Type, p.KYCConfirm = n.first, n.last, n.language, n.roles, n.kind, n.kyc
	p.Email, p.EmailVerified, p.CountryCode, p.Demo = n.mail+"@demo.example", true, "90", r.Dev
	p.Phone = "+90" + n.phone(i)
	r.identify(p)
	p.Name, p.Surname = n.first, n.last // a company has its own
	return p
}

// staff reports whether p belongs to the staff. Nothing is pending on these accounts, because their owners could not
// decide about it (D-AUTH-03).
func (p *person) staff() bool { return p.named != nil && len(p.named.roles) > 0 }

func (n named) phone(i int) string { return fmt.Sprint(firstNumber + i) }

// recruit creates the accounts of the team, without passwords.
func (r *run) recruit(ctx context.Context) {
	var writes []commit.Write
	for _, p := range r.team {
		writes = append(writes, r.register(p)...)
	}
	check(r.DB.Commit(ctx, writes...))
}

// equip gives the team all records of the shown accounts.
func (r *run) equip(ctx context.Context) {
	b := r.batch()
	var writes []commit.Write
	for _, p := range r.team {
		writes = append(writes, r.logins(p)...)
		r.money(b, p)
	}
	check(r.DB.Commit(ctx, writes...))
	r.equipAll(ctx, r.team, b)
}

// Login is the login of a person.
type Login struct{ Who, Name, CountryCode, Phone, Mail, Password, See string }

// finish gives the team its passwords and ends the run. Passwords come last, so an interrupted run leaves none that was
// not reported.
func (r *run) finish(ctx context.Context) (logins []Login) {
	r.Clock.at.Store(nil)
	r.once(ctx, "done", func(ctx context.Context) {
		var writes []commit.Write
		for i, p := range r.team {
			password := r.Password()
			writes = append(writes, user.SetPassword{UserID: p.ID, CV: p.CV, Hash: value(r.Hasher.Hash(ctx, password))})
			logins = append(logins, Login{p.named.who, strings.TrimSpace(p.Name + " " + p.Surname), "90",
				p.named.phone(i), p.Email, password, p.named.see})
		}
		check(r.DB.Commit(ctx, writes...))
		check(r.Keep(logins))
	})
	return logins
}
