package office_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/broadcast"
	"castellan/domain/permit/resource"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	httpbroadcast "castellan/http/office/broadcast"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/kit"
	"castellan/persistence/proof"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// service is the section with its jobs, under a clock that the jobs move.
type service struct {
	*apitest.Site
	t    *testing.T
	db   *persistence.DB
	jobs *apitest.Jobs
	now  time.Time

	mu   sync.Mutex
	sent map[string]message.Rendered // by recipient
	keys map[string]bool
	says map[string][]error // what a sender answers to a recipient, in turn
	many *broadcast.Service
	seal func(plain, ad []byte) []byte
}

// Send implements message.Sender for every channel.
func (s *service) Send(_ context.Context, key string, m message.Rendered) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[key] = true; len(s.says[m.To]) > 0 {
		err := s.says[m.To][0]
		if s.says[m.To] = s.says[m.To][1:]; err != nil {
			return err
		}
	}
	s.sent[m.To] = m
	return nil
}

func broadcastBoth(t *testing.T, test func(t *testing.T, s *service)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		s := &service{t: t, db: db, now: time.Now(), sent: map[string]message.Rendered{}, keys: map[string]bool{},
			says: map[string][]error{}}
		clock := func() time.Time { return s.now }
		ring := keyringtest.Ring(t, time.Now)
		s.jobs = apitest.NewJobs(t, db, ring, clock)
		s.seal = ring.Seal
		many := &broadcast.Service{Users: account.NewUsers(db), Devices: proof.NewDevices(db),
			Jobs: s.jobs.Service, Changes: admin.Changes{Commit: db, Now: clock},
			Parameters: parameter.NewCache(kit.NewParameters(db)), Open: ring.Open,
			Post: broadcast.Post{Senders: map[message.Channel]message.Sender{
				message.MAIL: s, message.SMS: s, message.Push: s}},
			MaySend: func(caller, userID string) error { return apitest.MayWrite(caller, userID, resource.General) }}
		s.many = many
		for _, k := range many.Kinds() {
			s.jobs.Kinds[k.Name] = k
		}
		s.Site = apitest.Serve(t, edge.Options{Verify: verify, Idempotency: &auth.Idempotent{
			Store: kit.NewIdempotency(db), Commit: db, Ring: ring, Now: time.Now}}, httpbroadcast.Group{Service: many})
		s.add("ada", func(u *user.User) { u.Language = "tr" })
		s.add("ben", func(u *user.User) { u.Email = "" })
		s.add("cem", func(u *user.User) { u.Status = user.Passive })
		s.add("dan", func(u *user.User) { u.CountryCode, u.Phone, u.Level = "49", "+49dan", 2 })
		s.device("ben", "ben", "iOS")
		s.device("dan", "dan", "android")
		test(t, s)
	})
}

// verify stands for the authenticator, whose own tests are those of domain/proof/totp.
func verify(_ context.Context, who rest.Caller, _ *rest.Endpoint, _ any) error {
	if who.OTP != "123456" {
		return fault.New(fault.OTPRequired, "a code is needed")
	}
	return nil
}

func (s *service) add(id string, edit func(*user.User)) {
	s.t.Helper()
	u := user.New(id, s.now)
	u.CountryCode, u.Phone, u.Email = "90", "+90"+id, id+"@example.com"
	edit(&u)
	storetest.Must(s.t, s.db.Commit(s.t.Context(), user.Add{User: u}))
}

// device registers a device of a user, whose push target is "push:" and a name.
func (s *service) device(userID, name, platform string) {
	s.t.Helper()
	_, key := devicetest.Signer(s.t, device.ES256)
	d := device.Device{ID: "phone of " + name, UserID: userID, Key: key, Platform: platform, Status: device.Active,
		CreatedAt: s.now}
	d.Target = s.seal([]byte("push:"+name), device.TargetData(userID, d.ID))
	storetest.Must(s.t, s.db.Commit(s.t.Context(), device.Add{Device: d}))
}

// started is the answer of a request that started a job.
type started struct {
	ID      string
	Count   int
	Unknown []string
	LeftOut smsLeftOut
}

func (s *service) starts(line, body string, headers ...string) started {
	s.t.Helper()
	status, answer := s.Call(line, body, append(headers, "otp", "123456")...)
	var out struct {
		Data struct {
			Accepted bool
			started
		}
	}
	if json.Unmarshal([]byte(answer), &out) != nil || status != 200 || !out.Data.Accepted {
		s.t.Fatalf("%s %s: %d %s", line, body, status, answer)
	}
	return out.Data.started
}

