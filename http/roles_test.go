package httpapi_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/http/apitest"
)

func TestRoles(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		// D-AUTH-03: roles admin and user exist from the start; D-EXT-01
		line := func(code, name string) string {
			return `{"id":<id>,"code":"` + code + `","name":"` + name + `","createdAt":"<time>"}`
		}
		builtIn := line("admin", "Administrator") + "," + line("user", "User")
		s.wants("GET /admin/roles", "", 200, "["+builtIn+"]")
		s.wants("POST /admin/roles", `{"code":"audit.or-1","name":"Denetçi"}`, 200,
			`{"data":`+line("audit.or-1", "Denetçi")+`}`)
		s.wants("GET /admin/roles", "", 200, "["+builtIn+","+line("audit.or-1", "Denetçi")+"]")
		for _, c := range []string{"audit.or-1", "admin", "user"} {
			s.wants("POST /admin/roles", `{"code":"`+c+`","name":"x"}`, 409, "RECORD_ALREADY_EXIST")
		}
		for _, c := range []string{"a,b", "a b", "-a", "ü", strings.Repeat("a", 65)} {
			s.wants("POST /admin/roles", `{"code":"`+c+`","name":"x"}`, 400, "INVALID_FIELD code")
		}

		// A role in use stays.
		s.wants("POST /admin/user-roles", `{"userId":"`+s.users["plain"]+`","roleCode":"audit.or-1"}`, 200,
			`{"data":{"userId":"`+s.users["plain"]+`","roleCode":"audit.or-1","createdAt":"<time>"}}`)
		s.wants("DELETE /admin/roles", `{"code":"audit.or-1"}`, 409, "INVALID_STATE")
		s.wants("DELETE /admin/user-roles", `{"userId":"`+s.users["plain"]+`","roleCode":"audit.or-1"}`, 200,
			`{"data":{"userId":"`+s.users["plain"]+`","roleCode":"audit.or-1","createdAt":"<time>"}}`)
		for _, c := range []string{"admin", "user"} {
			s.wants("DELETE /admin/roles", `{"code":"`+c+`"}`, 409, "INVALID_STATE")
		}
		s.wants("DELETE /admin/roles?code=audit.or-1", "", 200, `{"data":`+line("audit.or-1", "Denetçi")+`}`)
		s.wants("DELETE /admin/roles", `{"code":"audit.or-1"}`, 404, "RECORD_NOT_FOUND")
	})
}

func TestUserRoles(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		body := func(user, role string) string { return `{"userId":"` + user + `","roleCode":"` + role + `"}` }
		line := func(user, role string) string {
			return `{"userId":"` + user + `","roleCode":"` + role + `","createdAt":"<time>"}`
		}
		plain, root := s.users["plain"], s.users["root"]
		s.made("POST /admin/roles", `{"code":"r","name":"R"}`)
		s.wants("GET /admin/user-roles?userId="+plain, "", 200, "["+line(plain, "user")+"]")
		s.wants("GET /admin/user-roles?userId=nobody", "", 200, "[]")
		s.wants("GET /admin/user-roles", "", 200, "["+line(root, "admin")+"]")
		s.wants("POST /admin/user-roles", body(plain, "r"), 200, `{"data":`+line(plain, "r")+`}`)
		s.wants("GET /admin/user-roles?userId="+plain, "", 200, "["+line(plain, "r")+","+line(plain, "user")+"]")
		s.wants("GET /admin/user-roles?roleCode=r", "", 200, "["+line(plain, "r")+"]")
		s.wants("POST /admin/user-roles", body(plain, "r"), 409, "RECORD_ALREADY_EXIST")
		s.wants("POST /admin/user-roles", body(plain, "user"), 409, "RECORD_ALREADY_EXIST")
		s.wants("POST /admin/user-roles", body(plain, "unknown"), 404, "RECORD_NOT_FOUND")
		s.wants("POST /admin/user-roles", body("nobody", "r"), 404, "RECORD_NOT_FOUND")
		s.wants("DELETE /admin/user-roles", body(plain, "admin"), 404, "RECORD_NOT_FOUND")
		s.wants("DELETE /admin/user-roles", body(plain, "user"), 409, "INVALID_STATE")
		if u, err := s.admin.Accounts.Get(t.Context(), plain); err != nil || fmt.Sprint(u.AllRoles()) != "[user r]" {
			t.Errorf("the next token names %v, %v", u.AllRoles(), err)
		}

		// Pages, newest first (D-GEN-11)
		for _, name := range []string{"empty", "allowed", "denied"} {
			s.wants("POST /admin/user-roles", body(s.users[name], "r"), 200, `{"data":`+line(s.users[name], "r")+`}`)
		}
		seen, next := map[string]bool{}, "/admin/user-roles?limit=2&count=true"
		for pages := 1; next != ""; pages++ {
			status, answer, head := s.send("GET "+next, "", "x-auth", s.token("root"))
			if status != 200 || !strings.HasSuffix(head, "5") || pages > 3 {
				t.Fatalf("page %d: %d %s, %s", pages, status, answer, head)
			}
			for _, part := range strings.Split(answer, "},{") {
				if seen[part] {
					t.Errorf("twice: %s", part)
				}
				seen[part] = true
			}
			_, after, _ := strings.Cut(head, "<")
			next, _, _ = strings.Cut(after, ">")
		}
		storetest.Equal(t, len(seen), 5, "lines on the pages")
		s.wants("GET /admin/user-roles?cursor=abc", "", 400, "INVALID_FIELD cursor")
		for _, text := range []string{"1 a\x00 user", "1 a \xff", "1 a user x"} { // never the database's to refuse (SEC-27)
			s.wants("GET /admin/user-roles?cursor="+base64.RawURLEncoding.EncodeToString([]byte(text)), "", 400,
				"INVALID_FIELD cursor")
		}
	})
}

