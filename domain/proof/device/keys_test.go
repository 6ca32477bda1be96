package device_test

import (
	"castellan/persistence/persistencetest"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/proof/device"
)

// After a hashing key was replaced, used proofs are still refused, and nonces issued before are still valid.
func TestProofsOutliveAReplacedKey(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	keys := keyringtest.Keeper(t, d.Now)
	d.Ring = keys.Ring()
	p := d.enroll(1, device.ES256)
	c := claimsOf(ongoing)
	present := func(edit func(*device.Claims)) error {
		_, err := d.Present(t.Context(), of(ongoing, d.sign(p, c, edit)))
		return err
	}
	named := func(id string) func(*device.Claims) { return func(c *device.Claims) { c.ID = id } }
	old := func(c *device.Claims) { c.IssuedAt = 1 }
	expect(t, "before", present(named("one")), "", false)
	nonce := expect(t, "stale", present(old), fault.DeviceSignatureInvalid, true)
	keyringtest.Replace(t, keys)
	expect(t, "announced", present(named("two")), "", false)
	d.now.Add(keyring.Notice.Milliseconds())
	expect(t, "the first again", present(named("one")), fault.DeviceSignatureInvalid, false)
	expect(t, "the second again", present(named("two")), fault.DeviceSignatureInvalid, false)
	with := func(c *device.Claims) { c.Nonce, c.IssuedAt = nonce, 1 }
	expect(t, "the nonce", present(with), "", false)
	expect(t, "the nonce again", present(with), fault.DeviceSignatureInvalid, true)
	expect(t, "after", present(named("three")), "", false)
	expect(t, "after, again", present(named("three")), fault.DeviceSignatureInvalid, false)
}