// finish runs a job and returns the outcome of each recipient.
func (s *service) finish(id string) (j job.Job, items string) {
	s.t.Helper()
	j, all := s.jobs.Finish(s.t, id, func(until time.Time) { s.now = until })
	for _, i := range all {
		items += fmt.Sprintf("%s:%s(%s) ", i.Ref, job.ItemStates[i.State], i.Error)
	}
	return j, strings.TrimSpace(strings.ReplaceAll(items, "()", ""))
}

func (s *service) inApp(userID string) (titles []string) {
	s.t.Helper()
	got, err := delivery.NewNotifications(s.db).List(s.t.Context(), notification.Query{UserID: userID},
		page.Query[notification.Place]{})
	storetest.Must(s.t, err)
	for _, n := range got.Records {
		titles = append(titles, n.Title)
	}
	return titles
}

func (s *service) recipients() (out []string) {
	for to := range s.sent {
		out = append(out, to)
	}
	return out
}

const notice = "POST /admin/send-notification"

// REQ-ADM-07, D-ADM-04: the channels of the topic, each recipient once, unknown ids
// told, users who are not active left out.
func TestNotify(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		got := s.starts(notice, `{"memberId":["ben","ada","ada","nobody","cem","dan"],"topic":"news","title":"T\n1",`+
			`"body":"B","imageUrl":"https://e.example/i.png","clickActionType":"OPEN","operatingSystem":"ios"}`)
		if got.Count != 4 || len(got.Unknown) != 1 || got.Unknown[0] != "nobody" {
			t.Errorf("%+v", got)
		}
		j, items := s.finish(got.ID)
		if items != "ada:done ben:done cem:skipped dan:done" || j.State != job.Done || j.ActorID != "admin" {
			t.Errorf("%s %+v", items, j)
		}
		for who, want := range map[string]int{"ada": 1, "ben": 1, "cem": 0, "dan": 1, "nobody": 0} {
			storetest.Equal(t, len(s.inApp(who)), want, who)
		}
		mail := s.sent["ada@example.com"]
		if len(s.sent) != 3 || mail.Subject != "T 1" || mail.Text != "B" || mail.Language != "tr" {
			t.Errorf("%v, %+v", s.recipients(), mail)
		}
		if push := s.sent["push:ben"].Text; push != `{"notice":{"topic":"news","title":"T\n1","body":"B",`+
			`"imageUrl":"https://e.example/i.png","clickActionType":"OPEN"}}` {
			t.Errorf("the push is %s", push)
		}

		clear(s.sent)
		one := s.starts(notice, `{"memberId":"ben","topic":"campaign","title":"T2","body":"`+strings.Repeat("<", 4000)+`"}`)
		if _, items := s.finish(one.ID); items != "ben:done" || len(s.sent) != 1 || len(s.sent["push:ben"].Text) > 3000 {
			t.Errorf("%s %v %d", items, s.recipients(), len(s.sent["push:ben"].Text))
		}
	})
}

// The error of a sender affects only its recipient.
func TestOutcomes(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		for _, id := range []string{"refused", "lost", "busy"} {
			s.add(id, func(*user.User) {})
		}
		away := &message.DeliveryError{Unsent: true, Err: errors.New("away")}
		s.says["refused@example.com"] = []error{&message.DeliveryError{Permanent: true, Err: errors.New("no such box")}}
		s.says["lost@example.com"] = []error{&message.DeliveryError{Err: errors.New("cut off")}}
		s.says["busy@example.com"] = []error{away, away}
		got := s.starts(notice, `{"memberId":["refused","lost","busy","ada"],"topic":"news","title":"T","body":"B"}`)
		j, items := s.finish(got.ID)
		if want := "ada:done busy:done lost:unknown(the server did not answer (MAIL)) " +
			"refused:failed(refused by the server (MAIL))"; items != want ||
			j.Counts != (job.Counts{Done: 2, Failed: 1, Unknown: 1}) {
			t.Errorf("%s, %+v", items, j.Counts)
		}
		storetest.Equal(t, len(s.keys), 4, "keys: a repeat has that of the first attempt")
		for _, who := range []string{"refused", "busy"} { // the account is notified nevertheless, once
			storetest.Equal(t, len(s.inApp(who)), 1, who)
		}
	})
}

