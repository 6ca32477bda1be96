package office_test

import (
	"context"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"castellan/persistence"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
	"castellan/persistence/record"
)

// A backlog has the pending requests, without those that have expired by the clock of the database.
func TestBacklogsOfOffice(t *testing.T) {
	o := persistence.Options{Now: func() time.Time { return time.UnixMilli(1000) }}
	persistencetest.BothWith(t, o, func(t *testing.T, db *persistence.DB) {
		for _, statement := range []string{
			`INSERT INTO deploy_request (status, comment, type, requestor_id, decider_id, created_at, updated_at, service_name,
				original_service_name, build_number, minutes) VALUES ('APPROVED', '', 'x', 'u', '', 10, 10, 's', 's', '1', 1),
				('PENDING', '', 'x', 'u', '', 30, 31, 's', 's', '1', 1), ('PENDING', '', 'x', 'u', '', 40, 9, 's', 's', '1', 1)`,
			`INSERT INTO vpn_request (user_name, name, surname, status, comment, type, requestor_id, decider_id, created_at,
				updated_at) VALUES ('a', '', '', 'REJECTED', '', '', 'u', '', 5, 5),
				('a', '', '', 'PENDING', '', '', 'u', '', 50, 6), ('a', '', '', 'PENDING', '', '', 'u', '', 60, 7)`,
			`INSERT INTO four_eyes (id, method, path, summary, requested_by, requested_at, expires_at, status, decided_by,
				decided_at, reason) VALUES ('1', '', '', '', 'u', 7, 1000, 'PENDING', '', 0, ''),
				('2', '', '', '', 'u', 70, 1001, 'PENDING', '', 0, ''), ('3', '', '', '', 'u', 80, 1001, 'REFUSED', 'v', 8, ''),
				('4', '', '', '', 'u', 90, 9999, 'PENDING', '', 0, '')`,
		} {
			persistencetest.Exec(t, db, statement)
		}
		for name, c := range map[string]struct {
			query  func(context.Context, *persistence.DB, int) *bun.SelectQuery
			oldest int64
		}{"deploys": {office.DeployBacklog, 30}, "VPNs": {office.VPNBacklog, 50}, "approvals": {office.ApprovalBacklog, 70}} {
			for most, more := range map[int]bool{1: true, 2: false} {
				got, err := record.ReadBacklog(t.Context(), db, most, c.query(t.Context(), db, most))
				if err != nil || got.Count != most || got.More != more || got.Oldest.UnixMilli() != c.oldest {
					t.Errorf("%s, at most %d: %+v, %v", name, most, got, err)
				}
			}
		}
	})
}
