package people_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/amount"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/blockage"
	"castellan/domain/people/standing"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpstanding "castellan/http/people/standing"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/money"
	"castellan/persistence/people"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

// standingSite is the section with jane, who has money, and the administrators root and chief.
type standingSite struct {
	*apitest.Site
	*testing.T
	*persistencetest.Money
	service     *standing.Service
	users       account.Users
	revocations *session.Revocations
}

func standingBoth(t *testing.T, test func(s standingSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx, parameters := t.Context(), kit.NewParameters(db)
		for i, name := range []string{"jane", "root", "chief"} {
			u := user.New(name, time.UnixMilli(1_700_000_000_000+int64(i)))
			u.Name, u.Surname, u.Email = "Jane", "Doe", name+"@example.com"
			if name != "jane" {
				u.Roles = []string{user.RoleAdmin}
			}
			storetest.Must(t, db.Commit(ctx, user.Add{User: u}))
		}
		house, live := persistencetest.MoneyIn(t, db, time.Now), seeded(t, db)
		users, standings := account.NewUsers(db), people.NewStandings(db)
		revocations := session.NewRevocations(time.Hour, time.Now)
		house.Commit = session.Revoking{Committer: db, Revocations: revocations}
		service := &standing.Service{Store: standings, Users: users, Administrators: permit.NewResources(db),
			Blockages: &blockage.Service{Store: money.NewBlockages(db), Ledger: house.Ledger, Users: users,
				Currencies: house.Currencies, Now: time.Now},
			Parameters: live, Ignored: parameters, ClosureType: 7, Hold: persistencetest.HoldQueued(time.Now),
			Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.Parameters, Follow: live.Follow,
				Lock: standings.Lock}}
		s := standingSite{apitest.Serve(t, edge.Options{}, httpstanding.Group{Service: service}).Below("/admin/user/"),
			t, house, service, users, revocations}
		for pair, sum := range map[string]string{"BTC/BTC": "10", "USDT/ETH": "5", "USDT/TRX": "3"} {
			s.pay(pair, sum)
		}
		test(s)
	})
}

// pay credits an amount to jane.
func (s standingSite) pay(pair, sum string) {
	s.Helper()
	storetest.Must(s, s.Pay("jane", pair, sum))
}

// wantsStanding checks jane: her status and versions, then the posted and locked amounts of each open
// account, then her blockages.
func (s standingSite) wantsStanding(want string) {
	s.Helper()
	u := storetest.Value(s.users.Get(s.Context(), "jane"))(s)
	got := fmt.Sprintf("%s sv%d", u.Status, u.SV)
	for _, pair := range []string{"BTC/BTC", "USDT/ETH", "USDT/TRX"} {
		b := storetest.Value(s.Balance(s.Context(), "jane", s.Money.Pair(pair).ID))(s)
		got += fmt.Sprintf(", %s/%s", b.Locked, b.Posted)
	}
	all := storetest.Value(s.service.Blockages.Store.List(s.Context(), blockage.Query{UserID: new("jane")},
		page.Query[blockage.Place]{}))(s)
	var lines []string
	for _, b := range all.Records {
		lines = append(lines, fmt.Sprintf("%s %s %s type %d", b.CurrencyCode, b.Amount, b.Status, b.TypeID))
	}
	slices.Sort(lines)
	if got += "; " + strings.Join(lines, ", "); got != want {
		s.Errorf("\n got %s\nwant %s", got, want)
	}
}

// sets sets the status of a user as another one.
func (s standingSite) sets(by, userID string, status user.Status) error {
	return storetest.Err(s.service.Set(s.Context(), audit.By{UserID: by}, standing.Standing{UserID: userID,
		Status: status}))
}

// audits counts the rows of an action.
func (s standingSite) audits(action string, want int) {
	s.Helper()
	storetest.Equal(s, persistencetest.Count(s, s.DB, "audit", "action = '"+action+"'"), want, "rows", action)
}

