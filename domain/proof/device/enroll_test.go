package device_test

import (
	"castellan/persistence/persistencetest"
	"crypto/sha256"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/persistence/delivery"
)

// Adding and removing a device changes the account, or is refused.
func TestAddAndRemove(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	me := usertest.Sample(1).ID
	account := func() user.User {
		u, err := d.Users.Get(t.Context(), me)
		storetest.Must(t, err)
		return u
	}
	p := d.enroll(1, device.ES256)
	if u := account(); !u.Push || u.CV != 2 {
		t.Errorf("%+v", u)
	}
	_, err := d.run(d.AddAction(), 1, device.Registration{Key: p.key, Brand: "again"})
	expect(t, "the same key", err, fault.RecordAlreadyExist, false)
	if w, err := d.Wakes(t.Context(), me); err != nil || len(w) != 1 ||
		w[0] != (device.Wake{DeviceID: p.id, Target: `{"type":"webhook","url":"https://a.example/secret"}`}) {
		t.Errorf("wakes %+v, %v", w, err)
	}
	if stored, err := d.Store.Get(t.Context(), p.id); err != nil || strings.Contains(string(stored.Target), "secret") {
		t.Errorf("the target is not sealed: %q, %v", stored.Target, err)
	}
	for range 9 {
		d.enroll(1, device.EdDSA)
	}
	_, k := devicetest.Signer(t, device.EdDSA)
	_, err = d.run(d.AddAction(), 1, device.Registration{Key: k})
	expect(t, "one too many", err, fault.RecordLimitReached, false)
	if _, err := d.Removable(t.Context(), usertest.Sample(2).ID, p.id); fault.CodeOf(err) != fault.RecordNotFound {
		t.Errorf("another's device: %v", err)
	}
	ds, err := d.Store.List(t.Context(), me)
	storetest.Must(t, err)
	for i, one := range ds {
		_, err := d.run(d.RemoveAction(), 1, device.Removal{DeviceID: one.ID})
		storetest.Must(t, err)
		if u := account(); u.Push != (i < len(ds)-1) || u.CV != int64(2+len(ds)+i) {
			t.Errorf("after %d removals: %+v", i+1, u)
		}
	}
	_, err = d.run(d.RemoveAction(), 1, device.Removal{DeviceID: p.id})
	expect(t, "a removed device", err, fault.RecordNotFound, false)
	told := map[string]int{}
	for _, n := range challengetest.Committed(t, delivery.NewOutbox(d.db)) {
		told[n]++
	}
	mail := usertest.Sample(1).Email
	if n := 10; len(told) != 2 || told[mail+" device-added "] != n || told[mail+" device-removed "] != n {
		t.Errorf("notified %v", told)
	}
}

// Enrolment proves the possession of the new key, by its thumbprint.
func TestEnrolling(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	me := usertest.Sample(1).ID
	body := []byte(`{"publicKey":{}}`)
	r := device.Request{Method: "POST", Target: "/auth/devices", HasBody: true, BodyHash: sha256.Sum256(body)}
	s, k := devicetest.Signer(t, device.ES256)
	other, _ := devicetest.Signer(t, device.ES256)
	p := phone{Signer: s, key: k, id: k.Thumbprint()}
	c := device.Claims{Method: r.Method, Target: r.Target, BodyHash: device.HashBody(body)}
	register := func(p phone, edit ...func(*device.Claims)) error {
		_, err := d.Register(t.Context(), me, of(r, d.sign(p, c, edit...)),
			device.Registration{Key: k, Brand: "b", Model: "m"})
		return err
	}
	expect(t, "another key", register(phone{Signer: other, id: p.id}), fault.DeviceSignatureInvalid, false)
	expect(t, "another name", register(phone{Signer: s, id: "x"}), fault.DeviceSignatureInvalid, false)
	expect(t, "another body", register(p, func(c *device.Claims) { c.BodyHash = "x" }), fault.DeviceSignatureInvalid,
		false)
	nonce := expect(t, "stale", register(p, func(c *device.Claims) { c.IssuedAt = 1 }), fault.DeviceSignatureInvalid,
		true)
	expect(t, "with the nonce", register(p, func(c *device.Claims) { c.IssuedAt, c.Nonce = 1, nonce }), "", false)
	same := func(c *device.Claims) { c.ID = "the-same" }
	expect(t, "right", register(p, same), "", false)
	expect(t, "replayed", register(p, same), fault.DeviceSignatureInvalid, false)
	_, err := d.Register(t.Context(), me, r, device.Registration{Key: k})
	expect(t, "none", err, fault.DeviceSignatureRequired, false)
	_, err = d.Register(t.Context(), me, r, device.Registration{Key: k, Brand: "a\nb"})
	expect(t, "a control character", err, fault.InvalidField, false)
	_, err = d.Register(t.Context(), me, r, device.Registration{Key: k, Model: strings.Repeat("ş", 129)})
	expect(t, "a long text", err, fault.InvalidField, false)
}
