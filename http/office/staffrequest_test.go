package office_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/staffrequest"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpapproval "castellan/http/office/staffrequest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/office"
	"castellan/persistence/persistencetest"
)

func staffrequestBoth(t *testing.T, test func(t *testing.T, s *apitest.Site, db *persistence.DB)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		jane := user.New("jane", time.Now())
		jane.Name, jane.Surname, jane.Phone = "Jane", "Doe", "+905321234567"
		storetest.Must(t, db.Commit(t.Context(), user.Add{User: jane}))
		now := time.UnixMilli(1_700_000_000_000)
		service := &staffrequest.Service{Deploys: office.NewDeploys(db), VPNs: office.NewVPNs(db),
			Users: account.NewUsers(db), Changes: admin.Changes{Commit: db, Now: func() time.Time { return now }}}
		test(t, apitest.Serve(t, edge.Options{}, httpapproval.Group{Service: service}).Below("/admin/"), db)
	})
}

const at = `"created_at":"2023-11-14T22:13:20.000Z","updated_at":"2023-11-14T22:13:20.000Z"}`

func TestDeployRequests(t *testing.T) {
	staffrequestBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		record := func(id int, name, status string, minutes int, decider string) string {
			return fmt.Sprintf(`{"id":%d,"service_name":"%s","original_service_name":"o","build_number":"7","status":"%s",`+
				`"duration_minutes":%d,"comment":"c","type":"Api","requestor_userid":"admin","approver_rejection_userid":%s,`,
				id, name, status, minutes, decider) + at
		}
		const fields = `"original_service_name":"o","build_number":"7","comment":"c","type":"Api"`
		first, second := record(1, "a", "PENDING", 15, "null"), record(2, "b", "APPROVED", 1, "null")
		// REQ-DVP-02, 03: what the server fills is ignored (SEC-26), and so is a null status.
		s.Wants("POST deploy-request", `{"service_name":"a",`+fields+`,"duration_minutes":"15","status":null,"id":9,
			"requestor_userid":"x","approver_rejection_userid":"y","created_at":1,"updated_at":1}`, 200, `{"data":`+first+`}`)
		s.Wants("POST deploy-request", `{"service_name":"b",`+fields+`,"duration_minutes":1,"status":"APPROVED"}`, 200,
			`{"data":`+second+`}`)
		for query, want := range map[string]string{ // REQ-DVP-01, D-DVP-01, D-DVP-02
			"":                     first,
			"?id=2":                second,
			"?id=2&status=PENDING": "", "?status=ALL": second + "," + first, "?status=APPROVED": second,
			"?type=Api": first, "?type=API": "", "?service_name=a": first, "?service_name=b": "",
			"?original_service_name=o": first, "?status=ALL&limit=1&service_name=a": first, "?id=99": "",
		} {
			s.Wants("GET deploy-request"+query, "", 200, "["+want+"]")
		}

		// REQ-DVP-04, D-DVP-04: every move, and the caller is the one who decided.
		for _, status := range []string{"APPROVED", "REJECTED", "PENDING", "REJECTED"} {
			s.As("cto").Wants("POST update-deploy-request", `{"id":"1","status":"`+status+`"}`, 403, "FORBIDDEN")
			s.Wants("POST update-deploy-request", `{"id":"1","status":"`+status+`","approver_rejection_userid":"x"}`, 200,
				`{"data":`+record(1, "a", status, 15, `"admin"`)+`}`)
		}
		s.Wants("POST update-deploy-request", `{"id":2,"duration_minutes":30,"service_name":"n","requestor_userid":"x",
			"type":"T"}`, 200, `{"data":`+record(2, "n", "APPROVED", 30, `"admin"`)+`}`)
		s.Wants("GET deploy-request?id=2", "", 200, "["+record(2, "n", "APPROVED", 30, `"admin"`)+"]")

		if got := audited(t, db); got != "DEPLOY_REQUEST_ADD 1 admin PENDING\nDEPLOY_REQUEST_ADD 2 admin APPROVED\n"+
			"DEPLOY_REQUEST_UPDATE 1 admin APPROVED -> REJECTED\nDEPLOY_REQUEST_UPDATE 1 admin PENDING -> APPROVED\n"+
			"DEPLOY_REQUEST_UPDATE 1 admin PENDING -> REJECTED\nDEPLOY_REQUEST_UPDATE 1 admin REJECTED -> PENDING\n"+
			"DEPLOY_REQUEST_UPDATE 2 admin APPROVED -> APPROVED, ServiceName Minutes\n" {
			t.Errorf("audited\n%s", got)
		}
	})
}

