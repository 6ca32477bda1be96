package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/people/registration"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpintegration "castellan/http/people/integration"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
)

// userSite is the accounts that other services bring in, with their job.
type userSite struct {
	*apitest.Site
	t     *testing.T
	db    *persistence.DB
	users account.Users
	jobs  *apitest.Jobs
	made  *registration.Service
}

func users(t *testing.T, test func(s *userSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		jobs := apitest.NewJobs(t, db, keyringtest.Ring(t, time.Now), time.Now)
		service := &registration.Service{Users: account.NewUsers(db), External: kit.NewIntegration(db),
			Jobs: jobs.Service, Changes: admin.Changes{Commit: db, Now: time.Now}}
		jobs.Kinds[registration.BulkKind] = service.Kind()
		site := apitest.Serve(t, edge.Options{}, httpintegration.Users{Service: service}).Below("/integration/users")
		test(&userSite{site, t, db, account.NewUsers(db), jobs, service})
	})
}

// made is the account of an answer.
type made struct {
	ID, Status, CreatedAt string
	ExternalID            *string
}

func (s *userSite) add(body string) made {
	s.t.Helper()
	status, answer := s.Call("POST ", body)
	var a struct{ Data made }
	if err := json.Unmarshal([]byte(answer), &a); err != nil || status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", body, status, answer)
	}
	return a.Data
}

func (s *userSite) read(id string) user.User {
	s.t.Helper()
	return storetest.Value(s.users.Get(s.t.Context(), id))(s.t)
}

func (s *userSite) count() int {
	s.t.Helper()
	all := storetest.Value(s.users.List(s.t.Context(), "", 5000))(s.t)
	return len(all)
}

const newcomer = `{"externalId":"crm-1","countryCode":"0090","phoneNumber":"0 (532) 123 45 67","name":" Ayşe  Nur ",` +
	`"email":"Ayse@Example.com","surname":"Yılmaz","language":"tr","type":"kurumsal"}`

func TestAddUser(t *testing.T) {
	users(t, func(s *userSite) {
		a := s.add(newcomer)
		if a.Status != "active" || *a.ExternalID != "crm-1" || a.CreatedAt == "" {
			t.Errorf("answered %+v", a)
		}
		u := s.read(a.ID)
		if u.Phone != "+905321234567" || u.CountryCode != "90" || u.Email != "ayse@example.com" || u.Name != "Ayşe Nur" ||
			u.Surname != "Yılmaz" || u.Language != "tr" || u.Type != user.Corporate || len(u.Roles) != 0 || u.EmailVerified {
			t.Errorf("kept %+v", u)
		}
		secret := storetest.Value(s.users.Secret(t.Context(), a.ID))(t)
		storetest.Equal(t, secret.Hash, "", "the account has a password")
		small := s.read(s.add(`{"externalId":"` + strings.Repeat("x", 128) +
			`","countryCode":"90","phoneNumber":"5321234568","name":"Can"}`).ID)
		if small.Email != "" || small.Surname != "" || small.Language != "" || small.Type != user.Individual {
			t.Errorf("kept %+v", small)
		}

		again := strings.NewReplacer("0090", "+90", "0 (532) 123 45 67", "5321234567", " Ayşe  Nur ", "Ayşe Nur").
			Replace(newcomer)
		if got := s.add(again); got.ID != a.ID || got.CreatedAt != a.CreatedAt {
			t.Errorf("the repetition in another spelling got %+v, want %+v", got, a)
		}
		s.Wants("POST ", strings.Replace(newcomer, "Yılmaz", "Kaya", 1), 409, "INVALID_STATE")
		s.Wants("POST ", strings.Replace(newcomer, "crm-1", "crm-3", 1), 409, "RECORD_ALREADY_EXIST")
		s.Wants("POST ", `{"externalId":"crm-3","countryCode":"90","phoneNumber":"5321234569","name":"X",
			"email":"AYSE@example.com"}`, 409, "RECORD_ALREADY_EXIST")
		s.Wants("POST ", `{"externalId":"crm-3","countryCode":"905","phoneNumber":"321234567","name":"X"}`, 409,
			"RECORD_ALREADY_EXIST")
		storetest.Equal(t, s.count(), 2, "accounts, want 2")
		storetest.Equal(t, storetest.Value(kit.NewAudit(s.db).Verify(t.Context(), []byte(persistencetest.AuditKey)))(t), 2)
	})
}

