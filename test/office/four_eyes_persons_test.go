package office

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// An account with one of the requester's devices does not count as another person. An account without the
// permission for the endpoint cannot decide. A device of the approver's own approves by its signature.
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

		// This account may approve requests, but may not call this endpoint.
		clerk := s.AddUser("user")
		d.Grants(t, clerk, "POST "+blackbox.ApprovalsPath+"/{id}/approve", "POST "+blackbox.ApprovalsPath+"/{id}/refuse",
			"GET "+blackbox.ApprovalsPath+"/{id}")
		who := d.Login(t, clerk)
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, who).Is(t, 403, "FORBIDDEN")
		d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/refuse", `{"reason":"no"}`, who).Is(t, 403, "FORBIDDEN")
		d.Do(t, "GET", blackbox.ApprovalsPath, nil, who).Is(t, 403, "FORBIDDEN")
		var told blackbox.ApprovalRecord
		if d.Ok(t, "GET", blackbox.ApprovalsPath+"/"+id, nil, who).Read(t, &told); told.Request != nil ||
			told.Changes != nil {
			t.Errorf("it shows the request: %+v", told)
		}

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

// An approval fails if the requester has lost the permission, or if the change is no longer possible.
func TestFourEyesFailAfterPermissionLoss(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		clerk := s.AddUser("user")
		d.Grants(t, clerk, blackbox.AdjustKey)
		who := d.Login(t, clerk)
		fails := func(what, id, code string, booked int) {
			t.Helper()
			got := d.Approve(t, id, d.Chief, d.Other)
			r := d.Read(t, id)
			if got.Success || got.Code != code || r.Status != "FAILED" || *r.DecidedBy != d.Chief.ID ||
				!strings.Contains(string(r.Result), code) || d.Transfers() != booked {
				t.Errorf("%s: %+v, %+v, %d transfers", what, got, r, d.Transfers())
			}
			if s.Count("audit WHERE action = 'FOUR_EYES_FAIL' AND target = $1 AND outcome = 'refused'", id) != 1 {
				t.Errorf("%s: no row of the audit says so", what)
			}
			d.Do(t, "POST", blackbox.ApprovalsPath+"/"+id+"/approve", nil, d.Other).Is(t, 409, "INVALID_STATE")
		}
		id := d.Adjust(t, who)
		f := d.Approving(t, id, d.Other) // begun before the change, completed after it
		code := d.Code(t, d.Chief, "SMS")
		d.Ok(t, "DELETE", "/admin/user-roles", map[string]any{"userId": clerk.ID, "roleCode": fmt.Sprint("role-", d.N-1)},
			blackbox.Admin(t, s, d.Node))
		got := blackbox.Outcome(t, d.Complete(t, f, f.Method(t, "SMS"), code))
		if r := d.Read(t, id); got.Success || got.Code != "FORBIDDEN" || r.Status != "FAILED" || d.Transfers() != 0 {
			t.Errorf("without the grant: %+v, %+v", got, r)
		}

		id = d.Adjust(t, d.Boss)
		d.Ok(t, "POST", "/auth/logout", nil, d.Boss)
		fails("after a logout", id, "FORBIDDEN", 0)
		d.Boss = d.Login(t, d.Asker)

		id = d.Adjust(t, d.Boss)
		if got := d.Approve(t, id, d.Chief, d.Other); !got.Success {
			t.Fatalf("%+v", got)
		}
		first := d.Ask(t, "POST", blackbox.AdjustPath, d.Adjustment("D", "0.2"), d.Boss)
		second := d.Ask(t, "POST", blackbox.AdjustPath, d.Adjustment("D", "0.2"), d.Boss)
		if got := d.Approve(t, first, d.Chief, d.Other); !got.Success {
			t.Fatalf("%+v", got)
		}
		if r := d.Read(t, second); r.Refusal == nil || *r.Refusal != "the available balance is insufficient" ||
			r.Changes != nil || r.Request["type"] != "D" {
			t.Errorf("without the balance it tells %+v", r)
		}
		fails("without the balance", second, "INVALID_STATE", 2)
	})
}

// Every change of permissions can require a second person, in addition to its own challenge. The request
// describes the change in words.
func TestFourEyesGuardPermissionChanges(t *testing.T) {
	bodies := [][3]string{
		{"POST /admin/roles", `{"code":"clerk","name":"Clerk"}`, "ROLE_ADD clerk: name Clerk"},
		{"POST /admin/user-roles", `{"userId":"$USER","roleCode":"admin"}`, "of $USER: role admin"},
		{"POST /admin/role-resource-permission", `{"roleId":$ROLE,"resourceId":1,"permission":"ALLOW"}`, "ALLOW on "},
		{"POST /admin/system/mfa/policies/common", blackbox.PolicyOf("LOGIN"), "LOGIN"},
		{"PATCH /admin/system/mfa/methods", `{"methodCode":"SMS","expireMs":110000}`, "MFA_METHOD_UPDATE SMS"},
		{"POST /admin/system/waf/rules", `{"appId":"API","label":"wall","type":"blacklist","expireAt":0,"status":"ACTIVE",` +
			`"targetEntityType":"IP","targetEntities":["192.0.2.1"],"targetAllResources":true}`, " wall: "},
		{"POST /blockage/insert-blockage-history", `{"userId":"$USER","currencyCode":"BTC","blockTypeId":2,"amount":0.1}`,
			"of $USER: 0.1 BTC"},
	}
	var named []string
	for _, b := range bodies {
		named = append(named, b[0])
	}
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		d := blackbox.NewCounter(t, s)
		role := d.Grants(t, d.Customer)
		d.Stop()
		d.Node = s.Start("MFA_FOUR_EYES=" + strings.Join(named, ","))
		before := s.Count("user_role") + s.Count("role_resource_permission") + s.Count("mfa_policy") +
			s.Count("firewall_rule") + s.Count("blockage")
		for _, b := range bodies {
			method, path, _ := strings.Cut(b[0], " ")
			fill := strings.NewReplacer("$USER", d.Customer.ID, "$ROLE", fmt.Sprint(role))
			id := d.Ask(t, method, path, fill.Replace(b[1]), d.Boss)
			if r := d.Read(t, id); !strings.Contains(r.Summary, fill.Replace(b[2])) {
				t.Errorf("%s: the summary %q", b[0], r.Summary)
			}
		}
		if after := s.Count("user_role") + s.Count("role_resource_permission") + s.Count("mfa_policy") +
			s.Count("firewall_rule") + s.Count("blockage"); after != before {
			t.Error("something was done before it was approved")
		}
		d.Stop()

		d.Node = s.Start("MFA_FOUR_EYES="+strings.Join(named, ","), "MFA_GUARD_ADMINISTRATION=true")
		f := blackbox.FlowOf(t, d.Do(t, "POST", "/admin/roles", bodies[0][1], d.Boss))
		done := d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.Asker, "SMS")).Is(t, 200, "")
		var own struct {
			ExecResult struct{ Data json.RawMessage }
		}
		done.Read(t, &own)
		id := blackbox.Standing(t, own.ExecResult.Data)
		if s.Count("role WHERE code = 'clerk'") != 0 {
			t.Error("the role was added after one challenge")
		}
		if got := d.Approve(t, id, d.Chief, d.Other); !got.Success || s.Count("role WHERE code = 'clerk'") != 1 {
			t.Errorf("%+v, and no role", got)
		}
		f = blackbox.FlowOf(t, d.Do(t, "POST", "/admin/roles", bodies[0][1], d.Boss))
		refused := blackbox.ReadFinal(t, d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.Asker, "SMS")).Is(t, 200, ""))
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
