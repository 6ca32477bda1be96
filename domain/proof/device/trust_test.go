package device_test

import (
	"strings"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/persistence/persistencetest"
)

// trusts compares the trust of a user's passkeys by their devices.
func (d *desk) trusts(what string, n int, want map[string]passkey.Trust) {
	d.t.Helper()
	all, err := d.ListPasskeys(d.t.Context(), usertest.Sample(n).ID)
	if err != nil || len(all) != len(want) {
		d.t.Errorf("%s: %d passkeys, want %d, %v", what, len(all), len(want), err)
	}
	for _, c := range all {
		w := want[c.DeviceID]
		if !c.Since.Equal(w.Since) || !c.Restarted.Equal(w.Restarted) {
			d.t.Errorf("%s: %s has %+v, want %+v", what, c.DeviceID, c.Trust, w)
		}
	}
}

// An account with a passkey adds and removes devices and passkeys only with one, or with a recovery code, which lets
// all passkeys settle again.
func TestChangesOfAnAccountWithPasskey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	d.now.Store(usertest.Sample(1).CreatedAt.Add(48 * time.Hour).UnixMilli())
	start := d.Now()
	_, one := d.addPasskey(1, asIs)
	old := d.enroll(2, device.ES256) // an account without a passkey is free
	_, err := d.run(d.RemoveAction(), 2, device.Removal{DeviceID: old.id})
	storetest.Must(t, err)
	first := passkey.Trust{Since: start}
	d.trusts("first", 1, map[string]passkey.Trust{one: first})

	d.without = true
	_, err = d.run(d.AddAction(), 1, device.Registration{Brand: "by SMS"})
	storetest.Wants(t, err, fault.MFANotAvailable)
	_, err = d.run(d.RemoveAction(), 1, device.Removal{DeviceID: one})
	storetest.Wants(t, err, fault.MFANotAvailable)
	d.without, d.settling = true, true
	_, none := d.addPasskey(1, asIs)
	_, err = d.run(d.RemoveAction(), 1, device.Removal{DeviceID: none})
	storetest.Must(t, err)
	d.without, d.settling = false, false

	d.now.Add(int64(time.Hour / time.Millisecond))
	d.by = one
	_, two := d.addPasskey(1, asIs)
	d.trusts("by another", 1, map[string]passkey.Trust{one: first, two: first})

	d.now.Add(int64(time.Hour / time.Millisecond))
	at := d.Now()
	d.without, d.recovered = true, true
	_, three := d.addPasskey(1, asIs)
	first.Restarted = at
	d.trusts("recovered", 1, map[string]passkey.Trust{one: first, two: first, three: {Since: at, Restarted: at}})
	d.now.Add(1)
	_, err = d.run(d.RemoveAction(), 1, device.Removal{DeviceID: two})
	storetest.Must(t, err)
	first.Restarted = d.Now()
	d.trusts("a recovered removal", 1, map[string]passkey.Trust{one: first,
		three: {Since: at, Restarted: d.Now()}})
}

// The first passkey of an account is settled at once within an hour, unless the account has a stronger factor than
// messages. An imported account can be older than its record.
func TestFirstPasskey(t *testing.T) {
	for name, c := range map[string]struct {
		after         time.Duration
		authenticator bool
		settled       bool
	}{
		"within the hour": {time.Hour - time.Millisecond, false, true}, "after an hour": {time.Hour, false, false},
		"beside an authenticator": {time.Minute, true, false},
	} {
		d := newDesk(t, persistencetest.SQLite(t))
		d.usePasskeys()
		one := usertest.Sample(1)
		d.now.Store(one.CreatedAt.Add(c.after).UnixMilli())
		if c.authenticator {
			storetest.Must(t, d.db.Commit(t.Context(), user.SetTOTP{UserID: one.ID, CV: one.CV, Defined: true}))
		}
		_, added := d.addPasskey(1, asIs)
		want := passkey.Trust{Since: d.Now()}
		if c.settled {
			want = passkey.Trust{}
		}
		d.trusts(name, 1, map[string]passkey.Trust{added: want})
	}
}

