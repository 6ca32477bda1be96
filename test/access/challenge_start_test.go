package access

import (
	"testing"

	"castellan/internal/blackbox"
)

// The profile of the caller (REQ-USR-02, REQ-USR-07, REQ-TOTP-14): its two fields are current at every
// request, also after a change by the command line.
func TestUserProfileIsCurrent(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		me := s.AddUser("user")
		token, _ := n.Session(t, me)
		who := blackbox.Headers{"x-auth": token}
		shows := func(totp, prohibited bool) {
			t.Helper()
			var p map[string]bool
			n.Ok(t, "GET", "/user/user-profile", nil, who).Keys(t, "totp", "isWithdrawProhibited").Read(t, &p)
			if p["totp"] != totp || p["isWithdrawProhibited"] != prohibited {
				t.Errorf("the profile is %v, want totp %v and isWithdrawProhibited %v", p, totp, prohibited)
			}
		}
		shows(false, false)
		s.Succeeds("", "user", "withdrawals", me.Mail, "prohibit")
		shows(false, true)
		app := blackbox.Enrolled(t, n, me, who)
		shows(true, true)
		s.Succeeds("", "user", "withdrawals", me.Number(), "allow")
		f := blackbox.FlowOf(t, n.Do(t, "POST", "/auth/totp/deactivate", nil, who))
		n.Complete(t, f, f.Method(t, "TOTP"), app.Next(t)).Is(t, 200, "")
		shows(false, false)
		s.Says(1, "user withdrawals nobody@example.test allow")
		s.Has(2, "audit WHERE action = 'USER_WITHDRAWALS' AND user_id = $1", me.ID)
	})
}
