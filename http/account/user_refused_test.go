package account_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/storetest"
	"castellan/domain/session/session"
	"castellan/http/apitest"
	"castellan/persistence"
)

// D-EXT-15: the refused logins of all accounts are listed page by page with their cause, and no completed login. The
// answer has no name and no contact data.
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
		lines := []string{line(4, "null", noRefusal), line(3, `"`+one+`"`, cause(3)), line(2, `"`+two+`"`, cause(2)),
			line(0, `"`+one+`"`, cause(0))}
		s.Wants(list, "", 200, "["+strings.Join(lines, ",")+"]")
		res, body := s.Send(list+"?limit=3&count=true", "")
		if n := res.Header.Get("X-Total-Count"); n != "4" || body != "["+strings.Join(lines[:3], ",")+"]" {
			t.Errorf("the first page: %s of 4 are counted, %s", n, body)
		}
		_, next, _ := strings.Cut(res.Header.Get("Link"), "cursor=")
		next, _, _ = strings.Cut(next, "&")
		s.Wants(list+"?limit=3&cursor="+next, "", 200, "["+lines[3]+"]")
	})
}
