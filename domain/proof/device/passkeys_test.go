package device_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/persistence/factor"
	"castellan/persistence/persistencetest"
)

var browser = audit.By{IP: "203.0.113.9", RequestID: "r1"}

func (d *desk) usePasskeys() {
	d.t.Helper()
	party, ok := passkey.NewParty(audience, "Castellan", nil)
	if !ok {
		d.t.Fatal("no party")
	}
	d.Passkeys = &device.Passkeys{Store: factor.NewPasskeys(d.db), Party: party}
}

// create answers new creation options of a user.
func (d *desk) create(n int, a *passkeytest.Authenticator) []byte {
	d.t.Helper()
	options := storetest.Value(d.Create(d.t.Context(), usertest.Sample(n).ID))(d.t)
	return a.Create(d.t, options)
}

// addPasskey registers a passkey of a user and adds it to the account.
func (d *desk) addPasskey(n int, edit func(*passkeytest.Authenticator)) (*passkeytest.Authenticator, string) {
	d.t.Helper()
	a := passkeytest.New(d.t, "id.example.com", audience)
	edit(a)
	r, err := d.RegisterPasskey(d.t.Context(), usertest.Sample(n).ID, device.Registration{Brand: "b"}, d.create(n, a))
	storetest.Must(d.t, err)
	_, err = d.run(d.AddAction(), n, r)
	storetest.Must(d.t, err)
	have := storetest.Value(d.ListPasskeys(d.t.Context(), usertest.Sample(n).ID))(d.t)
	for _, c := range have {
		if bytes.Equal(c.ID, a.ID) {
			return a, c.DeviceID
		}
	}
	d.t.Fatal("not added")
	return nil, ""
}

func asIs(*passkeytest.Authenticator) {}

// Creation options name the user and the present passkeys. The answer is accepted once, within ten minutes, for this
// user.
func TestRegisterPasskey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	me := usertest.Sample(1).ID
	a := passkeytest.New(t, "id.example.com", audience)
	register := func(n int, answer []byte) error {
		_, err := d.RegisterPasskey(t.Context(), usertest.Sample(n).ID, device.Registration{}, answer)
		return err
	}
	answer := d.create(1, a)
	expect(t, "another user", register(2, answer), fault.DeviceSignatureInvalid, false)
	expect(t, "nonsense", register(1, []byte("{}")), fault.DeviceSignatureInvalid, false)
	_, err := d.RegisterPasskey(t.Context(), me, device.Registration{Brand: "a\nb"}, answer)
	expect(t, "a control character", err, fault.InvalidField, false)
	d.now.Add(int64(10 * time.Minute / time.Millisecond))
	expect(t, "at the end of its life", register(1, answer), fault.DeviceSignatureInvalid, false)
	d.now.Add(-1)
	expect(t, "a millisecond before", register(1, answer), "", false)
	expect(t, "a second time", register(1, answer), fault.DeviceSignatureInvalid, false)

	first, _ := d.addPasskey(1, asIs)
	options := storetest.Value(d.Create(t.Context(), me))(t)
	o := passkeytest.Read(t, options)
	if o.User.ID != first.Handle || len(o.ExcludeCredentials) != 1 ||
		o.ExcludeCredentials[0].ID != passkeytest.Encode(first.ID) || len(decoded(t, o.User.ID)) != passkey.HandleBytes ||
		!bytes.Contains(options, []byte(usertest.Sample(1).Email)) {
		t.Errorf("%s", options)
	}
	if other, err := d.Create(t.Context(), usertest.Sample(2).ID); err != nil ||
		passkeytest.Read(t, other).User.ID == o.User.ID {
		t.Errorf("%s, %v", other, err)
	}
	expect(t, "the same passkey", register(1, first.Create(t, options)), fault.RecordAlreadyExist, false)
	expect(t, "a new handle", register(1, answer), fault.DeviceSignatureInvalid, false)
	for range 9 {
		d.enroll(1, device.EdDSA)
	}
	expect(t, "one too many", register(1, d.create(1, a)), fault.RecordLimitReached, false)
	_, err = d.Create(t.Context(), "unknown")
	storetest.Wants(t, err, fault.RecordNotFound)
}

