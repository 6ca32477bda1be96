package office

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// The user that a pending request names is checked for the approver as for the requester, and for both with
// the current permissions (D-AUTH-03, D-EXT-08).
func TestFourEyesCheckTheNamedUser(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		const rolesPath = "/admin/user-roles"
		d := blackbox.NewCounter(t, s)
		clerk, third := s.AddUser("user"), s.AddUser("admin")
		d.Grants(t, clerk, blackbox.AdjustKey, "POST "+blackbox.ApprovalsPath+"/{id}/approve",
			"POST "+blackbox.ApprovalsPath+"/{id}/refuse",
			"GET "+blackbox.ApprovalsPath+"/{id}")
		who := d.Login(t, clerk)
		forbidden := func(id string, who blackbox.Headers) {
			t.Helper()
			d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, who).Is(t, 403, "FORBIDDEN")
			d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/refuse", `{"reason":"no"}`, who).Is(t, 403, "FORBIDDEN")
			var told blackbox.ApprovalRecord
			if d.Ok(t, "GET", blackbox.ApprovalsPath+"/"+id, nil, who).Read(t, &told); told.Request != nil ||
				told.Changes != nil {
				t.Errorf("it shows the request: %+v", told)
			}
		}

		// The user whose money it is may not decide, and neither may a clerk decide on an administrator's
		// money.
		ofChief := strings.Replace(d.Adjustment("C", "0.25"), d.Customer.ID, d.Chief.ID, 1)
		id := d.Ask(t, "POST", blackbox.AdjustPath, ofChief, d.Boss)
		forbidden(id, d.Other)
		forbidden(id, who)
		if got := d.Approve(t, id, third, d.Login(t, third)); !got.Success || d.Transfers() != 1 {
			t.Errorf("%+v, %d transfers", got, d.Transfers())
		}
		d.Do(t, "POST", blackbox.AdjustPath, ofChief, d.Other).Is(t, 403, "FORBIDDEN")

		// The requester has fewer permissions than the user by the time of the approval.
		id = d.Adjust(t, who)
		d.Ok(t, "POST", rolesPath, map[string]string{"userId": d.Customer.ID, "roleCode": "admin"}, d.Boss)
		got := d.Approve(t, id, d.Chief, d.Other)
		if r := d.Read(t, id); got.Success || got.Code != "FORBIDDEN" || r.Status != "FAILED" || d.Transfers() != 1 {
			t.Errorf("%+v, %+v, %d transfers", got, r, d.Transfers())
		}

		// Making a request does not grant the permission to approve it.
		d.Stop()
		d.Node = s.Start("MFA_FOUR_EYES=POST " + rolesPath)
		id = d.Ask(t, "POST", rolesPath, `{"userId":"`+clerk.ID+`","roleCode":"admin"}`, d.Boss)
		forbidden(id, who)
		if got := d.Approve(t, id, d.Chief, d.Other); !got.Success {
			t.Errorf("%+v", got)
		}
		blackbox.Until(t, blackbox.Within(1), "the role is known", func() bool {
			return d.Do(t, "GET", rolesPath, nil, who).Status == 200
		})
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, who).Is(t, 409, "INVALID_STATE")
	})
}
