package auth_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/change/changetest"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/http/auth"
	"castellan/http/edge"
	"castellan/http/rest"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

// keys are service keys over a real store, and what judges them.
type keys struct {
	*servicekey.Service
	live *servicekey.Cache
}

func newKeys(t *testing.T, roles ...string) keys {
	t.Helper()
	db := persistencetest.SQLite(t)
	registry := permit.NewResources(db)
	for _, code := range roles {
		_, err := registry.AddRole(t.Context(), resource.Role{Code: code, Name: code})
		storetest.Must(t, err)
	}
	ring := keyringtest.Ring(t, time.Now)
	store := permit.NewServiceKeys(db)
	live := servicekey.NewCache(store, ring, time.Now)
	return keys{&servicekey.Service{Store: store, Roles: registry.Roles, Ring: ring,
		Action:  func(_ context.Context, code string) (bool, error) { return code != "LOGIN", nil },
		Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.ServiceKeys, Follow: live.Follow}}, live}
}

func (k keys) add(t *testing.T, name, role string, networks ...string) (header string) {
	t.Helper()
	prefixes, err := servicekey.ParseNetworks(networks)
	storetest.Must(t, err)
	_, header, err = k.Add(t.Context(), audit.Operator,
		servicekey.New{Name: name, Role: role, Networks: prefixes})
	storetest.Must(t, err)
	return header
}

