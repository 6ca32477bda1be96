package people_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/blob"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/broadcast"
	"castellan/domain/people/agreement"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpagreement "castellan/http/people/agreement"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/kit"
	"castellan/persistence/people"
	"castellan/persistence/persistencetest"
)

type service struct {
	*apitest.Site
	db    *persistence.DB
	jobs  *apitest.Jobs
	now   time.Time
	files counted

	mu   sync.Mutex
	sent map[string][]message.Rendered // by recipient
}

// counted counts the reads of files.
type counted struct {
	blob.Store
	reads int
}

func (c *counted) Get(ctx context.Context, key string) (blob.File, error) {
	c.reads++
	return c.Store.Get(ctx, key)
}

func (s *service) Send(_ context.Context, _ string, m message.Rendered) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[m.To] = append(s.sent[m.To], m)
	return nil
}

func both(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := &service{db: db, now: time.Now(), files: counted{Store: persistencetest.Files(t)},
			sent: map[string][]message.Rendered{}}
		clock := func() time.Time { return s.now }
		s.jobs = apitest.NewJobs(t, db, keyringtest.Ring(t, time.Now), clock)
		terms := &agreement.Service{Store: people.NewAgreements(db), Files: &s.files, Users: account.NewUsers(db),
			Jobs: s.jobs.Service, Changes: admin.Changes{Commit: db, Now: clock}}
		s.jobs.Kinds[agreement.MailingKind] = terms.Mailing(broadcast.Post{
			Senders: map[message.Channel]message.Sender{message.MAIL: s}})
		s.Site = apitest.Serve(t, edge.Options{Idempotency: &auth.Idempotent{}}, httpagreement.Group{Service: terms})
		s.add(t, 0, 4)
		test(t, s)
	})
}

// add adds users from a number on; their languages take turns.
func (s *service) add(t *testing.T, from, count int) {
	t.Helper()
	for i := from; i < from+count; i++ {
		u := user.New(fmt.Sprintf("u%04d", i), s.now)
		u.Email, u.Language = u.ID+"@example.com", []string{"en", "tr", "ar", ""}[i%4]
		storetest.Must(t, s.db.Commit(t.Context(), user.Add{User: u}))
	}
}

const pdf = "%PDF-1.4\n%%EOF"

// body is a request with a file, and what else it holds.
func body(content, more string) string {
	return `{"base64String":"` + base64.StdEncoding.EncodeToString([]byte(content)) +
		`","name":"Terms","description":"Fees","userId":"u0000"` + more + `}`
}

const publish = "POST /admin/terms-of-service"

type published struct {
	Data struct {
		Accepted    bool
		ID          *string
		Count       int
		AgreementID int64
		Version     string
	}
}

func (s *service) publish(t *testing.T, body string) (p published) {
	t.Helper()
	status, answer := s.Call(publish, body)
	if err := json.Unmarshal([]byte(answer), &p); err != nil || status != 200 || !p.Data.Accepted {
		t.Fatalf("%d %s", status, answer)
	}
	return p
}

// REQ-ADM-04, REQ-ADM-05, D-ADM-03, D-ADM-07: versions follow each other, and the
// list shows what a user accepted.
func TestVersions(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		for _, c := range []struct{ more, want string }{
			{``, "1"}, {``, "2"}, {`,"version":"2.9"`, "2.9"}, {`,"version":null`, "2.10"}, {`,"version":" final "`, "final"},
			{``, "final.1"}, {`,"name2":"x","version":"7","isAcceptRequired":true`, "7"}, {``, "8"},
		} {
			p := s.publish(t, body(pdf, c.more))
			if p.Data.Version != c.want || p.Data.ID != nil || p.Data.Count != 0 {
				t.Errorf("%s: %+v, want %s", c.more, p.Data, c.want)
			}
		}
		s.Wants(publish, body(pdf, `,"version":"7 "`), 409, "RECORD_ALREADY_EXIST")
		acts := strings.Join(persistencetest.Acts(t, s.db), "\n")
		if strings.Count(acts, "AGREEMENT_ADD|admin||") != 8 || !strings.Contains(acts, "|version final.1") {
			t.Errorf("audited\n%s", acts)
		}
		_, answer := s.Call("GET /admin/get-agreements?userId=u0001&version=7", "")
		var all []map[string]any
		storetest.Must(t, json.Unmarshal([]byte(answer), &all))
		path, _ := all[0]["filePath"].(string)
		if len(all) != 1 || len(all[0]) != 8 || all[0]["isAcceptRequired"] != true || all[0]["acceptedAt"] != nil ||
			!strings.HasPrefix(path, "agreement/") || !strings.HasSuffix(path, ".pdf") || all[0]["description"] != "Fees" {
			t.Errorf("%s", answer)
		}
		id := fmt.Sprint(all[0]["id"])
		s.As("u0001").Wants("POST /user/agreements/accept", `{"id":"`+id+`","userId":"u0002"}`, 200, `{}`)
		s.As("u0001").Wants("POST /user/agreements/accept", `{"id":`+id+`}`, 200, `{}`)
		s.As("u0001").Wants("POST /user/agreements/accept", `{"id":999}`, 404, "RECORD_NOT_FOUND")
		s.As("u0001").Wants("POST /user/agreements/accept", `{"id":"x"}`, 400, "INVALID_FIELD id")
		for who, accepted := range map[string]bool{"u0001": true, "u0002": false} {
			_, answer := s.Call("GET /admin/get-agreements?userId="+who, "")
			storetest.Must(t, json.Unmarshal([]byte(answer), &all))
			if len(all) != 8 || (all[6]["acceptedAt"] != nil) != accepted || all[0]["acceptedAt"] != nil {
				t.Errorf("%s: %s", who, answer)
			}
		}
	})
}

