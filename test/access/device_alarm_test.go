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
