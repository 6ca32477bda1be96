package access

import (
	"maps"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// With mfa.guard_administration every sensitive write of an administrator requires a challenge, besides its
// other requirements. Without the setting no write does, which lets an operator recover when no administrator
// can complete a challenge.
func TestAdministrationRequiresChallenge(t *testing.T) {
	const clerk = `{"code":"clerk","name":"Clerk"}`
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_ENABLED=false")
		n := s.Start()
		boss := s.Seeded("admin")
		app := blackbox.Enrolled(t, n, boss, blackbox.Admin(t, s, n))
		n.Stop()
		n = s.Start("MFA_GUARD_ADMINISTRATION=true", "MFA_GUARDED=PATCH /admin/system/waf/rules=RULES")
		who := blackbox.Admin(t, s, n)
		n.Ok(t, "GET", "/admin/roles", nil, who)
		// Each key is an endpoint of the set, with its body and the action of its challenge.
		for key, c := range map[string][2]string{
			"POST /admin/roles":             {clerk, "ADMINISTRATION"},
			"PATCH /admin/system/waf/rules": {`{"label":"wall","status":"INACTIVE"}`, "RULES"},
			"POST /admin/update-parameters": {`{"id":1,"json":{}}`, "ADMINISTRATION"}, // needs a code besides
		} {
			headers := maps.Clone(who)
			headers["otp"] = app.Next(t)
			method, path, _ := strings.Cut(key, " ")
			f := blackbox.FlowOf(t, n.Do(t, method, path, c[0], headers).Is(t, 200, "").Keys(t, "challenge"))
			if s.Count("challenge WHERE id = $1 AND action = $2", f.ChallengeID, c[1]) != 1 {
				t.Errorf("%s: another action than %s", key, c[1])
			}
		}
		if got := s.Count("role WHERE code = 'clerk'"); got != 0 {
			t.Error("a role was added before the challenge was completed")
		}
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/admin/roles", clerk, who))
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, boss, "SMS")).Is(t, 200, "")
		// No administrator can complete a challenge: none has the methods that the policy requires.
		f = blackbox.FlowOf(t, n.Do(t, "POST", "/admin/system/mfa/policies/common",
			`{"actionCode":"ADMINISTRATION","name":"too much","expireAt":0,"required":4,"force":true,`+
				`"methods":[["TOTP"],["PUSH"],["SMS"],["MAIL"]]}`, who))
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, boss, "SMS")).Is(t, 200, "")
		blackbox.Until(t, blackbox.Within(2), "the policy known", func() bool {
			a, err := n.Try("DELETE", "/admin/roles", `{"code":"clerk"}`, who)
			return err == nil && a.Status == 409 && a.Code() == "MFA_NOT_AVAILABLE"
		})
		n.Stop()
		n = s.Start()
		n.Ok(t, "DELETE", "/admin/roles", `{"code":"clerk"}`, who)
	})
}
