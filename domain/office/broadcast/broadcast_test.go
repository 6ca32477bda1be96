package broadcast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/job/jobtest"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/page"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/broadcast"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/delivery"
	"castellan/persistence/kit"
	"castellan/persistence/persistencetest"
	"castellan/persistence/proof"
)

// world is the service with a database and senders that record the messages. The jobs move its clock.
type world struct {
	*broadcast.Service
	t       *testing.T
	db      *persistence.DB
	run     *job.Runner
	seal    func(plain, ad []byte) []byte
	now     time.Time
	mu      sync.Mutex
	sent    map[string]message.Rendered // by recipient
	answers map[string][]error          // of a sender to a recipient, in order
	keys    map[string]bool
	higher  string // the account that no caller may write to (D-AUTH-03)
}

func (w *world) Send(_ context.Context, key string, m message.Rendered) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.keys[key] = true; len(w.answers[m.To]) > 0 {
		err := w.answers[m.To][0]
		if w.answers[m.To] = w.answers[m.To][1:]; err != nil {
			return err
		}
	}
	w.sent[m.To] = m
	return nil
}

func newWorld(t *testing.T) *world {
	db := persistencetest.SQLite(t)
	w := &world{t: t, db: db, now: time.UnixMilli(1_700_000_000_000), sent: map[string]message.Rendered{},
		answers: map[string][]error{}, keys: map[string]bool{}}
	clock := func() time.Time { return w.now }
	ring := keyringtest.Ring(t, time.Now)
	w.seal = ring.Seal
	jobs, kinds := kit.NewJobs(db), map[string]job.Kind{}
	live, changes := parameter.NewCache(kit.NewParameters(db)), admin.Changes{Commit: db, Now: clock}
	storetest.Must(t, live.Reload(t.Context()))
	w.Service = &broadcast.Service{Users: account.NewUsers(db), Devices: proof.NewDevices(db),
		Jobs:    &job.Service{Store: jobs, Changes: changes, Seal: ring.Seal},
		Changes: changes, Parameters: live, Open: ring.Open, MaySend: w.mayTell,
		Post: broadcast.Post{Senders: map[message.Channel]message.Sender{message.MAIL: w, message.SMS: w, message.Push: w}}}
	for _, k := range w.Kinds() {
		kinds[k.Name] = k
	}
	w.run = &job.Runner{Store: jobs, Commit: db, Kinds: kinds, Open: ring.Open, Now: clock,
		Log: slog.New(slog.DiscardHandler), Name: "test", Leaving: t.Context()}
	w.add("ada", func(u *user.User) { u.Language = "tr" })
	w.add("ben", func(u *user.User) { u.Email = "" })
	w.add("cem", func(u *user.User) { u.Status = user.Passive })
	w.add("dan", func(u *user.User) { u.CountryCode, u.Phone, u.Level = "49", "+49dan", 2 })
	return w
}

func (w *world) add(id string, edit func(*user.User)) {
	w.t.Helper()
	u := user.New(id, w.now)
	u.CountryCode, u.Phone, u.Email = "90", "+90"+id, id+"@example.com"
	edit(&u)
	storetest.Must(w.t, w.db.Commit(w.t.Context(), user.Add{User: u}))
}

// device registers a device whose push target is its id.
func (w *world) device(userID, id string, edit func(*device.Device)) {
	w.t.Helper()
	_, key := devicetest.Signer(w.t, device.ES256)
	d := device.Device{ID: id, UserID: userID, Key: key, Platform: "iOS", Status: device.Active, CreatedAt: w.now}
	d.Target = w.seal([]byte(id), device.TargetData(userID, id))
	edit(&d)
	storetest.Must(w.t, w.db.Commit(w.t.Context(), device.Add{Device: d}))
}

// finish runs a job and returns the outcome of each recipient.
func (w *world) finish(id string) string {
	w.t.Helper()
	_, items := jobtest.Finish(w.t, w.run, id, func(until time.Time) { w.now = until })
	var out []string
	for _, i := range items {
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s:%s(%s)", i.Ref, job.ItemStates[i.State], i.Error), "()"))
	}
	return strings.Join(out, " ")
}

// took returns the recipients so far, and clears them.
func (w *world) took() string {
	defer clear(w.sent)
	return strings.Join(slices.Sorted(maps.Keys(w.sent)), " ")
}