// publishes checks the data of the events about jane's status (D-INT-03).
func (s standingSite) publishes(want ...string) {
	s.Helper()
	var data []string
	err := s.DB.Conn(s.Context()).NewSelect().Table("integration_event").Column("data").
		Where("type = 'account.status' AND user_id = 'jane'").OrderExpr("id").Scan(s.Context(), &data)
	if storetest.Must(s, err); !slices.Equal(data, want) {
		s.Errorf("published %v, want %v", data, want)
	}
}

const (
	set             = "POST close-user-authentication"
	standingRisky   = "GET get-users-without-aml-confirmed"
	standingConfirm = "POST update-user-aml-confirmed"
)

func standingAnswer(of, status, description, reason string) string {
	return fmt.Sprintf(`{"data":{"userId":%q,"fullName":"Jane Doe","email":"%s@example.com","status":%q,`+
		`"description":%s,"closedUserReason":%s}}`, of, of, status, description, reason)
}

// Section 3.5, D-KYC-03, D-KYC-04: every status from every status, with the money, and
// the same again.
func TestStatus(t *testing.T) {
	standingBoth(t, func(s standingSite) {
		var held []string // accounts whose queued withdrawals were held
		hold := s.service.Hold
		s.service.Hold = func(by audit.By, userID string) (commit.Write, error) {
			held = append(held, userID)
			return hold(by, userID)
		}
		const free = "0/10, 0/5, 0/3"
		s.Wants(set, `{"userId":"jane","status":"active"}`, 200, standingAnswer("jane", "active", "null", "null"))
		s.wantsStanding("active sv1, " + free + "; ")
		s.audits(standing.ActionStatus, 0)

		const closed = `{"userId":"jane","status":"closed","description":"as asked","closedUserReason":"moves"}`
		const all = "10/10, 5/5, 3/3; BTC 10 active type 7, USDT 8 active type 7"
		s.Wants(set, closed, 200, standingAnswer("jane", "closed", `"as asked"`, `"moves"`))
		s.wantsStanding("closed sv2, " + all)
		if s.revocations.Live("jane", "any", 1) || !s.revocations.Live("jane", "any", 2) {
			t.Error("this node does not know that the sessions have ended")
		}
		s.Wants(set, closed, 200, standingAnswer("jane", "closed", `"as asked"`, `"moves"`))
		s.wantsStanding("closed sv2, " + all)
		s.audits(standing.ActionStatus, 1)
		s.publishes(`{"previousStatus":"active","status":"closed"}`)
		was, err := s.service.Store.Get(t.Context(), "jane")
		if storetest.Must(t, err); was.Description != "as asked" || was.Reason != "moves" || was.By != "admin" ||
			was.Status != user.Closed {
			t.Errorf("%+v", was)
		}

		// Later deposits stay free until the status is set again; nothing is freed meanwhile.
		s.pay("USDT/ETH", "2")
		s.pay("BTC/BTC", "0.5")
		s.wantsStanding("closed sv2, 10/10.5, 5/7, 3/3; BTC 10 active type 7, USDT 8 active type 7")
		s.Wants(set, `{"userId":"jane","status":"blocked"}`, 200, standingAnswer("jane", "blocked", "null", "null"))
		const more = "10.5/10.5, 7/7, 3/3; BTC 10.5 active type 7, USDT 10 active type 7"
		s.wantsStanding("blocked sv3, " + more)
		s.Wants(set, `{"userId":"jane","status":"passive"}`, 200, standingAnswer("jane", "passive", "null", "null"))
		s.wantsStanding("passive sv4, " + more)

		// Blockages by an administrator stay, of any type.
		_, err = s.service.Blockages.Insert(t.Context(), audit.By{UserID: "root"}, blockage.Request{UserID: "jane",
			CurrencyCode: "BTC", TypeID: 7, Amount: amount.Must("1")})
		storetest.Must(t, err)
		s.Wants(set, `{"userId":"jane","status":"active"}`, 200, standingAnswer("jane", "active", "null", "null"))
		const open = "1/10.5, 0/7, 0/3; BTC 1 active type 7, BTC 10.5 released type 7, USDT 10 released type 7"
		s.wantsStanding("active sv4, " + open)
		s.Wants(set, `{"userId":"jane","status":"active"}`, 200, standingAnswer("jane", "active", "null", "null"))
		s.wantsStanding("active sv4, " + open)
		s.audits(standing.ActionStatus, 4)
		s.Wants(set, `{"userId":"jane","status":"blocked"}`, 200, standingAnswer("jane", "blocked", "null", "null"))
		s.wantsStanding("blocked sv5, 10.5/10.5, 7/7, 3/3; BTC 1 active type 7, " +
			"BTC 10.5 released type 7, BTC 9.5 active type 7, " +
			"USDT 10 active type 7, USDT 10 released type 7")

		// Another text alone is kept and does no more.
		s.Wants(set, `{"userId":"jane","status":"blocked","description":"x"}`,
			200, standingAnswer("jane", "blocked", `"x"`, "null"))
		s.audits(standing.ActionStatus, 6)
		storetest.Same(t, held, []string{"jane", "jane", "jane", "jane"})
		s.publishes(`{"previousStatus":"active","status":"closed"}`, `{"previousStatus":"closed","status":"blocked"}`,
			`{"previousStatus":"blocked","status":"passive"}`, `{"previousStatus":"passive","status":"active"}`,
			`{"previousStatus":"active","status":"blocked"}`)
	})
}

