package people_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/password"
	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/corporate"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpcorporate "castellan/http/people/corporate"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

type site struct {
	*apitest.Site
	t       *testing.T
	db      *persistence.DB
	users   account.Users
	hasher  *password.Hasher
	service *corporate.Service
}

func corporateBoth(t *testing.T, test func(s *site)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := &site{t: t, db: db, users: account.NewUsers(db)}
		var err error
		s.hasher, err = password.NewHasher(password.HasherOptions{Slots: 2, Queue: 50,
			Params: password.Params{MemoryKiB: 64, Passes: 1, Lanes: 1}})
		storetest.Must(t, err)
		integrationPeople(t, db, "jane", "john")
		store := people.NewCorporate(db)
		s.service = &corporate.Service{Store: store, Users: s.users, Hasher: s.hasher, DefaultPassword: "the first password",
			Changes: admin.Changes{Commit: db, Now: time.Now, Lock: store.Lock}}
		s.Site = apitest.Serve(t, edge.Options{}, httpcorporate.Group{Service: s.service}).Below("/admin/")
		test(s)
	})
}

const (
	insert = "POST insert-corporate-user"
	update = "POST update-corporate-user"
	list   = "GET get-corporate-users"
	fields = `"corporateUserId":"acme","status":"active","role":"owner","countryCode":"90","phoneNumber":"5321234567"`
	ann    = fields + `,"email":"ann@acme.example"`
)

// refuses checks the status, the code, the keys and that message names what is wrong.
func (s *site) refuses(line, body string, status int, code fault.Code, word string) {
	s.t.Helper()
	res, answer := s.Send(line, body)
	var got map[string]any
	storetest.Must(s.t, json.Unmarshal([]byte(answer), &got))
	id, hasID := got["id"]
	if message, _ := got["message"].(string); res.StatusCode != status || got["code"] != string(code) || id != nil ||
		hasID != (line == insert) || len(got) > 3 || !strings.Contains(message, word) ||
		res.Header.Get("Content-Type") != "application/json" {
		s.t.Errorf("%s %s: %d %s, want %d %s %q", line, body, res.StatusCode, answer, status, code, word)
	}
}

// REQ-COR-03, 04, 06, 07, 08
func TestUsersOfCompanies(t *testing.T) {
	corporateBoth(t, func(s *site) {
		record := func(id int, userID, role, status, email string) string {
			return fmt.Sprintf(`{"id":"%d","userId":"%s","corporateUserId":"acme","role":"%s","status":"%s","email":%s}`,
				id, userID, role, status, email)
		}
		jane := record(1, "jane", "owner", "active", `"ann@acme.example"`)
		john := record(2, "john", "clerk", "passive", "null")
		s.Wants(insert, `{"userId":"jane","id":"9",`+ann+`}`, 200, `{"id":"1","message":null}`)
		s.Wants(insert, `{"userId":"jane",`+ann+`}`, 200, `{"id":"1","message":null}`) // again
		s.Wants(insert, `{"userId":"john",`+ann+`}`, 200, `{"id":"2","message":null}`)
		s.Wants(update, `{"id":2,"role":"clerk","status":"passive","email":null}`, 200, `{"message":null}`)
		s.Wants(update, `{"id":"2","role":"clerk"}`, 200, `{"message":null}`)
		for query, want := range map[string]string{"": john + "," + jane, "?userId=jane": jane, "?userId=JANE": "",
			"?corporateUserId=acme&status=passive": john, "?corporateUserId=acm": "", "?limit=1": john} {
			s.Wants(list+query, "", 200, "["+want+"]")
		}
		s.Wants(list, `{"status":"active"}`, 200, "["+jane+"]")
		s.Wants(update, `{"id":1,"userId":"john","corporateUserId":"other","countryCode":"+49","phoneNumber":"030 1234567",
			"email":"ANN@other.example"}`, 200, `{"message":null}`)
		got, err := s.service.Store.Users(t.Context(), corporate.UserQuery{CorporateUserID: new("other")},
			page.Query[corporate.Place]{})
		storetest.Must(t, err)
		if u := got.Records[0]; u.CountryCode != "49" || u.PhoneNumber != "301234567" || *u.Email != "ann@other.example" {
			t.Errorf("%+v", u)
		}
		if u, _ := s.users.Get(t.Context(), "john"); u.Email != "john@example.com" || u.Phone != "" || u.MustReset {
			t.Errorf("the account became %+v", u)
		}
		if got := s.audited(); got != "CORPORATE_USER_ADD|admin|jane|1|\nCORPORATE_USER_ADD|admin|john|2|\n"+
			"CORPORATE_USER_UPDATE|admin|john|1|UserID CorporateUserID CountryCode PhoneNumber Email\n"+
			"CORPORATE_USER_UPDATE|admin|john|2|\nCORPORATE_USER_UPDATE|admin|john|2|Role Status Email" {
			t.Errorf("audited\n%s", got)
		}
	})
}

