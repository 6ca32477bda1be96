package device_test

import (
	"cmp"
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/account/user/usertest"
	"castellan/domain/factor/challenge"
	"castellan/domain/factor/challenge/challengetest"
	"castellan/domain/factor/passkey"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/device/devicetest"
	"castellan/persistence"
	"castellan/persistence/account"
	"castellan/persistence/persistencetest"
	proofstore "castellan/persistence/proof"
)

const audience = "https://id.example.com"

// desk is the service over a real database with a manual clock.
type desk struct {
	*device.Service
	t   *testing.T
	db  *persistence.DB
	now atomic.Int64 // ms
	// by is the passkey that completes the challenges of an account with one; "" for one that is gone. recovered replaces
	// it by a recovery code, and without by an SMS.
	by                 string
	recovered, without bool
	settling           bool // whether no passkey had settled when they started
}

func onBoth(t *testing.T, test func(t *testing.T, d *desk)) {
	t.Helper()
	persistencetest.Both(t, func(t *testing.T, db *persistence.DB) { test(t, newDesk(t, db)) })
}

// newDesk returns the service over a database, with two accounts.
func newDesk(t *testing.T, db *persistence.DB) *desk {
	t.Helper()
	d := &desk{t: t, db: db}
	d.now.Store(1_700_000_000_000)
	d.Service = &device.Service{Store: proofstore.NewDevices(db), Users: account.NewUsers(db), Commit: db,
		Ring:     keyringtest.Ring(t, time.Now),
		Audience: audience, Now: func() time.Time { return time.UnixMilli(d.now.Load()) },
		Log: slog.New(slog.DiscardHandler)}
	d.Service.Notices = challengetest.Notices{Now: d.Service.Now}
	storetest.Must(t, db.Commit(t.Context(), usertest.Sample(1), usertest.Sample(2)))
	return d
}

// run executes an action like an owner of its challenge.
func (d *desk) run(a challenge.Action, n int, command any) (r challenge.Result, err error) {
	d.t.Helper()
	u, err := d.Users.Get(d.t.Context(), usertest.Sample(n).ID)
	storetest.Must(d.t, err)
	text, err := json.Marshal(command)
	storetest.Must(d.t, err)
	x := challenge.Execution{Challenge: challenge.Challenge{UserID: u.ID, Body: challenge.Body{CV: u.CV,
		Recovered: d.recovered, Settling: d.settling,
	}}, Command: text, Now: d.Now()}
	if !d.without {
		x.Challenge.Methods = []challenge.Method{{Name: challenge.PUSH, Order: 1,
			Proof: &challenge.Proof{DeviceID: cmp.Or(d.by, "gone"), JWS: passkey.Text}}}
	}
	err = d.db.InTx(d.t.Context(), func(ctx context.Context) error { r, err = a.Exec(ctx, x); return err })
	return r, err
}

// phone is a device of an account.
type phone struct {
	crypto.Signer
	key device.Key
	id  string
}

func (d *desk) enroll(n int, alg string) phone {
	d.t.Helper()
	s, k := devicetest.Signer(d.t, alg)
	r, err := d.run(d.AddAction(), n, device.Registration{Key: k, Brand: "Acme", Model: "One", Platform: "ios",
		Target: `{"type":"webhook","url":"https://a.example/secret"}`})
	storetest.Must(d.t, err)
	var data struct{ DeviceID string }
	storetest.Must(d.t, json.Unmarshal(r.Data, &data))
	return phone{s, k, data.DeviceID}
}

// sign creates a proof; edit may change its claims first.
func (d *desk) sign(p phone, c device.Claims, edit ...func(*device.Claims)) string {
	d.t.Helper()
	c.Audience = audience
	if c.Issuer == "" {
		c.Issuer = p.id
	}
	c.IssuedAt = d.now.Load() / 1000
	for _, e := range edit {
		e(&c)
	}
	return storetest.Value(device.Sign(p.Signer, c))(d.t)
}

