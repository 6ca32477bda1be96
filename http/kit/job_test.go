package kit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/page"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/http/apitest"
	"castellan/http/edge"
	httpjob "castellan/http/kit/job"
	"castellan/persistence"
	"castellan/persistence/kit"
)

// jobSite is a database with jobs behind the endpoints.
type jobSite struct {
	*apitest.Site
	t       *testing.T
	db      *persistence.DB
	service *job.Service
}

func jobBoth(t *testing.T, test func(s jobSite)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		service := &job.Service{Store: kit.NewJobs(db),
			Changes: admin.Changes{Commit: db, Now: func() time.Time { return time.UnixMilli(1_700_000_000_000) }},
			Seal:    func(plain, _ []byte) []byte { return plain },
			Open:    func(sealed, _ []byte) ([]byte, error) { return sealed, nil },
			Kinds:   map[string]job.Kind{"mailing": {About: func(job.Job) string { return "a title" }}, "rates": {}}}
		guards := apitest.Guards()
		guards.Service = func(header string, _ netip.Addr) (servicekey.Client, error) {
			return servicekey.Client{Name: header, Role: header}, nil
		}
		guards.JudgeRole = func(string, string, string) resource.Verdict {
			return resource.Verdict{Permission: resource.Allow}
		}
		s := apitest.Serve(t, edge.Options{Guards: guards.Table(), Authorize: guards.Authorize},
			httpjob.Group{Service: service})
		test(jobSite{s, t, db, service})
	})
}

func (s jobSite) start(kind, key string) string {
	j, _, err := s.service.Start(s.t.Context(), audit.By{UserID: "u"}, job.Request{Kind: kind, Key: key})
	storetest.Must(s.t, err)
	return j.ID
}

func (s jobSite) set(id string, f func(*job.Job)) {
	j := storetest.Value(s.service.Store.Get(s.t.Context(), id))(s.t)
	f(&j)
	storetest.Must(s.t, s.db.Commit(s.t.Context(), job.Save{Job: j}))
}

func shown(id, kind, status, counts, started, finished, why string) string {
	if why = strconv.Quote(why); why == `""` {
		why = "null"
	}
	about := map[string]string{"mailing": "a title"}[kind]
	return fmt.Sprintf(`{"id":"%s","type":"%s","subject":"%s","actorId":"u","status":"%s",%s,"startedAt":%s,`+
		`"updatedAt":%s,"finishedAt":%s,"error":%s}`, id, kind, about, status, counts, started, at, finished, why)
}

const (
	none = `"done":0,"total":0,"failed":0,"unknown":0,"skipped":0`
	at   = `"2023-11-14T22:13:20.000Z"`
)

