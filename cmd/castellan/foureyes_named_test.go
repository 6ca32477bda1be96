package main

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// The user that a waiting request names is judged for the approver as for the requester,
// and for both with the permissions of the moment (D-AUTH-03, D-EXT-08).
func TestFourEyesJudgeTheNamedUser(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		const rolesPath = "/admin/user-roles"
		d := newCounter(t, s)
		clerk, third := s.AddUser("user"), s.AddUser("admin")
		d.grants(t, clerk, adjustKey, "POST "+approvalsPath+"/{id}/approve", "POST "+approvalsPath+"/{id}/refuse",
			"GET "+approvalsPath+"/{id}")
		who := d.login(t, clerk)
		forbidden := func(id string, who blackbox.Headers) {
			t.Helper()
			d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, who).Is(t, 403, "FORBIDDEN")
			d.Do(t, "POST", approvalsPath+"/"+id+"/refuse", `{"reason":"no"}`, who).Is(t, 403, "FORBIDDEN")
			var told approvalRecord
			if d.Ok(t, "GET", approvalsPath+"/"+id, nil, who).Read(t, &told); told.Request != nil || told.Changes != nil {
				t.Errorf("it tells what was asked for: %+v", told)
			}
		}

		// Neither the user whose money it is decides on it, nor a clerk on that of an administrator.
		ofChief := strings.Replace(d.adjustment("C", "0.25"), d.customer.ID, d.chief.ID, 1)
		id := d.ask(t, "POST", adjustPath, ofChief, d.boss)
		forbidden(id, d.other)
		forbidden(id, who)
		if got := d.approve(t, id, third, d.login(t, third)); !got.Success || d.transfers() != 1 {
			t.Errorf("%+v, %d transfers", got, d.transfers())
		}
		d.Do(t, "POST", adjustPath, ofChief, d.other).Is(t, 403, "FORBIDDEN")

		// The requester has less than the user by the time it is approved.
		id = d.adjust(t, who)
		d.Ok(t, "POST", rolesPath, map[string]string{"userId": d.customer.ID, "roleCode": "admin"}, d.boss)
		got := d.approve(t, id, d.chief, d.other)
		if r := d.read(t, id); got.Success || got.Code != "FORBIDDEN" || r.Status != "FAILED" || d.transfers() != 1 {
			t.Errorf("%+v, %+v, %d transfers", got, r, d.transfers())
		}

		// A request does not give the permission by which it is approved.
		d.Stop()
		d.Node = s.Start("MFA_FOUR_EYES=POST " + rolesPath)
		id = d.ask(t, "POST", rolesPath, `{"userId":"`+clerk.ID+`","roleCode":"admin"}`, d.boss)
		forbidden(id, who)
		if got := d.approve(t, id, d.chief, d.other); !got.Success {
			t.Errorf("%+v", got)
		}
		blackbox.Until(t, within(1), "the role is known", func() bool {
			return d.Do(t, "GET", rolesPath, nil, who).Status == 200
		})
		d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, who).Is(t, 409, "INVALID_STATE")
	})
}
