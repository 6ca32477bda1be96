package access

import (
	"fmt"
	"testing"

	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// Alarms that race end all sessions, and none is lost to another one.
func TestDeviceAlarmsRace(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		n := blackbox.Patient(s).Start()
		demo := s.Seeded("user")
		x, _ := n.Session(t, demo)
		p := blackbox.Enroll(t, n, demo, x, device.ES256, "")
		f := n.Login(t, demo)
		const path = blackbox.DevicesPath + "/alarm"
		body := fmt.Sprintf(`{"challengeId":%q}`, f.ChallengeID)
		for _, a := range blackbox.Crowd(t, 4, func(int) (blackbox.Answer, error) {
			return n.Try("POST", path, body, p.Sign(t, "POST", path, []byte(body), device.Claims{}))
		}) {
			a.Is(t, 200, "")
		}
		n.Do(t, "GET", "/auth/sessions", nil, blackbox.Headers{"x-auth": x}).Is(t, 401, "TOKEN_REVOKED")
	})
}