func TestAddUserRefuses(t *testing.T) {
	users(t, func(s *userSite) {
		change := func(field, value string) string {
			var m map[string]any
			storetest.Must(t, json.Unmarshal([]byte(newcomer), &m))
			m[field] = value
			text := storetest.Value(json.Marshal(m))(t)
			return string(text)
		}
		for body, want := range map[string]string{
			change("externalId", "a\tb"):                      "INVALID_FIELD externalId",
			change("externalId", strings.Repeat("ş", 64)+"x"): "INVALID_FIELD externalId", // 129 bytes
			change("countryCode", "TR"):                       "INVALID_FIELD countryCode",
			change("phoneNumber", "x"):                        "INVALID_FIELD phoneNumber",
			change("phoneNumber", "0000000007"):               "INVALID_FIELD phoneNumber", // a placeholder
			change("email", "x"):                              "INVALID_FIELD email",
			change("name", "a\u202eb"):                        "INVALID_FIELD name",
			change("surname", "a\u202eb"):                     "INVALID_FIELD surname",
		} {
			s.Wants("POST ", body, 400, want)
		}
		storetest.Equal(t, s.count(), 0, "accounts were made")
	})
}

func TestGetUser(t *testing.T) {
	users(t, func(s *userSite) {
		a := s.add(newcomer)
		s.Wants("GET /"+a.ID, "", 200, fmt.Sprintf(
			`{"data":{"id":%q,"externalId":"crm-1","status":"active","createdAt":%q}}`, a.ID, a.CreatedAt))
		u := user.New("01JD3X4Q7V0S8D4T2M6B9N1ZKA", time.UnixMilli(1_700_000_000_123))
		u.Email, u.Status = "x@example.com", user.Blocked
		storetest.Must(t, s.db.Commit(t.Context(), user.Add{User: u}))
		s.Wants("GET /"+u.ID, "", 200, `{"data":{"id":"01JD3X4Q7V0S8D4T2M6B9N1ZKA","externalId":null,"status":"blocked",`+
			`"createdAt":"2023-11-14T22:13:20.123Z"}}`)
		s.Wants("GET /x", "", 404, "RECORD_NOT_FOUND")
	})
}

// Of parallel requests for one phone number one makes an account, whatever their external ids
// are.
func TestOnePhoneOneAccount(t *testing.T) {
	users(t, func(s *userSite) {
		for _, same := range []bool{false, true} {
			var mu sync.Mutex
			statuses, ids := map[int]int{}, map[string]bool{}
			var all sync.WaitGroup
			for i := range 8 {
				all.Go(func() {
					external := fmt.Sprintf("race-%v-%d", same, i)
					phone := "5330000001"
					if same {
						external, phone = "race", "5330000002"
					}
					status, answer := s.Call("POST ", fmt.Sprintf(
						`{"externalId":%q,"countryCode":"90","phoneNumber":%q,"name":"X"}`, external, phone))
					var a struct{ Data made }
					json.Unmarshal([]byte(answer), &a)
					mu.Lock()
					defer mu.Unlock()
					statuses[status]++
					if status == http.StatusOK {
						ids[a.Data.ID] = true
					} else if got := apitest.Refusal(answer); got != "RECORD_ALREADY_EXIST" {
						t.Errorf("%d %s", status, answer)
					}
				})
			}
			all.Wait()
			want := map[int]int{200: 1, 409: 7}
			if same {
				want = map[int]int{200: 8}
			}
			if fmt.Sprint(statuses) != fmt.Sprint(want) || len(ids) != 1 {
				t.Errorf("same externalId %v: %v and the accounts %v, want %v and one", same, statuses, ids, want)
			}
		}
		storetest.Equal(t, s.count(), 2, "accounts, want 2")
	})
}

func row(external, phone, name string) string {
	return fmt.Sprintf(`{"externalId":%q,"countryCode":"90","phoneNumber":%q,"name":%q}`, external, phone, name)
}