func decoded(t *testing.T, text string) []byte {
	t.Helper()
	return storetest.Value(base64.RawURLEncoding.DecodeString(text))(t)
}

// Adding and removing passkeys changes the account. Its handle lives as long as one of them.
func TestAddAndRemovePasskeys(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	me := usertest.Sample(1).ID
	wants := func(what string, push, handle bool) {
		t.Helper()
		u, err := d.Users.Get(t.Context(), me)
		if err != nil || u.Push != push || (u.PasskeyHandle != "") != handle {
			t.Errorf("%s: push %t, handle %q, %v", what, u.Push, u.PasskeyHandle, err)
		}
	}
	a, one := d.addPasskey(1, asIs)
	wants("added", true, true)
	allowed, err := d.Allowed(t.Context(), me, passkey.Any)
	if err != nil || !allowed.Only {
		t.Fatalf("%+v, %v", allowed, err)
	}
	options := passkeytest.Read(t, allowed.Request("digest"))
	if options.AllowCredentials[0].ID != passkeytest.Encode(a.ID) || options.Challenge != "digest" {
		t.Errorf("%+v", options)
	}
	_, two := d.addPasskey(1, asIs)
	p := d.enroll(1, device.ES256)
	if allowed, err := d.Allowed(t.Context(), me, passkey.Any); err != nil || allowed.Only {
		t.Errorf("with a device: %+v, %v", allowed, err)
	}
	if allowed, err := d.Allowed(t.Context(), usertest.Sample(2).ID, passkey.Any); err != nil ||
		allowed.Request != nil || allowed.Only {
		t.Errorf("another user: %+v, %v", allowed, err)
	}
	if _, err := d.Removable(t.Context(), usertest.Sample(2).ID, one); fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("another's passkey: %v", err)
	}
	for _, c := range []struct {
		id           string
		push, handle bool
	}{{one, true, true}, {p.id, true, true}, {two, false, false}} {
		d.now.Add(1) // the audit is in the order of its times
		removal, err := d.Removable(t.Context(), me, c.id)
		storetest.Must(t, err)
		if removal.DeviceID != c.id || c.id != p.id && removal.Name != "b" {
			t.Errorf("%+v", removal)
		}
		_, err = d.run(d.RemoveAction(), 1, removal)
		storetest.Must(t, err)
		wants("removed "+c.id, c.push, c.handle)
	}
	_, err = d.run(d.RemoveAction(), 1, device.Removal{DeviceID: one})
	expect(t, "a removed passkey", err, fault.RecordNotFound, false)
	_, err = d.Removable(t.Context(), me, one)
	storetest.Wants(t, err, fault.RecordNotFound)
	added := persistencetest.Did(t, d.db, device.ActionAdd)
	removed := persistencetest.Did(t, d.db, device.ActionRemove)
	if len(added) != 3 || len(removed) != 3 || removed[0].Target != two || removed[0].UserID != me {
		t.Errorf("%+v, %+v", added, removed)
	}
	d.Passkeys = nil
	if have, err := d.ListPasskeys(t.Context(), me); err != nil || have != nil {
		t.Errorf("without passkeys: %+v, %v", have, err)
	}
	_, err = d.Assert(t.Context(), []byte("{}"))
	expect(t, "without passkeys", err, fault.DeviceSignatureInvalid, false)
}