func expect(t *testing.T, what string, err error, code fault.Code, nonce bool) string {
	t.Helper()
	var f *fault.Error
	errors.As(err, &f)
	if fault.CodeOf(err) != code || f != nil && (f.Nonce != "") != nonce {
		t.Errorf("%s: got %v, want %q, with a nonce: %t", what, err, code, nonce)
	}
	if f == nil {
		return ""
	}
	return f.Nonce
}

var ongoing = device.Request{Method: "GET", Target: "/auth/2fa/challenge/ongoing?deviceId=x",
	BodyHash: sha256.Sum256(nil)}

func of(r device.Request, proof string) device.Request { r.Proof = proof; return r }

func claimsOf(r device.Request) device.Claims {
	return device.Claims{Method: r.Method, Target: r.Target}
}

// D-AUTH-06, SEC-17: a proof is checked to the last claim, and every fault except age gives the same refusal.
func TestPresent(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	for _, alg := range []string{device.ES256, device.EdDSA} {
		p, other := d.enroll(1, alg), d.enroll(2, alg)
		c := claimsOf(ongoing)
		got, err := d.Present(t.Context(), of(ongoing, d.sign(p, c)))
		if err != nil || got.ID != p.id || got.UserID != usertest.Sample(1).ID {
			t.Fatalf("%s: %+v, %v", alg, got, err)
		}
		if stored, err := d.Store.Get(t.Context(), p.id); err != nil || !stored.LastUsedAt.Equal(d.Now()) {
			t.Errorf("last used: %v, %v", stored.LastUsedAt, err)
		}
		foreign := p
		foreign.Signer = other.Signer
		for name, proof := range map[string]string{
			"another audience":     d.sign(p, c, func(c *device.Claims) { c.Audience += "/" }),
			"another method":       d.sign(p, c, func(c *device.Claims) { c.Method = "POST" }),
			"another path":         d.sign(p, c, func(c *device.Claims) { c.Target = "/auth/2fa/challenge/result?deviceId=x" }),
			"another query":        d.sign(p, c, func(c *device.Claims) { c.Target += "&x=1" }),
			"a body":               d.sign(p, c, func(c *device.Claims) { c.BodyHash = device.HashBody([]byte("{}")) }),
			"another's key":        d.sign(foreign, c),
			"an unknown device":    d.sign(p, c, func(c *device.Claims) { c.Issuer = "01UNKNOWN" }),
			"nonsense":             "nonsense",
			"stale, wrong path":    d.sign(p, c, func(c *device.Claims) { c.Target, c.IssuedAt = "/x", 1 }),
			"stale, another's key": d.sign(foreign, c, func(c *device.Claims) { c.IssuedAt = 1 }),
			"stale and unknown":    d.sign(p, c, func(c *device.Claims) { c.Issuer, c.IssuedAt = "01UNKNOWN", 1 }),
		} {
			_, err := d.Present(t.Context(), of(ongoing, proof))
			expect(t, alg+" "+name, err, fault.DeviceSignatureInvalid, false)
		}
		expect(t, "none", func() error { _, err := d.Present(t.Context(), ongoing); return err }(),
			fault.DeviceSignatureRequired, false)
		// Without a body, no hash is right.
		_, err = d.Present(t.Context(), of(ongoing, d.sign(p, c,
			func(c *device.Claims) { c.BodyHash = base64.RawURLEncoding.EncodeToString(ongoing.BodyHash[:]) })))
		expect(t, "hash of nothing", err, "", false)
	}
}

// The key determines the algorithm, whatever the header says; a signature is not valid in another encoding.
func TestAlgorithmConfusion(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	ec, ed := d.enroll(1, device.ES256), d.enroll(1, device.EdDSA)
	for _, p := range []phone{ec, ed} {
		for _, alg := range []string{"none", "HS256", "ES384", "RS256", "es256", device.ES256, device.EdDSA, ""} {
			if alg == p.key.Alg() {
				continue
			}
			parts := strings.Split(d.sign(p, claimsOf(ongoing)), ".")
			head, err := json.Marshal(map[string]string{"alg": alg, "typ": "device-signature+jwt", "kid": p.id})
			storetest.Must(t, err)
			parts[0] = base64.RawURLEncoding.EncodeToString(head)
			for _, sig := range []string{parts[2], "", base64.RawURLEncoding.EncodeToString(make([]byte, 64))} {
				_, err = d.Present(t.Context(), of(ongoing, parts[0]+"."+parts[1]+"."+sig))
				expect(t, p.key.Alg()+" as "+alg, err, fault.DeviceSignatureInvalid, false)
			}
		}
	}
}