// Administrators cannot remove the last administrator: not one by one, and not if all take the
// role from each other at the same moment.
func TestLastAdministrator(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		body := func(name string) string { return `{"userId":"` + s.users[name] + `","roleCode":"admin"}` }
		s.wants("DELETE /admin/user-roles", body("root"), 409, "INVALID_STATE")
		admins := []string{"root", "empty", "allowed", "audited", "denied", "torn"}
		by := audit.By{UserID: s.users["root"]}
		for range 4 {
			s.raceForAdmin(by, admins)
		}
	})
}

// raceForAdmin makes all of the accounts administrators and takes the role
// from all of them at once.
func (s *service) raceForAdmin(by audit.By, admins []string) {
	t, ctx := s.t, s.t.Context()
	for _, name := range admins {
		if _, err := s.admin.AssignRole(ctx, by, s.users[name], user.RoleAdmin); err != nil &&
			fault.CodeOf(err) != fault.RecordAlreadyExist {
			t.Fatal(err)
		}
	}
	won := storetest.Race(t, len(admins), fault.InvalidState, func(i int) error {
		_, err := s.admin.RevokeRole(ctx, by, s.users[admins[i]], user.RoleAdmin)
		return err
	})
	held := storetest.Value(s.admin.Accounts.Holders(ctx))(t)
	if len(held["admin"]) != 1 || won != len(admins)-1 {
		t.Errorf("%d administrators are left after %d removals", len(held["admin"]), won)
	}
}

