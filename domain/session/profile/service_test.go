package profile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/totp"
	"castellan/domain/session/profile"
)

// accounts are u1, as user.Store reads it.
type accounts struct {
	user.Store
	u user.User
}

func (a *accounts) Get(_ context.Context, id string) (user.User, error) {
	if id != "u1" {
		return user.User{}, fault.New(fault.RecordNotFound, "none")
	}
	return a.u, nil
}

func (a *accounts) Hold(ctx context.Context, id string) (user.User, error) { return a.Get(ctx, id) }

// notices record the destinations of notices.
type notices struct{ got []string }

func (n *notices) Notice(to challenge.Account, k message.Kind, _ message.Values, ip string) []commit.Write {
	n.got = append(n.got, string(k)+" "+to.Mail+to.Phone+" "+ip)
	return nil
}

type desk struct {
	*profile.Service
	accounts *accounts
	units    *storetest.Units
	notices  *notices
}

var (
	now = time.UnixMilli(1_700_000_000_000)
	by  = audit.By{UserID: "admin", IP: "ip"}
)

func newDesk() *desk {
	d := &desk{accounts: &accounts{u: user.User{ID: "u1", Name: "Ada", Surname: "Byron", CountryCode: "90",
		Phone: "+905320000001", Email: "old@example.com", EmailVerified: true, CV: 3, SV: 4, Language: "tr"}},
		units: &storetest.Units{}, notices: &notices{}}
	clock := func() time.Time { return now }
	d.Service = &profile.Service{Users: d.accounts, Notices: d.notices, Now: clock,
		Changes: admin.Changes{Commit: d.units, Now: clock}}
	return d
}

// changes returns the writes of the change itself.
func (d *desk) changes() []commit.Write {
	return slices.DeleteFunc(d.units.Writes, func(w commit.Write) bool { _, is := w.(audit.Record); return is })
}

// An administrator removes one kind of factor. The owner is notified, and the passkeys that stay settle again.
func TestRemoveFactor(t *testing.T) {
	restart := passkey.Restart{UserID: "u1", At: now}
	push := user.SetPush{UserID: "u1", CV: 3}
	for f, c := range map[profile.Factor]struct {
		detail, told string
		want         []commit.Write
	}{
		profile.Device: {"DEVICE 1", "device-removed", []commit.Write{device.Remove{UserID: "u1", ID: "d1"},
			user.SetPush{UserID: "u1", CV: 3, Owned: true, Handle: "handle"}, restart}},
		profile.Passkey: {"PASSKEY 2", "device-removed", []commit.Write{passkey.Remove{UserID: "u1", DeviceID: "p1"},
			passkey.Remove{UserID: "u1", DeviceID: "p2"}, user.SetPush{UserID: "u1", CV: 3, Owned: true}, restart}},
		profile.Authenticator: {"AUTHENTICATOR 1", "totp-off", []commit.Write{user.SetTOTP{UserID: "u1", CV: 3},
			totp.Remove{UserID: "u1"}, restart}},
	} {
		d := newDesk()
		d.accounts.u.PasskeyHandle = "handle"
		own := owned{devices: []device.Device{{ID: "d1", UserID: "u1", Status: device.Active}},
			passkeys: []passkey.Credential{{DeviceID: "p1", UserID: "u1"}, {DeviceID: "p2", UserID: "u1"}}, totp: true}
		d.Devices, d.TOTP = own.service(), apps{own.totp}
		d.units.Fails = []error{commit.ErrFenced}
		if _, err := d.RemoveFactor(t.Context(), by, "u1", f); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		storetest.Same(t, d.units.Audit(), []string{"admin USER_FACTOR_REMOVE u1 u1 " + c.detail})
		storetest.Same(t, d.changes(), c.want)
		if got := d.notices.got; len(got) != 2 || got[1] != c.told+" old@example.com+905320000001 ip" {
			t.Errorf("%s: told %q", f, got)
		}
		d = newDesk()
		d.Devices, d.TOTP = owned{}.service(), apps{}
		_, err := d.RemoveFactor(t.Context(), by, "u1", f)
		if storetest.Wants(t, err, fault.RecordNotFound); d.units.Writes != nil {
			t.Errorf("%s: %v of an account without it", f, d.units.Writes)
		}
	}
	d := newDesk()
	own := owned{passkeys: []passkey.Credential{{DeviceID: "p1", UserID: "u1"}}}
	d.Devices, d.TOTP = own.service(), apps{own.totp}
	if n, err := d.RemoveFactor(t.Context(), by, "u1", profile.Passkey); err != nil || n != 1 || d.changes()[1] != push {
		t.Errorf("the last one: %d, %+v, %v", n, d.changes(), err)
	}
}

// owned are the factors of an account.
type owned struct {
	device.Store
	devices  []device.Device
	passkeys []passkey.Credential
	totp     bool
}

func (o owned) service() *device.Service {
	return &device.Service{Store: o, Passkeys: &device.Passkeys{Store: keysOf{all: o.passkeys}}}
}

func (o owned) List(context.Context, string) ([]device.Device, error) { return o.devices, nil }

type keysOf struct {
	passkey.Store
	all []passkey.Credential
}

func (k keysOf) List(context.Context, string) ([]passkey.Credential, error) { return k.all, nil }

type apps struct{ defined bool }

func (a apps) Get(context.Context, string) (totp.Definition, error) {
	if !a.defined {
		return totp.Definition{}, totp.NotDefined()
	}
	return totp.Definition{}, nil
}

func (a apps) Codes(context.Context, string, string) ([]totp.RecoveryCode, error) { return nil, nil }

// A change is decided again while the account changes meanwhile, at most 32 times.
func TestChangeOfBusyAccount(t *testing.T) {
	d := newDesk()
	d.units.Fails = slices.Repeat([]error{commit.ErrFenced}, 31)
	if _, err := d.SetName(t.Context(), by, "u1", "a", "b"); err != nil {
		t.Error(err)
	}
	d.units.Fails = slices.Repeat([]error{commit.ErrFenced}, 32)
	_, err := d.SetName(t.Context(), by, "u1", "a", "b")
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Unavailable || f.RetryAfter != time.Second || len(d.units.Fails) != 0 {
		t.Error(err)
	}
	d.units.Fails = []error{fault.New(fault.RecordAlreadyExist, "the key users_phone exists")}
	_, err = d.SetPhone(t.Context(), by, "u1", "1", "+12025550123")
	if !errors.As(err, &f) || f.Code != fault.RecordAlreadyExist || f.Message != "another account has it" {
		t.Error(err)
	}
}
