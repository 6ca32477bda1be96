package office

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// An account with one of the requester's devices does not count as another person. A device of the approver's own
// approves by its signature.
func TestFourEyesNeedAnotherPerson(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		own := blackbox.Enroll(t, d.Node, d.Asker, d.Boss["x-auth"], "ES256", "")
		d.Boss = d.Login(t, d.Asker)
		twin := s.AddUser("admin")
		token := d.Login(t, twin)["x-auth"]
		same := own
		same.ID = own.Pub.Thumbprint()
		f := blackbox.FlowOf(t, same.Register(t, token, ""))
		d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, twin, "SMS")).Is(t, 200, "")
		id := d.Adjust(t, d.Boss)
		again := d.Login(t, twin)
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, again).Is(t, 403, "FORBIDDEN")

		phone := blackbox.Enroll(t, d.Node, d.Chief, d.Other["x-auth"], "ES256", "")
		d.Other = d.Login(t, d.Chief)
		f = d.Approving(t, id, d.Other)
		var waiting []struct {
			Data struct {
				Params struct{ InfoTable struct{ Data [][]string } }
			}
		}
		phone.Ongoing(t).Is(t, 200, "").Read(t, &waiting)
		if told := fmt.Sprint(waiting); len(waiting) != 1 || !strings.Contains(told, "C 0.25 BTC") {
			t.Errorf("the device shows %s", told)
		}
		phone.Answer(t, f, "APPROVED").Is(t, 200, "")
		if r := d.Read(t, id); r.Status != "APPROVED" || *r.DecidedBy != d.Chief.ID || d.Transfers() != 1 {
			t.Errorf("%+v, %d transfers", r, d.Transfers())
		}
	})
}

// A change of permissions can require a second person, in addition to its own challenge. The request describes the
// change in words.
func TestFourEyesGuardPermissionChanges(t *testing.T) {
	const clerk = `{"code":"clerk","name":"Clerk"}`
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		d.Stop()
		d.Node = s.Start("MFA_FOUR_EYES=POST /admin/roles", "MFA_GUARD_ADMINISTRATION=true")
		ask := func() blackbox.Answer {
			t.Helper()
			f := blackbox.FlowOf(t, d.Do(t, "POST", "/admin/roles", clerk, d.Boss))
			return d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.Asker, "SMS")).Is(t, 200, "")
		}
		var own struct {
			ExecResult struct{ Data json.RawMessage }
		}
		ask().Read(t, &own)
		id := blackbox.Standing(t, own.ExecResult.Data)
		if r := d.Read(t, id); r.Summary != "ROLE_ADD clerk: name Clerk" || s.Count("role WHERE code = 'clerk'") != 0 {
			t.Errorf("after one challenge: %q, or the role was added", r.Summary)
		}
		if got := d.Approve(t, id, d.Chief, d.Other); !got.Success || s.Count("role WHERE code = 'clerk'") != 1 {
			t.Errorf("%+v, and no role", got)
		}
		refused := blackbox.ReadFinal(t, ask())
		if refused.ExecResult.Success || refused.ExecResult.Code != "RECORD_ALREADY_EXIST" {
			t.Errorf("the same role again: %+v", refused)
		}
	})
}

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
