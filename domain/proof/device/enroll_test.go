package device_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"testing"

	"castellan/domain/account/user"
	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/factor/mfa"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/persistence/delivery"
	"castellan/persistence/persistencetest"
)

// Adding and removing a device changes the account, or is refused.
func TestAddAndRemove(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	me := usertest.Sample(1).ID
	account := func() user.User {
		return storetest.Value(d.Users.Get(t.Context(), me))(t)
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
	ds := storetest.Value(d.Store.List(t.Context(), me))(t)
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

const webhook = `{"type":"webhook","url":"https://a.example/secret"}`

// wakes returns the ids of the devices of the first account that are woken.
func (d *desk) wakes() (ids []string) {
	d.t.Helper()
	all := storetest.Value(d.Wakes(d.t.Context(), usertest.Sample(1).ID))(d.t)
	for _, w := range all {
		ids = append(ids, w.DeviceID)
	}
	return ids
}

// Devices whose target is gone are not woken any more; those with another target, and other accounts, still are.
func TestGoneTarget(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	me := usertest.Sample(1).ID
	first, second, foreign := d.enroll(1, device.ES256), d.enroll(1, device.EdDSA), d.enroll(2, device.ES256)
	_, k := devicetest.Signer(t, device.EdDSA)
	r, err := d.run(d.AddAction(), 1, device.Registration{Key: k, Target: strings.Replace(webhook, "secret", "other", 1)})
	storetest.Must(t, err)
	var other struct{ DeviceID string }
	storetest.Must(t, json.Unmarshal(r.Data, &other))
	_, bare := devicetest.Signer(t, device.EdDSA)
	_, err = d.run(d.AddAction(), 1, device.Registration{Key: bare})
	storetest.Must(t, err)
	if got := d.wakes(); len(got) != 3 {
		t.Fatalf("%v", got)
	}
	storetest.Must(t, d.Gone(t.Context(), me, "unknown"))
	if got := d.wakes(); len(got) != 3 {
		t.Errorf("after another target was gone: %v", got)
	}
	storetest.Must(t, d.Gone(t.Context(), me, webhook))
	storetest.Same(t, d.wakes(), []string{other.DeviceID})
	for _, id := range []string{first.id, second.id} {
		if one, err := d.Store.Get(t.Context(), id); err != nil || one.Target != nil || one.Status != device.Active {
			t.Errorf("%+v, %v", one, err)
		}
	}
	if one, err := d.Store.Get(t.Context(), foreign.id); err != nil || one.Target == nil {
		t.Errorf("of another account: %+v, %v", one, err)
	}
}

// The user sees which device and which key a challenge adds, and which device it removes.
func TestActionsAreDescribed(t *testing.T) {
	d := &device.Service{}
	_, k := devicetest.Signer(t, device.ES256)
	describe := func(a challenge.Action, command any) []challenge.Detail {
		text := storetest.Value(json.Marshal(command))(t)
		return a.Describe(text)
	}
	storetest.Same(t, describe(d.AddAction(), device.Registration{Key: k, Brand: "Acme", Model: "One",
		Description: "mine", Platform: "ios", Target: webhook}), []challenge.Detail{
		{Key: mfa.HeaderSubject, Value: "Acme One"}, {Key: mfa.HeaderDescription, Value: "mine"},
		{Key: mfa.HeaderKey, Value: k.Thumbprint()}, {Key: mfa.HeaderPlatform, Value: "ios"},
		{Key: mfa.HeaderTarget, Value: webhook}})
	storetest.Same(t, describe(d.RemoveAction(), device.Removal{DeviceID: "d1", Name: "mine"}), []challenge.Detail{
		{Key: mfa.HeaderSubject, Value: "mine"}, {Key: mfa.HeaderDeviceID, Value: "d1"}})
	for _, a := range []challenge.Action{d.AddAction(), d.RemoveAction()} {
		if got := a.Describe([]byte("{")); got != nil {
			t.Errorf("%s: a damaged command is described: %+v", a.Code, got)
		}
		if r, err := a.Exec(t.Context(), challenge.Execution{Command: []byte("{")}); err == nil || r.Success {
			t.Errorf("%s: a damaged command is executed: %+v", a.Code, r)
		}
	}
	if a := d.AddAction(); a.Code != "DEVICE_ADD" || a.Flow != challenge.FlowSession {
		t.Errorf("%s, %s", a.Code, a.Flow)
	}
	if a := d.RemoveAction(); a.Code != "DEVICE_REMOVE" || a.Flow != challenge.FlowSession {
		t.Errorf("%s, %s", a.Code, a.Flow)
	}
}

// Only keys of the two kinds sign proofs, and a proof is checked with the key that signed it.
func TestKeysOfProofs(t *testing.T) {
	other := storetest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
	if raw, err := device.Sign(other, device.Claims{}); err == nil || raw != "" {
		t.Errorf("signed by RSA: %s", raw)
	}
	s, k := devicetest.Signer(t, device.ES256)
	_, stranger := devicetest.Signer(t, device.ES256)
	raw, err := device.Sign(s, device.Claims{Issuer: "d1", Method: "GET", Target: "/x", Value: "7"})
	storetest.Must(t, err)
	if c, ok := k.Check(raw); !ok || c.Method != "GET" || c.Value != "7" || c.ID == "" || c.IssuedAt == 0 {
		t.Errorf("%+v, %v", c, ok)
	}
	for name, bad := range map[string]string{"no proof": "x", "another signature": raw[:len(raw)-4] + "AAAA"} {
		if _, ok := k.Check(bad); ok {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, ok := stranger.Check(raw); ok {
		t.Error("accepted with another key")
	}
	storetest.Equal(t, device.HashBody(nil), "", "the hash of no body")
	storetest.Equal(t, device.HashBody([]byte("a")), "ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs")
}