// audited are the acts of the administrators, in the order of their texts.
func (s *site) audited() string {
	acts := persistencetest.Acts(s.t, s.db)
	slices.Sort(acts)
	return strings.Join(acts, "\n")
}

// REQ-COR-05, D-COR-02, D-COR-03: an account is made once, and no login to it is possible.
func TestInsertMakesAnAccount(t *testing.T) {
	corporateBoth(t, func(s *site) {
		var wg sync.WaitGroup
		for range 6 { // the same at once, from clients that lost the answer
			wg.Go(func() { s.Wants(insert, `{"userId":null,`+ann+`}`, 200, `{"id":"1","message":null}`) })
		}
		wg.Wait()
		s.Wants(insert, "{"+fields+`,"email":"bob@acme.example"}`, 200, `{"id":"2","message":null}`)
		s.refuses(insert, `{"status":"x",`+strings.Replace(ann, `"status":"active",`, "", 1)+`}`, 409,
			fault.RecordAlreadyExist, "already")
		all := storetest.Value(s.users.List(t.Context(), "", 10))(t)
		all = slices.DeleteFunc(all, func(u user.User) bool { return u.Phone == "" })
		if len(all) != 2 {
			t.Fatalf("%d accounts were made", len(all))
		}
		for i, u := range all { // newest first
			secret := storetest.Value(s.users.Secret(t.Context(), u.ID))(t)
			right, _, err := s.hasher.Verify(t.Context(), s.service.DefaultPassword, secret.Hash)
			storetest.Must(t, err)
			if u.CountryCode != "90" || u.Phone != fmt.Sprintf("+90%010d", 2-i) || u.Reachable() != "" || u.Email != "" ||
				u.Campaigns != (user.Campaigns{}) || !u.MustReset || u.Type != user.Corporate || !right ||
				!strings.HasPrefix(secret.Hash, "$argon2id$") {
				t.Errorf("made %+v, right password %t", u, right)
			}
			s.Wants(insert, `{"userId":"`+u.ID+`",`+strings.Replace(ann, "ann", []string{"bob", "ann"}[i], 1)+`}`, 200,
				fmt.Sprintf(`{"id":"%d","message":null}`, 2-i))
		}
		s.service.DefaultPassword = ""
		s.Wants(insert, "{"+fields+`,"email":"eve@acme.example"}`, 200, `{"id":"3","message":null}`)
		eve := storetest.Value(s.service.Store.Users(t.Context(), corporate.UserQuery{}, page.Query[corporate.Place]{}))(t)
		secret := storetest.Value(s.users.Secret(t.Context(), eve.Records[0].UserID))(t)
		if right, _, _ := s.hasher.Verify(t.Context(), "", secret.Hash); right || secret.Hash == "" {
			t.Errorf("without a default password the hash is %q", secret.Hash)
		}
		storetest.Lacks(t, s.audited(), "acme")
	})
}

