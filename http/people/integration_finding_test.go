package people_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/standing"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpintegration "castellan/http/people/integration"
	httpstanding "castellan/http/people/standing"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	peoplestore "castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

const (
	find  = "POST /integration/aml-findings"
	found = `{"externalId":"f1","userId":"jane","status":"risky","source":"screening","reference":"case 7",` +
		`"detail":"Eve"}`
	risky              = "GET /admin/user/get-users-without-aml-confirmed"
	integrationConfirm = "POST /admin/user/update-user-aml-confirmed"
)

type screening struct {
	*apitest.Site
	*testing.T
	db *persistence.DB
}

func bothScreening(t *testing.T, test func(s screening)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		integrationPeople(t, db, "jane", "kurt", "admin")
		parameters, store := kit.NewParameters(db), peoplestore.NewStandings(db)
		live := seeded(t, db)
		service := &standing.Service{Store: store, Users: account.NewUsers(db), Parameters: live, Ignored: parameters,
			Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.Parameters, Follow: live.Follow, Lock: store.Lock},
			Claims:  kit.NewIntegration(db), Hold: persistencetest.HoldQueued(time.Now)}
		test(screening{apitest.Serve(t, edge.Options{}, httpintegration.Findings{Service: service},
			httpstanding.Group{Service: service}), t, db})
	})
}

// is checks the AML status of a user, and whether the user is listed as not confirmed.
func (s screening) is(userID, status string, listed bool) {
	s.Helper()
	u := storetest.Value(account.NewUsers(s.db).Get(s.Context(), userID))(s)
	_, list := s.Call(risky, "")
	if u.AMLStatus != status || strings.Contains(list, `"userId":"`+userID+`"`) != listed {
		s.Errorf("%s is %s, listed %s, want %s %t", userID, u.AMLStatus, list, status, listed)
	}
}

// D-INT-06: a finding makes an AML status worse and never better; a confirmation holds
// until the next finding.
func TestFindings(t *testing.T) {
	bothScreening(t, func(s screening) {
		status, first := s.Call(find, found)
		id := field(t, first, "id")
		want := `{"data":{"id":"` + id + `","externalId":"f1","userId":"jane","status":"risky","source":"screening",` +
			`"reference":"case 7","detail":"Eve","createdAt":"`
		if status != 200 || !strings.HasPrefix(first, want) {
			t.Errorf("%d %s, want %s", status, first, want)
		}
		s.is("jane", "risky", true)
		s.Wants(find, found, 200, first)
		s.Wants("GET /integration/aml-findings/"+id, "", 200, first)
		for n, next := range []struct{ found, then string }{{"notRisky", "risky"}, {"highRisk", "highRisk"},
			{"risky", "highRisk"}, {"notRisky", "highRisk"}} {
			body := swap(found, "f1", fmt.Sprint("g", n), "risky", next.found)
			if status, got := s.Call(find, body); status != 200 || field(t, got, "status") != next.found {
				t.Errorf("%d %s", status, got)
			}
			s.is("jane", next.then, true)
		}
		s.Call(integrationConfirm, `{"userId":"jane"}`)
		s.is("jane", user.NotRisky, false)
		s.Wants(find, found, 200, first) // a repeat is no new finding
		s.Call(find, swap(found, "f1", "h1", "risky", user.NotRisky))
		s.is("jane", user.NotRisky, false)
		s.Call(find, swap(found, "f1", "h2"))
		s.is("jane", "risky", true)
		s.Call(integrationConfirm, `{"userId":"jane"}`)
		s.is("jane", user.NotRisky, false)

		// A status that another program has set stays.
		storetest.Must(t, s.db.Commit(t.Context(), user.SetAMLStatus{UserID: "kurt", Status: "sanctioned"}))
		s.Call(find, swap(found, "f1", "k1", "jane", "kurt", "risky", "highRisk"))
		s.is("kurt", "sanctioned", true)

		var details []string
		storetest.Must(t, s.db.Conn(t.Context()).NewSelect().Table("audit").Column("detail").
			Where("action = ?", standing.ActionFinding).Scan(t.Context(), &details))
		slices.Sort(details) // PostgreSQL's chains of the audit have no common order
		if want := []string{"amlStatus=highRisk", "amlStatus=highRisk", "amlStatus=notRisky", "amlStatus=notRisky -> risky",
			"amlStatus=notRisky -> risky", "amlStatus=risky", "amlStatus=risky -> highRisk",
			"amlStatus=sanctioned"}; !slices.Equal(details, want) {
			t.Errorf("audited %q, want %q", details, want)
		}
	})
}

// swap is a body in which some values are replaced, each once.
func swap(body string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		body = strings.Replace(body, `"`+pairs[i]+`"`, `"`+pairs[i+1]+`"`, 1)
	}
	return body
}

func TestFindingsRefuse(t *testing.T) {
	bothScreening(t, func(s screening) {
		s.Call(find, found)
		for body, want := range map[string]string{
			swap(found, "jane", "kurt"):                "409 INVALID_STATE",
			swap(found, "risky", "highRisk"):           "409 INVALID_STATE",
			swap(found, "Eve", "Mallory"):              "409 INVALID_STATE",
			swap(found, "f1", "f2", "jane", "nobody"):  "404 RECORD_NOT_FOUND",
			swap(found, "f1", strings.Repeat("ş", 65)): "400 INVALID_FIELD externalId",
		} {
			s.Gets(find, body, want)
		}
		s.Wants("GET /integration/aml-findings/x", "", 404, "RECORD_NOT_FOUND")
		storetest.Equal(t, persistencetest.Count(t, s.db, "aml_finding"), 1, "findings")
		s.is("kurt", user.NotRisky, false)
	})
}

// Equal findings at once are one; of different ones the worst counts; a confirmation at the
// same time is never lost half.
func TestFindingsRace(t *testing.T) {
	bothScreening(t, func(s screening) {
		same := at(s.Site, find, slices.Repeat([]string{found}, 8)...)
		if slices.Sort(same[200]); len(slices.Compact(same[200])) != 1 || len(same) != 1 {
			t.Errorf("answers %v", same)
		}
		var bodies []string
		for n := range 8 {
			bodies = append(bodies, swap(found, "f1", fmt.Sprint("r", n), "risky",
				[]string{"risky", "highRisk", "notRisky"}[n%3]))
		}
		storetest.Equal(t, len(at(s.Site, find, bodies...)[200]), 8)
		s.is("jane", "highRisk", true)
		for n := range 4 {
			done := make(chan struct{})
			go func() { defer close(done); s.Call(integrationConfirm, `{"userId":"jane"}`) }()
			s.Call(find, swap(found, "f1", fmt.Sprint("c", n)))
			<-done
			u := storetest.Value(account.NewUsers(s.db).Get(t.Context(), "jane"))(t)
			s.is("jane", u.AMLStatus, u.AMLStatus != user.NotRisky)
		}
	})
}