// REQ-ADM-06: 1601 users with an address are mailed in groups of 800, 800 and 1, each once, with the file. Those who
// closed the account or lost the address meanwhile are left out.
func TestMailing(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.add(t, 4, 1597)
		passive, silent := user.New("passive", s.now), user.New("silent", s.now)
		passive.Status, passive.Email, silent.Phone = user.Passive, "passive@example.com", "+905551"
		storetest.Must(t, s.db.Commit(t.Context(), user.Add{User: passive}, user.Add{User: silent}))
		p := s.publish(t, body(pdf, `,"sendEmail":true,"version":"2/ä b-1.C"`))
		if p.Data.ID == nil || p.Data.Count != 1601 {
			t.Fatalf("%+v", p.Data)
		}
		var groups []int
		j, items := s.jobs.Finish(t, *p.Data.ID, func(until time.Time) {
			if until.After(s.now) { // the pause after a group
				persistencetest.Exec(t, s.db, "UPDATE users SET status = 'closed' WHERE id = 'u1599'")
				persistencetest.Exec(t, s.db, "UPDATE users SET email = NULL WHERE id = 'u1600'")
				groups = append(groups, len(s.sent))
				s.now = until
			}
		})
		if fmt.Sprint(groups) != "[800 1599]" || j.Counts != (job.Counts{Done: 1599, Skipped: 2}) || len(items) != 1601 {
			t.Errorf("pauses after %v, %+v, %d items", groups, j.Counts, len(items))
		}
		storetest.Equal(t, s.files.reads, 1, "the file was read", "times")
		for to, mails := range s.sent {
			m := mails[0]
			if len(mails) != 1 || m.Attachment == nil || string(m.Attachment.Content) != pdf ||
				m.Attachment.Name != "agreement-2___b-1.C.pdf" || m.Attachment.Type != "application/pdf" || m.Subject != "Terms" ||
				!strings.Contains(m.Text, "Fees") {
				t.Errorf("%s got %d mails, %+v", to, len(mails), m)
			}
		}
		for params, want := range map[string]string{`{"name":"Terms","version":"2"}`: "Terms 2", `{`: ""} {
			storetest.Equal(t, s.jobs.Kinds[agreement.MailingKind].About(job.Job{Params: []byte(params)}), want, params)
		}
		for who, want := range map[string]string{"u0000": "version 2/ä", "u0001": "sürüm 2/ä", "u0002": "الإصدار 2/ä",
			"u0003": "version 2/ä"} {
			if m := s.sent[who+"@example.com"][0]; !strings.Contains(m.Text, want) {
				t.Errorf("%s reads %q", who, m.Text)
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		for _, c := range []struct{ body, want string }{
			{strings.Replace(body(pdf, ""), "JVBE", "!!!!", 1), "INVALID_FIELD base64String"},
			{body("<html><script>1</script></html>", ""), "INVALID_FIELD base64String"},
			{body("\x89PNG\r\n\x1a\n", ""), "INVALID_FIELD base64String"},
			{body("PK\x03\x04nothing", ""), "INVALID_FIELD base64String"},
			{body("MZ\x90\x00\x03", ""), "INVALID_FIELD base64String"},
			{body(pdf, `,"version":" \t "`), "INVALID_FIELD version"},
			{body(pdf, `,"version":"2\n1"`), "INVALID_FIELD version"},
			{strings.Replace(body(pdf, ""), "Terms", `Terms\u202e`, 1), "INVALID_FIELD name"},
		} {
			s.Wants(publish, c.body, 400, c.want)
		}
		s.Wants(publish, strings.Replace(body(pdf, ""), "u0000", "nobody", 1), 404, "RECORD_NOT_FOUND")
		s.Wants("GET /admin/get-agreements?userId=x", "", 404, "RECORD_NOT_FOUND")
		s.Wants("GET /admin/get-agreements?userId=u0000&version=1", "", 200, "[]")
		storetest.Equal(t, storetest.Value(kit.NewAudit(s.db).Verify(t.Context(), []byte(persistencetest.AuditKey)))(t), 0)
		s.publish(t, body("PK\x03\x04word/document.xml", `,"version":"0 b"`))
		s.publish(t, strings.NewReplacer("Terms", strings.Repeat("ü", 200), "Fees", strings.Repeat("ü", 4000)).
			Replace(body(pdf, `,"version":"`+strings.Repeat("1", 32)+`"`))) // the longest texts
		first := s.publish(t, body("plain text", `,"sendEmail":true`))
		if first.Data.ID == nil {
			t.Error("no mailing was started")
		}
	})
}