// D-COR-04, D-COR-05, D-GEN-19
func TestCorporateRefusals(t *testing.T) {
	corporateBoth(t, func(s *site) {
		s.Wants(insert, `{"userId":"jane",`+ann+`}`, 200, `{"id":"1","message":null}`)
		s.Wants(insert, `{"userId":"john",`+ann+`}`, 200, `{"id":"2","message":null}`)
		for _, c := range []struct {
			line, body string
			status     int
			code       fault.Code
			word       string
		}{
			{insert, `{"userId":"nobody",` + fields + `}`, 400, fault.InvalidField, "email"},
			{insert, `{"userId":"nobody",` + fields + `,"email":"x"}`, 400, fault.InvalidField, "email"},
			{insert, `{` + strings.Replace(ann, "532", "x", 1) + `}`, 400, fault.InvalidField, "phoneNumber"},
			{insert, `{` + strings.Replace(ann, `"90"`, `"TR"`, 1) + `}`, 400, fault.InvalidField, "countryCode"},
			{insert, `{"userId":" ",` + ann + `}`, 400, fault.InvalidField, "userId"},
			{insert, `{"userId":"nobody",` + ann + `}`, 404, fault.RecordNotFound, "user"},
			{insert, `{"userId":"jane",` + fields + `,"email":"b@acme.example"}`, 409, fault.RecordAlreadyExist, "already"},
			{update, `{"id":1}`, 400, fault.InvalidField, "corporateUserId"},
			{update, `{"id":1,"userId":"john"}`, 400, fault.InvalidField, "corporateUserId"},
			{update, `{"id":99,"userId":"john"}`, 400, fault.InvalidField, "corporateUserId"},
			{update, `{"id":99,"countryCode":"x"}`, 400, fault.InvalidField, "countryCode"},
			{update, `{"id":99,"countryCode":"90","phoneNumber":"1"}`, 400, fault.InvalidField, "phoneNumber"},
			{update, `{"id":99,"role":" "}`, 400, fault.InvalidField, "role"},
			{update, `{"id":99,"status":" "}`, 400, fault.InvalidField, "status"},
			{update, `{"id":1,"status":"x","userId":""}`, 400, fault.InvalidField, "userId"},
			{update, `{"id":99,"email":"no"}`, 400, fault.InvalidField, "email"},
			{update, `{"id":99,"status":"x"}`, 404, fault.RecordNotFound, "corporate user"},
			{update, `{"id":1,"status":"x","userId":"nobody"}`, 404, fault.RecordNotFound, "user"},
			{update, `{"id":1,"status":"x","userId":"john"}`, 409, fault.RecordAlreadyExist, ""},
		} {
			s.refuses(c.line, c.body, c.status, c.code, c.word)
		}
		for status, c := range map[int]struct{ who, body, media string }{401: {"anonymous", "{}", "application/json"},
			403: {"clerk", `{"id":1,"userId":"admin",` + ann + `}`, "application/json"},
			413: {"admin", strings.Repeat(" ", 1<<20), "application/json"}, 415: {"admin", "x", "text/plain"}} {
			for _, line := range []string{insert, update} { // of no rule of companies: the general shape
				if res, answer := s.As(c.who).Send(line, c.body, "content-type", c.media); res.StatusCode != status ||
					res.Header.Get("Content-Type") != "application/problem+json" {
					s.t.Errorf("%s as %s: %d %s", line, c.who, res.StatusCode, answer)
				}
			}
		}
		storetest.Equal(t, strings.Count(s.audited(), "\n"), 1, s.audited())
	})
}

// REQ-COR-02, D-COR-01
func TestApplications(t *testing.T) {
	corporateBoth(t, func(s *site) {
		var shown []string
		row := `{"id":"%d","companyName":"%s","taxNumber":"77%d","status":"%s","createdAt":"%s"}`
		for n, name := range []string{"Acme A.Ş.", "Işık Ltd"} {
			id, err := s.service.AddApplication(t.Context(), audit.Operator, corporate.Application{CompanyName: name,
				TaxNumber: fmt.Sprint("77", n), Status: []string{"PENDING", "APPROVED"}[n]})
			storetest.Must(t, err)
			all, err := s.service.Store.Applications(t.Context(), corporate.ApplicationQuery{ID: &id},
				page.Query[corporate.Place]{})
			storetest.Must(t, err)
			shown = append(shown, fmt.Sprintf(row, id, name, n, all.Records[0].Status,
				all.Records[0].CreatedAt.Format("2006-01-02T15:04:05.000Z")))
		}
		both := shown[1] + "," + shown[0]
		const path = "GET get-corporate-application"
		for query, want := range map[string]string{"": both, "?body={}": both,
			"?body=%7B%22status%22%3A%22PENDING%22%7D": shown[0], "?status=APPROVED": shown[1], "?companyName=ACME": shown[0],
			"?taxNumber=77": "", "?id=2": shown[1], "?limit=1": shown[1],
			"?id=1&body=%7B%22id%22%3A%222%22%7D": shown[0], "?unknown=1": both,
			"?body=%7B%22id%22%3A2%2C%22other%22%3A1%7D": shown[1], "?id=9": ""} {
			s.Wants(path+query, "", 200, "["+want+"]")
		}
		for body, want := range map[string]string{`{"body":{"taxNumber":"771","status":"APPROVED"}}`: shown[1],
			`{"body":{},"companyName":"şık"}`: shown[1], `{"body":null}`: both, `{"id":"1"}`: shown[0]} {
			s.Wants(path, body, 200, "["+want+"]")
		}
		for query, want := range map[string]string{"?body=x": "body", "?body=[]": "body", "?id=x": "id",
			"?body=%7B%22status%22%3A1%7D": "body.status"} {
			s.Wants(path+query, "", 400, "INVALID_FIELD "+want)
		}
		if _, err := s.service.AddApplication(t.Context(), audit.Operator, corporate.Application{TaxNumber: "1",
			Status: strings.Repeat("x", 65)}); fault.CodeOf(err) != fault.InvalidField {
			t.Error(err)
		}
	})
}

