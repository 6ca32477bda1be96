package servicekey_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/resource"
	"castellan/domain/permit/servicekey"
	"castellan/persistence"
	"castellan/persistence/permit"
	"castellan/persistence/persistencetest"
)

var (
	errDown = errors.New("the database is down")
	by      = audit.By{UserID: "op"}
	home    = netip.MustParseAddr("192.0.2.7")
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

// wants checks the client of a header.
func (k *keys) wants(t *testing.T, header string, from netip.Addr, want fault.Code) {
	t.Helper()
	got, err := k.Client(header, from)
	storetest.Wants(t, err, want)
	if err == nil && got != (servicekey.Client{Name: "w1", Role: "wallet"}) {
		t.Errorf("%+v", got)
	}
}

// A key with networks is accepted from these alone.
func TestNetworksOfAKey(t *testing.T) {
	k := newKeys(t)
	networks, err := servicekey.ParseNetworks([]string{"192.0.2.7", "2001:db8::/32"})
	storetest.Must(t, err)
	_, header, err := k.Add(t.Context(), by, servicekey.New{Name: "w1", Role: "wallet", Networks: networks})
	storetest.Must(t, err)
	for from, want := range map[string]fault.Code{"192.0.2.7": "", "::ffff:192.0.2.7": "", "2001:db8::1": "",
		"192.0.2.8": fault.IPNotAllowed, "2001:db9::1": fault.IPNotAllowed} {
		k.wants(t, header, netip.MustParseAddr(from), want)
	}
	if got := servicekey.Join(networks); got != "192.0.2.7/32,2001:db8::/32" || servicekey.Join(nil) != "" {
		t.Error(got)
	}
	for _, bad := range []string{"", "x", "192.0.2.7/24", "192.0.2.7/33", "192.0.2"} {
		got, err := servicekey.ParseNetworks([]string{"192.0.2.7", bad})
		storetest.WantsFields(t, err, "ip")
		if got != nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
	mapped, err := servicekey.ParseNetworks([]string{"::ffff:192.0.2.7"})
	if err != nil || servicekey.Join(mapped) != "192.0.2.7/32" {
		t.Errorf("%v, %v", mapped, err)
	}
}

// A refused key is not stored, and its header is not returned.
func TestKeyIsRefused(t *testing.T) {
	k := newKeys(t)
	many := make([]netip.Prefix, 33)
	for i := range many {
		many[i] = netip.PrefixFrom(home, 32)
	}
	for _, c := range []struct {
		name, role string
		networks   int
		fields     string
	}{{"a b", "wallet", 0, "name"}, {"w2", "unknown", 0, "role"}, {"w2", user.RoleUser, 0, "role"},
		{"w2", "wallet", 33, "ip"}, {"w1", "wallet", 32, ""}} {
		made, header, err := k.Add(t.Context(), by,
			servicekey.New{Name: c.name, Role: c.role, Networks: many[:c.networks]})
		storetest.WantsFields(t, err, c.fields)
		if (header == "") != (c.fields != "") || (made.Name == "") != (c.fields != "") {
			t.Errorf("%+v: %+v, %q", c, made, header)
		}
	}
	_, header, err := k.Add(t.Context(), by, servicekey.New{Name: "w1", Role: "wallet"})
	storetest.Wants(t, err, fault.RecordAlreadyExist)
	if header != "" {
		t.Errorf("the header of a refused key: %s", header)
	}
	k.Roles = func(context.Context) ([]resource.Role, error) { return nil, errDown }
	if _, _, err := k.Add(t.Context(), by, servicekey.New{Name: "w3", Role: "wallet"}); !errors.Is(err, errDown) {
		t.Errorf("without roles: %v", err)
	}
	if all, err := k.Store.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
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

// A change is refused as the creation would be, and then changes nothing.
func TestChangeIsRefused(t *testing.T) {
	k := newKeys(t)
	before := k.add(t, servicekey.New{Name: "w1", Actions: []string{"PAYOUT"}})
	for _, c := range []struct {
		edit  servicekey.Edit
		field string
	}{
		{servicekey.Edit{Actions: &[]string{}}, "actions"}, {servicekey.Edit{Actions: &[]string{"a b"}}, "actions"},
		{servicekey.Edit{Callback: new("http://192.0.2.1/")}, "callback"},
		{servicekey.Edit{Actions: &[]string{"PAYOUT", "LOGIN"}}, "actions"},
	} {
		next, err := k.Change(t.Context(), by, "w1", c.edit)
		storetest.WantsFields(t, err, c.field)
		kept, _ := k.Key("w1")
		if next.Name != "" || fmt.Sprint(kept.Actions, kept.Callback) != fmt.Sprint(before.Actions, before.Callback) {
			t.Errorf("%+v, kept %+v", next, kept)
		}
	}
	k.add(t, servicekey.New{Name: "w2", Role: "wallet", Actions: []string{"PAYOUT"}, Callback: "https://shop.example/"})
	_, err := k.Change(t.Context(), by, "w2", servicekey.Edit{Actions: &[]string{}})
	storetest.WantsFields(t, err, "callback")
	_, err = k.Change(t.Context(), by, "w3", servicekey.Edit{Actions: &[]string{"PAYOUT"}})
	storetest.Wants(t, err, fault.RecordNotFound)
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
