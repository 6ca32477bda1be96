package account_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	"castellan/domain/session/session"
	httpuser "castellan/http/account/user"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/persistencetest"
	sessionstore "castellan/persistence/session"
)

// now is when the tests play: late on a day, so that a day is not 24 hours ago.
var now = time.Date(2026, 3, 31, 23, 0, 0, 0, time.UTC)

func TestMain(m *testing.M) { apitest.Main(m, "user") }

func hash(number string) string { return "hash of " + number }

// person is account n, registered so many days ago; the first is the newest.
func person(n, daysAgo int) user.Add {
	u := user.New(fmt.Sprintf("01USER%020d", n), now.AddDate(0, 0, -daysAgo))
	u.Name, u.Surname = fmt.Sprint("Ayşe ", n), "Yılmaz"
	u.CountryCode, u.Phone, u.Email = "90", fmt.Sprintf("+9053210000%02d", n), fmt.Sprintf("u%d@example.com", n)
	return user.Add{User: u}
}

func userBoth(t *testing.T, test func(t *testing.T, s *apitest.Site, db *persistence.DB)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		one, two, three := person(1, 60), person(2, 29), person(3, 0)
		one.IdentityHash, one.TaxNumber, one.BirthDate, one.Type = hash("10000000146"), "77", "1990-05-01", user.Corporate
		three.Level = 77 // a level that no longer exists
		two.KYCConfirm, two.Status = user.ManuelApproved, user.Blocked
		storetest.Must(t, db.Commit(t.Context(), one, two, three))
		test(t, apitest.Serve(t, edge.Options{}, httpuser.Group{Users: accountstore.NewUsers(db),
			Directory: accountstore.NewUsers(db), Sessions: sessionstore.NewSessions(db),
			CountryName:    func(code, language string) string { return code + " " + language },
			HashesIdentity: func(n string) []string { return []string{hash(n)} },
			Now:            clock, Levels: levelNames(money.NewLevels(db)), Profiles: profiles(db),
			Statuses: func() []string { return []string{"active", "blocked", "frozen"} }}), db)
	})
}

func levelNames(levels level.Store) func(context.Context) ([]httpuser.LevelName, error) {
	return func(ctx context.Context) (names []httpuser.LevelName, err error) {
		all, err := levels.List(ctx, level.Query{})
		for _, l := range all {
			names = append(names, httpuser.LevelName{ID: int(l.ID), Label: l.Label})
		}
		return names, err
	}
}

// wantsUsers gets a list and compares the numbers of the accounts in it.
func wantsUsers(t *testing.T, s *apitest.Site, line, want string) {
	t.Helper()
	r, body := s.Send(line, "")
	var items []struct{ UserID string }
	if err := json.Unmarshal([]byte(body), &items); err != nil || r.StatusCode != 200 {
		t.Fatalf("%s: %d %s", line, r.StatusCode, body)
	}
	var got []string
	for _, i := range items {
		got = append(got, strings.TrimLeft(strings.TrimPrefix(i.UserID, "01USER"), "0"))
	}
	storetest.Equal(t, strings.Join(got, " "), want, line, got)
}

// REQ-USR-03, REQ-USR-05, D-USR-02.
func TestList(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, _ *persistence.DB) {
		s.Wants("GET /admin/list-users?email=U2@Example.com", "", 200, `[{"userId":"01USER00000000000000000002",`+
			`"fullName":"Ayşe 2 Yılmaz","email":"u2@example.com","phoneNumber":"+905321000002","kycConfirm":true,`+
			`"status":"blocked"}]`)
		for query, want := range map[string]string{
			"": "1 2 3", "isSortedByDate=true": "3 2 1", "userId=01USER00000000000000000003": "3", "userId=x": "",
			"identityNumber=10000000146": "1", "identityNumber=1": "", "taxNumber=77": "1", "taxNumber=7": "",
			"phoneNumber=%2B905321000002": "2", "phoneNumber=+90 532 100 00 02": "2", "phoneNumber=00905321000002": "2",
			"phoneNumber=905321000002": "2", "phoneNumber=٠٥٣٢١٠٠٠٠٠٢": "2", "phoneNumber=5321000002": "2",
			"phoneNumber=0532 100 00 02": "2",
			"phoneNumber=%2B5321000002":  "", "phoneNumber=005321000002": "", "phoneNumber=532100000": "",
			"search=yilmaz ayse 3": "3", "search=532 100 00 02": "2", "search=u2@exam": "2", "search=ilmaz": "",
			"phoneNumber=0": "", "email=u2@example.co": "", "fullName=YILMAZ": "1 2 3", "fullName=şe 3": "3",
			"fullName=%25": "", "fullName='; DROP TABLE users --": "",
			"kycConfirm=true": "2", "kycConfirm=0": "1 3", "birthDate=1990-05-01": "1", "birthDate=1990-05-02": "",
			"birthDate=641520000000": "1", "type=bireysel": "2 3", "type=kurumsal": "1", "status=active": "1 3",
			"status=frozen": "", "status=active&type=kurumsal": "1", "kycConfirm=true&status=active": "",
		} {
			wantsUsers(t, s, "GET /admin/list-users?"+strings.ReplaceAll(query, " ", "%20"), want)
		}
		for body, want := range map[string]string{
			`{"userId":"","identityNumber":" ","taxNumber":""}`: "userId identityNumber taxNumber",
			`{"fullName":" ","phoneNumber":"x","email":"x"}`:    "fullName phoneNumber email",
			`{"birthDate":"x","type":"x"}`:                      "birthDate type", `{"search":" % "}`: "search",
			`{"phoneNumber":"+"}`: "phoneNumber", `{"phoneNumber":"00"}`: "phoneNumber",
			`{"phoneNumber":"0+5"}`: "phoneNumber", `{"phoneNumber":"९x"}`: "phoneNumber", `{"status":"x"}`: "status",
		} {
			s.Wants("GET /admin/list-users", body, 400, "INVALID_FIELD "+want)
		}
	})
}