// A recipient who holds more than the caller fails when it is the turn of that one, the
// others are served; a message to such recipients alone is refused (D-AUTH-03).
func TestMessagesToAdministrators(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		s.add("admin", func(*user.User) {})
		starts := func(caller, line, body string) string {
			site := s.Site
			defer func() { s.Site = site }()
			s.Site = s.As(caller)
			return s.starts(line, body).ID
		}
		const failed = "ada:done admin:failed(the account has a permission that you do not have)"
		for line, bodies := range map[string][2]string{
			notice: {`{"memberId":"admin","topic":"news","title":"T","body":"B"}`,
				`{"memberId":["admin","ada"],"topic":"news","title":"T","body":"B"}`},
			sms: {`{"userIds":"admin","messageBody":"M"}`, `{"userIds":["admin","ada"],"messageBody":"M"}`},
		} {
			s.As("clerk").Wants(line, bodies[0], 403, "FORBIDDEN")
			if _, items := s.finish(starts("clerk", line, bodies[1])); items != failed {
				t.Errorf("%s: %s", line, items)
			}
			if _, items := s.finish(starts("admin", line, bodies[1])); items != "ada:done admin:done" {
				t.Errorf("%s by an administrator: %s", line, items)
			}
		}
		all := starts("clerk", sms, `{"sendAllUsers":true,"messageBody":"M"}`)
		if _, items := s.finish(all); !strings.Contains(items, failed) {
			t.Errorf("to all: %s", items)
		}
	})
}

// D-EXT-02: a repeat starts no second job.
func TestRepeats(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		for line, body := range map[string]string{
			notice: `{"memberId":"ada","topic":"t","title":"T","body":"B"}`,
			sms:    `{"userIds":["ada"],"messageBody":"B"}`,
		} {
			first := s.starts(line, body, "Idempotency-Key", "k1")
			storetest.Equal(t, s.starts(line, body, "Idempotency-Key", "k1").ID, first.ID, line)
			status, answer := s.Call(line, strings.Replace(body, `"B"`, `"C"`, 1), "Idempotency-Key", "k1", "otp", "123456")
			if status != 422 || apitest.Refusal(answer) != "IDEMPOTENCY_MISMATCH" {
				t.Errorf("%s with another body: %d %s", line, status, answer)
			}
		}
		if got := audited(t, s.db); strings.Count(got, "\n") != 2 || !strings.HasPrefix(got, "BULK_SMS_SEND ") ||
			!strings.Contains(got, " 1 recipients\nNOTIFICATION_SEND ") || !strings.HasSuffix(got, " topic t, 1 recipients\n") {
			t.Errorf("audited\n%s", got)
		}
	})
}

func TestBroadcastRefusals(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		const rest = `,"topic":"t","title":"T","body":"B"`
		many := `["x` + strings.Repeat(`","x`, 9_999) + `"]`
		if got := s.starts(sms, `{"messageBody":"B","userIds":`+many+`}`); got.Count != 0 || got.LeftOut.Unknown != 1 {
			t.Errorf("%+v", got)
		}
		many = strings.Replace(many, "x", `x","y`, 1)
		for _, c := range []struct{ line, body, want string }{
			{notice, `{"memberId":[]` + rest + `}`, "INVALID_FIELD memberId"},
			{notice, `{"memberId":" "` + rest + `}`, "INVALID_FIELD memberId"},
			{notice, `{"memberId":` + many + rest + `}`, "INVALID_FIELD memberId"},
			{notice, `{"memberId":"ada"` + rest + `,"imageUrl":"javascript:alert(1)"}`, "INVALID_FIELD imageUrl"},
			{sms, `{"messageBody":"B"}`, "INVALID_FIELD userIds"},
			{sms, `{"messageBody":"B","userIds":[],"sendAllUsers":false}`, "INVALID_FIELD userIds"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"statuss":"active"}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"status":5}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"status":""}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"status":null}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"status":"Active"}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","userIds":["ada",""]}`, "INVALID_FIELD userIds"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"type":["x"]}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"kycConfirm":"approved"}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":{"levelId":"x"}}`, "INVALID_FIELD filter"},
			{sms, `{"messageBody":"B","sendAllUsers":true,"filter":[]}`, "INVALID_FIELD filter"},
		} {
			status, answer := s.Call(c.line, c.body, "otp", "123456")
			if got := apitest.Refusal(answer); status != 400 || got != c.want {
				t.Errorf("%.120s: %d %s, want %s", c.body, status, got, c.want)
			}
		}
		s.Wants(notice, `{"memberId":"ada"`+rest+`}`, 403, "OTP_REQUIRED")
		jobs, err := kit.NewJobs(s.db).List(t.Context(), job.Query{}, page.Query[job.Place]{})
		if err != nil || len(jobs.Records) != 1 || len(s.sent) != 0 {
			t.Errorf("refusals started %d jobs, %v", len(jobs.Records)-1, err)
		}
	})
}