func TestVPNRequests(t *testing.T) {
	staffrequestBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		record := func(name, status, comment, decider string) string {
			return fmt.Sprintf(`{"id":1,"user_name":"%s","name":"Jane","surname":"Doe","status":"%s","comment":"%s",`+
				`"type":"DEVELOPER","requestor_userid":"jane","approver_rejection_userid":%s,`, name, status, comment,
				decider) + at
		}
		first := record("j", "PENDING", "", "null")
		// REQ-DVP-06, 07: name and surname come from the account.
		s.Wants("POST vpn-request", `{"userId":"jane","user_name":"j","type":"Developer","name":"x","surname":"y",
			"requestor_userid":"z"}`, 200, `{"data":`+first+`}`)
		for query, want := range map[string]string{ // REQ-DVP-05, D-DVP-02
			"": first, "?type=developer": first, "?type=DEVELOPER": first, "?type=dev": "", "?user_name=j": first,
			"?user_name=J": "", "?status=REJECTED": "", "?id=1": first,
		} {
			s.Wants("GET vpn-request"+query, "", 200, "["+want+"]")
		}
		s.Wants("POST vpn-request", `{"userId":"nobody","user_name":"j","type":"t"}`, 404, "RECORD_NOT_FOUND") // D-DVP-05
		theirs := storetest.Value(office.NewVPNs(db).Add(t.Context(), staffrequest.VPN{
			Request: staffrequest.Request{RequestorID: "admin"}}))(t)
		s.As("clerk").Wants("POST update-vpn-request", fmt.Sprintf(`{"id":%d,"comment":"x"}`, theirs), 403, "FORBIDDEN")
		// REQ-DVP-08, 10
		s.Wants("POST update-vpn-request", `{"id":1,"status":"APPROVED","comment":"ok"}`, 200,
			`{"data":`+record("j", "APPROVED", "ok", `"admin"`)+`}`)
		s.Wants("POST update-vpn-request", `{"id":1,"user_name":"k","type":"x","name":"x"}`, 200,
			`{"data":`+record("k", "APPROVED", "ok", `"admin"`)+`}`)
		s.Wants("GET vpn-request?id=1", "", 200, "["+record("k", "APPROVED", "ok", `"admin"`)+"]")
		if got := audited(t, db); got != "VPN_REQUEST_ADD 1 jane PENDING\n"+
			"VPN_REQUEST_UPDATE 1 jane APPROVED -> APPROVED, UserName\n"+
			"VPN_REQUEST_UPDATE 1 jane PENDING -> APPROVED, Comment\n" {
			t.Errorf("audited\n%s", got)
		}
	})
}

// Every fault of every field, before any record is looked for (D-GEN-19).
func TestStaffrequestRefusals(t *testing.T) {
	staffrequestBoth(t, func(t *testing.T, s *apitest.Site, db *persistence.DB) {
		const none = "400 INVALID_FIELD service_name original_service_name build_number "
		for _, c := range []struct{ line, body, want string }{
			{"POST update-deploy-request", `{"id":7}`, none + "status duration_minutes comment"},
			{"POST update-deploy-request", `{"id":7,"service_name":"","duration_minutes":-1}`,
				"400 INVALID_FIELD service_name duration_minutes"},
			{"POST update-deploy-request", `{"id":7,"comment":" "}`, "400 INVALID_FIELD comment"},
			{"POST update-deploy-request", `{"id":7,"status":"APPROVED"}`, "404 RECORD_NOT_FOUND"},
			{"POST update-vpn-request", `{"id":7}`, "400 INVALID_FIELD user_name status comment"},
			{"POST update-vpn-request", `{"id":7,"user_name":"\t"}`, "400 INVALID_FIELD user_name"},
			{"POST update-vpn-request", `{"id":7,"comment":""}`, "404 RECORD_NOT_FOUND"},
		} {
			s.Gets(c.line, c.body, c.want)
		}
		s.Wants("GET deploy-request?status=ALL", "", 200, "[]")
		s.Wants("GET vpn-request?status=ALL", "", 200, "[]")
		storetest.Equal(t, audited(t, db), "", "audited")
	})
}

// audited is the audit, sorted: action, target, account and detail.
func audited(t *testing.T, db *persistence.DB) string {
	t.Helper()
	var lines []string
	for _, act := range persistencetest.Acts(t, db) {
		part := strings.SplitN(act, "|", 5)
		lines = append(lines, fmt.Sprintln(part[0], part[3], part[2], part[4]))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