// A pending registration that another passkey has overtaken is refused: both would name the account differently.
func TestPasskeysOfOneAccountHaveOneHandle(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	pending, err := d.RegisterPasskey(t.Context(), usertest.Sample(1).ID, device.Registration{},
		d.create(1, passkeytest.New(t, "id.example.com", audience)))
	storetest.Must(t, err)
	stale := d.create(1, passkeytest.New(t, "id.example.com", audience))
	d.addPasskey(1, asIs)
	_, err = d.run(d.AddAction(), 1, pending)
	expect(t, "overtaken", err, fault.RecordAlreadyExist, false)
	_, err = d.RegisterPasskey(t.Context(), usertest.Sample(1).ID, device.Registration{}, stale)
	expect(t, "of another handle", err, fault.DeviceSignatureInvalid, false)
}

// A login by a passkey uses its ticket up. It needs the right challenge.
func TestLoginByPasskey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	a, id := d.addPasskey(1, asIs)
	me := usertest.Sample(1).ID
	enter := func(ticket string, answer []byte) error {
		u, got, err := d.Entered(t.Context(), ticket, answer, browser)
		if err == nil && (u.ID != me || got.Passkey.DeviceID != id || got.Handle != a.Handle || got.Kept == "") {
			t.Errorf("%+v, %+v", u, got)
		}
		return err
	}
	options, ticket := d.LoginOptions()
	_, other := d.LoginOptions()
	answer := a.Get(t, options)
	expect(t, "another ticket", enter(other, answer), fault.DeviceSignatureInvalid, false)
	expect(t, "no ticket", enter("", answer), fault.DeviceSignatureInvalid, false)
	expect(t, "a longer ticket", enter(ticket+"A", answer), fault.DeviceSignatureInvalid, false)
	registration := storetest.Value(d.Create(t.Context(), me))(t)
	expect(t, "a ticket of a registration", enter(passkeytest.Read(t, registration).Challenge, answer),
		fault.DeviceSignatureInvalid, false)
	expect(t, "nonsense", enter(ticket, []byte("{}")), fault.DeviceSignatureInvalid, false)
	stranger := passkeytest.New(t, "id.example.com", audience)
	stranger.Handle = a.Handle
	expect(t, "an unknown passkey", enter(ticket, stranger.Get(t, options)), fault.DeviceSignatureInvalid, false)
	stranger.ID = a.ID
	expect(t, "another key", enter(ticket, stranger.Get(t, options)), fault.DeviceSignatureInvalid, false)
	d.now.Add(int64(10*time.Minute/time.Millisecond) - 1)
	expect(t, "right", enter(ticket, answer), "", false)
	expect(t, "a second time", enter(ticket, answer), fault.DeviceSignatureInvalid, false)
	used, err := d.Passkeys.Store.ByCredential(t.Context(), a.ID)
	if err != nil || !used.LastUsedAt.Equal(d.Now()) {
		t.Errorf("%+v, %v", used, err)
	}
	options, ticket = d.LoginOptions()
	d.now.Add(int64(10 * time.Minute / time.Millisecond))
	expect(t, "too late", enter(ticket, a.Get(t, options)), fault.DeviceSignatureInvalid, false)
	u := storetest.Value(d.Users.Get(t.Context(), me))(t)
	storetest.Must(t, d.db.Commit(t.Context(), user.SetPush{UserID: me, CV: u.CV, Owned: true}))
	options, ticket = d.LoginOptions()
	expect(t, "an account without a handle", enter(ticket, a.Get(t, options)), fault.DeviceSignatureInvalid, false)
}

