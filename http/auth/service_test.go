package auth_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/change"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/cronkey"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/http/apitest"
	"castellan/http/auth"
	"castellan/http/rest"
	"castellan/persistence"
	"castellan/persistence/kit"
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

// The header service-auth (D-INT-01): which keys are accepted, and from where.
func TestServiceAuth(t *testing.T) {
	k, d := newKeys(t, "wallet", "audited"), newDoor(t)
	d.service = k.live.Client
	wants := func(want, header string) {
		t.Helper()
		code := d.ask("/moves", "service-auth", header)
		storetest.Equal(t, d.who.By().UserID+code, want, header)
	}
	const none = "UNAUTHENTICATED"
	for _, header := range []string{".", "wallet.", ".x", "wallet.x", strings.Repeat("x", 5000), "wallet"} {
		wants(none, header)
	}
	wallet := k.add(t, "wallet", "wallet")
	other := k.add(t, "other", "audited")
	wants("service:wallet", wallet)
	wants("service:other", other)
	_, foreign, _ := strings.Cut(other, ".")
	_, secret, _ := strings.Cut(wallet, ".")
	for _, wrong := range []string{"wallet." + foreign, "Wallet." + secret, "wallet" + secret, wallet + ".",
		"Bearer " + wallet,
		wallet[:len(wallet)-1], secret, "." + secret, "nobody." + secret} {
		wants(none, wrong)
	}
	// The address of httptest is 0.0.0.0.
	wants("service:near", k.add(t, "near", "wallet", "192.0.2.1", "0.0.0.0/8"))
	wants("IP_NOT_ALLOWED", k.add(t, "far", "wallet", "192.0.2.0/24"))
	if got := d.seen.Caller.By().UserID; got != "service:far" { // for the audit of the refusal
		t.Errorf("the refused key is that of %q", got)
	}
	wants(none, "far.x")
	storetest.Equal(t, d.seen.Caller.By().UserID, "", "a wrong key is that of")
	storetest.Must(t, k.Remove(t.Context(), audit.Operator, "wallet"))
	wants(none, wallet)
}

// The role of a service client decides, and nothing that a role or every user has elsewhere.
func TestRolesOfServiceClients(t *testing.T) {
	var grants []resource.Grant
	for _, g := range [][2]string{{"wallet", "POST /moves"}, {"user", "POST /open"}, {"wallet", "POST /reserved"}} {
		grants = append(grants, resource.Grant{RoleCode: g[0], ResourceCode: g[1], Context: resource.API,
			Permission: resource.Allow})
	}
	for role, p := range map[string]resource.Permission{"audited": resource.Audit, "denied": resource.Deny} {
		grants = append(grants, resource.Grant{RoleCode: role, ResourceCode: "POST /moves", Context: resource.API,
			Permission: p})
	}
	roles := node{held: map[string][]string{"wallet": {"u1"}}, grants: grants}.live(t)
	g := auth.Guards{Judge: roles.Judge, JudgeRole: roles.JudgeRole}
	for of, want := range map[[2]string]bool{{"wallet", "/moves"}: true, {"audited", "/moves"}: true,
		{"denied", "/moves"}: false, {"wallet", "/open"}: false, {"wallet", "/reserved"}: false,
		{"admin", "/reserved"}: true} {
		e := rest.Endpoint{Method: "POST", Path: of[1], Audience: rest.Admin, Credential: rest.TenantOrService,
			Reserved: of[1] == "/reserved"}
		if got, _ := g.Permits(rest.Caller{Service: "shop", ServiceRole: of[0]}, &e); got != want {
			t.Errorf("%v: %t", of, got)
		}
	}
	moves := rest.Endpoint{Method: "POST", Path: "/moves", Audience: rest.Admin, Credential: rest.TenantOrService}
	for user, want := range map[string]bool{"u1": true, "u2": false} {
		if got, _ := g.Permits(rest.Caller{UserID: user}, &moves); got != want {
			t.Errorf("%s: %t", user, got)
		}
	}
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

// The credential of the exchange-rate endpoint (D-AUTH-07, REQ-AUTH-09): which keys are accepted, and as which caller.
func TestCronAuth(t *testing.T) {
	apitest.Both(t, func(t *testing.T, db *persistence.DB) {
		ctx := t.Context()
		ring := keyringtest.Ring(t, time.Now)
		live := cronkey.NewCache(permit.NewCronKeys(db), ring)
		issuer := cronkey.Issuer{Changes: admin.Changes{Commit: db, Now: time.Now, Topic: change.CronKeys}, Ring: ring}
		d := newDoor(t)
		d.cron = live.Client
		wants := func(want, header string) {
			t.Helper()
			if code := d.ask("/cron", "cron-auth", header); d.who.Cron+code != want {
				t.Errorf("%.90q: %s %s, want %s", header, d.who.Cron, code, want)
			}
		}
		const none = "UNAUTHENTICATED"

		// No key: the credential does not exist.
		for _, header := range []string{".", "rates.", ".x", "rates.x", strings.Repeat("x", 5000), "rates"} {
			wants(none, header)
		}
		key := storetest.Value(issuer.Add(ctx, audit.Operator, "rates"))(t)
		name, secret, _ := strings.Cut(key, ".")
		if name != "rates" || len(secret) != 43 || strings.Contains(secret, ".") {
			t.Fatalf("the header %q is not <client>.<secret of 32 bytes>", key)
		}
		wants(none, key) // before the node has heard of it
		other := storetest.Value(issuer.Add(ctx, audit.Operator, "other"))(t)
		storetest.Must(t, live.Reload(ctx))
		wants("rates", key)
		wants("other", other)
		_, foreign, _ := strings.Cut(other, ".")
		for _, wrong := range []string{"rates." + foreign, "Rates." + secret, "rates" + secret, "rates." + secret + ".",
			"rates." + secret[:42], "rates.." + secret,
			secret, "." + secret, "nobody." + secret, " ." + secret, "rates. " + secret, strings.ToLower(key), "Bearer " + key} {
			wants(none, wrong)
		}
		// Names, and what is written of a key.
		for _, bad := range []string{"", "a.b", "a b", "ä", "-a", strings.Repeat("a", 65)} {
			if _, err := issuer.Add(ctx, audit.Operator, bad); fault.CodeOf(err) != fault.InvalidField {
				t.Errorf("the name %q: %v", bad, err)
			}
		}
		if _, err := issuer.Add(ctx, audit.Operator, "rates"); fault.CodeOf(err) != fault.RecordAlreadyExist {
			t.Errorf("the name again: %v", err)
		}
		storetest.Must(t, issuer.Remove(ctx, audit.Operator, "rates"))
		if err := issuer.Remove(ctx, audit.Operator, "rates"); fault.CodeOf(err) != fault.RecordNotFound {
			t.Errorf("removed twice: %v", err)
		}
		storetest.Must(t, live.Reload(ctx))
		wants(none, key)
		wants("other", other)
		if rows, err := kit.NewAudit(db).Verify(ctx, []byte(persistencetest.AuditKey)); err != nil || rows != 3 {
			t.Errorf("%d audit rows, %v; want one for each of two keys and a removal", rows, err)
		}
	})
}