func TestListAndShow(t *testing.T) {
	t.Parallel()
	jobBoth(t, func(s jobSite) {
		s.Wants("GET /admin/jobs", "", 200, `[]`)
		old := s.start("mailing", "a")
		s.set(old, func(j *job.Job) {
			j.State, j.Total, j.Counts, j.Error = job.Failed, 15, job.Counts{Done: 1, Failed: 2, Unknown: 3, Skipped: 4}, "no"
			j.StartedAt, j.FinishedAt, j.NextAt = j.CreatedAt, j.CreatedAt, time.Time{}
		})
		fresh := s.start("rates", "b")
		a := shown(old, "mailing", "failed", `"done":1,"total":15,"failed":2,"unknown":3,"skipped":4`, at, at, "no")
		b := shown(fresh, "rates", "queued", none, "null", "null", "")
		list := "[" + b + "," + a + "]"
		if fresh < old { // both are of one millisecond
			list = "[" + a + "," + b + "]"
		}
		s.Wants("GET /admin/jobs", "", 200, list)
		s.Wants("GET /admin/jobs?type=mailing", "", 200, "["+a+"]")
		s.Wants("GET /admin/jobs?status=queued", "", 200, "["+b+"]")
		s.Wants("GET /admin/jobs?status=queued&type=mailing", "", 200, `[]`)
		s.Wants("GET /admin/jobs?type=", "", 400, "INVALID_FIELD type")
		if r, _ := s.Send("GET /admin/jobs?limit=1&count=true", ""); r.Header.Get("X-Total-Count") != "2" ||
			r.Header.Get("Link") == "" {
			s.t.Errorf("%v", r.Header)
		}
		s.Wants("GET /admin/jobs/"+old, "", 200, a)
		// A service client sees neither the subject nor the starter (D-EXT-16).
		if _, got := s.As("anonymous").Call("GET /admin/jobs/"+old, "", "service-auth", "wallet"); got != strings.NewReplacer(
			`"a title"`, `""`, `"actorId":"u"`, `"actorId":""`).Replace(a) {
			t.Errorf("a service client gets %s", got)
		}
		for id, code := range map[string]string{"none": "RECORD_NOT_FOUND", "0": "RECORD_NOT_FOUND",
			old + "x": "RECORD_NOT_FOUND", "%25": "NOT_FOUND", "a%20b": "NOT_FOUND", "%00": "NOT_FOUND"} {
			s.Wants("GET /admin/jobs/"+id, "", 404, code)
			s.Wants("POST /admin/jobs/"+id+"/cancel", "", 404, code)
		}
		s.set(fresh, func(j *job.Job) {
			*j = j.Fail("u1", fault.New(fault.InvalidState, "refused by the server (MAIL)")).Fail("u2", errors.New("x"))
		})
		s.Wants("GET /admin/jobs/"+fresh, "", 200, strings.Replace(strings.Replace(b, `"failed":0`, `"failed":2`, 1), `}`,
			`,"failures":[{"reason":"INVALID_STATE","text":"refused by the server (MAIL)","count":1,"first":["u1"]},`+
				`{"reason":"INTERNAL","text":"internal error; see the log of the service","count":1,"first":["u2"]}]}`, 1))
		s.set(fresh, func(j *job.Job) { j.Failures = []job.Failure{{Text: "is required", Refs: []string{}}} })
		if _, body := s.Send("GET /admin/jobs/"+fresh, "", "Accept-Language", "tr"); !strings.Contains(body,
			`"text":"zorunludur"`) {
			t.Errorf("in Turkish: %s", body)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	jobBoth(t, func(s jobSite) {
		id := s.start("k", "")
		s.set(id, func(j *job.Job) { j.State, j.Total, j.Done = job.Paused, 3, 1 })
		over := `{"data":` + shown(id, "k", "cancelled", `"done":1,"total":3,"failed":0,"unknown":0,"skipped":2`, "null", at,
			"") + `}`
		s.Wants("POST /admin/jobs/"+id+"/cancel", `{"id":"x","status":"done"}`, 200, over)
		s.Wants("POST /admin/jobs/"+id+"/cancel", "", 200, over)
		trail, err := kit.NewAudit(s.db).List(t.Context(), audit.Query{Action: "JOB_CANCEL"},
			page.Query[audit.Place]{})
		if err != nil || len(trail.Records) != 1 || trail.Records[0].Target != id || trail.Records[0].ActorID != "admin" {
			t.Errorf("%v %+v", err, trail.Records)
		}
		// A step is under way: the answer waits for its owner.
		id = s.start("k", "")
		s.set(id, func(j *job.Job) { j.State = job.Running })
		began := time.Now()
		s.Wants("POST /admin/jobs/"+id+"/cancel", "", 200, `{"data":`+shown(id, "k", "running", none, "null", "null", "")+`}`)
		if waited := time.Since(began); waited < 2*time.Second {
			t.Errorf("answered after %s", waited)
		}
	})
}

// A client that has the version gets 304, at once or when its wait is over, and the
// next version as soon as it is there.
func TestVersions(t *testing.T) {
	t.Parallel()
	jobBoth(t, func(s jobSite) {
		id := s.start("k", "")
		ask := func(status int, headers ...string) (*http.Response, string) {
			t.Helper()
			r, body := s.Send("GET /admin/jobs/"+id, "", headers...)
			if r.StatusCode != status || (status == http.StatusNotModified) != (body == "") {
				t.Errorf("%v: %d %s", headers, r.StatusCode, body)
			}
			return r, body
		}
		r, _ := ask(200)
		first := r.Header.Get("ETag")
		for _, has := range []string{first, "W/" + first, `"9", ` + first, "*"} {
			if r, _ := ask(304, "If-None-Match", has); r.Header.Get("ETag") != first {
				t.Errorf("%v", r.Header)
			}
		}
		ask(200, "If-None-Match", `"9"`)
		began := time.Now()
		ask(304, "If-None-Match", first, "Prefer", "wait=1")
		if r, _ := ask(200, "Prefer", "wait=1"); r.Header.Get("Preference-Applied") != "wait=1" {
			t.Errorf("%v", r.Header)
		}
		if waited := time.Since(began); waited < 2*time.Second {
			t.Errorf("answered after %s", waited)
		}
		after := time.AfterFunc(300*time.Millisecond, func() { s.set(id, func(j *job.Job) { j.Done = 7 }) })
		defer after.Stop()
		began = time.Now()
		if r, _ := ask(200, "If-None-Match", first, "Prefer", "wait=20"); r.Header.Get("ETag") == first ||
			time.Since(began) > 2*time.Second {
			t.Errorf("after %s: %v", time.Since(began), r.Header)
		}
		leaving, leave := context.WithCancel(t.Context())
		s.service.Leaving = leaving
		leave()
		ask(200, "Prefer", "wait=20") // a leaving node keeps no client waiting
		if time.Since(began) > 10*time.Second {
			t.Error("waited for a node that leaves")
		}
	})
}
