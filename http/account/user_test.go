package account_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/storetest"
	"castellan/domain/money/level"
	httpuser "castellan/http/account/user"
	"castellan/http/apitest"
	"castellan/http/edge"
	"castellan/persistence"
	accountstore "castellan/persistence/account"
	"castellan/persistence/money"
	"castellan/persistence/session"
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
			Directory: accountstore.NewUsers(db), Sessions: session.NewSessions(db),
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
func wantsUsers(t *testing.T, s *apitest.Site, line, want string) *http.Response {
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
	if strings.Join(got, " ") != want {
		t.Errorf("%s: %v, want %s", line, got, want)
	}
	return r
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
		r := wantsUsers(t, s, "GET /admin/list-users?limit=2&count=true", "1 2")
		next, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Link"), "<"), ">")
		if wantsUsers(t, s, "GET "+next, "3"); r.Header.Get("X-Total-Count") != "3" {
			t.Errorf("counted %s", r.Header.Get("X-Total-Count"))
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

		_, body := s.Send("GET /user/last-month-user-count-day-by-day", "")
		var days []struct {
			Description   string
			CustomerCount int
		}
		storetest.Must(t, json.Unmarshal([]byte(body), &days))
		if len(days) != 30 || days[0].Description != "2026-03-02" || days[0].CustomerCount != 1 ||
			days[1].CustomerCount != 0 || days[29].Description != "2026-03-31" || days[29].CustomerCount != 1 {
			t.Errorf("the last month: %+v", days)
		}
	})
}
