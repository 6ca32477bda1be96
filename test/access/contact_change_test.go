package access

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"castellan/internal/blackbox"
)

// A new phone number or address ends the sessions and the unfinished logins of the old one, also after a kill.
// Both the old and the new contact are notified (REQ-USR-11…13, D-USR-06, D-AUTH-11, D-EXT-07, SEC-22).
func TestContactChangeEndsSessions(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, me, other := blackbox.Admin(t, s, n), s.AddUser("user"), s.AddUser("user")
		told := func(to string) int {
			return len(slices.DeleteFunc(n.Letters(t, to), func(l blackbox.Letter) bool { return l.Code != "" }))
		}
		toldAll := func(want map[string]int) {
			t.Helper()
			blackbox.Until(t, blackbox.Within(10), "old and new are notified", func() bool {
				for to, count := range want {
					if told(to) != count {
						return false
					}
				}
				return true
			})
		}
		lives := func(token string) bool {
			t.Helper()
			a := n.Do(t, "GET", blackbox.SessionsPath, nil, blackbox.Headers{"x-auth": token})
			if a.Status != 200 {
				a.Is(t, 401, "TOKEN_REVOKED")
			}
			return a.Status == 200
		}
		first, _ := n.Session(t, me)
		second, _ := n.Session(t, me)
		others, _ := n.Session(t, other)
		n.Ok(t, "POST", "/admin/user/update-fullname", map[string]string{"userId": me.ID, "name": "Ayşe",
			"surname": "Yılmaz"}, boss)
		phone := func(number string) map[string]string {
			return map[string]string{"userId": me.ID, "phoneNum": number, "countryCode": "+90"}
		}
		n.Ok(t, "POST", blackbox.PhonePath, phone("0"+me.Phone), boss)
		if !lives(first) || !lives(second) {
			t.Fatal("a name, or the same number, ended a session")
		}
		begun, code := n.Login(t, me), n.Code(t, me, "SMS")
		old := me.Number()
		me.Phone = "5550001122"
		n.Ok(t, "POST", blackbox.PhonePath, phone(me.Phone), boss).Keys(t, "data")
		if lives(first) || lives(second) || !lives(others) {
			t.Error("the sessions of the account, and those alone, are not over")
		}
		n.Complete(t, begun, begun.Method(t, "SMS"), code).Is(t, 409, "CHALLENGE_CLOSED")
		toldAll(map[string]int{old: 1, me.Number(): 1, me.Mail: 1, other.Mail: 0})
		n.Do(t, "POST", blackbox.PhonePath, map[string]string{"userId": me.ID, "phoneNum": other.Phone, "countryCode": "90"},
			boss).
			Is(t, 409, "RECORD_ALREADY_EXIST")

		third, _ := n.Session(t, me) // by the new number
		oldMail := me.Mail
		me.Mail = "another@example.test"
		n.Ok(t, "POST", blackbox.MailPath, map[string]string{"userId": me.ID, "mailAddress": me.Mail}, boss)
		if lives(third) {
			t.Error("a session lives on")
		}
		toldAll(map[string]int{oldMail: 2, me.Mail: 1, me.Number(): 1})
		n.Kill()
		n = s.Start()
		if lives(first) || lives(third) || !lives(others) {
			t.Error("after a start")
		}
		var lines []struct{ OldEmail, NewEmail, ChangedBy string }
		n.Ok(t, "GET", "/admin/get-email-change-history?userId="+me.ID, nil, boss).Read(t, &lines)
		if len(lines) != 1 || lines[0].OldEmail != oldMail || lines[0].NewEmail != me.Mail || lines[0].ChangedBy == "" {
			t.Errorf("%+v", lines)
		}
	})
}

// A login whose last step coincides with the change has no session afterwards, in either order.
func TestContactChangeDuringLogin(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_ENABLED=false")
		n := s.Start()
		boss, me := blackbox.Admin(t, s, n), s.AddUser("user")
		born := 0
		for round := range 24 {
			f := n.Login(t, me)
			code := n.Code(t, me, "SMS")
			var completed, changed blackbox.Answer
			var failed [2]error
			var both sync.WaitGroup
			both.Go(func() { completed, failed[0] = n.TryComplete(f, f.Method(t, "SMS"), code) })
			both.Go(func() {
				changed, failed[1] = n.Try("POST", blackbox.MailPath, map[string]string{"userId": me.ID,
					"mailAddress": fmt.Sprintf("round%d@example.test", round)}, boss)
			})
			both.Wait()
			if failed != [2]error{} || changed.Status != 200 {
				t.Fatalf("%v, %s", failed, changed)
			}
			if completed.Status != 200 {
				completed.Is(t, 409, "CHALLENGE_CLOSED")
				continue
			}
			born++
			token := blackbox.Headers{"x-auth": completed.Header.Get("x-auth")}
			n.Do(t, "GET", blackbox.SessionsPath, nil, token).Is(t, 401, "TOKEN_REVOKED")
		}
		t.Logf("%d of 24 logins were first", born)
	})
}
