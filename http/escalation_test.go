package httpapi_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/cmd/app"
	"castellan/config"
	"castellan/domain/account/user"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/change"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	httpapi "castellan/http"
	"castellan/http/rest"
	"castellan/internal/blackbox"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/permit"
	"castellan/persistence/proof"
)

// escalation is a running program with accounts whose roles were made at random, and a plain
// model of what each account is permitted.
type escalation struct {
	*live
	v         *app.Deployment
	random    *rand.Rand
	resources []resource.Resource
	accounts  []*operator // the operators, then the chief, then a customer
	paths     []path

	unpermitted, refusals, served int // attempts
}

// operator is an account with the records that belong to it.
type operator struct {
	person
	index     int
	roles     []string
	permitted map[string]bool // as permissionsOf names permissions

	document, blockage, deposit, withdrawal, link, vpn, job, rule, approval string
}

const escalationSeed = 20261123

// On no path does an operator exceed the own roles. The paths are contact data with the
// password reset, devices, authenticator, KYC, level, balance, blockages, approvals, jobs and
// bulk operations. They are refused for every account with a permission that the operator
// lacks. For the own account they are refused if they decide about it. All else is served. At
// the end no account is other than it was (D-AUTH-03).
func TestGrantsDoNotEscalate(t *testing.T) {
	t.Parallel()
	const roles = 40
	for name, dsn := range oneDatabase() {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := start(t, dir, dsn(t), func(c *config.Config) { c.MFA.FourEyes = []string{"POST " + levelPath} })
			t.Logf("seed %d, %d roles", escalationSeed, roles)
			x := newEscalation(t, l, roles)
			before := x.states()
			for _, op := range x.accounts[:roles] {
				x.login(&op.person)
				for _, of := range x.targets(op) {
					x.tryAll(op, of)
				}
				x.tryToTakeOver(op)
			}
			x.tryBulk()
			if after := x.states(); !reflect.DeepEqual(before, after) {
				for i := range before {
					storetest.Equal(t, before[i], after[i], "an account has changed")
				}
			}
			t.Logf("of the attempts %d lacked the permission, %d were refused for the account and %d served", x.unpermitted,
				x.refusals, x.served)
			if x.served < 10*roles || x.refusals < 10*roles {
				t.Error("so few attempts prove too little")
			}
		})
	}
}

// targets are the accounts on which an operator tries: the own one, the administrator, a
// customer and another operator.
func (x *escalation) targets(op *operator) []*operator {
	n := len(x.accounts)
	return []*operator{op, x.accounts[n-2], x.accounts[n-1], x.accounts[x.random.IntN(n-2)]}
}

// tryAll tries every path to an account. Refused requests are tried as an attack, with values
// that would benefit the operator; all else in a way that changes nothing.
func (x *escalation) tryAll(op, of *operator) {
	x.t.Helper()
	for _, p := range x.paths {
		want := x.refused(op, of, p)
		body := p.harmless
		if want {
			body = p.attack
		}
		if body == nil {
			continue
		}
		method, target, _ := strings.Cut(p.key, " ")
		target = strings.ReplaceAll(target, "{id}", p.id(of))
		a := x.Do(x.t, method, target, body(op, of), blackbox.Headers{"x-auth": op.xAuth})
		if a.Status >= 500 || (a.Code() == "FORBIDDEN") != want {
			x.t.Errorf("%s by %s about %s, refused %t (seed %d): %s\nto %s", p.key, op.about(), of.about(), want, escalationSeed,
				a, body(op, of))
		}
		switch {
		case !want:
			x.served++
		case op.may(p):
			x.refusals++
		default:
			x.unpermitted++
		}
	}
}

// refused is D-AUTH-03 in plain words. The operator lacks the permission for the path, or one
// that the account holds, or may not decide the matter.
func (x *escalation) refused(op, of *operator, p path) bool {
	switch {
	case p.users && !op.may(p):
		return !op.permitted["use "+p.key]
	case !op.may(p):
		return true
	case op == of:
		return p.matter != rest.General
	}
	return op.lacks(of)
}

// may reports whether an account is permitted the endpoints of a path.
func (c *operator) may(p path) bool {
	return !slices.ContainsFunc(append([]string{p.key}, p.needs...),
		func(key string) bool { return !c.permitted["act at "+key] })
}

func (c *operator) lacks(of *operator) bool {
	for permission := range of.permitted {
		if !c.permitted[permission] {
			return true
		}
	}
	return false
}

func (c *operator) about() string {
	return fmt.Sprintf("account %d with the roles %q", c.index, c.roles)
}

