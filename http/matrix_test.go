package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	httpapi "castellan/http"
	"castellan/http/apitest"
	"castellan/http/rest"
)

// passed is the answer to a permitted caller who sends a body that is not JSON. The next check
// after the permission refuses it (D-GEN-19), so no handler runs.
const passed = "UNSUPPORTED_MEDIA"

// Every caller at every endpoint of the table (SEC-24, D-AUTH-03): no caller may do more than the table permits.
func TestPermissionMatrix(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		s.grantEverything()
		accounts := []string{"", "plain", "empty", "root", "allowed", "audited", "denied", "torn"}
		tokens := map[string]string{}
		for _, a := range accounts {
			tokens[a] = s.token(a)
		}
		now, cells := time.Now(), 0
		challenge, err := s.tokens.Sign(token.Claims{Class: token.PAuth, ID: id.New(now), ChallengeID: "c1", IssuedAt: now,
			ExpiresAt: now.Add(time.Hour)})
		storetest.Must(t, err)
		for _, e := range httpapi.Endpoints() {
			for _, account := range accounts {
				cells++
				want := expected(e, account)
				storetest.Equal(t, s.ask(e, "x-auth", tokens[account]), want, e.Key(), "as", account)
			}
			// A scheduled client, and one with a key that is none.
			for _, key := range []string{scheduled, scheduled + "x"} {
				cells++
				want := string(fault.Unauthenticated)
				if e.Credential == rest.NoAuth || e.Credential == rest.TenantOrCron && key == scheduled {
					want = passed
				}
				storetest.Equal(t, s.ask(e, "cron-auth", key), want, e.Key(), "with cron-auth", key)
			}
			// Tokens in the place of another class, and that of a challenge in its own (D-AUTH-01).
			for _, c := range [][2]string{{"x-auth", challenge}, {"ot-auth", challenge}, {"p-auth", challenge},
				{"p-auth", tokens["root"]}, {"ot-auth", tokens["root"]}, {"authorization", "Bearer " + tokens["root"]},
				{"cookie", "x-auth=" + tokens["root"]}} {
				cells++
				want := string(fault.Unauthenticated)
				if e.Credential == rest.NoAuth || c == [2]string{"p-auth", challenge} &&
					(e.Credential == rest.PAuth || e.Credential == rest.PAuthOrDevice) {
					want = passed
				}
				if got := s.ask(e, c[0], c[1]); got != want {
					t.Errorf("%s with %s %.20s: %s, want %s", e.Key(), c[0], c[1], got, want)
				}
			}
			// Another tenant's name, with every permission.
			cells++
			want := expected(e, "root")
			if e.Credential != rest.User && e.Credential.TakesSession() {
				want = string(fault.TenantMismatch)
			}
			storetest.Equal(t, s.ask(e, "x-auth", tokens["root"], "tenant-id", "another"), want, e.Key(), "for another tenant")
		}
		t.Logf("%d cells", cells)
	})
}

// expected is D-AUTH-03 once more, from the line alone.
func expected(e rest.Endpoint, account string) string {
	const forbidden = string(fault.Forbidden)
	switch e.Credential {
	case rest.NoAuth:
		return passed
	case rest.User, rest.Tenant, rest.TenantOrCron, rest.TenantOrService:
	default: // another credential than x-auth: no caller here has one
		return string(fault.Unauthenticated)
	}
	switch {
	case account == "":
		return string(fault.Unauthenticated)
	case account == "root":
		return passed
	case e.Reserved:
		return forbidden
	}
	denied := account == "denied" || account == "torn"
	switch e.Audience {
	case rest.Admin:
		if account == "allowed" || account == "audited" {
			return passed
		}
		return forbidden
	case rest.SelfUser, rest.SelfOrAdmin:
		if denied {
			return forbidden
		}
	}
	return passed
}

// ask sends fields that no endpoint reads and returns the code of the refusal. A device's
// signature, where one is required, is missing.
func (s *service) ask(e rest.Endpoint, headers ...string) string {
	s.t.Helper()
	path := strings.NewReplacer("{", "", "}", "").Replace(e.Path)
	status, answer, _ := s.send(e.Method+" "+path, "not json", append(headers, "content-type", "text/plain")...)
	got := apitest.Refusal(answer)
	if got == string(fault.DeviceSignatureRequired) {
		got = string(fault.Unauthenticated)
	}
	if status < 400 || status >= 500 {
		s.t.Fatalf("%s: %d %s", e.Key(), status, answer)
	}
	return got
}