// A counter that does not rise is counted and reported in the audit, and refused if the settings say so.
func TestCounterOfPasskey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	a, id := d.addPasskey(1, func(a *passkeytest.Authenticator) { a.Count = 7 })
	enter := func() error {
		d.now.Add(1) // the audit is in the order of its times
		options, ticket := d.LoginOptions()
		_, _, err := d.Entered(t.Context(), ticket, a.Get(t, options), browser)
		return err
	}
	stored := func() uint32 {
		c := storetest.Value(d.Passkeys.Store.ByCredential(t.Context(), a.ID))(t)
		return c.Count
	}
	wants := func(count uint32, falls int64, details ...string) {
		t.Helper()
		var rows []string
		for _, act := range persistencetest.Acts(t, d.db) {
			if strings.HasPrefix(act, device.ActionCounter) {
				rows = append(rows, act)
			}
		}
		if stored() != count || d.Passkeys.Falls.Load() != falls || fmt.Sprint(rows) != fmt.Sprint(details) {
			t.Errorf("count %d, %d falls, %q; want %d, %d, %q", stored(), d.Passkeys.Falls.Load(), rows, count, falls, details)
		}
	}
	me := usertest.Sample(1).ID
	storetest.Must(t, enter())
	wants(8, 0)
	a.Count = 7
	storetest.Must(t, enter())
	row := strings.Join([]string{device.ActionCounter, me, me, id, "the counter is "}, "|")
	wants(8, 1, row+"8 after 8")
	d.Passkeys.RefuseFalls = true
	a.Count = 2
	expect(t, "a fall", enter(), fault.DeviceSignatureInvalid, false)
	wants(8, 2, row+"8 after 8", row+"3 after 8|refused")

	a.Count = 3
	approve := func(count uint32) error {
		d.now.Add(1)
		a.Count = count
		got := storetest.Value(d.Assert(t.Context(), a.Get(t, d.Passkeys.Party.Request("ZGlnZXN0", nil))))(t)
		if got.Challenge != "ZGlnZXN0" || got.Use.Seen != 8 || got.Use.Count != max(count+1, 8) || got.Use.UserID != me {
			t.Errorf("%+v", got)
		}
		return d.Counted(t.Context(), got, browser)
	}
	storetest.Must(t, approve(8))
	wants(8, 2, row+"8 after 8", row+"3 after 8|refused")
	expect(t, "a fall", approve(7), fault.DeviceSignatureInvalid, false)
	d.Passkeys.RefuseFalls = false
	storetest.Must(t, approve(7))
	wants(8, 4, row+"8 after 8", row+"3 after 8|refused", row+"8 after 8|refused", row+"8 after 8")
}

// A passkey is named after the mail of its account, or after the phone without one. That of an account that is gone
// enters nothing, and a fall of its counter is refused only after it was recorded.
func TestPasskeysOfChangedAccounts(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	me := usertest.Sample(1)
	a, _ := d.addPasskey(1, func(a *passkeytest.Authenticator) { a.Count = 7 })
	name := func() string {
		options := storetest.Value(d.Create(t.Context(), me.ID))(t)
		var o struct{ User struct{ Name string } }
		storetest.Must(t, json.Unmarshal(options, &o))
		return o.User.Name
	}
	storetest.Equal(t, name(), me.Email, "named")
	persistencetest.Exec(t, d.db, "UPDATE users SET email = '' WHERE id = ?", me.ID)
	storetest.Equal(t, name(), me.Phone, "named")
	a.Count = 3
	fell, err := d.Assert(t.Context(), a.Get(t, d.Passkeys.Party.Request("ZGlnZXN0", nil)))
	storetest.Must(t, err)
	db := d.Commit
	d.Commit = persistencetest.Unaudited(d.db)
	storetest.Fails(t, d.Counted(t.Context(), fell, browser), "", "a fall that is not recorded")
	d.Commit = db
	storetest.Must(t, d.Counted(t.Context(), fell, browser))
	storetest.Equal(t, d.Passkeys.Falls.Load(), 1, "falls were counted, want the recorded one")
	options, ticket := d.LoginOptions()
	answer := a.Get(t, options)
	d.Users = noUsers{d.Users}
	_, _, err = d.Entered(t.Context(), ticket, answer, browser)
	expect(t, "an account that is gone", err, fault.DeviceSignatureInvalid, false)
}

// noUsers is a store of accounts that are gone.
type noUsers struct{ user.Store }

func (noUsers) Get(context.Context, string) (user.User, error) {
	return user.User{}, fault.New(fault.RecordNotFound, "gone")
}