// tryToTakeOver does what is left when no administrator's path is open: it resets the
// password of the chief, and enrols an authenticator in the chief's name.
func (x *escalation) tryToTakeOver(op *operator) {
	x.t.Helper()
	chief := x.accounts[len(x.accounts)-2]
	letters := func() int { return len(x.Letters(x.t, op.Number())) + len(x.Letters(x.t, op.Mail)) }
	before := letters()
	f := blackbox.FlowOf(x.t, x.Do(x.t, "POST", "/auth/password/reset",
		map[string]string{"countryCode": chief.Country, "phoneNumber": chief.Phone, "userId": op.ID}, nil))
	for _, m := range f.MethodList {
		if a, err := x.TryComplete(f, m, "000000"); err == nil && strings.Contains(string(a.Body), "execResult") {
			x.t.Errorf("%s completes a reset of the chief: %s", op.about(), a)
		}
	}
	storetest.Equal(x.t, letters(), before, "codes of the chief after", op.about())
	const setup, deactivate = "POST /auth/totp/setup", "POST /auth/totp/deactivate"
	if op.index%10 > 0 || !op.permitted["use "+setup] || !op.permitted["use "+deactivate] {
		return
	}
	body := map[string]string{"userId": chief.ID}
	a := x.Do(x.t, "POST", "/auth/totp/setup", body, blackbox.Headers{"x-auth": op.xAuth})
	x.complete(&op.person, a)
	x.login(&op.person)
	a = x.Do(x.t, "POST", "/auth/totp/deactivate", body, blackbox.Headers{"x-auth": op.xAuth})
	x.complete(&op.person, a)
}

// tryBulk sends an SMS to all accounts as some operators: the rows of those who hold more
// fail, and the others are done.
func (x *escalation) tryBulk() {
	x.t.Helper()
	tried := 0
	for _, op := range x.accounts[:len(x.accounts)-2] {
		if !op.permitted["act at POST /send-bulk-sms"] || tried == 5 {
			continue
		}
		tried++
		x.login(&op.person)
		var ids []string
		want := map[bool]int{}
		for _, of := range x.accounts {
			ids = append(ids, of.ID)
			want[op != of && op.lacks(of)]++
		}
		var started struct{ Data struct{ ID string } }
		x.Ok(x.t, "POST", "/send-bulk-sms", map[string]any{"userIds": ids, "messageBody": "Hello"},
			blackbox.Headers{"x-auth": op.xAuth}).Read(x.t, &started)
		var j struct {
			Status       string
			Done, Failed int
			Failures     []struct{ Reason string }
		}
		x.Ok(x.t, "GET", "/admin/jobs/"+started.Data.ID, nil,
			blackbox.Headers{"x-auth": x.admin.xAuth, "prefer": "wait=20"}).Read(x.t, &j)
		if j.Status != "done" || j.Done != want[false] || j.Failed != want[true] ||
			j.Failed > 0 && (len(j.Failures) != 1 || j.Failures[0].Reason != "FORBIDDEN") {
			x.t.Errorf("the SMS of %s came to %+v, want %d done and %d refused", op.about(), j, want[false], want[true])
		}
	}
	if tried == 0 {
		x.t.Error("no operator may send an SMS")
	}
}

// states are all accounts with what an operator could have changed of them.
func (x *escalation) states() (all []string) {
	x.t.Helper()
	ctx := x.t.Context()
	for _, c := range x.accounts {
		u := storetest.Value(account.NewUsers(x.v.DB).Get(ctx, c.ID))(x.t)
		devices := storetest.Value(proof.NewDevices(x.v.DB).List(ctx, c.ID))(x.t)
		all = append(all, fmt.Sprint(c.about(), u.ID, u.Email, u.Phone, u.Status, u.Roles, u.KYCConfirm, u.AddressConfirmed,
			u.AMLStatus, u.Level, u.SV, u.TOTP, len(devices), x.money(c)))
	}
	return all
}

func (x *escalation) money(c *operator) string {
	x.t.Helper()
	ctx := x.t.Context()
	owned := storetest.Value(money.NewLedger(x.v.DB).Owned(ctx, c.ID))(x.t)
	deposits := storetest.Value(money.NewTransactions(x.v.DB).Deposits(ctx, c.deposit))(x.t)
	queued := storetest.Value(money.NewTransactions(x.v.DB).Queued(ctx, c.withdrawal))(x.t)
	j := storetest.Value(kit.NewJobs(x.v.DB).Get(ctx, c.job))(x.t)
	var balances []amount.Amount
	for _, b := range owned {
		balances = append(balances, b.Posted, b.Locked)
	}
	return fmt.Sprint(balances, deposits[0].Status, queued.Status, j.State, j.Cancel)
}

