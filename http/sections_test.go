package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/change"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/http/apitest"
	httpnotification "castellan/http/delivery/notification"
	"castellan/http/edge"
	httpservicekey "castellan/http/permit/servicekey"
	"castellan/persistence"
	"castellan/persistence/delivery"
	"castellan/persistence/kit"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

func noticesBoth(t *testing.T, test func(t *testing.T, s *apitest.Site, ids []string)) {
	t.Helper()
	t.Parallel()
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
	noticesBoth(t, func(t *testing.T, s *apitest.Site, ids []string) {
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

func TestNoticesRefuse(t *testing.T) {
	noticesBoth(t, func(t *testing.T, s *apitest.Site, ids []string) {
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

func TestServiceKeys(t *testing.T) {
	t.Parallel()
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		roles := permit.NewResources(db)
		_, err := roles.AddRole(t.Context(), resource.Role{Code: "wallet", Name: "Wallet"})
		storetest.Must(t, err)
		service := &servicekey.Service{Store: permit.NewServiceKeys(db), Roles: roles.Roles,
			Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.ServiceKeys},
			Ring:    keyringtest.Ring(t, time.Now),
			Action:  func(_ context.Context, code string) (bool, error) { return code != "LOGIN", nil }}
		s := apitest.Serve(t, edge.Options{}, httpservicekey.Group{Service: service}).Below("/admin/service-keys")
		s.Wants("GET ", "", 200, "[]")
		for body, want := range map[string]string{
			`{"name":"a.b","role":"wallet"}`:                        "INVALID_FIELD name",
			`{"name":"wallet"}`:                                     "INVALID_FIELD role",
			`{"name":"wallet","role":"nothing"}`:                    "INVALID_FIELD role",
			`{"name":"wallet","role":"user"}`:                       "INVALID_FIELD role",
			`{"name":"wallet","role":"wallet","ip":["x"]}`:          "INVALID_FIELD ip",
			`{"name":"wallet","role":"wallet","ip":["10.1.2.3/8"]}`: "INVALID_FIELD ip",
		} {
			s.Wants("POST ", body, 400, want)
		}
		s.As("clerk").Wants("POST ", `{"name":"wallet","role":"wallet"}`, 403, "FORBIDDEN")
		s.As("clerk").Wants("GET ", "", 403, "FORBIDDEN")

		key := func(line, body string) string {
			t.Helper()
			status, answer := s.Call(line, body)
			var a struct{ Data struct{ Key, Role string } }
			if err := json.Unmarshal([]byte(answer), &a); err != nil || status != 200 || a.Data.Role != "wallet" {
				t.Fatalf("%s: %d %s", line, status, answer)
			}
			name, secret, _ := strings.Cut(a.Data.Key, ".")
			if name != "wallet" || len(secret) != 43 {
				t.Errorf("the key %q is not <name>.<secret of 32 bytes>", a.Data.Key)
			}
			return a.Data.Key
		}
		first := key("POST ", `{"name":"wallet","role":"wallet","ip":["192.0.2.7","2001:db8::/32"]}`)
		s.Wants("POST ", `{"name":"wallet","role":"wallet"}`, 409, "RECORD_ALREADY_EXIST")
		second := key("POST /rotate", `{"name":"wallet"}`)
		if first == second {
			t.Error("the rotation returned the same key")
		}
		_, listed := s.Call("GET ", "")
		for _, want := range []string{`"ip":["192.0.2.7/32","2001:db8::/32"]`, `"oldUntil":"`} {
			storetest.Contains(t, listed, want)
		}
		if _, secret, _ := strings.Cut(second, "."); strings.Contains(listed, secret) || strings.Contains(listed, "key") {
			t.Errorf("listed with the secret: %s", listed)
		}
		if status, answer := s.Call("POST ",
			`{"name":"shop","actions":["PAYOUT"],"callback":"https://shop.example/in"}`); status != 200 ||
			!strings.Contains(answer, `"actions":["PAYOUT"],"callback":"https://shop.example/in"`) {
			t.Errorf("a key with actions: %d %s", status, answer)
		}
		s.Wants("POST ", `{"name":"bad","actions":["a b"]}`, 400, "INVALID_FIELD actions")
		s.Wants("POST ", `{"name":"bad","actions":["PAYOUT"],"callback":"http://shop.example/"}`, 400,
			"INVALID_FIELD callback")
		for _, c := range [][2]string{
			{`"actions":["REFUND","PAYOUT"]`, `"actions":["REFUND","PAYOUT"],"callback":"https://shop.example/in"`},
			{`"callback":""`, `"actions":["REFUND","PAYOUT"],"callback":null`},
		} {
			if status, answer := s.Call("PATCH ", `{"name":"shop",`+c[0]+`}`); status != 200 ||
				!strings.Contains(answer, c[1]) {
				t.Errorf("%s: %d %s", c[0], status, answer)
			}
		}
		s.Wants("PATCH ", `{"name":"shop","actions":[]}`, 400, "INVALID_FIELD actions")
		s.Wants("PATCH ", `{"name":"shop","callback":"http://shop.example/"}`, 400, "INVALID_FIELD callback")
		s.Wants("PATCH ", `{"name":"wallet","callback":"https://shop.example/"}`, 400, "INVALID_FIELD callback")
		s.Wants("PATCH ", `{"name":"nothing","actions":["PAYOUT"]}`, 404, "RECORD_NOT_FOUND")
		s.As("clerk").Wants("PATCH ", `{"name":"shop","actions":["PAYOUT"]}`, 403, "FORBIDDEN")
		s.Wants("DELETE ", `{"name":"shop"}`, 200, `{"data":{"name":"shop"}}`)
		s.Wants("DELETE ", `{"name":"wallet"}`, 200, `{"data":{"name":"wallet"}}`)
		s.Wants("DELETE ", `{"name":"wallet"}`, 404, "RECORD_NOT_FOUND")
		s.Wants("POST /rotate", `{"name":"wallet"}`, 404, "RECORD_NOT_FOUND")
		if rows, err := kit.NewAudit(db).Verify(t.Context(), []byte(persistencetest.AuditKey)); err != nil || rows != 7 {
			t.Errorf("%d audit rows, %v; want one for each change", rows, err)
		}
	})
}
