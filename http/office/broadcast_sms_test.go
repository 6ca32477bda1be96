package office_test

import (
	"context"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
)

const sms = "POST /send-bulk-sms"

type smsLeftOut struct{ Unknown, Filter, NoTurkishNumber, CampaignsOff int }

// REQ-ADM-08, REQ-ADM-09, D-ADM-05: Turkish numbers alone, narrowed by the filter.
func TestText(t *testing.T) {
	broadcastBoth(t, func(t *testing.T, s *service) {
		s.add("eva", func(u *user.User) { u.Level, u.Type, u.KYCConfirm = 3, user.Corporate, "approved" })
		s.add("fax", func(u *user.User) { u.Phone = "" })
		s.add("gül", func(u *user.User) { u.SetPlaceholder(1) })
		s.add("han", func(u *user.User) { u.Campaigns.SMS = false })
		for _, c := range []struct {
			body, want string
			leftOut    smsLeftOut
		}{
			{`{"sendAllUsers":true`, "ada ben cem eva", smsLeftOut{0, 0, 3, 1}},
			{`{"sendAllUsers":true,"userIds":["ada"]`, "ada ben cem eva", smsLeftOut{0, 0, 3, 1}},
			{`{"userIds":["eva","dan","ada","nobody","fax","gül","han","ada"]`, "ada eva", smsLeftOut{1, 0, 3, 1}},
			{`{"userIds":"ben"`, "ben", smsLeftOut{}},
			{`{"sendAllUsers":true,"filter":{"status":"active"}`, "ada ben eva", smsLeftOut{0, 1, 3, 1}},
			{`{"sendAllUsers":true,"filter":{"status":["passive","blocked"]}`, "cem", smsLeftOut{0, 7, 0, 0}},
			{`{"sendAllUsers":true,"filter":{"type":"kurumsal","kycConfirm":["approved"],"levelId":3}`, "eva",
				smsLeftOut{0, 7, 0, 0}},
			{`{"userIds":["ada","eva"],"filter":{"levelId":"3"}`, "eva", smsLeftOut{0, 1, 0, 0}},
			{`{"userIds":["ada"],"filter":{"levelId":3}`, "", smsLeftOut{0, 1, 0, 0}},
			{`{"userIds":["dan"],"filter":{}`, "", smsLeftOut{0, 0, 1, 0}},
		} {
			clear(s.sent)
			got := s.starts(sms, c.body+`,"messageBody":"hello"}`)
			j, _ := s.finish(got.ID)
			want := strings.Fields(c.want)
			if got.LeftOut != c.leftOut {
				t.Errorf("%s: left out are %+v, want %+v", c.body, got.LeftOut, c.leftOut)
			}
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
		storetest.Must(t, s.db.InTx(t.Context(), func(ctx context.Context) error {
			_, err := s.db.Conn(ctx).ExecContext(ctx, "UPDATE users SET phone = NULL WHERE id = 'ada'")
			return err
		}))
		if _, items := s.finish(late.ID); items != "ada:skipped ben:done" {
			t.Error(items)
		}
	})
}
