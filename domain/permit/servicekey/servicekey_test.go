package servicekey_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/persistence"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

var (
	by   = audit.By{UserID: "op"}
	home = netip.MustParseAddr("192.0.2.7")
)

// keys is the service with its snapshot, and the clock of both.
type keys struct {
	servicekey.Service
	*servicekey.Cache
	db  *persistence.DB
	now time.Time
}

func newKeys(t *testing.T) *keys {
	t.Helper()
	db, k := persistencetest.SQLite(t), &keys{now: time.UnixMilli(1_700_000_000_000).UTC()}
	clock, ring := func() time.Time { return k.now }, keyringtest.Ring(t, time.Now)
	store := permit.NewServiceKeys(db)
	k.db = db
	k.Cache = servicekey.NewCache(store, ring, clock)
	k.Service = servicekey.Service{Store: store, Ring: ring,
		Action: func(_ context.Context, code string) (bool, error) { return code != "LOGIN", nil },
		Roles: func(context.Context) ([]resource.Role, error) {
			return []resource.Role{{Code: "wallet"}, {Code: user.RoleUser}}, nil
		},
		Changes: admin.Changes{Commit: db, Now: clock, Follow: k.Follow}}
	return k
}

// A key has at most 32 networks. A refused key is not stored, and its header is not returned.
func TestKeyIsRefused(t *testing.T) {
	k := newKeys(t)
	many := make([]netip.Prefix, 33)
	for i := range many {
		many[i] = netip.PrefixFrom(home, 32)
	}
	for n, fields := range map[int]string{33: "ip", 32: ""} {
		made, header, err := k.Add(t.Context(), by, servicekey.New{Name: "w1", Role: "wallet", Networks: many[:n]})
		storetest.WantsFields(t, err, fields)
		if (header == "") != (fields != "") || (made.Name == "") != (fields != "") {
			t.Errorf("%d networks: %+v, %q", n, made, header)
		}
	}
	if mapped, err := servicekey.ParseNetworks([]string{"::ffff:192.0.2.7"}); err != nil ||
		servicekey.Join(mapped) != "192.0.2.7/32" {
		t.Errorf("%v, %v", mapped, err)
	}
}

// A key with actions needs no role. A callback needs an action, and is https unless development permits loopback.
func TestScopeOfAKey(t *testing.T) {
	k := newKeys(t)
	const url = "https://shop.example/in"
	n := 0
	for _, c := range []struct {
		role, callback string
		actions        []string
		plain          bool
		field          string
	}{
		{"", url, []string{"PAYOUT", "REFUND"}, false, ""}, {"wallet", "", []string{"PAYOUT"}, false, ""},
		{"", "http://127.0.0.1:8/in", []string{"PAYOUT"}, true, ""}, {"", "http://localhost/", []string{"PAYOUT"}, true, ""},
		{"", "", nil, false, "role"}, {"nothing", "", []string{"PAYOUT"}, false, "role"},
		{user.RoleUser, "", []string{"PAYOUT"}, false, "role"},
		{"", "", []string{"a b"}, false, "actions"}, {"", "", []string{""}, false, "actions"},
		{"wallet", url, nil, false, "callback"}, {"", "http://127.0.0.1/", []string{"PAYOUT"}, false, "callback"},
		{"", "http://192.0.2.1/", []string{"PAYOUT"}, true, "callback"},
		{"", "ftp://x/", []string{"PAYOUT"}, true, "callback"},
		{"", "https://u:p@shop.example/", []string{"PAYOUT"}, false, "callback"},
		{"", "https:///in", []string{"PAYOUT"}, false, "callback"},
		{"", url + "#x", []string{"PAYOUT"}, false, "callback"},
	} {
		n++
		k.AllowPlain = c.plain
		name := "k" + strings.Repeat("x", n)
		made, _, err := k.Add(t.Context(), by, servicekey.New{Name: name, Role: c.role, Actions: c.actions,
			Callback: c.callback})
		storetest.WantsFields(t, err, c.field)
		if c.field != "" {
			continue
		}
		kept, known := k.Key(name)
		if !known || kept.Callback != c.callback || !kept.May("PAYOUT") || kept.May("OTHER") || made.Name != name {
			t.Errorf("%+v: kept %+v", c, kept)
		}
	}
	if _, known := k.Key("none"); known {
		t.Error("a key that does not exist is known")
	}
}

