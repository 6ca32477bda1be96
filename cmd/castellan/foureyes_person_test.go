package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// An account with a device of the requester's is no other person, and an account
// without the permission for the endpoint decides nothing. A device of one's own
// approves by its signature.
func TestFourEyesAnotherPerson(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := newCounter(t, s)
		own := enroll(t, d.Node, d.asker, d.boss["x-auth"], "ES256", "")
		d.boss = d.login(t, d.asker)
		twin := s.AddUser("admin")
		token := d.login(t, twin)["x-auth"]
		same := own
		same.id = own.pub.Thumbprint()
		f := blackbox.FlowOf(t, same.register(t, token, ""))
		d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, twin, "SMS")).Is(t, 200, "")
		id := d.adjust(t, d.boss)
		again := d.login(t, twin)
		d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, again).Is(t, 403, "FORBIDDEN")

		// One who may approve requests, and may not ask for this endpoint.
		clerk := s.AddUser("user")
		d.grants(t, clerk, "POST "+approvalsPath+"/{id}/approve", "POST "+approvalsPath+"/{id}/refuse",
			"GET "+approvalsPath+"/{id}")
		who := d.login(t, clerk)
		d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, who).Is(t, 403, "FORBIDDEN")
		d.Do(t, "POST", approvalsPath+"/"+id+"/refuse", `{"reason":"no"}`, who).Is(t, 403, "FORBIDDEN")
		d.Do(t, "GET", approvalsPath, nil, who).Is(t, 403, "FORBIDDEN")
		var told approvalRecord
		if d.Ok(t, "GET", approvalsPath+"/"+id, nil, who).Read(t, &told); told.Request != nil || told.Changes != nil {
			t.Errorf("it tells what was asked for: %+v", told)
		}

		phone := enroll(t, d.Node, d.chief, d.other["x-auth"], "ES256", "")
		d.other = d.login(t, d.chief)
		f = d.approving(t, id, d.other)
		var waiting []struct {
			Data struct {
				Params struct{ InfoTable struct{ Data [][]string } }
			}
		}
		phone.ongoing(t).Is(t, 200, "").Read(t, &waiting)
		if told := fmt.Sprint(waiting); len(waiting) != 1 || !strings.Contains(told, "C 0.25 BTC") {
			t.Errorf("the device shows %s", told)
		}
		phone.answer(t, f, "APPROVED").Is(t, 200, "")
		if r := d.read(t, id); r.Status != "APPROVED" || *r.DecidedBy != d.chief.ID || d.transfers() != 1 {
			t.Errorf("%+v, %d transfers", r, d.transfers())
		}
	})
}

// grants gives an account a role of its own with some endpoints, and returns its id.
func (d *counter) grants(t *testing.T, a blackbox.Account, keys ...string) (roleID int64) {
	t.Helper()
	who := admin(t, d.Site, d.Node)
	var resources []struct {
		ResourceID   int64
		ResourceCode string
	}
	d.Ok(t, "GET", "/resource/resources?resourceContext=API", nil, who).Read(t, &resources)
	d.n++
	code := fmt.Sprint("role-", d.n)
	var role struct{ Data struct{ ID int64 } }
	d.Ok(t, "POST", "/admin/roles", map[string]any{"code": code, "name": code}, who).Read(t, &role)
	d.Ok(t, "POST", "/admin/user-roles", map[string]any{"userId": a.ID, "roleCode": code}, who)
	for _, key := range keys {
		for _, r := range resources {
			if r.ResourceCode == key {
				d.Ok(t, "POST", "/admin/role-resource-permission",
					map[string]any{"roleId": role.Data.ID, "resourceId": r.ResourceID, "permission": "ALLOW"}, who)
			}
		}
	}
	return role.Data.ID
}

// What the requester may no longer do when it is approved is not done, and neither is
// what cannot be done any more.
func TestFourEyesFail(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := newCounter(t, s)
		clerk := s.AddUser("user")
		d.grants(t, clerk, adjustKey)
		who := d.login(t, clerk)
		fails := func(what, id, code string, booked int) {
			t.Helper()
			got := d.approve(t, id, d.chief, d.other)
			r := d.read(t, id)
			if got.Success || got.Code != code || r.Status != "FAILED" || *r.DecidedBy != d.chief.ID ||
				!strings.Contains(string(r.Result), code) || d.transfers() != booked {
				t.Errorf("%s: %+v, %+v, %d transfers", what, got, r, d.transfers())
			}
			if s.Count("audit WHERE action = 'FOUR_EYES_FAIL' AND target = $1 AND outcome = 'refused'", id) != 1 {
				t.Errorf("%s: no row of the audit says so", what)
			}
			d.Do(t, "POST", approvalsPath+"/"+id+"/approve", nil, d.other).Is(t, 409, "INVALID_STATE")
		}
		id := d.adjust(t, who)
		f := d.approving(t, id, d.other) // begun before, complete after
		code := d.Code(t, d.chief, "SMS")
		d.Ok(t, "DELETE", "/admin/user-roles", map[string]any{"userId": clerk.ID, "roleCode": fmt.Sprint("role-", d.n-1)},
			admin(t, s, d.Node))
		got := outcome(t, d.Complete(t, f, f.Method(t, "SMS"), code))
		if r := d.read(t, id); got.Success || got.Code != "FORBIDDEN" || r.Status != "FAILED" || d.transfers() != 0 {
			t.Errorf("without the grant: %+v, %+v", got, r)
		}

		id = d.adjust(t, d.boss)
		d.Ok(t, "POST", "/auth/logout", nil, d.boss)
		fails("after a logout", id, "FORBIDDEN", 0)
		d.boss = d.login(t, d.asker)

		id = d.adjust(t, d.boss)
		if got := d.approve(t, id, d.chief, d.other); !got.Success {
			t.Fatalf("%+v", got)
		}
		first := d.ask(t, "POST", adjustPath, d.adjustment("D", "0.2"), d.boss)
		second := d.ask(t, "POST", adjustPath, d.adjustment("D", "0.2"), d.boss)
		if got := d.approve(t, first, d.chief, d.other); !got.Success {
			t.Fatalf("%+v", got)
		}
		if r := d.read(t, second); r.Refusal == nil || *r.Refusal != "the available balance does not suffice" ||
			r.Changes != nil || r.Request["type"] != "D" {
			t.Errorf("without the balance it tells %+v", r)
		}
		fails("without the balance", second, "INVALID_STATE", 2)
	})
}