// newEscalation makes roles at random, an operator for each, a chief and a customer.
func newEscalation(t *testing.T, l *live, roles int) *escalation {
	t.Helper()
	ctx := t.Context()
	v, err := app.Open(ctx, l.cfg)
	storetest.Must(t, err)
	t.Cleanup(func() { v.Close() })
	x := &escalation{live: l, v: v, random: rand.New(rand.NewPCG(escalationSeed, uint64(roles))), paths: escalationPaths()}
	store := permit.NewResources(v.DB)
	x.resources, err = store.Resources(ctx)
	storetest.Must(t, err)
	given := map[string]map[string]resource.Permission{}
	storetest.Must(t, v.DB.InTx(ctx, func(ctx context.Context) error {
		for i := range roles {
			role := fmt.Sprintf("r%d", i)
			roleID, err := store.AddRole(ctx, resource.Role{Code: role, Name: role, CreatedAt: time.Now()})
			if err != nil {
				return err
			}
			given[role] = x.drawGrants(i)
			for _, r := range x.resources {
				if p := given[role][r.Code]; p != resource.None {
					if _, err := store.SetGrant(ctx, roleID, r.ID, p, time.Now()); err != nil {
						return err
					}
				}
			}
		}
		return v.DB.Commit(ctx, change.Note{Topic: change.Roles, Key: "all"})
	}))
	hasher := storetest.Value(app.NewHasher(l.cfg))(t)
	for i := range roles + 2 {
		c := &operator{index: i, person: person{Account: blackbox.NewAccount(5000 + i)}}
		switch {
		case i == roles:
			c.roles = []string{user.RoleAdmin}
		case i < roles && i%3 == 0:
			c.roles = []string{fmt.Sprintf("r%d", i), fmt.Sprintf("r%d", x.random.IntN(roles))}
		case i < roles:
			c.roles = []string{fmt.Sprintf("r%d", i)}
		}
		slices.Sort(c.roles)
		c.roles = slices.Compact(c.roles)
		c.permitted = permissionsOf(c.roles, given)
		hash := storetest.Value(hasher.Hash(ctx, c.Password))(t)
		u := user.New(id.New(time.Now()), time.Now())
		c.ID, u.CountryCode, u.Phone, u.Email, u.Roles = u.ID, c.Country, c.Number(), c.Mail, c.roles
		storetest.Must(t, v.DB.Commit(ctx, user.Add{User: u, PasswordHash: hash},
			change.Note{Topic: change.Users, Key: u.ID}, change.Note{Topic: change.Roles, Key: resource.AccountKey(u.ID)}))
		x.accounts = append(x.accounts, c)
	}
	x.own()
	return x
}

// drawGrants draws the grants of a role: few, half or most of the endpoints. Every fifth
// role is denied endpoints that are open to users, too.
func (x *escalation) drawGrants(n int) map[string]resource.Permission {
	density := []float64{0.08, 0.5, 0.93}[n%3]
	given := map[string]resource.Permission{}
	for _, e := range httpapi.Endpoints() {
		open := e.Audience != rest.Admin && e.Audience != rest.SelfOrAdmin
		switch draw := x.random.Float64(); {
		case e.Reserved, e.Audience == rest.Public, open && (n%5 > 0 || draw > 0.1):
		case open, draw < 0.04:
			given[e.Key()] = resource.Deny
		case draw < density:
			given[e.Key()] = []resource.Permission{resource.Allow, resource.Audit}[x.random.IntN(2)]
		}
	}
	return given
}

// permissionsOf lists what an account with some roles may do, straight from D-AUTH-03.
func permissionsOf(roles []string, given map[string]map[string]resource.Permission) map[string]bool {
	permitted := map[string]bool{}
	admin := slices.Contains(roles, user.RoleAdmin)
	for _, e := range httpapi.Endpoints() {
		denied, granted := false, false
		for _, role := range roles {
			p := given[role][e.Key()]
			denied, granted = denied || p == resource.Deny, granted || p == resource.Allow || p == resource.Audit
		}
		if (e.Audience == rest.SelfUser || e.Audience == rest.SelfOrAdmin) && (admin || !denied) {
			permitted["use "+e.Key()] = true
		}
		if (e.Audience == rest.Admin || e.Audience == rest.SelfOrAdmin) && (admin || granted && !denied && !e.Reserved) {
			permitted["act at "+e.Key()] = true
		}
	}
	return permitted
}