func (k *keys) add(t *testing.T, n servicekey.New) servicekey.Key {
	t.Helper()
	made, _, err := k.Add(t.Context(), by, n)
	storetest.Must(t, err)
	return made
}

// A key has at most 64 actions, and a callback at most 512 bytes without spaces and other letters than ASCII.
func TestLimitsOfScope(t *testing.T) {
	k := newKeys(t)
	k.AllowPlain = true
	codes := make([]string, 65)
	for i := range codes {
		codes[i] = fmt.Sprintf("A_%d", i)
	}
	const url = "https://x.example/"
	for i, c := range []struct {
		actions  []string
		callback string
		field    string
	}{
		{codes[:64], "", ""}, {codes, "", "actions"}, {[]string{"LOGIN"}, "", "actions"},
		{[]string{"AB", "CD", "AB"}, "", "actions"},
		{codes[:1], url + strings.Repeat("x", 512-len(url)), ""},
		{codes[:1], url + strings.Repeat("x", 513-len(url)), "callback"},
		{codes[:1], url + "a b", "callback"}, {codes[:1], url + "\x7f", "callback"}, {codes[:1], url + "ü", "callback"},
		{codes[:1], url + "!~", ""}, {codes[:1], "http://[::1]:8/", ""}, {codes[:1], "http://[::ffff:127.0.0.1]/", ""},
		{codes[:1], "http://LOCALHOST/", ""}, {codes[:1], "http://localhost.example/", "callback"},
		{codes[:1], "https://x.example:x/", "callback"}, {codes[:1], "https://u@x.example/", "callback"},
	} {
		_, _, err := k.Add(t.Context(), by, servicekey.New{Name: fmt.Sprint("k", i), Actions: c.actions,
			Callback: c.callback})
		if err == nil != (c.field == "") || err != nil && !strings.Contains(fmt.Sprintf("%+v", err), c.field) {
			t.Errorf("%d %s: %v", len(c.actions), c.callback, err)
		}
	}
}

// The audit of a new key names what it may do.
func TestAuditOfKeys(t *testing.T) {
	k := newKeys(t)
	networks := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for name, n := range map[string]servicekey.New{
		`role "wallet"`: {Role: "wallet"},
		`role "wallet", networks ["192.0.2.0/24"]`: {Role: "wallet", Networks: networks},
		`actions ["PAYOUT","REFUND"]`:              {Actions: []string{"PAYOUT", "REFUND"}},
		`networks ["192.0.2.0/24"], actions ["AB"], callback "https://x.ex/"`: {Actions: []string{"AB"},
			Networks: networks, Callback: "https://x.ex/"},
		`role "wallet", actions ["AB"]`: {Role: "wallet", Actions: []string{"AB"}},
	} {
		n.Name = fmt.Sprint("k", len(name))
		k.add(t, n)
		if one := persistencetest.Did(t, k.db, "SERVICE_KEY_ADD")[0]; one.Detail != name || one.Target != n.Name {
			t.Errorf("%+v; want %s", one, name)
		}
	}
	k.add(t, servicekey.New{Name: "w1", Actions: []string{"PAYOUT"}})
	_, err := k.Change(t.Context(), by, "w1", servicekey.Edit{Actions: &[]string{"REFUND"}})
	storetest.Must(t, err)
	if one := persistencetest.Did(t, k.db, "SERVICE_KEY_UPDATE")[0]; one.Target != "w1" ||
		one.Detail != `actions -["PAYOUT"] +["REFUND"]` {
		t.Errorf("%+v", one)
	}
}