// A request that nobody has approved in time is expired, also for an approval that had
// begun before.
func TestFourEyesExpire(t *testing.T) {
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := newCounter(t, s, "MFA_FOUR_EYES_TTL=8s")
		id := d.adjust(t, d.boss)
		f := d.approving(t, id, d.other)
		code := d.Code(t, d.chief, "SMS")
		blackbox.Until(t, within(20), "the request expired", func() bool { return d.read(t, id).Status == "EXPIRED" })
		var expired, pending []json.RawMessage
		d.Ok(t, "GET", approvalsPath+"?status=EXPIRED", nil, d.other).Read(t, &expired)
		d.Ok(t, "GET", approvalsPath+"?status=PENDING", nil, d.other).Read(t, &pending)
		if len(expired) != 1 || len(pending) != 0 {
			t.Errorf("%d expired, %d pending", len(expired), len(pending))
		}
		if got := outcome(t, d.Complete(t, f, f.Method(t, "SMS"), code)); got.Success || got.Code != "INVALID_STATE" {
			t.Errorf("%+v", got)
		}
		for _, act := range []string{"approve", "refuse"} {
			d.Do(t, "POST", approvalsPath+"/"+id+"/"+act, `{"reason":"late"}`, d.other).Is(t, 409, "INVALID_STATE")
		}
		if r := d.read(t, id); r.Status != "EXPIRED" || r.DecidedBy != nil || d.transfers() != 0 {
			t.Errorf("%+v, %d transfers", r, d.transfers())
		}
	})
}

// Whatever decides what others may do can wait for a second person, behind its own
// challenge too, and says in words what it would change.
func TestFourEyesOfAdministration(t *testing.T) {
	bodies := [][3]string{
		{"POST /admin/roles", `{"code":"clerk","name":"Clerk"}`, "ROLE_ADD clerk: name Clerk"},
		{"POST /admin/user-roles", `{"userId":"$USER","roleCode":"admin"}`, "of $USER: role admin"},
		{"POST /admin/role-resource-permission", `{"roleId":$ROLE,"resourceId":1,"permission":"ALLOW"}`, "ALLOW on "},
		{"POST /admin/system/mfa/policies/common", policyOf("LOGIN"), "LOGIN"},
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
	blackbox.OnBoth(t, func(t *testing.T, s *blackbox.Site) {
		d := newCounter(t, s)
		role := d.grants(t, d.customer)
		d.Stop()
		d.Node = s.Start("MFA_FOUR_EYES=" + strings.Join(named, ","))
		before := s.Count("user_role") + s.Count("role_resource_permission") + s.Count("mfa_policy") +
			s.Count("firewall_rule") + s.Count("blockage")
		for _, b := range bodies {
			method, path, _ := strings.Cut(b[0], " ")
			fill := strings.NewReplacer("$USER", d.customer.ID, "$ROLE", fmt.Sprint(role))
			id := d.ask(t, method, path, fill.Replace(b[1]), d.boss)
			if r := d.read(t, id); !strings.Contains(r.Summary, fill.Replace(b[2])) {
				t.Errorf("%s: the summary %q", b[0], r.Summary)
			}
		}
		if after := s.Count("user_role") + s.Count("role_resource_permission") + s.Count("mfa_policy") +
			s.Count("firewall_rule") + s.Count("blockage"); after != before {
			t.Error("something was done before it was approved")
		}
		d.Stop()

		d.Node = s.Start("MFA_FOUR_EYES="+strings.Join(named, ","), "MFA_GUARD_ADMINISTRATION=true")
		f := blackbox.FlowOf(t, d.Do(t, "POST", "/admin/roles", bodies[0][1], d.boss))
		done := d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.asker, "SMS")).Is(t, 200, "")
		var own struct {
			ExecResult struct{ Data json.RawMessage }
		}
		done.Read(t, &own)
		id := standing(t, own.ExecResult.Data)
		if s.Count("role WHERE code = 'clerk'") != 0 {
			t.Error("the role was added after one challenge")
		}
		if got := d.approve(t, id, d.chief, d.other); !got.Success || s.Count("role WHERE code = 'clerk'") != 1 {
			t.Errorf("%+v, and no role", got)
		}
		f = blackbox.FlowOf(t, d.Do(t, "POST", "/admin/roles", bodies[0][1], d.boss))
		refused := blackbox.ReadFinal(t, d.Complete(t, f, f.Method(t, "SMS"), d.Code(t, d.asker, "SMS")).Is(t, 200, ""))
		if refused.ExecResult.Success || refused.ExecResult.Code != "RECORD_ALREADY_EXIST" {
			t.Errorf("the same role again: %+v", refused)
		}
	})
}