func (w *world) inApp(userID string) int {
	w.t.Helper()
	got, err := delivery.NewNotifications(w.db).List(w.t.Context(), notification.Query{UserID: userID},
		page.Query[notification.Place]{})
	storetest.Must(w.t, err)
	return len(got.Records)
}

func (w *world) notify(n broadcast.Notice) broadcast.Started {
	w.t.Helper()
	if n.Topic == "" {
		n.Topic = "news"
	}
	out, err := w.Notify(w.t.Context(), audit.By{UserID: "boss"}, n)
	storetest.Must(w.t, err)
	return out
}

func (w *world) text(m broadcast.SMS) broadcast.Started {
	w.t.Helper()
	m.Text = "hello"
	out, err := w.Text(w.t.Context(), audit.By{UserID: "boss"}, m)
	storetest.Must(w.t, err)
	return out
}

// allow sets the campaign channels of an account.
func (w *world) allow(id string, c user.Campaigns) {
	w.t.Helper()
	persistencetest.Exec(w.t, w.db, "UPDATE users SET campaign_sms = ?, campaign_mail = ?, campaign_push = ? WHERE id = ?",
		c.SMS, c.Mail, c.Push, id)
}

// A campaign uses mail and push only if the account permits them; the notification in the account is always created.
func TestCampaignNeedsPermission(t *testing.T) {
	w := newWorld(t)
	w.device("ada", "ada-phone", func(*device.Device) {})
	campaign := broadcast.Notice{Message: notification.Message{Topic: "campaign", Title: "T", Body: "B"},
		UserIDs: []string{"ada"}}
	news := campaign
	news.Topic = "news"
	for _, allowed := range []user.Campaigns{{}, {Mail: true}, {Push: true}, {Mail: true, Push: true}} {
		w.allow("ada", allowed)
		before := w.inApp("ada")
		got := w.finish(w.notify(campaign).JobID)
		_, mail := w.sent["ada@example.com"]
		_, push := w.sent["ada-phone"]
		w.took()
		topic := parameter.Topics.In(w.Parameters.Set()).Of("campaign")
		if mail != (allowed.Mail && slices.Contains(topic, parameter.Mail)) ||
			push != (allowed.Push && slices.Contains(topic, parameter.Push)) {
			t.Errorf("%+v: mail %t, push %t", allowed, mail, push)
		}
		if inApp := w.inApp("ada") > before; inApp != slices.Contains(topic, parameter.InApp) {
			t.Errorf("%+v: %s, in the account %t", allowed, got, inApp)
		}
		w.finish(w.notify(news).JobID)
		if got := w.took(); got != "ada-phone ada@example.com" {
			t.Errorf("%+v: news went to %s", allowed, got)
		}
	}
}

// The response of a sender affects only one recipient, and a retry has the key of the first attempt.
func TestOutcomesOfSenders(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"lost", "late", "gone"} {
		w.add(id, func(*user.User) {})
	}
	away := &message.DeliveryError{Unsent: true, Err: errors.New("away")}
	w.answers["+90gone"] = []error{&message.DeliveryError{Permanent: true, Err: errors.New("no such number")}}
	w.answers["+90lost"] = []error{&message.DeliveryError{Err: errors.New("cut off")}}
	w.answers["+90late"] = []error{away, away}
	got := w.finish(w.text(broadcast.SMS{UserIDs: []string{"lost", "late", "gone", "ada"}}).JobID)
	if want := "ada:done gone:failed(refused by the server (SMS)) late:done " +
		"lost:unknown(the server did not answer (SMS))"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	if len(w.keys) != 4 {
		t.Errorf("%d keys of 4 messages", len(w.keys))
	}
	w.took()
	w.device("ben", "ben-phone", func(*device.Device) {})
	w.device("ben", "ben-other", func(*device.Device) {})
	w.answers["ben-phone"] = []error{&message.DeliveryError{Err: errors.New("cut off")}}
	notice := broadcast.Notice{Message: notification.Message{Title: "T", Body: "B"}, UserIDs: []string{"ben"}}
	if got := w.finish(w.notify(notice).JobID); got != "ben:done" || w.took() != "ben-other" {
		t.Errorf("one of two devices: %s", got)
	}
	w.answers["ben-phone"], w.answers["ben-other"] = []error{away}, []error{away}
	if got := w.finish(w.notify(notice).JobID); got != "ben:failed(no device could be notified)" || w.inApp("ben") != 2 {
		t.Errorf("no device: %s, %d notifications", got, w.inApp("ben"))
	}
	delete(w.Post.Senders, message.SMS)
	if got := w.finish(w.text(broadcast.SMS{UserIDs: []string{"ada"}}).JobID); got !=
		"ada:failed(the channel SMS is not configured)" {
		t.Error(got)
	}
}