// Freshness has exact bounds: 300 s either way, 600 s for a jti, and a nonce instead of a clock, once.
func TestFreshness(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	p, other := d.enroll(1, device.ES256), d.enroll(2, device.ES256)
	c := claimsOf(ongoing)
	present := func(p phone, edit ...func(*device.Claims)) error {
		_, err := d.Present(t.Context(), of(ongoing, d.sign(p, c, edit...)))
		return err
	}
	at := func(skew int64) func(*device.Claims) {
		return func(c *device.Claims) { c.IssuedAt = d.now.Load()/1000 + skew }
	}
	late := d.now.Load()/1000 + 300
	fast := func(c *device.Claims) { c.ID, c.IssuedAt = "of a fast clock", late }
	expect(t, "a fast clock", present(p, fast), "", false)
	d.now.Add(600_000)
	expect(t, "a fast clock, as old as may be", present(p, fast), fault.DeviceSignatureInvalid, false)
	for _, skew := range []int64{-301, 301, -100_000} {
		expect(t, "stale", present(p, at(skew)), fault.DeviceSignatureInvalid, true)
	}
	for _, skew := range []int64{-300, 300, 0} {
		expect(t, "fresh", present(p, at(skew)), "", false)
	}

	same := func(c *device.Claims) { c.ID = "the-same" }
	expect(t, "first", present(p, same), "", false)
	expect(t, "replay", present(p, same), fault.DeviceSignatureInvalid, false)
	expect(t, "another device's", present(other, same), "", false)
	d.now.Add(599_999)
	expect(t, "replay, 1 ms before", present(p, same), fault.DeviceSignatureInvalid, false)
	d.now.Add(1)
	expect(t, "after 600 s", present(p, same), "", false)

	nonce := expect(t, "stale", present(p, at(-9999)), fault.DeviceSignatureInvalid, true)
	with := func(n string) func(*device.Claims) {
		return func(c *device.Claims) { c.Nonce, c.IssuedAt = n, 1 }
	}
	expect(t, "another's nonce", present(other, with(nonce)), fault.DeviceSignatureInvalid, true)
	expect(t, "a nonce cut short", present(p, with(nonce[:len(nonce)-1])), fault.DeviceSignatureInvalid, true)
	expect(t, "an invented nonce", present(p, with(strings.Repeat("A", len(nonce)))), fault.DeviceSignatureInvalid, true)
	expect(t, "the nonce", present(p, with(nonce)), "", false)
	expect(t, "the nonce again", present(p, with(nonce)), fault.DeviceSignatureInvalid, true)
	nonce = expect(t, "stale", present(p, at(400)), fault.DeviceSignatureInvalid, true)
	second := expect(t, "stale", present(p, at(400)), fault.DeviceSignatureInvalid, true)
	d.now.Add(299_999)
	expect(t, "1 ms before its end", present(p, with(nonce)), "", false)
	d.now.Add(1)
	expect(t, "at its end", present(p, with(second)), fault.DeviceSignatureInvalid, true)
}

// When one proof is presented concurrently, one call succeeds (SEC-15).
func TestReplayUnderRace(t *testing.T) {
	onBoth(t, func(t *testing.T, d *desk) {
		p := d.enroll(1, device.EdDSA)
		proof := d.sign(p, claimsOf(ongoing))
		storetest.OneWins(t, 50, fault.DeviceSignatureInvalid, func(int) error {
			return storetest.Err(d.Present(t.Context(), of(ongoing, proof)))
		})
	})
}

