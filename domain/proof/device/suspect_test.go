package device_test

import (
	"strings"
	"testing"

	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/persistence/persistencetest"
)

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
