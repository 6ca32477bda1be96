package office_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/parameter"
	"castellan/domain/kit/storetest"
	"castellan/domain/office/broadcast"
	"castellan/persistence/persistencetest"
)

// A campaign uses SMS, mail and push only if the account permits them; the notification in the account is always
// created.
func TestCampaignNeedsPermission(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		topic := parameter.Topics.In(s.many.Parameters.Set()).Of("campaign")
		for n, allowed := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			persistencetest.Exec(t, s.db, "UPDATE users SET campaign_mail = ?, campaign_push = ? WHERE id = 'dan'",
				allowed[0], allowed[1])
			for _, about := range []string{"campaign", "news"} {
				clear(s.sent)
				s.finish(s.starts(notice, `{"memberId":"dan","topic":"`+about+`","title":"T","body":"B"}`).ID)
				_, mail := s.sent["dan@example.com"]
				_, push := s.sent["push:dan"]
				if about == "news" && !(mail && push) || about == "campaign" &&
					(mail != (allowed[0] && slices.Contains(topic, parameter.Mail)) ||
						push != (allowed[1] && slices.Contains(topic, parameter.Push))) {
					t.Errorf("%s, %v: mail %t, push %t", about, allowed, mail, push)
				}
			}
			storetest.Equal(t, len(s.inApp("dan")), 2*n+2, allowed, "notifications in the account")
		}
	})
}

// A push reaches whom one device receives it. A notice that no sender took yet holds the whole message back.
func TestDevicesOfRecipients(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		s.device("ben", "phone", "iOS")
		s.device("ben", "lost", "iOS")
		persistencetest.Exec(t, s.db, "UPDATE device SET status = 'LOST' WHERE id = 'phone of lost'")
		cut := &message.DeliveryError{Err: errors.New("cut off")}
		away := &message.DeliveryError{Unsent: true, Err: errors.New("away")}
		send := func(want string) {
			t.Helper()
			clear(s.sent)
			if _, items := s.finish(s.starts(notice, `{"memberId":"ben","topic":"news","title":"T","body":"B"}`).ID); items !=
				want {
				t.Errorf("got %s, want %s", items, want)
			}
		}
		s.says["push:ben"] = []error{cut}
		if send("ben:done"); len(s.sent) != 1 || s.sent["push:phone"].Text == "" {
			t.Errorf("one of two devices: %v", s.recipients())
		}
		s.says["push:ben"], s.says["push:phone"] = []error{away}, []error{away}
		if send("ben:failed(no device could be notified)"); len(s.inApp("ben")) != 2 {
			t.Errorf("notified %q", s.inApp("ben"))
		}
		persistencetest.Exec(t, s.db, "DELETE FROM device")
		send("ben:done") // in the account
		s.many.Post.Keep = func(userID string, m message.Rendered) []commit.Write {
			return []commit.Write{audit.Record{Action: "KEPT", Target: userID + " " + m.To}}
		}
		writes, err := s.many.Post.Send(t.Context(), "k", "ada", message.Rendered{Channel: message.SMS, To: "+90ada"})
		if storetest.Must(t, err); len(writes) != 1 {
			t.Errorf("kept %v", writes)
		}
		delete(s.many.Post.Senders, message.SMS)
		if _, items := s.finish(s.starts(sms, `{"userIds":["ada"],"messageBody":"M"}`).ID); items !=
			"ada:failed(the channel SMS is not configured)" {
			t.Error(items)
		}
	})
}

// A text that is too long for a push service is truncated, and a long image left out.
func TestLongPush(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		for image, body := range map[string]string{"https://e.test": strings.Repeat("<", 4000),
			"https://e.test/" + strings.Repeat("&", 1000): "B"} {
			s.finish(s.starts(notice, `{"memberId":"ben","topic":"news","title":"`+strings.Repeat("<", 200)+`","body":"`+body+
				`","imageUrl":"`+image+`"}`).ID)
			text := s.sent["push:ben"].Text
			if whole := body == "B"; len(text) > 3000 || whole != strings.Contains(text, `"body":"B"`) ||
				whole == (strings.Contains(text, "e.test") && strings.Contains(text, "…") && len(text) > 1500) {
				t.Errorf("%d bytes: %.100s", len(text), text)
			}
		}
	})
}

