//go:build faults

package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

const broadcastMany = 500

// broadcastKills is how often the service is killed during one job. On PostgreSQL each kill takes 15 s,
// because another process might run the job.
var broadcastKills = map[string]int{"sqlite": 10, "postgres": 3}

// The service is killed repeatedly while it sends an SMS and a notification to five hundred users. No user
// gets it twice, and every user is counted. At most one window of items for each kill has an unknown result
// (D-ADM-04, D-ADM-05).
func TestFaultsBroadcastSendsOnce(t *testing.T) {
	var ids []string
	for i := range broadcastMany {
		ids = append(ids, fmt.Sprint("BULK", 1_000_001+i))
	}
	for _, c := range []struct {
		name, path string
		body       map[string]any
		outside    func(s *blackbox.Site) *blackbox.Postbox
	}{
		{"sms", "/send-bulk-sms", map[string]any{"userIds": ids, "messageBody": "SOL can be traded."},
			(*blackbox.Site).Gateway},
		{"notification", "/admin/send-notification", map[string]any{"memberId": ids, "topic": "security",
			"title": "New device", "body": "Look at your devices."}, (*blackbox.Site).Relay},
	} {
		t.Run(c.name, func(t *testing.T) {
			blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
				s.Set("LIMITS_ENABLED=false")
				n := s.Start()
				boss := blackbox.Admin(t, s, n)
				phone := blackbox.Enrolled(t, n, s.Seeded("admin"), boss)
				blackbox.Bulk(t, s, broadcastMany)
				s.Exec("UPDATE users SET country_code = '90' WHERE id LIKE 'BULK%'")
				n.Stop()
				box := c.outside(s)
				box.Slow(8 * time.Millisecond)
				n = s.Start()
				var started struct {
					Data struct {
						ID    string
						Count int
					}
				}
				n.Ok(t, "POST", c.path, c.body, blackbox.Headers{"x-auth": boss["x-auth"], "otp": phone.Next(t)}).
					Read(t, &started)
				storetest.Equal(t, started.Data.Count, broadcastMany, "recipients")
				m := &blackbox.Mailing{Site: s, T: t, Box: box, ID: started.Data.ID, Who: boss, Many: broadcastMany}
				kills := broadcastKills[s.Kind]
				for i := range kills {
					m.Moves(blackbox.Within(30), fmt.Sprint("messages before kill ", i))
					time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
					n.Kill()
					n = s.Start()
				}
				box.Slow(0)
				var j blackbox.AJob
				blackbox.Until(t, blackbox.Within(90), "the job over", func() bool {
					var ok bool
					j, ok = m.At(n)
					return ok && j.Over()
				})
				got := map[string]int{}
				for _, d := range box.Deliveries() {
					if d.To == s.Seeded("admin").Mail { // a notice of the authenticator above
						continue
					}
					if got[d.To]++; got[d.To] > 1 {
						t.Errorf("%s got it %d times", d.To, got[d.To])
					}
				}
				if j.Status != "done" || j.Total != broadcastMany || j.Done+j.Failed+j.Unknown+j.Skipped != j.Total ||
					j.Failed != 0 || j.Skipped != 0 || j.Unknown > 20*kills {
					t.Errorf("after %d kills: %+v", kills, j)
				}
				if len(got) < j.Done || len(got) > j.Done+j.Unknown {
					t.Errorf("%d were reached: %+v", len(got), j)
				}
				if c.name == "notification" { // it commits with the outcome
					users := "notification WHERE user_id LIKE 'BULK%'"
					rows, of := s.Count(users), s.Count("(SELECT DISTINCT user_id FROM "+users+") AS u")
					if rows != j.Done || of != rows {
						t.Errorf("%d notifications of %d users: %+v", rows, of, j)
					}
				}
				t.Logf("%d kills: %d done, %d unknown, %d failed, %d skipped of %d; %d were reached", kills, j.Done,
					j.Unknown, j.Failed, j.Skipped, j.Total, len(got))
			})
		})
	}
}