// REQ-USR-10, REQ-USR-14, REQ-USR-15, D-USR-05.
func TestRegistrationsAndCounts(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, _ *persistence.DB) {
		const dates, counts = "GET /admin/get-users-by-register-date", "GET /admin/get-user-counts-by-register-date"
		wantsUsers(t, s, dates+"?beginDate=2026-01-30&endDate=2026-03-31", "3 2 1")
		wantsUsers(t, s, dates+"?beginDate=2026-01-31&endDate=2026-03-30", "2")
		s.Wants(dates+"?beginDate=2026-03-31T23:00:00.000Z&endDate=2026-03-31T23:00", "", 200,
			`[{"userId":"01USER00000000000000000003","fullName":"Ayşe 3 Yılmaz","email":"u3@example.com",`+
				`"phoneNumber":"+905321000003","kycConfirm":false,"status":"active","createdAt":"2026-03-31T23:00:00.000Z"}]`)
		s.Wants(counts+"?beginDate=2026-01-01&endDate=2026-03-30", "", 200,
			`[{"description":"2026-01-30","customerCount":1},{"description":"2026-03-02","customerCount":1}]`)
		for _, line := range []string{dates, counts} {
			s.Wants(line+"?beginDate=2026-03-02&endDate=2026-03-01", "", 400, "INVALID_FIELD beginDate")
		}

		const status = "GET /user/total-count-by-status"
		s.Wants(status, "", 200, `[{"statusCode":"active","statusName":"Active","total":2},`+
			`{"statusCode":"blocked","statusName":"Blocked","total":1},{"statusCode":"frozen","statusName":"frozen","total":0}]`)
		s.Wants(status+"?statusCode=blocked&_requesterLanguage=tr", "", 200,
			`[{"statusCode":"blocked","statusName":"Engelli","total":1}]`)
		s.Wants(status+"?statusCode=closed", "", 400, "INVALID_FIELD statusCode")

		s.Wants("GET /admin/get-count-of-users-by-level", "", 200, `[{"levelId":0,"levelLabel":"Unconfirmed","total":2},`+
			`{"levelId":1,"levelLabel":"Confirmed","total":0},{"levelId":2,"levelLabel":"Extended","total":0},`+
			`{"levelId":10,"levelLabel":"Corporate","total":0},{"levelId":77,"levelLabel":"","total":1}]`)
	})
}

// Every user sees the own account, and no other one. A profile without rows has defaults.
func TestMe(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		for _, n := range []int{1, 2, 3} {
			u := userAccount(t, db, n)
			s.As(u.ID).Wants("GET /auth/me?userId="+person(1, 0).ID, "", 200, fmt.Sprintf(
				`{"data":{"userId":%q,"fullName":%q,"email":%q,"phoneNumber":%q,"roles":[]}}`,
				u.ID, u.FullName(), u.Email, u.Phone))
		}
		s.As(person(1, 0).ID).Wants("GET /user/user-profile", "", 200, `{"totp":false,"isWithdrawProhibited":false}`)
	})
}