func TestPermissions(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		const path = "/admin/role-resource-permission"
		role := s.made("POST /admin/roles", `{"code":"r","name":"R"}`)
		s.wants("POST /admin/user-roles", `{"userId":"`+s.users["plain"]+`","roleCode":"r"}`, 200,
			`{"data":{"userId":"`+s.users["plain"]+`","roleCode":"r","createdAt":"<time>"}}`)
		methods, reserved := s.registered("GET /admin/system/mfa/methods"), s.registered("POST /admin/roles")
		body := func(role, resource int64, p string) string {
			return fmt.Sprintf(`{"roleId":"%d","resourceId":%d,"permission":"%s"}`, role, resource, p)
		}
		shown := func(p string) string {
			return `{"id":<id>,"roleId":<id>,"resourceId":<id>,"resourceCode":"GET /admin/system/mfa/methods","permission":"` +
				p + `","createdAt":"<time>"}`
		}
		token := s.token("plain")
		may := func(want string) {
			t.Helper()
			_, answer, _ := s.send("GET /admin/system/mfa/methods", "not json", "x-auth", token, "content-type", "text/plain")
			storetest.Equal(t, apitest.Refusal(answer), want, "the holder is answered")
		}
		// Every change holds before it is answered.
		may("FORBIDDEN")
		s.wants("POST "+path, body(role, methods, "ALLOW"), 200, `{"data":`+shown("ALLOW")+`}`)
		may(passed)
		s.wants("POST "+path, body(role, methods, "ALLOW"), 409, "RECORD_ALREADY_EXIST")
		s.wants("POST "+path, body(role, methods, "DENY"), 200, `{"data":`+shown("DENY")+`}`)
		may("FORBIDDEN")
		s.wants("POST "+path, body(role, methods, "AUDIT"), 200, `{"data":`+shown("AUDIT")+`}`)
		may(passed)
		s.wants("GET "+path, "", 200, "["+shown("AUDIT")+"]")
		s.wants(fmt.Sprintf("GET %s?roleId=%d", path, role), "", 200, "["+shown("AUDIT")+"]")
		s.wants(fmt.Sprintf("GET %s?roleId=%d", path, role+1), "", 200, "[]")
		s.wants("DELETE /admin/roles", `{"code":"r"}`, 409, "INVALID_STATE")

		roles := s.list("GET /admin/roles")
		admin, everybody := int64(roles[0]["id"].(float64)), int64(roles[1]["id"].(float64))
		s.wants("POST "+path, body(admin, methods, "ALLOW"), 409, "INVALID_STATE")
		s.wants("DELETE "+path, fmt.Sprintf(`{"roleId":%d,"resourceId":%d}`, admin, methods), 409, "INVALID_STATE")
		s.wants("POST "+path, body(role, reserved, "ALLOW"), 400, "INVALID_FIELD resourceId")
		s.wants("POST "+path, body(role, reserved, "DENY"), 400, "INVALID_FIELD resourceId")
		s.wants("POST "+path, body(role+99, methods, "ALLOW"), 404, "RECORD_NOT_FOUND")
		s.wants("POST "+path, body(role, 999999, "ALLOW"), 404, "RECORD_NOT_FOUND")

		// DENY of one role overrides ALLOW of another, and every user has the role user; the role
		// admin minds none of it.
		s.wants("POST "+path, body(everybody, methods, "DENY"), 200, `{"data":`+shown("DENY")+`}`)
		may("FORBIDDEN")
		s.wants("DELETE "+path, fmt.Sprintf(`{"roleId":%d,"resourceId":%d}`, everybody, methods), 200,
			`{"data":`+shown("DENY")+`}`)
		may(passed)
		sessions := s.registered("GET /auth/sessions")
		_, answer, _ := s.send("POST "+path, body(everybody, sessions, "DENY"), "x-auth", s.token("root"))
		for name, want := range map[string]string{"plain": "FORBIDDEN", "empty": "FORBIDDEN", "root": passed} {
			if _, got, _ := s.send("GET /auth/sessions", "not json", "x-auth", s.token(name), "content-type",
				"text/plain"); apitest.Refusal(got) != want {
				t.Errorf("%s at what is denied to users: %s after %s", name, got, answer)
			}
		}

		s.wants("DELETE "+path, fmt.Sprintf(`{"roleId":%d,"resourceId":%d}`, role, methods), 200,
			`{"data":`+shown("AUDIT")+`}`)
		s.wants("DELETE "+path, fmt.Sprintf(`{"roleId":%d,"resourceId":%d}`, role, methods), 404, "RECORD_NOT_FOUND")
		may("FORBIDDEN")

		// REQ-RES-03, 11, D-RES-05: one line for each change, none for a refusal
		var log string
		for _, e := range s.list(fmt.Sprintf("GET /admin/role-resource-permission-log?roleId=%d", role)) {
			if _, text := e["id"].(string); !text || e["roleId"] != fmt.Sprint(role) || e["resourceId"] != fmt.Sprint(methods) {
				t.Errorf("%v", e)
			}
			log += fmt.Sprint(e["permission"], " ")
		}
		storetest.Equal(t, log, "REVOKE AUDIT DENY ALLOW ", "log")
		all := s.list("GET /admin/role-resource-permission-log")
		storetest.Equal(t, len(all), 7, "lines")
		if one := s.list(fmt.Sprint("GET /admin/role-resource-permission-log?id=", all[3]["id"])); len(one) != 1 ||
			one[0]["id"] != all[3]["id"] {
			t.Errorf("%v", one)
		}
		for _, none := range []string{"id=0", "roleId=0", "resourceId=999999"} {
			storetest.Equal(t, len(s.list("GET /admin/role-resource-permission-log?"+none)), 0, none, "finds")
		}
		for _, cursor := range []string{"!", "KzE", "MDE", "MA"} { // no text, "+1", "01", "0"
			s.wants("GET /admin/role-resource-permission-log?cursor="+cursor, "", 400, "INVALID_FIELD cursor")
		}
		_, answer, head := s.send("GET /admin/role-resource-permission-log?limit=3&count=1", "", "x-auth", s.token("root"))
		if strings.Count(answer, "createdAt") != 3 || !strings.HasSuffix(head, "7") {
			t.Errorf("a page of %s, %s", answer, head)
		}
		next := head[strings.Index(head, "<")+1 : strings.Index(head, ">")]
		if rest := s.list("GET " + next); len(rest) != 3 || rest[0]["id"] != all[3]["id"] {
			t.Errorf("the next page is %v", rest)
		}
	})
}
