package office

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"castellan/internal/blackbox"
)

type auditEntry struct {
	ID, At, ActorID, UserID, Action, Target, Outcome, IP, RequestID, Detail, Hash string
}

// The refusal of a known user is in the audit when it is answered, with the client's address (D-EXT-01,
// D-EXT-03). It survives a kill.
func TestRefusalsAreAudited(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		n := s.Start()
		boss, me := blackbox.Admin(t, s, n), s.AddUser("user")
		token, _ := n.Session(t, me)
		first := n.Do(t, "GET", "/admin/roles", nil, blackbox.Headers{"x-auth": token}).Is(t, 403, "FORBIDDEN")
		var rows []auditEntry
		n.Ok(t, "GET", "/admin/audit?action=DENIED&actorId="+me.ID, nil, boss).Read(t, &rows)
		if len(rows) != 1 || rows[0].IP != "127.0.0.1" || rows[0].RequestID != first.Header.Get("X-Request-Id") ||
			rows[0].UserID != me.ID || rows[0].Target != "GET /admin/roles" || rows[0].Outcome != "refused" ||
			rows[0].Detail != "FORBIDDEN" {
			t.Fatalf("%+v", rows)
		}
		if at, err := time.Parse("2006-01-02T15:04:05.000Z", rows[0].At); err != nil || time.Since(at) > blackbox.Within(10) {
			t.Errorf("at %s, %v", rows[0].At, err)
		}
		n.Do(t, "POST", "/admin/roles", nil, blackbox.Headers{"x-auth": token}).Is(t, 403, "FORBIDDEN")
		n.Kill()
		if got := s.Count("audit WHERE action = 'DENIED' AND actor_id = $1", me.ID); got != 2 {
			t.Errorf("%d rows, want one for each endpoint", got)
		}
	})
}