// The names of accounts need no permission for the list of accounts; the contact data does.
func TestUserNames(t *testing.T) {
	userBoth(t, func(t *testing.T, _ *apitest.Site, db *persistence.DB) {
		contacts := false
		s := apitest.Serve(t, edge.Options{}, httpuser.Group{Directory: accountstore.NewUsers(db),
			Shows: func(_ rest.Caller, endpoint string) bool { return endpoint == "GET /admin/list-users" && contacts }})
		one, two := person(1, 0).User, person(2, 0).User
		item := func(id, name, mail, phone string) string {
			return fmt.Sprintf(`{"userId":%q,"fullName":%q,"email":%s,"phoneNumber":%s}`, id, name, mail, phone)
		}
		line := "GET /admin/user-names?ids=" + strings.Join([]string{two.ID, "unknown", one.ID, two.ID}, ",")
		s.Wants(line, "", 200, `{"data":[`+item(one.ID, one.FullName(), "null", "null")+`,`+
			item(two.ID, two.FullName(), "null", "null")+`]}`)
		contacts = true
		s.Wants(line, "", 200, `{"data":[`+item(one.ID, one.FullName(), `"`+one.Email+`"`, `"`+one.Phone+`"`)+`,`+
			item(two.ID, two.FullName(), `"`+two.Email+`"`, `"`+two.Phone+`"`)+`]}`)
		s.Wants("GET /admin/user-names?ids=unknown", "", 200, `{"data":[]}`)

		hundred := strings.TrimSuffix(strings.Repeat("x,", 100), ",")
		s.Wants("GET /admin/user-names?ids="+hundred, "", 200, `{"data":[]}`)
		for _, query := range []string{"?ids=", "?ids=" + hundred + ",x", "?ids=" + strings.Repeat("x", 65)} {
			s.Wants("GET /admin/user-names"+query, "", 400, "INVALID_FIELD ids")
		}
	})
}

// The days of the last month are those of UTC, whatever the zone of the clock. At each instant one of the zones has
// another date than UTC.
func TestDailyCountIsByUTC(t *testing.T) {
	db := persistencetest.SQLite(t)
	storetest.Must(t, db.Commit(t.Context(), person(1, 0), person(2, 29), person(3, 30)))
	for _, at := range []time.Time{now, now.Add(-22 * time.Hour)} {
		for _, hours := range []int{-11, 0, 13} {
			zone := time.FixedZone(fmt.Sprint(hours), hours*3600)
			s := apitest.Serve(t, edge.Options{}, httpuser.Group{Directory: accountstore.NewUsers(db),
				Now: func() time.Time { return at.In(zone) }})
			_, body := s.Send("GET /user/last-month-user-count-day-by-day", "")
			var days []struct {
				Description   string
				CustomerCount int
			}
			if err := json.Unmarshal([]byte(body), &days); err != nil || len(days) != 30 {
				t.Fatalf("%s, zone %d: %s", at, hours, body)
			}
			if first, last := days[0], days[29]; first.Description != "2026-03-02" || first.CustomerCount != 1 ||
				days[1].CustomerCount != 0 || last.Description != "2026-03-31" ||
				at.Equal(now) != (last.CustomerCount == 1) {
				t.Errorf("%s, zone %d: %+v to %+v", at, hours, first, last)
			}
		}
	}
}

// REQ-USR-16, D-USR-08.
func TestActiveUsers(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		for n, at := range map[int]time.Time{1: now.AddDate(0, -2, 0), 2: now} {
			storetest.Must(t, db.Commit(t.Context(), user.LoggedIn{UserID: person(n, 0).ID, At: at}))
		}
		const line = "GET /admin/get-active-users"
		wantsUsers(t, s, line, "2")
		wantsUsers(t, s, line+"?pastMonths=3", "2 1")
	})
}

// noRefusal is the end of a line without a cause.
const noRefusal = `"reason":null,"attempt":null,"attemptLimit":null,"lockedUntil":null`