// The header service-auth (D-INT-01): which keys are accepted, from where, and what the role
// of a key permits.
func TestServiceAuth(t *testing.T) {
	k := newKeys(t, "wallet", "audited", "denied", "admin")
	grants := []resource.Grant{
		{RoleCode: "wallet", ResourceCode: "POST /moves", Context: resource.API, Permission: resource.Allow},
		{RoleCode: "audited", ResourceCode: "POST /moves", Context: resource.API, Permission: resource.Audit},
		{RoleCode: "denied", ResourceCode: "POST /moves", Context: resource.API, Permission: resource.Deny},
		{RoleCode: "user", ResourceCode: "POST /open", Context: resource.API, Permission: resource.Allow},
		{RoleCode: "wallet", ResourceCode: "POST /reserved", Context: resource.API, Permission: resource.Allow},
		{RoleCode: "wallet", ResourceCode: "POST /people", Context: resource.API, Permission: resource.Allow},
	}
	n := node{held: map[string][]string{"wallet": {"u1"}}, grants: grants}
	roles := n.live(t)
	tokens := token.NewIssuer(keyringtest.Ring(t, time.Now), "castellan", "default", time.Now, 100)
	feed := &changetest.Feed{}
	g := auth.Guards{Tokens: tokens, Tenant: "default", Judge: roles.Judge, JudgeRole: roles.JudgeRole,
		Service: k.live.Client, Feed: feed, Live: func(string, string, int64) bool { return true }}
	type seen struct {
		By string `json:"by"`
	}
	show := func(_ context.Context, who rest.Caller, _ rest.None) (seen, error) { return seen{who.By().UserID}, nil }
	var answered edge.Answered
	srv, err := edge.New(edge.Options{Guards: g.Table(), Authorize: g.Authorize, ActsAsAdmin: g.ActsAsAdmin,
		Observe: func(_ context.Context, a edge.Answered) { answered = a }},
		[]rest.Endpoint{
			rest.Post("/moves", "", rest.TenantOrService, show),
			rest.Post("/open", "", rest.TenantOrService, show),
			rest.Post("/reserved", "", rest.TenantOrService, show).Reserve(),
			rest.Post("/people", "", rest.Tenant, show),
		})
	storetest.Must(t, err)
	wants := func(want, path string, headers ...string) {
		t.Helper()
		r := httptest.NewRequest("POST", path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Add(headers[i], headers[i+1])
		}
		res, err := srv.App.Test(r, -1)
		storetest.Must(t, err)
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		var a struct{ By, Code string }
		storetest.Must(t, json.Unmarshal(body, &a))
		if got := a.By + a.Code; got != want {
			t.Errorf("%s %.90q: %q, want %q", path, headers, got, want)
		}
	}
	session := func(user string) string {
		now := time.Now()
		raw, err := tokens.Sign(token.Claims{Class: token.XAuth, ID: id.New(now), Subject: user, SessionID: "s", SV: 1,
			AuthTime: now, IssuedAt: now, ExpiresAt: now.Add(time.Hour)})
		storetest.Must(t, err)
		return raw
	}
	const none = "UNAUTHENTICATED"
	for _, header := range []string{".", "wallet.", ".x", "wallet.x", strings.Repeat("x", 5000), "wallet"} {
		wants(none, "/moves", "service-auth", header)
	}
	wallet := k.add(t, "wallet", "wallet")
	other := k.add(t, "other", "audited")
	wants("service:wallet", "/moves", "service-auth", wallet)
	wants("service:other", "/moves", "service-auth", other)
	_, foreign, _ := strings.Cut(other, ".")
	_, secret, _ := strings.Cut(wallet, ".")
	for _, wrong := range []string{"wallet." + foreign, "Wallet." + secret, "wallet" + secret, wallet + ".",
		"Bearer " + wallet,
		wallet[:len(wallet)-1], secret, "." + secret, "nobody." + secret} {
		wants(none, "/moves", "service-auth", wrong)
	}
	wants("INVALID_FIELD", "/moves", "service-auth", wallet, "service-auth", wallet)

	// The role decides, and nothing that a role or every user has elsewhere.
	wants("FORBIDDEN", "/open", "service-auth", wallet)
	wants("FORBIDDEN", "/reserved", "service-auth", wallet)
	wants("FORBIDDEN", "/moves", "service-auth", k.add(t, "denied", "denied"))
	wants("service:root", "/reserved", "service-auth", k.add(t, "root", "admin"))
	for _, header := range []string{"x-auth", "cron-auth"} {
		wants(none, "/moves", header, wallet)
	}
	wants(none, "/people", "service-auth", wallet)
	wants("u1", "/moves", "x-auth", session("u1"))
	wants("FORBIDDEN", "/moves", "x-auth", session("u2"))
	wants(none, "/moves", "x-auth", session("u1"), "service-auth", wallet)
	wants("TENANT_MISMATCH", "/moves", "service-auth", wallet, "tenant-id", "another")

	// The address of httptest is 0.0.0.0.
	wants("service:near", "/moves", "service-auth", k.add(t, "near", "wallet", "192.0.2.1", "0.0.0.0/8"))
	wants("IP_NOT_ALLOWED", "/moves", "service-auth", k.add(t, "far", "wallet", "192.0.2.0/24"))
	if got := answered.Caller.By().UserID; got != "service:far" { // for the audit of the refusal
		t.Errorf("the refused key is that of %q", got)
	}
	wants(none, "/moves", "service-auth", "far.x")
	if got := answered.Caller.By().UserID; got != "" {
		t.Errorf("a wrong key is that of %q", got)
	}

	// A node that may have missed a removal accepts no key.
	feed.Stale = true
	wants("UNAVAILABLE", "/moves", "service-auth", wallet)
	feed.Stale = false
	storetest.Must(t, k.Remove(t.Context(), audit.Operator, "wallet"))
	wants(none, "/moves", "service-auth", wallet)
}

// After a rotation both keys are valid for an hour, and never three.
func TestServiceKeyRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKeys(t, "wallet")
		first := k.add(t, "wallet", "wallet")
		rotate := func() string {
			_, header, err := k.Rotate(t.Context(), audit.Operator, "wallet")
			storetest.Must(t, err)
			return header
		}
		valid := func(header string, want bool) {
			t.Helper()
			if c, err := k.live.Client(header, netip.Addr{}); (err == nil) != want || want && c.Role != "wallet" {
				t.Errorf("accepted as %+v, %v; want %v", c, err, want)
			}
		}
		second := rotate()
		valid(first, true)
		valid(second, true)
		time.Sleep(servicekey.Overlap - time.Millisecond)
		valid(first, true)
		time.Sleep(time.Millisecond)
		valid(first, false)
		valid(second, true)
		third := rotate()
		fourth := rotate()
		valid(second, false)
		valid(third, true)
		valid(fourth, true)
	})
}
