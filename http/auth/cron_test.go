package auth_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/cronkey"
	"castellan/domain/permit/resource"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/kit"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// The credential of the exchange-rate endpoint at a test endpoint (D-AUTH-07, REQ-AUTH-09):
// which keys are accepted, as which caller, and that they permit nothing else.
func TestCronAuth(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		ring := keyringtest.Ring(t, time.Now)
		live := cronkey.NewCache(permit.NewCronKeys(db), ring)
		issuer := cronkey.Issuer{Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.CronKeys}, Ring: ring}
		n := node{held: map[string][]string{"deny": {"deny"}},
			grants: []resource.Grant{{RoleCode: "deny", ResourceCode: "GET /rates", Context: resource.API,
				Permission: resource.Deny}}}
		tokens := token.NewIssuer(ring, "castellan", "default", time.Now, 100)
		feed, ended := &changetest.Feed{}, map[string]bool{}
		g := auth.Guards{Tokens: tokens, Tenant: "default", Judge: n.live(t).Judge, Cron: live.Client,
			Feed: feed, Live: func(user, _ string, _ int64) bool { return !ended[user] }}
		type seen struct {
			User string `json:"user"`
			Cron string `json:"cron"`
		}
		show := func(_ context.Context, who rest.Caller, _ rest.None) (seen, error) {
			return seen{who.UserID, who.Cron}, nil
		}
		srv, err := edge.New(edge.Options{Guards: g.Table(), Authorize: g.Authorize, ActsAsAdmin: g.ActsAsAdmin},
			[]rest.Endpoint{
				rest.Get("/rates", "", rest.TenantOrCron, show).For(rest.SelfUser),
				rest.Get("/strict", "", rest.TenantOrCron, show), // names no audience: administrators
				rest.Get("/self-or-admin", "", rest.Tenant, show).For(rest.SelfOrAdmin),
				rest.Get("/tenant", "", rest.Tenant, show).For(rest.SelfUser),
				rest.Get("/user", "", rest.User, show),
			})
		if err != nil {
			t.Fatal(err)
		}
		get := func(path string, headers ...string) string {
			t.Helper()
			r := httptest.NewRequest("GET", path, nil)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Add(headers[i], headers[i+1])
			}
			res, err := srv.App.Test(r, -1)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			var a struct{ User, Cron, Code string }
			if err := json.Unmarshal(body, &a); err != nil {
				t.Fatalf("%s: %s", path, body)
			}
			return strings.TrimSpace(a.User + " " + a.Cron + " " + a.Code)
		}
		wants := func(want, path string, headers ...string) {
			t.Helper()
			if got := get(path, headers...); got != want {
				t.Errorf("%s %.90q: %q, want %q", path, headers, got, want)
			}
		}
		session := func(user string) string {
			now := time.Now()
			raw, err := tokens.Sign(token.Claims{Class: token.XAuth, ID: id.New(now), Subject: user, SessionID: "s", SV: 1,
				AuthTime: now, IssuedAt: now, ExpiresAt: now.Add(time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			return raw
		}
		const none = "UNAUTHENTICATED"

		// No key: the credential does not exist.
		wants(none, "/rates")
		for _, header := range []string{".", "rates.", ".x", "rates.x", strings.Repeat("x", 5000), "rates"} {
			wants(none, "/rates", "cron-auth", header)
		}
		key, err := issuer.Add(ctx, audit.Operator, "rates")
		if err != nil {
			t.Fatal(err)
		}
		name, secret, _ := strings.Cut(key, ".")
		if name != "rates" || len(secret) != 43 || strings.Contains(secret, ".") {
			t.Fatalf("the header %q is not <client>.<secret of 32 bytes>", key)
		}
		wants(none, "/rates", "cron-auth", key) // before the node has heard of it
		other, err := issuer.Add(ctx, audit.Operator, "other")
		if err != nil {
			t.Fatal(err)
		}
		if err := live.Reload(ctx); err != nil {
			t.Fatal(err)
		}
		wants("rates", "/rates", "cron-auth", key)
		wants("other", "/rates", "cron-auth", other)
		_, foreign, _ := strings.Cut(other, ".")
		for _, wrong := range []string{"rates." + foreign, "Rates." + secret, "rates" + secret, "rates." + secret + ".",
			"rates." + secret[:42], "rates.." + secret,
			secret, "." + secret, "nobody." + secret, " ." + secret, "rates. " + secret, strings.ToLower(key), "Bearer " + key} {
			wants(none, "/rates", "cron-auth", wrong)
		}
		wants("INVALID_FIELD", "/rates", "cron-auth", key, "cron-auth", key)

		// It is accepted where the interface names it, and opens nothing else.
		wants("FORBIDDEN", "/strict", "cron-auth", key)
		for _, path := range []string{"/user", "/tenant", "/self-or-admin"} {
			wants(none, path, "cron-auth", key)
			wants(none, path, "x-auth", key)
		}
		wants(none, "/rates", "x-auth", key)
		wants(none, "/rates", "cron-auth", session("u1"))

		// Of two credentials a valid one suffices.
		good, ending, denied := session("u1"), session("u2"), session("deny")
		ended["u2"] = true
		wants("u1", "/rates", "x-auth", good)
		wants("FORBIDDEN", "/rates", "x-auth", denied)
		wants("TOKEN_REVOKED", "/rates", "x-auth", ending)
		wants("u1", "/rates", "x-auth", good, "cron-auth", "rates.wrong")
		for _, x := range []string{good, ending, denied, "nonsense"} {
			wants("rates", "/rates", "x-auth", x, "cron-auth", key)
		}
		wants("TOKEN_REVOKED", "/rates", "x-auth", ending, "cron-auth", "rates.wrong")
		wants("rates", "/rates", "cron-auth", key, "tenant-id", "default")
		wants("TENANT_MISMATCH", "/rates", "cron-auth", key, "tenant-id", "another")
		wants("TENANT_MISMATCH", "/rates", "x-auth", good, "tenant-id", "another")

		// A node that may have missed a removal accepts no key.
		feed.Stale = true
		wants("UNAVAILABLE", "/rates", "cron-auth", key)
		wants(none, "/rates", "cron-auth", "rates.wrong")
		feed.Stale = false

		// Names, and what is written of a key.
		for _, bad := range []string{"", "a.b", "a b", "ä", "-a", strings.Repeat("a", 65)} {
			if _, err := issuer.Add(ctx, audit.Operator, bad); fault.CodeOf(err) != fault.InvalidField {
				t.Errorf("the name %q: %v", bad, err)
			}
		}
		if _, err := issuer.Add(ctx, audit.Operator, "rates"); fault.CodeOf(err) != fault.RecordAlreadyExist {
			t.Errorf("the name again: %v", err)
		}
		if err := issuer.Remove(ctx, audit.Operator, "rates"); err != nil {
			t.Fatal(err)
		}
		if err := issuer.Remove(ctx, audit.Operator, "rates"); fault.CodeOf(err) != fault.RecordNotFound {
			t.Errorf("removed twice: %v", err)
		}
		if err := live.Reload(ctx); err != nil {
			t.Fatal(err)
		}
		wants(none, "/rates", "cron-auth", key)
		wants("other", "/rates", "cron-auth", other)
		if rows, err := kit.NewAudit(db).Verify(ctx, []byte(persistencetest.AuditKey)); err != nil || rows != 3 {
			t.Errorf("%d audit rows, %v; want one for each of two keys and a removal", rows, err)
		}
	})
}
