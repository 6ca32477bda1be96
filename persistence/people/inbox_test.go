package people_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/inbox"
	"castellan/persistence"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

// A backlog has the pending entries only, without those that have expired by the clock of the database, and the
// creation of the oldest.
func TestBacklogs(t *testing.T) {
	o := persistence.Options{Now: func() time.Time { return time.UnixMilli(1000) }}
	persistencetest.BothWith(t, o, func(t *testing.T, db *persistence.DB) {
		s, ctx := people.NewInbox(db), t.Context()
		for i, aml := range []string{user.NotRisky, "risky", "risky"} {
			u := user.New(fmt.Sprint("u", i), time.UnixMilli(1000))
			u.AMLStatus = aml
			storetest.Must(t, db.Commit(ctx, user.Add{User: u}))
		}
		for _, statement := range []string{
			`INSERT INTO aml_finding (id, external_id, user_id, status, source, reference, detail, at)
				VALUES ('f1', 'x1', 'u1', 'risky', '', '', '', 2000), ('f2', 'x2', 'u1', 'risky', '', '', '', 3000),
				('f3', 'x3', 'u2', 'risky', '', '', '', 4000)`,
			`INSERT INTO deploy_request (status, comment, type, requestor_id, decider_id, created_at, updated_at, service_name,
				original_service_name, build_number, minutes) VALUES ('APPROVED', '', 'x', 'u1', '', 10, 10, 's', 's', '1', 1),
				('PENDING', '', 'x', 'u1', '', 30, 30, 's', 's', '1', 1), ('PENDING', '', 'x', 'u1', '', 40, 40, 's', 's', '1', 1)`,
			`INSERT INTO vpn_request (user_name, name, surname, status, comment, type, requestor_id, decider_id, created_at,
				updated_at) VALUES ('a', '', '', 'REJECTED', '', '', 'u', '', 5, 5),
				('a', '', '', 'PENDING', '', '', 'u', '', 50, 6), ('a', '', '', 'PENDING', '', '', 'u', '', 60, 7)`,
			`INSERT INTO corporate_application (external_id, company_name, folded_name, tax_number, status, created_at)
				VALUES ('a', 'A', 'a', '1', 'APPROVED', 1), ('b', 'B', 'b', '2', 'PENDING', 5)`,
			`INSERT INTO four_eyes (id, method, path, summary, requested_by, requested_at, expires_at, status, decided_by,
				decided_at, reason) VALUES ('q1', 'POST', '/', '', 'u1', 7, 1000, 'PENDING', '', 0, ''),
				('q2', 'POST', '/', '', 'u1', 9, 1001, 'PENDING', '', 0, ''),
				('q3', 'POST', '/', '', 'u1', 6, 9007199254740991, 'REFUSED', 'u2', 7, 'no')`,
			`INSERT INTO document (id, user_id, name, mime_type, type, name_texts, description_texts, status, reason, path,
				size, created_at, updated_at) VALUES ('d1', 'u0', '', '', 1, '{}', '{}', 'x', 'waitingApproval', '1', 0, 11, 11),
				('d2', 'nobody', '', '', 1, '{}', '{}', 'x', 'waitingApproval', '2', 0, 10, 10),
				('d3', 'u0', '', '', 1, '{}', '{}', 'x', 'approved', '3', 0, 9, 9)`,
		} {
			persistencetest.Exec(t, db, statement)
		}
		wants := map[inbox.Queue]page.Backlog{
			inbox.AML: {Count: 2, Oldest: time.UnixMilli(3000)}, inbox.Deploys: {Count: 2, Oldest: time.UnixMilli(30)},
			inbox.Applications: {Count: 1, Oldest: time.UnixMilli(5)}, inbox.Approvals: {Count: 1, Oldest: time.UnixMilli(9)},
			inbox.VPN:       {Count: 2, Oldest: time.UnixMilli(50)},
			inbox.Documents: {Count: 1, Oldest: time.UnixMilli(11)}}
		for _, q := range inbox.Queues {
			got := storetest.Value(s.Backlog(ctx, q.Queue))(t)
			if want := wants[q.Queue]; got.Count != want.Count || got.More || !got.Oldest.Equal(want.Oldest) {
				t.Errorf("%s: %+v, want %+v", q.Queue, got, want)
			}
		}
	})
}
