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
	if mapped, err := servicekey.ParseNetworks([]string{"::ffff:192.0.2.7", "::ffff:192.0.2.0/120"}); err != nil ||
		servicekey.Join(mapped) != "192.0.2.7/32,192.0.2.0/24" {
		t.Errorf("%v, %v", mapped, err)
	}
	storetest.WantsFields(t, storetest.Err(servicekey.ParseNetworks([]string{"::ffff:0:0/90"})), "ip")
}

// A key with actions, of which it has at most 64, needs no role. A callback needs an action, and is https unless
// development permits loopback. It has at most 512 bytes without spaces and other letters than ASCII.
func TestScopeOfAKey(t *testing.T) {
	k := newKeys(t)
	const url = "https://shop.example/in"
	codes := make([]string, 65)
	for i := range codes {
		codes[i] = fmt.Sprintf("A_%d", i)
	}
	payout := []string{"PAYOUT"}
	for i, c := range []struct {
		role, callback string
		actions        []string
		plain          bool
		field          string
	}{
		{"", url, []string{"PAYOUT", "REFUND"}, false, ""}, {"wallet", "", payout, false, ""},
		{"", "http://127.0.0.1:8/in", payout, true, ""}, {"", "http://localhost/", payout, true, ""},
		{"", "", nil, false, "role"}, {"nothing", "", payout, false, "role"}, {user.RoleUser, "", payout, false, "role"},
		{"", "", []string{"a b"}, false, "actions"}, {"", "", []string{""}, false, "actions"},
		{"", "", codes[:64], true, ""}, {"", "", codes, true, "actions"}, {"", "", []string{"LOGIN"}, true, "actions"},
		{"", "", []string{"AB", "CD", "AB"}, true, "actions"},
		{"wallet", url, nil, false, "callback"}, {"", "http://127.0.0.1/", payout, false, "callback"},
		{"", "http://192.0.2.1/", payout, true, "callback"}, {"", "ftp://x/", payout, true, "callback"},
		{"", "https://u:p@shop.example/", payout, false, "callback"}, {"", "https:///in", payout, false, "callback"},
		{"", url + "#x", payout, false, "callback"}, {"", url + strings.Repeat("x", 512-len(url)), payout, true, ""},
		{"", url + strings.Repeat("x", 513-len(url)), payout, true, "callback"}, {"", url + "!~", payout, true, ""},
		{"", url + "a b", payout, true, "callback"}, {"", url + "\x7f", payout, true, "callback"},
		{"", url + "ü", payout, true, "callback"}, {"", "http://[::1]:8/", payout, true, ""},
		{"", "http://[::ffff:127.0.0.1]/", payout, true, ""}, {"", "http://LOCALHOST/", payout, true, ""},
		{"", "http://localhost.example/", payout, true, "callback"}, {"", "https://x.example:x/", payout, true, "callback"},
		{"", "https://u@x.example/", payout, true, "callback"},
	} {
		k.AllowPlain = c.plain
		name := fmt.Sprint("k", i)
		made, _, err := k.Add(t.Context(), by, servicekey.New{Name: name, Role: c.role, Actions: c.actions,
			Callback: c.callback})
		if storetest.WantsFields(t, err, c.field); c.field != "" {
			continue
		}
		kept, known := k.Key(name)
		if !known || kept.Callback != c.callback || !kept.May(c.actions[0]) || kept.May("OTHER") || made.Name != name {
			t.Errorf("%+v: kept %+v", c, kept)
		}
	}
	if _, known := k.Key("none"); known {
		t.Error("a key that does not exist is known")
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
		_, _, err := k.Add(t.Context(), by, n)
		storetest.Must(t, err)
		if one := persistencetest.Did(t, k.db, "SERVICE_KEY_ADD")[0]; one.Detail != name || one.Target != n.Name {
			t.Errorf("%+v; want %s", one, name)
		}
	}
	_, _, err := k.Add(t.Context(), by, servicekey.New{Name: "w1", Actions: []string{"PAYOUT"}})
	storetest.Must(t, err)
	_, err = k.Change(t.Context(), by, "w1", servicekey.Edit{Actions: &[]string{"REFUND"}})
	storetest.Must(t, err)
	if one := persistencetest.Did(t, k.db, "SERVICE_KEY_UPDATE")[0]; one.Target != "w1" ||
		one.Detail != `actions -["PAYOUT"] +["REFUND"]` {
		t.Errorf("%+v", one)
	}
}
