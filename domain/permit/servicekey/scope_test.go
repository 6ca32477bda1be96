package servicekey_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/permit/servicekey"
	"castellan/persistence/persistencetest"
)

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