func (s *userSite) bulk(rows ...string) job.Job {
	s.t.Helper()
	status, answer := s.Call("POST /bulk", `{"users":[`+strings.Join(rows, ",")+`]}`)
	var a struct{ Data struct{ JobID string } }
	if err := json.Unmarshal([]byte(answer), &a); err != nil || status != http.StatusOK {
		s.t.Fatalf("%d %s", status, answer)
	}
	j, _ := s.jobs.Finish(s.t, a.Data.JobID, func(time.Time) {})
	return j
}

// A job makes the accounts that may be made, and counts the others by reason.
func TestAddUsers(t *testing.T) {
	users(t, func(s *userSite) {
		s.add(newcomer)
		rows := []string{row("z", "5321234567", "taken"), row("y", "123", "short"), row("x", "1", "short too"),
			row("crm-1", "5321234567", "another body"), row("w", "5341111111", "Ege"), row("v", "5341111111", "twin")}
		for n := range 60 {
			rows = append(rows, row(fmt.Sprintf("n-%02d", n), fmt.Sprintf("53500000%02d", n), "X"))
		}
		j := s.bulk(rows...)
		if j.State != job.Done || j.Total != 66 || j.Done != 61 || j.Failed != 5 {
			t.Errorf("the job came to %s: %d done, %d failed of %d", j.State, j.Done, j.Failed, j.Total)
		}
		refs := map[string]string{}
		for _, f := range j.Failures {
			refs[f.Reason] += strings.Join(slices.Sorted(slices.Values(f.Refs)), " ")
		}
		// v and w have one number: the first in the order of the external ids gets the account.
		want := map[string]string{"INVALID_FIELD": "x y", "RECORD_ALREADY_EXIST": "w z", "INVALID_STATE": "crm-1"}
		storetest.Equal(t, fmt.Sprint(refs), fmt.Sprint(want), "failures", refs, want)
		storetest.Equal(t, s.count(), 62, "accounts, want 62")
		if again := s.bulk(rows...); again.Done != 61 || again.Failed != 5 || s.count() != 62 || again.ID == j.ID {
			t.Errorf("the repetition: %d done, %d failed, %d accounts", again.Done, again.Failed, s.count())
		}
		// While the service is busy, an item waits. A job that cannot be read makes nothing.
		items, one := s.jobs.Kinds[registration.BulkKind].Items, job.Job{Params: []byte(`{"users":[` +
			row("new", "5361111111", "X") + `]}`)}
		for _, code := range []fault.Code{fault.Unavailable, fault.Overloaded} {
			s.made.Changes.Commit = refusing{s.db, fault.New(code, "later")}
			if _, err := items.Send(t.Context(), one, "new"); !job.IsLater(err) {
				t.Errorf("%s: %v", code, err)
			}
		}
		_, err := items.Send(t.Context(), one, "other")
		storetest.Wants(t, err, fault.RecordNotFound)
		for _, send := range []func(job.Job) error{
			func(j job.Job) error { _, err := items.Send(t.Context(), j, "new"); return err },
			func(j job.Job) error { _, err := items.Snapshot(t.Context(), j, "", 2); return err },
		} {
			if err := send(job.Job{Params: []byte("{")}); err == nil || job.IsLater(err) {
				t.Errorf("a job without parameters: %v", err)
			}
		}
	})
}

// refusing is a committer without transactions.
type refusing struct {
	commit.Committer
	err error
}

func (r refusing) InTx(context.Context, func(context.Context) error) error { return r.err }

func TestAddUsersRefuses(t *testing.T) {
	users(t, func(s *userSite) {
		many := make([]string, registration.MaxBulk+1)
		for i := range many {
			many[i] = row(fmt.Sprint(i), "5321234567", "X")
		}
		for body, want := range map[string]string{
			`{"users":[]}`: "INVALID_FIELD users",
			`{"users":[` + strings.Join(many, ",") + `]}`:                       "INVALID_FIELD users",
			`{"users":[` + row("a", "1", "X") + `,` + row("a", "2", "X") + `]}`: "INVALID_FIELD users[1].externalId",
			`{"users":[` + row("a", "1", "X") + `,` + row(" ", "2", "X") + `]}`: "INVALID_FIELD users[1].externalId",
		} {
			s.Wants("POST /bulk", body, 400, want)
		}
	})
}
