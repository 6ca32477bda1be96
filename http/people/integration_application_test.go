package people_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/people/corporate"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpintegration "castellan/http/people/integration"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	peoplestore "castellan/persistence/people"
)

// D-INT-06: an application is added once for its external id, and its status is set.
func TestIntegrationApplications(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		store := peoplestore.NewCorporate(db)
		service := &corporate.Service{Store: store, Users: account.NewUsers(db), Claims: kit.NewIntegration(db),
			Changes: admin.Changes{Commit: db, Now: time.Now, Lock: store.Lock}}
		s := apitest.Serve(t, edge.Options{}, httpintegration.Applications{Service: service}).Below("/integration/")
		const add, acme = "POST corporate-applications", `{"externalId":"a1","companyName":"Acme A.Ş.","taxNumber":"77"}`
		same := at(s, add, slices.Repeat([]string{acme}, 8)...)
		if slices.Sort(same[200]); len(same) != 1 || len(slices.Compact(same[200])) != 1 {
			t.Fatalf("answers %v", same)
		}
		first := same[200][0]
		id := field(t, first, "id")
		want := `{"data":{"id":"` + id + `","externalId":"a1","companyName":"Acme A.Ş.","taxNumber":"77",` +
			`"status":"PENDING",` +
			`"createdAt":"`
		if !strings.HasPrefix(first, want) {
			t.Errorf("%s, want %s", first, want)
		}
		approved := strings.Replace(first, "PENDING", "APPROVED", 1)
		for range 2 {
			s.Wants("PATCH corporate-applications/"+id, `{"status":"APPROVED"}`, 200, approved)
		}
		s.Wants(add, acme, 200, approved)
		for body, want := range map[string]string{
			strings.Replace(acme, "77", "78", 1):                    "409 INVALID_STATE",
			strings.Replace(acme, "}", `,"status":"APPROVED"}`, 1):  "409 INVALID_STATE",
			strings.Replace(acme, "a1", strings.Repeat("ş", 65), 1): "400 INVALID_FIELD externalId",
		} {
			status, answer := s.Call(add, body)
			if got := fmt.Sprint(status, " ", apitest.Refusal(answer)); got != want {
				t.Errorf("%s: %d %s, want %s", body, status, answer, want)
			}
		}
		s.Wants("PATCH corporate-applications/x", `{"status":"A"}`, 400, "INVALID_FIELD id")
		s.Wants("PATCH corporate-applications/99", `{"status":"A"}`, 404, "RECORD_NOT_FOUND")
		if n := count(t, db, "corporate_application"); n != 1 {
			t.Errorf("%d applications", n)
		}
		for action, detail := range map[string]string{corporate.ActionAdd: "PENDING",
			corporate.ActionStatus: "PENDING -> APPROVED"} {
			if n := count(t, db, "audit", "action = '"+action+"'", "target = '"+id+"'", "detail = '"+detail+"'"); n != 1 {
				t.Errorf("%d audit rows %s", n, action)
			}
		}
		if n := count(t, db, "audit"); n != 2 {
			t.Errorf("%d audit rows", n)
		}
	})
}
