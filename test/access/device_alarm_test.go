package access

import (
	"fmt"
	"strings"
	"testing"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

const alarmPath = blackbox.DevicesPath + "/alarm"

// raise sends an alarm of a device about a challenge.
func raise(t *testing.T, p blackbox.Pocket, challengeID string, edit ...func(*device.Claims)) blackbox.Answer {
	t.Helper()
	body := fmt.Sprintf(`{"challengeId":%q}`, challengeID)
	return p.N.Do(t, "POST", alarmPath, body, p.Sign(t, "POST", alarmPath, []byte(body), device.Claims{}, edit...))
}

// A device reports a challenge that its owner did not start (D-EXT-09). All sessions of the account end and all its
// challenges close. The owner gets a mail, and the audit names the challenge and the device.
func TestDeviceAlarm(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo, other := s.Seeded("user"), s.Seeded("admin")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		first, _ := n.Session(t, demo)
		second, _ := n.Session(t, demo)
		stranger, _ := n.Session(t, other)
		own := n.Login(t, other)
		thief := n.Login(t, demo)

		n.Do(t, "POST", alarmPath, `{"challengeId":"`+thief.ChallengeID+`"}`, blackbox.Headers{"x-auth": first}).
			Is(t, 401, "DEVICE_SIGNATURE_REQUIRED")
		raise(t, p, thief.ChallengeID, func(c *device.Claims) { c.Target = "/x" }).Is(t, 401, "DEVICE_SIGNATURE_INVALID")
		raise(t, p, own.ChallengeID).Is(t, 404, "CHALLENGE_NOT_FOUND") // of another account
		raise(t, p, "unknown").Is(t, 404, "CHALLENGE_NOT_FOUND")
		raise(t, p, "").Is(t, 400, "INVALID_FIELD")
		n.Ok(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": first})

		code := n.Code(t, demo, "SMS")
		p.Answer(t, thief, "DENIED").Is(t, 200, "")
		late := n.Login(t, demo) // begins before the alarm
		var got struct{ Data struct{ Ended int } }
		raise(t, p, thief.ChallengeID).Is(t, 200, "").Read(t, &got)
		if got.Data.Ended != 3 {
			t.Errorf("%d sessions ended, want 3", got.Data.Ended)
		}
		for _, token := range []string{x, first, second} {
			if a := n.Do(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": token}); a.Status != 401 {
				t.Errorf("a session goes on: %s", a)
			}
		}
		for _, f := range []blackbox.Flow{thief, late} {
			n.Complete(t, f, f.Method(t, "SMS"), code).Is(t, 409, "CHALLENGE_CLOSED")
		}
		n.Ok(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": stranger})
		if rows := s.Count("audit WHERE action = 'DEVICE_ALARM' AND target = $1 AND detail LIKE $2",
			thief.ChallengeID, "%"+p.ID); rows != 1 {
			t.Errorf("%d audit rows of the alarm", rows)
		}
		blackbox.Until(t, blackbox.Within(10), "the mail", func() bool {
			for _, letter := range n.Letters(t, demo.Mail) {
				if strings.Contains(letter.Subject, "All sessions of your") {
					return true
				}
			}
			return false
		})
	})
}

// Alarms that race end all sessions, and none is lost to another one.
func TestDeviceAlarmsRace(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		f := n.Login(t, demo)
		alarm := func(int) (blackbox.Answer, error) { return raise(t, p, f.ChallengeID), nil }
		for _, a := range blackbox.Crowd(t, 4, alarm) {
			a.Is(t, 200, "")
		}
		if a := n.Do(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x}); a.Status != 401 {
			t.Errorf("the session goes on: %s", a)
		}
	})
}
