package access

import (
	"strings"
	"testing"

	"castellan/internal/blackbox"
)

// Roles and grants from outside (D-AUTH-03, REQ-RES-05, 11). An account has no administrative right by
// default. A grant takes effect at the next request on this node, and within a second on another. AUDIT writes
// a row for each call. An administrator made by the command line works within that second.
func TestRolesAndGrants(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		admin, _ := n.Session(t, s.Seeded("admin"))
		plain := s.AddUser("user")
		user, _ := n.Session(t, plain)
		as := func(token string) blackbox.Headers { return blackbox.Headers{"x-auth": token} }
		const methods = "/admin/system/mfa/methods"
		n.Do(t, "GET", methods, nil, as(user)).Is(t, 403, "FORBIDDEN")
		var resources []struct {
			ResourceID   int64
			ResourceCode string
		}
		n.Ok(t, "GET", "/resource/resources?resourceContext=API", nil, as(admin)).Read(t, &resources)
		ids := map[string]int64{}
		for _, r := range resources {
			ids[r.ResourceCode] = r.ResourceID
		}
		var role struct{ Data struct{ ID int64 } }
		n.Ok(t, "POST", "/admin/roles", map[string]any{"code": "operator", "name": "Operator"}, as(admin)).Read(t, &role)
		id := plain.ID
		n.Ok(t, "POST", "/admin/user-roles", map[string]any{"userId": id, "roleCode": "operator"}, as(admin))
		n.Do(t, "GET", methods, nil, as(user)).Is(t, 403, "FORBIDDEN")
		grant := func(p string) {
			t.Helper()
			n.Ok(t, "POST", "/admin/role-resource-permission",
				map[string]any{"roleId": role.Data.ID, "resourceId": ids["GET "+methods], "permission": p}, as(admin))
		}
		grant("ALLOW")
		n.Ok(t, "GET", methods, nil, as(user))
		other := n // several processes may share a PostgreSQL database
		if !strings.HasPrefix(s.DSN, "sqlite:") {
			other = s.Start()
			defer other.Stop()
		}
		other.Ok(t, "GET", methods, nil, as(user))
		grant("AUDIT")
		for range 3 {
			n.Ok(t, "GET", methods, nil, as(user))
		}
		blackbox.Until(t, blackbox.Within(5), "the audit rows of three calls", func() bool {
			return s.Count("audit WHERE action = 'CALL' AND actor_id = $1", id) == 3
		})
		grant("DENY")
		if !blackbox.Becomes(blackbox.Within(1), func() bool {
			return other.Do(t, "GET", methods, nil,
				as(user)).Status == 403
		}) {
			t.Error("another node lets the account in a second after it was denied")
		}
		n.Do(t, "GET", methods, nil, as(user)).Is(t, 403, "FORBIDDEN")

		// The command line makes a new administrator beside the running service.
		second := s.AddUser("admin")
		chief, _ := n.Session(t, second)
		if !blackbox.Becomes(blackbox.Within(1), func() bool {
			return n.Do(t, "GET", methods, nil, as(chief)).Status == 200
		}) {
			t.Error("an administrator of the command line is not known a second later")
		}

		// Roles and grants survive a restart, which adds no rows.
		rows := s.Count("resource")
		n.Kill()
		n = s.Start()
		if again := s.Count("resource"); again != rows || rows != len(ids) {
			t.Errorf("%d resources after a start, %d before, %d listed", again, rows, len(ids))
		}
		n.Do(t, "GET", methods, nil, as(user)).Is(t, 403, "FORBIDDEN")
		n.Ok(t, "GET", methods, nil, as(chief))
		s.Succeeds("", "audit", "verify")
	})
}
