package passkey_test

import (
	"testing"
	"time"

	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
)

// A passkey that begins to be synchronised or backed up settles again; one that ceases to does not.
func TestFlagsOfBackup(t *testing.T) {
	p, now, before := party(t), time.UnixMilli(2e12), time.UnixMilli(1e12)
	for _, c := range []struct {
		eligible, backedUp bool // before
		set                byte
		changed, again     bool
	}{
		{false, false, 0, false, false},
		{true, true, passkeytest.Eligible | passkeytest.BackedUp, false, false},
		{false, false, passkeytest.Eligible, true, true},
		{false, false, passkeytest.Eligible | passkeytest.BackedUp, true, true},
		{true, false, passkeytest.Eligible | passkeytest.BackedUp, true, true},
		{true, true, passkeytest.Eligible, true, false},
		{true, true, 0, true, false},
	} {
		a, cred := registered(t, p, nil)
		cred.Eligible, cred.BackedUp, cred.Since = c.eligible, c.backedUp, before
		a.Flags = a.Flags&^(passkeytest.Eligible|passkeytest.BackedUp) | c.set
		got, err := p.Parse(a.Get(t, p.Request(first, nil)))
		if err == nil {
			err = got.By(cred)
		}
		w, changed := got.Moves(cred, now)
		want := passkey.Moved{UserID: cred.UserID, DeviceID: cred.DeviceID, Eligible: c.set&passkeytest.Eligible != 0,
			BackedUp: c.set&passkeytest.BackedUp != 0, Since: before}
		if c.again {
			want.Since = now
		}
		if err != nil || changed != c.changed || w != want {
			t.Errorf("%+v: %+v, changed %t, %v", c, w, changed, err)
		}
	}
}
