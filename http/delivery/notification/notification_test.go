package notification_test

import (
	"fmt"
	"testing"
	"time"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
	httpnotification "castellan/http/delivery/notification"
	"castellan/http/edge"
	"castellan/persistence"
	"castellan/persistence/delivery"
)

func both(t *testing.T, test func(t *testing.T, s *apitest.Site, ids []string)) {
	t.Helper()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		var ids []string
		for i, user := range []string{"u1", "u1", "u1", "u2"} {
			n := notification.New(time.UnixMilli(1_700_000_000_000+int64(i)), user,
				notification.Message{Topic: "news", Title: fmt.Sprint("t", i), Body: "<b>"})
			if i == 2 {
				n.ImageURL, n.ClickAction = "https://e.example/i.png", "OPEN"
			}
			storetest.Must(t, db.Commit(t.Context(), notification.Add{Notification: n}))
			ids = append(ids, n.ID)
		}
		test(t, apitest.Serve(t, edge.Options{}, httpnotification.Group{Store: delivery.NewNotifications(db)}).
			Below("/user/"), ids)
	})
}

// The list of a user, to the last key, and its pages.
func TestNotifications(t *testing.T) {
	both(t, func(t *testing.T, s *apitest.Site, ids []string) {
		mine := s.As("u1")
		third := `{"id":"` + ids[2] + `","topic":"news","title":"t2","body":"<b>","imageUrl":"https://e.example/i.png",` +
			`"clickActionType":"OPEN","createdAt":"2023-11-14T22:13:20.002Z","readAt":null}`
		res, answer := mine.Send("GET notifications?limit=1&count=true", "")
		if answer != "["+third+"]" || res.Header.Get("X-Total-Count") != "3" || res.Header.Get("Link") == "" {
			t.Errorf("%s, %v", answer, res.Header)
		}
		mine.Wants("POST notifications/read", `{"ids":["`+ids[1]+`","`+ids[3]+`","x"]}`, 200, `{"data":{"read":1}}`)
		mine.Wants("POST notifications/read", `{"ids":"`+ids[0]+`"}`, 200, `{"data":{"read":1}}`)
		mine.Wants("GET notifications?unread=true", "", 200, "["+third+"]")
		s.As("u2").Wants("POST notifications/read", `{"ids":["`+ids[2]+`"]}`, 200, `{"data":{"read":0}}`)
		mine.Wants("POST notifications/read", `{"all":true}`, 200, `{"data":{"read":1}}`)
		mine.Wants("POST notifications/read", `{"ids":[]}`, 200, `{"data":{"read":0}}`)
		mine.Wants("GET notifications?unread=1", "", 200, "[]")
		s.As("u3").Wants("GET notifications?userId=u1", "", 200, "[]")
	})
}

func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, s *apitest.Site, ids []string) {
		for _, c := range []struct{ line, body, want string }{
			{"GET notifications?cursor=y", "", "INVALID_FIELD cursor"},
			{"POST notifications/read", `{}`, "INVALID_FIELD ids"},
			{"POST notifications/read", `{"ids":null,"all":false}`, "INVALID_FIELD ids"},
			{"POST notifications/read", `{"ids":["x"],"all":true}`, "INVALID_FIELD ids"},
		} {
			s.As("u1").Wants(c.line, c.body, 400, c.want)
		}
	})
}
