package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/persistence"
)

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

// A refused login has its cause in both lists. Only callers with the permission read it (D-USR-04).
func TestLoginHistoryHasTheReason(t *testing.T) {
	userBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		l := session.Login{ID: "L0", UserID: "01USER00000000000000000001", At: now, IP: "192.0.2.1"}
		l.Refusal = session.Refusal{Reason: session.WrongPassword, Standing: password.Standing{Tries: 10, Limit: 10,
			LockedUntil: now.Add(15 * time.Minute)}}
		storetest.Must(t, db.Commit(t.Context(), session.RememberRefused{Login: l}))
		l.ID, l.Refusal = "L1", session.Refusal{Reason: session.NotAdmitted, Standing: password.Standing{Tries: 1, Limit: 10}}
		storetest.Must(t, db.Commit(t.Context(), session.RememberRefused{Login: l}))
		const mine, from = "GET /admin/login-history?userId=01USER00000000000000000001",
			"GET /admin/login-history-v2?ipaddress=192.0.2.1"
		for _, line := range []string{mine, from} {
			status, got := s.Call(line, "")
			country, wrong, _ := strings.Cut(got, "},{")
			if status != 200 ||
				!strings.HasSuffix(country, `"reason":"country","attempt":1,"attemptLimit":10,"lockedUntil":null`) ||
				!strings.HasSuffix(wrong, `"reason":"password","attempt":10,"attemptLimit":10,`+
					`"lockedUntil":"2026-03-31T23:15:00.000Z"}]`) {
				t.Errorf("%s: %d %s", line, status, got)
			}
		}
	})
}

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
		if n := res.Header.Get("X-Total-Count"); n != "6" {
			t.Errorf("%s of 6 are counted", n)
		}
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