// Passkeys are offered, and accepted, by what a challenge needs.
func TestPasskeysByNeed(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	d.Passkeys.Settle = 24 * time.Hour
	me := usertest.Sample(1).ID
	d.now.Store(usertest.Sample(1).CreatedAt.Add(48 * time.Hour).UnixMilli())
	made := d.Now()
	a, _ := d.addPasskey(1, asIs)
	offers := func(what string, need passkey.Need, offered, accepted bool) {
		t.Helper()
		allowed := storetest.Value(d.Allowed(t.Context(), me, need))(t)
		if (allowed.Request != nil) != offered || !offered && !allowed.From.Equal(made.Add(24*time.Hour)) {
			t.Errorf("%s, need %d: %+v", what, need, allowed)
		}
		got := storetest.Value(d.Assert(t.Context(), a.Get(t, d.Passkeys.Party.Request("ZGlnZXN0", nil))))(t)
		if ok, err := d.Meets(t.Context(), got, need); err != nil || ok != accepted {
			t.Errorf("%s, need %d: accepted %t, %v", what, need, ok, err)
		}
	}
	offers("new", passkey.Any, true, true)
	offers("new", passkey.Resistant, false, false)
	offers("new", passkey.Changing, false, false)
	d.now.Add(24*60*60*1000 - 1)
	offers("a millisecond before", passkey.Resistant, false, false)
	d.now.Add(1)
	offers("settled", passkey.Resistant, true, true)
	offers("settled", passkey.Changing, true, true)
	d.recovered = true
	_, later := d.addPasskey(1, asIs)
	storetest.Must(t, d.db.Commit(t.Context(), passkey.Remove{UserID: me, DeviceID: later}))
	if allowed, err := d.Allowed(t.Context(), me, passkey.Resistant); err != nil || allowed.Request != nil {
		t.Errorf("after a recovery: %+v, %v", allowed, err)
	}
}

// A passkey whose manager begins to synchronise it logs in. The change is a row of the audit, it settles again, and the
// settings may refuse it (webauthn.backup).
func TestBackupOfPasskey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	a, id := d.addPasskey(1, func(a *passkeytest.Authenticator) {
		a.Flags &^= passkeytest.Eligible | passkeytest.BackedUp
	})
	me := usertest.Sample(1).ID
	enter := func(flags byte) (passkey.Credential, string, error) {
		d.now.Add(1)
		a.Flags |= flags
		options, ticket := d.LoginOptions()
		_, _, err := d.Entered(t.Context(), ticket, a.Get(t, options), browser)
		c, errRead := d.Passkeys.Store.ByCredential(t.Context(), a.ID)
		storetest.Must(t, errRead)
		acts := persistencetest.Acts(t, d.db)
		return c, acts[len(acts)-1], err
	}
	before, _, err := enter(0)
	storetest.Must(t, err)

	d.Passkeys.Backup = device.BackupRefused
	c, act, err := enter(passkeytest.Eligible)
	expect(t, "a change", err, fault.DeviceSignatureInvalid, false)
	row := strings.Join([]string{device.ActionBackup, me, me, id, "of one device → synchronisable"}, "|")
	if c.Eligible || c.Count != before.Count || !c.Since.Equal(before.Since) || act != row+"|refused" {
		t.Errorf("refused: %+v, %s", c, act)
	}

	d.Passkeys.Backup = device.BackupReported
	c, act, err = enter(0)
	if err != nil || !c.Eligible || c.BackedUp || !c.Since.Equal(d.Now()) || act != row {
		t.Errorf("reported: %+v, %s, %v", c, act, err)
	}
	settles := c.Since
	if c, act, err = enter(0); err != nil || !c.Since.Equal(settles) || act != row {
		t.Errorf("unchanged: %+v, %s, %v", c, act, err)
	}

	d.Passkeys.Backup = device.BackupAllowed
	if c, act, err = enter(passkeytest.BackedUp); err != nil || !c.BackedUp || !c.Since.Equal(settles) || act != row {
		t.Errorf("allowed: %+v, %s, %v", c, act, err)
	}
}

// A handle is judged alike at a login and at an approval: that of another account is refused. Only an approval, which
// named the account before, accepts an assertion without one.
func TestHandleOfAssertion(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	d.usePasskeys()
	a, _ := d.addPasskey(1, asIs)
	b, _ := d.addPasskey(2, asIs)
	for _, c := range []struct {
		name, handle string
		login, push  fault.Code
	}{
		{"its own", a.Handle, "", ""},
		{"of another account", b.Handle, fault.DeviceSignatureInvalid, fault.DeviceSignatureInvalid},
		{"of no account", passkeytest.Encode([]byte("x")), fault.DeviceSignatureInvalid, fault.DeviceSignatureInvalid},
		{"none", "", fault.DeviceSignatureInvalid, ""},
	} {
		by := *a
		if by.Handle = c.handle; c.handle == "" {
			by.Wire = func(m map[string]any) { delete(m["response"].(map[string]any), "userHandle") }
		}
		got, err := d.Assert(t.Context(), by.Get(t, d.Passkeys.Party.Request("ZGlnZXN0", nil)))
		if fault.CodeOf(err) != c.push || err == nil && got.Account.ID != usertest.Sample(1).ID {
			t.Errorf("%s: approval: %v", c.name, err)
		}
		options, ticket := d.LoginOptions()
		if _, _, err := d.Entered(t.Context(), ticket, by.Get(t, options), browser); fault.CodeOf(err) != c.login {
			t.Errorf("%s: login: %v", c.name, err)
		}
	}
}