func TestStatusRefuses(t *testing.T) {
	standingBoth(t, func(s standingSite) {
		for in, want := range map[string]string{
			`{"userId":"jane","status":"gone"}`: "status", `{"userId":"jane","status":"Active"}`: "status",
			`{"userId":"nobody","status":"gone"}`: "status",
		} {
			s.Wants(set, in, 400, "INVALID_FIELD "+want)
		}
		s.Wants(set, `{"userId":"nobody","status":"closed"}`, 404, "RECORD_NOT_FOUND")
		s.Wants(set, `{"userId":"","status":"closed"}`, 404, "RECORD_NOT_FOUND")
		s.wantsStanding("active sv1, 0/10, 0/5, 0/3; ")
		s.audits(standing.ActionStatus, 0)
	})
}

// D-AUTH-03: of two administrators who close each other one stays. An administrator cannot
// set the status or the AML status of the own account, which is also the one without
// userId, and another role cannot set those of an administrator.
func TestTheLastAdministratorStays(t *testing.T) {
	standingBoth(t, func(s standingSite) {
		won := storetest.Race(t, 2, fault.InvalidState, func(i int) error {
			both := []string{"root", "chief"}
			return s.sets(both[1-i], both[i], user.Blocked)
		})
		storetest.Equal(t, won, 1, "were closed")
		// Accounts that are no active administrators are free; a demonstration account is one in development mode only.
		for name, edit := range map[string]func(*user.User){"gone": func(u *user.User) { u.Status = user.Closed },
			"demo": func(u *user.User) { u.Demo = true }} {
			u := user.New(name, time.Now())
			u.Email, u.Roles = name+"@example.com", []string{user.RoleAdmin}
			edit(&u)
			storetest.Must(t, s.DB.Commit(t.Context(), user.Add{User: u}))
		}
		blocks := func(name string, want fault.Code) {
			t.Helper()
			for _, status := range []user.Status{user.Blocked, user.Active} {
				storetest.Wants(t, s.sets("chief", name, status), want)
				want = "" // an administrator stays active
			}
		}
		last := "root"
		if u, err := s.users.Get(t.Context(), "root"); err != nil || u.Status != user.Active {
			last = "chief"
		}
		blocks(last, fault.InvalidState)
		blocks("demo", "")
		storetest.Must(t, s.sets("", "gone", user.Blocked))
		s.service.Dev = true
		blocks(last, "")
		storetest.Must(t, s.sets("", last, user.Blocked))
		blocks("demo", fault.InvalidState)
		s.service.Dev = false
		storetest.Must(t, s.sets("root", "root", user.Active))
		storetest.Must(t, s.sets("root", "chief", user.Active))
		own := user.New("admin", time.Now())
		own.Name, own.Surname, own.Email, own.Roles = "Jane", "Doe", "admin@example.com", []string{user.RoleAdmin}
		storetest.Must(t, s.DB.Commit(t.Context(), user.Add{User: own}))
		for _, body := range []string{`{"status":"passive"}`, `{"userId":"admin","status":"passive"}`} {
			s.Wants(set, body, 403, "FORBIDDEN")
		}
		s.Wants(standingConfirm, `{"userId":"admin"}`, 403, "FORBIDDEN")
		s.As("clerk").Wants(set, `{"userId":"admin","status":"passive"}`, 403, "FORBIDDEN")
		s.As("clerk").Wants(standingConfirm, `{"userId":"admin"}`, 403, "FORBIDDEN")
		if u, err := s.users.Get(t.Context(), "admin"); err != nil || u.Status != user.Active || u.SV != 1 {
			t.Errorf("%+v, %v", u, err)
		}
	})
}