// grantEverything gives the roles allowed, audited and denied their permission on every
// resource of the table; torn holds allowed and denied, empty a role without grants. Reserved
// endpoints cannot be granted.
func (s *service) grantEverything() {
	t, ctx := s.t, s.t.Context()
	by := audit.By{UserID: s.users["root"]}
	all := storetest.Value(s.admin.Store.Resources(ctx))(t)
	for name, p := range map[string]resource.Permission{"allowed": resource.Allow, "audited": resource.Audit,
		"denied": resource.Deny, "empty": resource.None} {
		r, err := s.admin.AddRole(ctx, by, name, name)
		storetest.Must(t, err)
		_, err = s.admin.AssignRole(ctx, by, s.users[name], name)
		storetest.Must(t, err)
		if name == "allowed" || name == "denied" {
			_, err := s.admin.AssignRole(ctx, by, s.users["torn"], name)
			storetest.Must(t, err)
		}
		if p == resource.None {
			continue
		}
		reserved := map[string]bool{}
		for _, e := range httpapi.Table() {
			reserved[e.Code()] = e.Reserved
		}
		for _, x := range all {
			_, err := s.admin.Grant(ctx, by, r.ID, x.ID, p)
			if want := map[bool]fault.Code{true: fault.InvalidField, false: ""}[reserved[x.Code]]; fault.CodeOf(err) != want {
				t.Errorf("%s on %s: %v, want %q", p, x.Code, err, want)
			}
		}
	}
	storetest.Equal(t, len(all), len(httpapi.Table()), "resources for", "lines")
}

// A forbidden grant, written directly to the database, opens no reserved endpoint; and losing
// a role or a grant closes at once.
func TestReservedStaysClosed(t *testing.T) {
	both(t, func(t *testing.T, s *service) {
		ctx, by := t.Context(), audit.By{UserID: s.users["root"]}
		all := storetest.Value(s.admin.Store.Resources(ctx))(t)
		r, err := s.admin.AddRole(ctx, by, "sly", "Sly")
		storetest.Must(t, err)
		for _, x := range all {
			_, err := s.admin.Store.SetGrant(ctx, r.ID, x.ID, resource.Allow, s.admin.Changes.Now())
			storetest.Must(t, err)
		}
		storetest.Must(t, s.admin.Changes.Follow(ctx, resource.GrantsKey))
		_, err = s.admin.AssignRole(ctx, by, s.users["plain"], "sly")
		storetest.Must(t, err)
		token, open := s.token("plain"), 0
		for _, e := range httpapi.Endpoints() {
			if e.Credential != rest.Tenant {
				continue
			}
			want := passed
			if e.Reserved {
				want = string(fault.Forbidden)
			} else {
				open++
			}
			storetest.Equal(t, s.ask(e, "x-auth", token), want, e.Key())
		}
		if open == 0 {
			t.Error("nothing was open")
		}
		_, err = s.admin.RevokeRole(ctx, by, s.users["plain"], "sly")
		storetest.Must(t, err)
		for _, e := range httpapi.Endpoints() {
			if e.Audience == rest.Admin {
				storetest.Equal(t, s.ask(e, "x-auth", token), string(fault.Forbidden), e.Key(), "after the role was taken")
			}
		}
	})
}

// The table says which endpoints are about who may do what; all are reserved.
func TestReservedEndpoints(t *testing.T) {
	n := 0
	for _, e := range httpapi.Endpoints() {
		about := strings.HasPrefix(e.Path, "/resource/") || strings.HasPrefix(e.Path, "/admin/role") ||
			strings.HasPrefix(e.Path, "/admin/user-roles") || strings.HasPrefix(e.Path, "/admin/service-keys")
		storetest.Equal(t, about, e.Reserved, e.Key(), "reserved")
		if about {
			n++
		}
	}
	storetest.Equal(t, n, 21, "endpoints, want 21")
}
