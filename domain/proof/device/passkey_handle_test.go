package device_test

import (
	"castellan/persistence/persistencetest"
	"testing"

	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/passkey/passkeytest"
	"castellan/domain/kit/fault"
)

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