// Closing and opening at the same time, with incoming deposits: the end state is entirely that
// of the last change, and no session outlives a closing.
func TestStatusInARace(t *testing.T) {
	standingBoth(t, func(s standingSite) {
		statuses := []string{"blocked", "active", "closed", "blocked"}
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				if i%6 == 5 {
					s.pay("USDT/ETH", "1")
					return
				}
				s.Gets(set, `{"userId":"jane","status":"`+statuses[i%4]+`"}`, "200")
			})
		}
		wg.Wait()
		for _, end := range []string{"blocked", "active"} {
			s.Call(set, `{"userId":"jane","status":"`+end+`"}`)
			owned := storetest.Value(s.Store.Owned(t.Context(), "jane"))(t)
			for _, b := range owned {
				if left := b.Available(); end == "blocked" && left.Sign() != 0 || end == "active" && left != b.Posted {
					t.Errorf("%s: %+v", end, b)
				}
			}
			closures, err := s.service.Blockages.Store.Closures(t.Context(), "jane")
			if storetest.Must(t, err); end == "blocked" && len(closures) != 2 || end == "active" && len(closures) != 0 {
				t.Errorf("%s: %d closures", end, len(closures))
			}
		}
		// The same closing 12 times at once is one closing.
		before := storetest.Value(s.users.Get(t.Context(), "jane"))(t)
		for range 12 {
			wg.Go(func() { s.Call(set, `{"userId":"jane","status":"closed"}`) })
		}
		wg.Wait()
		if after, err := s.users.Get(t.Context(), "jane"); err != nil || after.SV != before.SV+1 {
			t.Errorf("sv %d, before %d, %v", after.SV, before.SV, err)
		}
	})
}

// D-KYC-03: a login that is completed while its account is closed does not survive.
func TestALoginBornMeanwhile(t *testing.T) {
	standingBoth(t, func(s standingSite) {
		for range 8 {
			u := storetest.Value(s.users.Get(t.Context(), "jane"))(t)
			var born error
			var wg sync.WaitGroup
			wg.Go(func() { // as the owner of a challenge commits it
				born = s.DB.Commit(t.Context(), commit.Guard{On: commit.UserCredentials, Key: u.ID, Version: u.CV},
					session.Add{CV: u.CV, Session: session.Session{ID: id.New(time.Now()), UserID: u.ID, CreatedAt: time.Now(),
						LastSeenAt: time.Now(), ExpiresAt: time.Now().Add(time.Hour), SV: u.SV}})
			})
			wg.Go(func() { storetest.Must(t, s.sets("root", u.ID, user.Blocked)) })
			wg.Wait()
			living, err := sessionstore.NewSessions(s.DB).Count(t.Context(), u.ID, time.Now())
			if err != nil || living != 0 || s.revocations.Live(u.ID, "any", u.SV) {
				t.Errorf("%d sessions live, %v; the login: %v", living, err, born)
			}
			storetest.Must(t, s.sets("root", u.ID, user.Active))
		}
	})
}