// D-INT-11: the tax number of an account comes with its link to a company and is found by
// list-users; the audit does not hold it.
func TestTaxNumber(t *testing.T) {
	corporateBoth(t, func(s *site) {
		const known, other = "1234567890", "4540536920"
		with := func(account, number string) string { return "{" + account + ann + `,"taxNumber":"` + number + `"}` }
		has := func(id, want string) {
			t.Helper()
			u := storetest.Value(s.users.Get(t.Context(), id))(t)
			if u.TaxNumber != want || u.SV != 1 || u.CV != 1 {
				t.Errorf("%s has %q, want %q; %+v", id, u.TaxNumber, want, u)
			}
		}
		for _, wrong := range []string{"1234567891", "123456789", "12345678901", "abcdefghij", " "} {
			s.refuses(insert, with(`"userId":"jane",`, wrong), 400, fault.InvalidField, "taxNumber")
			s.refuses(update, `{"id":99,"taxNumber":"`+wrong+`"}`, 400, fault.InvalidField, "taxNumber")
		}
		s.refuses(update, `{"id":99,"taxNumber":"`+known+`"}`, 404, fault.RecordNotFound, "")
		has("jane", "")

		s.Wants(insert, with(`"userId":"jane",`, known), 200, `{"id":"1","message":null}`)
		s.Wants(insert, with(`"userId":"jane",`, known), 200, `{"id":"1","message":null}`)
		s.Wants(insert, `{"userId":"jane",`+ann+`}`, 200, `{"id":"1","message":null}`)
		s.refuses(insert, with(`"userId":"jane",`, other), 409, fault.RecordAlreadyExist, "already")
		has("jane", known)

		s.Wants(insert, with("", other), 200, `{"id":"2","message":null}`)
		s.Wants(insert, with("", other), 200, `{"id":"2","message":null}`)
		s.refuses(insert, with("", known), 409, fault.RecordAlreadyExist, "already")
		found := storetest.Value(s.users.Find(t.Context(), user.Query{TaxNumber: new(other)}, page.Query[user.Place]{}))(t)
		if len(found.Records) != 1 || found.Records[0].ID == "jane" {
			t.Fatalf("found %+v", found)
		}

		s.Wants(update, `{"id":1,"taxNumber":"`+other+`"}`, 200, `{"message":null}`)
		s.Wants(update, `{"id":1,"taxNumber":"`+other+`"}`, 200, `{"message":null}`)
		has("jane", other)
		s.Wants(update, `{"id":1,"taxNumber":null,"role":"clerk"}`, 200, `{"message":null}`)
		has("jane", "")
		if got := s.audited(); strings.Contains(got, known) || strings.Contains(got, other) ||
			!strings.Contains(got, "CORPORATE_USER_ADD|admin|jane|1|TaxNumber\n") ||
			!strings.Contains(got, "CORPORATE_USER_UPDATE|admin|jane|1|TaxNumber") ||
			!strings.Contains(got, "CORPORATE_USER_UPDATE|admin|jane|1|Role TaxNumber\n") {
			t.Errorf("audited\n%s", got)
		}
	})
}