// A sent message may be stored for the outbox of development mode.
func TestSentMessagesAreStored(t *testing.T) {
	w := newWorld(t)
	var kept []string
	w.Post.Keep = func(userID string, m message.Rendered) []commit.Write {
		kept = append(kept, userID+" "+m.To)
		return []commit.Write{audit.Record{At: w.now, Action: "KEPT"}}
	}
	writes, err := w.Post.Send(t.Context(), "k", "ada", message.Rendered{Channel: message.SMS, To: "+90ada"})
	if err != nil || len(writes) != 1 || fmt.Sprint(kept) != "[ada +90ada]" {
		t.Errorf("%v, %v, %v", writes, kept, err)
	}
}

// A text that is too long for a push service is truncated; the account has the full text.
func TestLongPush(t *testing.T) {
	w := newWorld(t)
	w.device("ada", "ada-phone", func(*device.Device) {})
	long := notification.Message{Title: "T", Body: strings.Repeat("<", 4000), ImageURL: "https://e.test"}
	w.finish(w.notify(broadcast.Notice{Message: long, UserIDs: []string{"ada"}}).JobID)
	if text := w.sent["ada-phone"].Text; len(text) > 3000 || len(text) < 1500 || !strings.Contains(text, "…") ||
		!strings.Contains(text, "e.test") {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
	long.Title, long.Body = strings.Repeat("<", 200), "B"
	long.Topic, long.ImageURL = strings.Repeat("&", notification.MaxTopic), "https://e.test/"+strings.Repeat("&", 1000)
	w.finish(w.notify(broadcast.Notice{Message: long, UserIDs: []string{"ada"}}).JobID)
	if text := w.sent["ada-phone"].Text; len(text) > 3000 || strings.Contains(text, "e.test") ||
		!strings.Contains(text, `"body":"B"`) {
		t.Errorf("%d bytes: %.100s", len(text), text)
	}
}

// One request names at most 10,000 recipients. They are looked up and recorded in pages.
func TestManyRecipients(t *testing.T) {
	w := newWorld(t)
	ids := []string{"ada", "ben"}
	for n := len(ids); n < 10_000; n++ {
		ids = append(ids, fmt.Sprint("x", n))
	}
	if got := w.text(broadcast.SMS{UserIDs: ids}); got.Count != 2 {
		t.Errorf("%+v", got)
	}
	if got := w.notify(broadcast.Notice{UserIDs: ids}); got.Count != 2 || len(got.Unknown) != 9998 {
		t.Errorf("%d known, %d unknown", got.Count, len(got.Unknown))
	}
	ids = append(ids, "y")
	_, err := w.Text(t.Context(), audit.By{}, broadcast.SMS{UserIDs: ids})
	storetest.Wants(t, err, fault.InvalidField)
	_, err = w.Notify(t.Context(), audit.By{}, broadcast.Notice{UserIDs: ids})
	storetest.Wants(t, err, fault.InvalidField)
	_, err = w.Notify(t.Context(), audit.By{}, broadcast.Notice{UserIDs: []string{"ada"},
		Message: notification.Message{Title: strings.Repeat("t", 201)}})
	storetest.Wants(t, err, fault.InvalidField)

	j := job.Job{Params: []byte(`{"ids":["a","b","c","d"]}`)}
	snapshot := w.Kinds()[0].Items.Snapshot
	for after, want := range map[string]string{"": "[a b]", "a": "[b c]", "b": "[c d]", "c": "[d]", "d": "[]"} {
		if got, err := snapshot(t.Context(), j, after, 2); fmt.Sprint(got) != want || err != nil {
			t.Errorf("after %q: %v, %v", after, got, err)
		}
	}
}