// REQ-USR-08, REQ-USR-09, D-USR-04.
func TestLoginHistory(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		const one = "01USER00000000000000000001"
		for i := range 7 {
			l := session.Login{ID: fmt.Sprint("L", i), UserID: one, At: now.Add(time.Duration(i) * time.Second),
				IP: "192.0.2.1", Country: "TR", Brand: "b", Model: "m", Description: "d", Success: i%2 == 0}
			if i == 5 {
				l.UserID, l.IP, l.Country = "", "2001:db8::1", ""
			}
			storetest.Must(t, db.Commit(t.Context(), session.Remember{Login: l}))
		}
		line := func(i int, success bool) string {
			return fmt.Sprintf(`{"id":"L%d","userId":"%s","ipaddress":"192.0.2.1","deviceBrand":"b","deviceModel":"m",`+
				`"deviceDesc":"d","countryName":"TR en",`+
				`"success":%t,"createdAt":"2026-03-31T23:00:0%d.000Z",`+noRefusal+`}`, i, one, success, i)
		}
		const mine, from = "GET /admin/login-history?userId=" + one, "GET /admin/login-history-v2"
		s.Wants(mine, "", 200, "["+line(6, true)+","+line(4, true)+","+line(3, false)+","+line(2, true)+","+
			line(1, false)+"]")
		s.Wants(mine+"&limit=1", "", 200, "["+line(6, true)+"]")
		res, _ := s.Send(mine+"&limit=4&count=true", "")
		_, cursor, _ := strings.Cut(res.Header.Get("Link"), "cursor=")
		cursor, _, _ = strings.Cut(cursor, "&")
		s.Wants(mine+"&limit=4&cursor="+cursor, "", 200, "["+line(1, false)+","+line(0, true)+"]")
		storetest.Equal(t, res.Header.Get("X-Total-Count"), "6", "of 6 are counted")
		s.Wants("GET /admin/login-history?userId=nobody", "", 200, "[]")
		for _, ip := range []string{"2001:db8::1", "2001:DB8:0::1"} {
			s.Wants(from+"?ipaddress="+ip, "", 200, `[{"id":"L5","userId":null,"ipaddress":"2001:db8::1","deviceBrand":"b",`+
				`"deviceModel":"m","deviceDesc":"d","countryName":null,"success":false,`+
				`"createdAt":"2026-03-31T23:00:05.000Z",`+noRefusal+`}]`)
		}
		s.Wants(from+"?ipaddress=192.0.2.2", "", 200, "[]")
		s.Wants(from+"?ipaddress=192.0.2.1/24", "", 400, "INVALID_FIELD ipaddress")
	})
}

// D-EXT-15: the refused logins of all accounts are listed with their cause, and no completed login. The answer has no
// name and no contact data. The histories of an account and of an address have the cause, too (D-USR-04).
func TestRefusedLogins(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		const list = "GET /admin/refused-logins"
		s.Wants(list, "", 200, "[]")
		one, two := person(1, 60).ID, person(2, 29).ID
		var writes []commit.Write
		for i, userID := range []string{one, two, two, one, ""} {
			l := session.Login{ID: fmt.Sprint("L", i), UserID: userID, At: now.Add(time.Duration(i) * time.Second),
				IP: "192.0.2.1", Country: "TR", Brand: "b", Model: "m", Description: "d", Success: i == 1}
			if userID == "" || l.Success {
				writes = append(writes, session.Remember{Login: l}) // a refusal of an earlier release
				continue
			}
			l.Refusal = session.Refusal{Reason: session.Inactive, Standing: password.Standing{Tries: i, Limit: 10}}
			if i == 3 {
				l.Refusal.Reason, l.Refusal.Standing.LockedUntil = session.WrongPassword, now.Add(15*time.Minute)
			}
			writes = append(writes, session.RememberRefused{Login: l})
		}
		storetest.Must(t, db.Commit(t.Context(), writes...))
		line := func(i int, userID, cause string) string {
			return fmt.Sprintf(`{"id":"L%d","userId":%s,"ipaddress":"192.0.2.1","deviceBrand":"b","deviceModel":"m",`+
				`"deviceDesc":"d","countryName":"TR en","success":false,"createdAt":"2026-03-31T23:00:0%d.000Z",%s}`,
				i, userID, i, cause)
		}
		cause := func(attempt int) string {
			return fmt.Sprintf(`"reason":"status","attempt":%d,"attemptLimit":10,"lockedUntil":null`, attempt)
		}
		lines := []string{line(4, "null", noRefusal), line(3, `"`+one+`"`, `"reason":"password","attempt":3,`+
			`"attemptLimit":10,"lockedUntil":"2026-03-31T23:15:00.000Z"`), line(2, `"`+two+`"`, cause(2)),
			line(0, `"`+one+`"`, cause(0))}
		s.Wants(list, "", 200, "["+strings.Join(lines, ",")+"]")
		s.Wants("GET /admin/login-history?userId="+one, "", 200, "["+lines[1]+","+lines[3]+"]")
		completed := strings.Replace(line(1, `"`+two+`"`, noRefusal), "false", "true", 1)
		s.Wants("GET /admin/login-history-v2?ipaddress=192.0.2.1", "", 200,
			"["+strings.Join(slices.Insert(lines, 3, completed), ",")+"]")
	})
}