// The subject of a notification is its title, that of an SMS its text. A job that cannot be read sends nothing, and a
// recipient who cannot be read is tried again.
func TestJobsOfMessages(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		for name, k := range s.jobs.Kinds {
			for params, want := range map[string]string{
				`{"ids":["u"],"message":{"topic":"news","title":"A title","body":"A text"}}`: "A title",
				`{"message":{"topic":"","title":"","body":"A text"}}`:                        "A text", `{`: "",
			} {
				storetest.Equal(t, k.About(job.Job{Params: []byte(params)}), want, params, "of", name)
			}
			broken, whole := job.Job{Params: []byte("{")}, job.Job{Params: []byte(`{"ids":["ada","b","c"]}`), ActorID: "admin"}
			if ids, err := k.Items.Snapshot(t.Context(), broken, "", 10); err == nil || len(ids) != 0 {
				t.Errorf("%s: %q, %v", name, ids, err)
			}
			if got, err := k.Items.Snapshot(t.Context(), whole, "aa", 2); err != nil || strings.Join(got, " ") != "ada b" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			if _, err := k.Items.Send(t.Context(), broken, "ada"); err == nil || job.IsLater(err) || errors.Is(err, job.Skip) {
				t.Errorf("%s: %v", name, err)
			}
			if _, err := k.Items.Send(t.Context(), whole, "gone"); !errors.Is(err, job.Skip) {
				t.Errorf("%s to an account that is gone: %v", name, err)
			}
			persistencetest.Exec(t, s.db, "ALTER TABLE users RENAME TO broken")
			if _, err := k.Items.Send(t.Context(), whole, "ada"); !job.IsLater(err) {
				t.Errorf("%s to an account that cannot be read: %v", name, err)
			}
			persistencetest.Exec(t, s.db, "ALTER TABLE broken RENAME TO users")
		}
		send := func(channels string) ([]commit.Write, error) {
			return s.jobs.Kinds[broadcast.NotificationKind].Items.Send(t.Context(), job.Job{ID: "j1", ActorID: "admin",
				Params: []byte(`{"ids":["ada"],"channels":[` + channels + `]}`)}, "ada")
		}
		if _, err := send(`"` + parameter.Push + `"`); !errors.Is(err, job.Skip) {
			t.Errorf("without a device: %v", err)
		}
		persistencetest.Exec(t, s.db, "ALTER TABLE device RENAME TO broken")
		storetest.Wants(t, storetest.Err(send(`"`+parameter.Push+`"`)), fault.Unavailable)
		persistencetest.Exec(t, s.db, "ALTER TABLE broken RENAME TO device")
		s.says["ada@example.com"] = []error{&message.DeliveryError{Unsent: true, Err: errors.New("away")}}
		if writes, err := send(`"` + parameter.Mail + `","` + parameter.InApp + `"`); !job.IsLater(err) || len(writes) != 0 {
			t.Errorf("a mail that was not sent: %v, %v", writes, err)
		}
	})
}

const sms = "POST /send-bulk-sms"

type smsLeftOut struct{ Unknown, Filter, NoTurkishNumber, CampaignsOff int }

// REQ-ADM-08, REQ-ADM-09, D-ADM-05: Turkish numbers alone, narrowed by the filter.
func TestText(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		s.add("eva", func(u *user.User) { u.Level, u.Type, u.KYCConfirm = 3, user.Corporate, user.ManuelApproved })
		s.add("fax", func(u *user.User) { u.Phone = "" })
		s.add("gül", func(u *user.User) { u.SetPlaceholder(1) })
		s.add("han", func(u *user.User) { u.Campaigns.SMS = false })
		for _, c := range []struct {
			body, want string
			leftOut    smsLeftOut
		}{
			{`{"sendAllUsers":true`, "ada ben cem eva", smsLeftOut{0, 0, 3, 1}},
			{`{"sendAllUsers":true,"userIds":["ada"]`, "ada ben cem eva", smsLeftOut{0, 0, 3, 1}},
			{`{"userIds":["eva","dan","ada","missing","fax","gül","han","ada"]`, "ada eva", smsLeftOut{1, 0, 3, 1}},
			{`{"userIds":"ben"`, "ben", smsLeftOut{}},
			{`{"sendAllUsers":true,"filter":{"status":"active"}`, "ada ben eva", smsLeftOut{0, 1, 3, 1}},
			{`{"sendAllUsers":true,"filter":{"status":["passive","blocked"]}`, "cem", smsLeftOut{0, 7, 0, 0}},
			{`{"sendAllUsers":true,"filter":{"type":"kurumsal","kycConfirm":["manuelApproved"],"levelId":3}`, "eva",
				smsLeftOut{0, 7, 0, 0}},
			{`{"userIds":["ada","eva"],"filter":{"kycConfirm":true}`, "eva", smsLeftOut{0, 1, 0, 0}},
			{`{"userIds":["ada","eva"],"filter":{"kycConfirm":false}`, "ada", smsLeftOut{0, 1, 0, 0}},
			{`{"userIds":["ada","eva"],"filter":{"levelId":"3"}`, "eva", smsLeftOut{0, 1, 0, 0}},
			{`{"userIds":["ada"],"filter":{"levelId":3}`, "", smsLeftOut{0, 1, 0, 0}},
			{`{"userIds":["dan"],"filter":{}`, "", smsLeftOut{0, 0, 1, 0}},
		} {
			clear(s.sent)
			got := s.starts(sms, c.body+`,"messageBody":"hello"}`)
			j, _ := s.finish(got.ID)
			want := strings.Fields(c.want)
			storetest.Equal(t, got.LeftOut, c.leftOut, c.body, "left out are")
			if got.Count != len(want) || j.Done != int64(len(want)) || j.Total != j.Done || len(s.sent) != len(want) {
				t.Errorf("%s: %+v, %+v, sent to %v", c.body, got, j.Counts, s.recipients())
			}
			for _, who := range want {
				if m := s.sent["+90"+who]; m.Text != "hello" || m.Channel != message.SMS {
					t.Errorf("%s: %s got %+v", c.body, who, m)
				}
			}
		}
		// A user who lost the number meanwhile gets nothing.
		late := s.starts(sms, `{"userIds":["ada","ben"],"messageBody":"hello"}`)
		persistencetest.Exec(t, s.db, "UPDATE users SET phone = NULL WHERE id = 'ada'")
		if _, items := s.finish(late.ID); items != "ada:skipped ben:done" {
			t.Error(items)
		}
	})
}