// An administrator reads the audit by filters and in pages, newest first (D-EXT-01, D-EXT-03, D-GEN-11). A row
// names the actor, the target, the client's address and the result.
func TestAuditListFiltersAndPages(t *testing.T) {
	blackbox.Story(t, func(t *testing.T, s *blackbox.Site) {
		began := time.Now().Add(-time.Second)
		n := s.Start()
		boss, me := blackbox.Admin(t, s, n), s.AddUser("user")
		token, _ := n.Session(t, me)
		const path = "/admin/audit"
		n.Do(t, "GET", path, nil, nil).Is(t, 401, "UNAUTHENTICATED")
		n.Do(t, "GET", path, nil, blackbox.Headers{"x-auth": token}).Is(t, 403, "FORBIDDEN")
		var made []string // request ids, sorted
		for i := range 7 {
			a := n.Ok(t, "POST", "/admin/roles", map[string]string{"code": fmt.Sprint("role", i), "name": "R"}, boss)
			made = append(made, a.Header.Get("X-Request-Id"))
		}
		slices.Sort(made)
		n.Do(t, "POST", "/auth/login", map[string]string{"email": me.Mail, "password": "not-the-password"}, nil).
			Is(t, 401, "INVALID_CREDENTIALS")
		ask := func(query string) (rows []auditEntry, a blackbox.Answer) {
			t.Helper()
			a = n.Ok(t, "GET", path+query, nil, boss)
			a.Read(t, &rows)
			return rows, a
		}
		requests := func(rows []auditEntry) (out []string) {
			for _, r := range rows {
				out = append(out, r.RequestID)
			}
			return out
		}
		newestFirst := func(a, b auditEntry) int { return strings.Compare(b.At, a.At) }
		rows, a := ask("?action=ROLE_ADD")
		want := requests(rows) // several may have the same millisecond
		if !slices.Equal(slices.Sorted(slices.Values(want)), made) || !slices.IsSortedFunc(rows, newestFirst) ||
			a.Header.Get("Link") != "" || a.Header.Get("X-Total-Count") != "" {
			t.Fatalf("got %v, %v; want %v, the newest first", want, a.Header, made)
		}
		r := rows[0]
		at, err := time.Parse("2006-01-02T15:04:05.000Z", r.At)
		if err != nil || at.Before(began) || at.After(time.Now().Add(time.Second)) || r.ActorID == "" ||
			r.Action != "ROLE_ADD" || r.Target == "" || r.Outcome != "success" || r.IP != "127.0.0.1" {
			t.Errorf("the row is %+v, %v", r, err)
		}
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(r.Hash) ||
			!regexp.MustCompile(`^[^:]+:[0-9]+$`).MatchString(r.ID) ||
			s.Count("audit WHERE chain || ':' || seq = $1", r.ID) != 1 {
			t.Errorf("id %q, hash %q", r.ID, r.Hash)
		}
		var raw []map[string]any
		a.Read(t, &raw)
		if len(raw[0]) != 11 {
			t.Errorf("the record has the keys %v", raw[0])
		}

		// In pages, each with the cursor of the next, and with a count if requested.
		var paged []string
		for next := "?action=ROLE_ADD&limit=3&count=true"; next != ""; {
			rows, a := ask(next)
			if len(rows) > 3 || a.Header.Get("X-Total-Count") != "7" {
				t.Fatalf("%d rows, %v", len(rows), a.Header)
			}
			paged = append(paged, requests(rows)...)
			link := a.Header.Get("Link")
			if next = ""; link != "" {
				target, _, ok := strings.Cut(strings.TrimPrefix(link, "<"+path), `>; rel="next"`)
				if !ok {
					t.Fatalf("Link: %s", link)
				}
				next = target
			}
		}
		if !slices.Equal(paged, want) {
			t.Errorf("in pages %v, want %v", paged, want)
		}

		// Filters alone and together; GET parameters also as a body (D-GEN-01).
		stamp := func(t time.Time) string { return url.QueryEscape(t.UTC().Format(time.RFC3339Nano)) }
		for query, want := range map[string]int{
			"?action=ROLE_ADD&actorId=" + r.ActorID:                         7,
			"?action=ROLE_ADD&actorId=" + me.ID:                             0,
			"?action=ROLE_ADD&from=" + stamp(time.Now().Add(time.Minute)):   0,
			"?action=ROLE_ADD&to=" + stamp(began):                           0,
			"?action=ROLE_ADD&to=" + time.Now().UTC().Format(time.DateOnly): 7, // that whole day
			"?actorId=operator&action=USER_ADD&userId=" + me.ID:             1,
			"?requestId=" + made[3]:                                         1,
			"?action=ROLE_ADD&target=role5":                                 1,
			"?action=ROLE_ADD&ip=127.0.0.1":                                 7,
			"?action=ROLE_ADD&ip=" + url.QueryEscape("::ffff:127.0.0.1"):    7,
			"?ip=203.0.113.9":                                               0,
		} {
			if rows, _ := ask(query); len(rows) != want {
				t.Errorf("%s: %d rows, want %d", query, len(rows), want)
			}
		}
		rows = nil
		n.Ok(t, "GET", path, map[string]any{"action": "ROLE_ADD", "limit": 2}, boss).Read(t, &rows)
		if len(rows) != 2 {
			t.Errorf("by a body: %d rows", len(rows))
		}
		rows, _ = ask("?userId=" + me.ID)
		var outcomes []string
		for _, r := range rows {
			if r.UserID != me.ID {
				t.Errorf("a row of another: %+v", r)
			}
			outcomes = append(outcomes, r.Action+" "+r.Outcome)
		}
		if !slices.Contains(outcomes, "LOGIN success") || !slices.Contains(outcomes, "LOGIN refused") {
			t.Errorf("of the account: %v", outcomes)
		}
		if everything, _ := ask(""); len(everything) < 9 || !slices.IsSortedFunc(everything, newestFirst) {
			t.Errorf("%d rows, or not the newest first", len(everything))
		}

		for query, field := range map[string]string{"?cursor=x": "cursor", "?from=soon": "from", "?userId=": "userId",
			"?from=2024-02-02&to=2024-02-01": "from", "?ip=127.0.0": "ip"} {
			if p := n.Do(t, "GET", path+query, nil, boss).Is(t, 400, "INVALID_FIELD").Problem(); p.Field != field {
				t.Errorf("%s: field %q", query, p.Field)
			}
		}
		s.Succeeds("", "audit", "verify")
	})
}