// An answer binds device, challenge, method and decision. Its clock does not matter, and the signature of a removed
// device is refused.
func TestAnswered(t *testing.T) {
	d := newDesk(t, persistencetest.SQLite(t))
	p, q := d.enroll(1, device.ES256), d.enroll(1, device.EdDSA)
	body := []byte(`{"value":"APPROVED"}`)
	r := device.Request{Method: "POST", Target: "/auth/2fa/challenge/complete", HasBody: true,
		BodyHash: sha256.Sum256(body)}
	a := device.Answer{DeviceID: p.id, ChallengeID: "c1", MethodID: "m1", Value: "APPROVED", Decides: true}
	c := device.Claims{Method: r.Method, Target: r.Target, BodyHash: device.HashBody(body), Challenge: "c1",
		MethodID: "m1", Value: "APPROVED"}
	answered := func(edit func(*device.Answer, *device.Claims, *device.Request)) error {
		a, c, r := a, c, r
		if edit != nil {
			edit(&a, &c, &r)
		}
		proof := d.sign(p, c, func(out *device.Claims) { out.IssuedAt = 7 })
		_, _, err := d.Answered(t.Context(), of(r, proof), a)
		return err
	}
	for range 2 { // nothing is used up
		expect(t, "right", answered(nil), "", false)
	}
	for name, edit := range map[string]func(*device.Answer, *device.Claims, *device.Request){
		"a flipped decision":    func(a *device.Answer, _ *device.Claims, _ *device.Request) { a.Value = "DENIED" },
		"no decision":           func(_ *device.Answer, c *device.Claims, _ *device.Request) { c.Value = "" },
		"another challenge":     func(a *device.Answer, _ *device.Claims, _ *device.Request) { a.ChallengeID = "c2" },
		"another method":        func(a *device.Answer, _ *device.Claims, _ *device.Request) { a.MethodID = "m2" },
		"another device's name": func(a *device.Answer, _ *device.Claims, _ *device.Request) { a.DeviceID = q.id },
		"no device's name":      func(a *device.Answer, _ *device.Claims, _ *device.Request) { a.DeviceID = "" },
		"no challenge":          func(_ *device.Answer, c *device.Claims, _ *device.Request) { c.Challenge = "" },
		"another body":          func(_ *device.Answer, _ *device.Claims, r *device.Request) { r.BodyHash[0]++ },
		"no hash of the body":   func(_ *device.Answer, c *device.Claims, _ *device.Request) { c.BodyHash = "" },
		"another path":          func(_ *device.Answer, _ *device.Claims, r *device.Request) { r.Target += "/" },
	} {
		expect(t, name, answered(edit), fault.DeviceSignatureInvalid, false)
	}
	code := func(value string) error {
		return answered(func(a *device.Answer, c *device.Claims, _ *device.Request) {
			a.Decides, a.Value, c.Value = false, "123456", value
		})
	}
	expect(t, "a code, not repeated", code(""), "", false)
	expect(t, "a code, repeated", code("123456"), "", false)
	expect(t, "another code", code("123457"), fault.DeviceSignatureInvalid, false)

	removal, err := d.Removable(t.Context(), usertest.Sample(1).ID, p.id)
	storetest.Must(t, err)
	_, err = d.run(d.RemoveAction(), 1, removal)
	storetest.Must(t, err)
	expect(t, "a removed device", answered(nil), fault.DeviceSignatureInvalid, false)
	_, _, err = d.Answered(t.Context(), of(r, "nonsense"), device.Answer{})
	expect(t, "an empty answer", err, fault.DeviceSignatureInvalid, false)
	_, _, err = d.Answered(t.Context(), r, device.Answer{})
	expect(t, "no proof", err, fault.DeviceSignatureRequired, false)

	d.Store = silent{d.Store}
	storetest.Is(t, answered(nil), errSilent, "answered without a store")
	if _, err := d.Present(t.Context(), of(ongoing, d.sign(p, claimsOf(ongoing)))); !errors.Is(err, errSilent) {
		t.Errorf("presented without a store: %v", err)
	}
}

var errSilent = errors.New("silent")

// silent is a store of devices that cannot be read.
type silent struct{ device.Store }

func (silent) Get(context.Context, string) (device.Device, error) { return device.Device{}, errSilent }

func (silent) List(context.Context, string) ([]device.Device, error) { return nil, errSilent }
