package account_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	httpuser "castellan/http/account/user"
	"castellan/http/apitest"
	"castellan/http/edge"
	accountstore "castellan/persistence/account"
	"castellan/persistence/persistencetest"
)

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
				last.Description != "2026-03-31" || at.Equal(now) != (last.CustomerCount == 1) {
				t.Errorf("%s, zone %d: %+v to %+v", at, hours, first, last)
			}
		}
	}
}
