package access

import (
	"slices"
	"testing"

	"castellan/internal/blackbox"
)

// An administrator sees which policy would guard an action and which methods it would offer. A later start
// does the same (D-EXT-01, D-2FA-12).
func TestExplainedPolicyIsTheOneApplied(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, plain := blackbox.Admin(t, s, n), s.AddUser("user")
		const path = "/admin/system/mfa/explain"
		type candidate struct {
			PolicyID                  int64
			Name, EntityType, Verdict string
			EntityID                  *string
			ExpireAt                  int64
		}
		type explanation struct {
			PolicyID         *int64
			EntityType       *string
			Required         int
			Offered, Missing []string
			Candidates       []candidate
		}
		ask := func(body map[string]any) (x explanation) {
			t.Helper()
			n.Ok(t, "POST", path, body, boss).
				Keys(t, "policyId", "entityType", "required", "offered", "missing", "candidates").
				Read(t, &x)
			return x
		}
		token, _ := n.Session(t, plain)
		n.Do(t, "POST", path, map[string]any{"actionCode": "LOGIN"}, blackbox.Headers{"x-auth": token}).
			Is(t, 403, "FORBIDDEN")
		for field, body := range map[string]map[string]any{"actionCode": {}, "userId": {"actionCode": "LOGIN", "userId": ""},
			"ip": {"actionCode": "LOGIN", "ip": "here"}} {
			if p := n.Do(t, "POST", path, body, boss).Is(t, 400, "INVALID_FIELD").Problem(); p.Field != field {
				t.Errorf("%v: field %q", body, p.Field)
			}
		}
		n.Do(t, "POST", path, map[string]any{"actionCode": "log in"}, boss).Is(t, 400, "INVALID_FIELD")
		n.Do(t, "POST", path, map[string]any{"actionCode": "NO_SUCH_ACTION"}, boss).Is(t, 404, "RECORD_NOT_FOUND")
		n.Do(t, "POST", path, map[string]any{"actionCode": "LOGIN", "userId": "nobody"}, boss).Is(t, 404, "RECORD_NOT_FOUND")

		x := ask(map[string]any{"actionCode": "LOGIN", "userId": plain.ID})
		if x.PolicyID != nil || x.EntityType != nil || x.Required != 1 || !slices.Equal(x.Offered, []string{"SMS", "MAIL"}) ||
			!slices.Equal(x.Missing, []string{"TOTP", "PUSH"}) ||
			x.Candidates == nil ||
			len(x.Candidates) != 0 {
			t.Errorf("without a policy: %+v", x)
		}
		blackbox.TwoMethods(t, n, boss)
		copied := `INSERT INTO mfa_policy (action_code, name, entity_type, entity_id, expire_at, type, methods, required,
			created_at, updated_at)
			SELECT action_code, $1, $2, $3, $4, type, '[["MAIL"]]', 1, 0, 0 FROM mfa_policy WHERE entity_type = 'GENERAL'`
		s.Exec(copied, "mine", "USER_ID", plain.ID, 0)
		s.Exec(copied, "office", "IP", "203.0.113.9", 1)
		n.Stop()
		n = s.Start()
		x = ask(map[string]any{"actionCode": "LOGIN", "userId": plain.ID, "ip": "203.0.113.9"})
		var verdicts []string
		for _, c := range x.Candidates {
			verdicts = append(verdicts, c.Name+" "+c.EntityType+" "+c.Verdict)
		}
		if want := []string{"mine USER_ID CHOSEN", "office IP EXPIRED", "both GENERAL OUTRANKED"}; !slices.Equal(verdicts,
			want) || x.PolicyID == nil || *x.PolicyID != x.Candidates[0].PolicyID ||
			x.EntityType == nil || *x.EntityType != "USER_ID" ||
			*x.Candidates[0].EntityID != plain.ID ||
			x.Candidates[2].EntityID != nil ||
			x.Candidates[1].ExpireAt != 1 {
			t.Errorf("candidates %v of %+v, want %v", verdicts, x, want)
		}
		if x.Required != 1 || !slices.Equal(x.Offered, []string{"MAIL"}) || len(x.Missing) != 0 {
			t.Errorf("for a user with a policy: %+v", x)
		}
		other := s.AddUser("user") // the general policy guards this user
		for _, a := range []blackbox.Account{plain, other} {
			x := ask(map[string]any{"actionCode": "LOGIN", "userId": a.ID})
			var listed []string
			for _, m := range n.Login(t, a).MethodList {
				listed = append(listed, m.Name)
			}
			if !slices.Equal(listed, x.Offered) {
				t.Errorf("a login lists %v, the explanation %v", listed, x.Offered)
			}
		}
	})
}
