package access

import (
	"maps"
	"strings"
	"testing"

	httpapi "castellan/http"
	"castellan/internal/blackbox"
)

// With mfa.guard_administration every sensitive write of an administrator requires a challenge, besides its
// other requirements. Without the setting no write does, which lets an operator recover when no administrator
// can complete a challenge.
func TestAdministrationRequiresChallenge(t *testing.T) {
	const link = `{"userId":"u","issuer":"https://id.example.com","subject":"jane"}`
	bodies := map[string]string{
		"POST /admin/system/mfa/methods":           `{"methodCode":"X","expireMs":1000,"renewStartMs":0}`,
		"PATCH /admin/system/mfa/methods":          `{"methodCode":"SMS","expireMs":110000}`,
		"POST /admin/system/mfa/actions":           blackbox.NewAction("ONE_MORE"),
		"PATCH /admin/system/mfa/actions":          `{"actionCode":"LOGIN","title":{"en":"Log in"}}`,
		"POST /admin/system/mfa/policies/common":   blackbox.PolicyOf("LOGIN"),
		"PATCH /admin/system/mfa/policies/common":  `{"id":1,"name":"other"}`,
		"DELETE /admin/system/mfa/policies/common": `{"id":1}`,
		"POST /admin/system/waf/rules": `{"appId":"API","label":"wall","type":"blacklist","expireAt":0,"status":"ACTIVE",` +
			`"targetEntityType":"IP","targetEntities":["192.0.2.1"],"targetAllResources":true}`,
		"PATCH /admin/system/waf/rules":         `{"label":"wall","status":"INACTIVE"}`,
		"POST /admin/system/waf/counters/reset": `{"label":"wall","entity":"192.0.2.1","reason":"test"}`,
		"POST /admin/money/rules": `{"label":"wall","status":"TRIAL","kinds":["WITHDRAWAL"],` +
			`"effect":{"type":"DENY"}}`,
		"PATCH /admin/money/rules":  `{"label":"wall","status":"INACTIVE"}`,
		"DELETE /admin/money/rules": `{"label":"wall"}`,
		"POST /resource/resource": `{"code":"W","name":"W","status":1,"resourceTypeId":1,` +
			`"resourceContext":"UI"}`,
		"DELETE /resource/resource":              `{"resourceId":1}`,
		"POST /resource/resource-type":           `{"name":"W","code":"W","status":1,"resourceContext":"UI"}`,
		"DELETE /resource/resource-type":         `{"resourceTypeId":1}`,
		"POST /admin/roles":                      `{"code":"clerk","name":"Clerk"}`,
		"DELETE /admin/roles":                    `{"code":"clerk"}`,
		"POST /admin/user-roles":                 `{"userId":"u","roleCode":"admin"}`,
		"DELETE /admin/user-roles":               `{"userId":"u","roleCode":"admin"}`,
		"POST /admin/role-resource-permission":   `{"roleId":1,"resourceId":1,"permission":"ALLOW"}`,
		"DELETE /admin/role-resource-permission": `{"roleId":1,"resourceId":1}`,
		"POST /admin/update-parameters":          `{"id":1,"json":{}}`,
		"POST /admin/levels": `{"levelId":7,"levelLabel":"VII","sendLimitTRYDaily":1,"sendLimitCryptoDaily":1,` +
			`"sendLimitTRYMonthly":1,"sendLimitCryptoMonthly":1,"receiveLimitTRYDaily":1,"receiveLimitCryptoDaily":1}`,
		"PATCH /admin/levels":             `{"levelId":1,"sendLimitTRYDaily":1}`,
		"POST /admin/service-keys":        `{"name":"wallet","role":"admin"}`,
		"PATCH /admin/service-keys":       `{"name":"wallet","actions":["PAYOUT"]}`,
		"POST /admin/service-keys/rotate": `{"name":"wallet"}`,
		"DELETE /admin/service-keys":      `{"name":"wallet"}`,
		"POST /admin/guard/routes":        `{"method":"POST","path":"/pay","mode":"guarded","actionCode":"PAYOUT"}`,
		"PATCH /admin/guard/routes":       `{"id":1,"status":"INACTIVE"}`,
		"DELETE /admin/guard/routes":      `{"id":1}`,
		"POST /admin/user/link":           link,
		"DELETE /admin/user/link":         link,
		"DELETE /admin/user/security":     `{"userId":"u","factor":"PASSKEY"}`,

		"POST /admin/approvals/{id}/fetch": `{}`,
	}
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		s.Set("LIMITS_ENABLED=false")
		n := s.Start()
		boss := s.Seeded("admin")
		app := blackbox.Enrolled(t, n, boss, blackbox.Admin(t, s, n))
		n.Stop()
		n = s.Start("MFA_GUARD_ADMINISTRATION=true", "MFA_GUARDED=PATCH /admin/system/waf/rules=RULES")
		who := blackbox.Admin(t, s, n)
		n.Ok(t, "GET", "/admin/roles", nil, who)
		set := 0
		for _, e := range httpapi.Endpoints() {
			if !e.Sensitive {
				continue
			}
			set++
			headers := maps.Clone(who)
			if e.OTP {
				headers["otp"] = app.Next(t)
			}
			f := blackbox.FlowOf(t, n.Do(t, e.Method, strings.Replace(e.Path, "{id}", "none", 1),
				bodies[e.Key()], headers).Is(t, 200, "").Keys(t, "challenge"))
			if f.PAuth == "" {
				t.Errorf("%s: no p-auth", e.Key())
			}
			if want := map[bool]string{true: "RULES", false: "ADMINISTRATION"}[e.Key() == "PATCH /admin/system/waf/rules"]; s.
				Count("challenge WHERE id = '"+f.ChallengeID+"' AND action = '"+want+"'") != 1 {
				t.Errorf("%s: another action than %s", e.Key(), want)
			}
		}
		if set != len(bodies) {
			t.Errorf("%d endpoints are in the set, %d were tried", set, len(bodies))
		}
		if got := s.Count("role WHERE code = 'clerk'"); got != 0 {
			t.Error("a role was added before the challenge was completed")
		}
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/admin/roles", bodies["POST /admin/roles"], who))
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, boss, "SMS")).Is(t, 200, "")
		// No administrator can complete a challenge: none has the methods that the policy requires.
		f = blackbox.FlowOf(t, n.Do(t, "POST", "/admin/system/mfa/policies/common",
			`{"actionCode":"ADMINISTRATION","name":"too much","expireAt":0,"required":4,"force":true,`+
				`"methods":[["TOTP"],["PUSH"],["SMS"],["MAIL"]]}`, who))
		n.Complete(t, f, f.Method(t, "SMS"), n.Code(t, boss, "SMS")).Is(t, 200, "")
		blackbox.Until(t, blackbox.Within(2), "the policy known", func() bool {
			a, err := n.Try("DELETE", "/admin/roles", bodies["DELETE /admin/roles"], who)
			return err == nil && a.Status == 409 && a.Code() == "MFA_NOT_AVAILABLE"
		})
		n.Stop()
		n = s.Start()
		n.Ok(t, "DELETE", "/admin/roles", bodies["DELETE /admin/roles"], who)
	})
}
