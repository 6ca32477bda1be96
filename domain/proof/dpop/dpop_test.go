package dpop_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/domain/proof/dpop"
)

const (
	public = "https://accounts.example.com/v1"
	target = public + "/auth/sessions/renew"
	token  = "the.last.token"
)

var b64 = base64.RawURLEncoding

// bench is a verifier with a memory of used proofs.
type bench struct {
	*dpop.Verifier
	now  time.Time
	seen map[string]time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), seen: map[string]time.Time{}}
	clock := func() time.Time { return b.now }
	b.Verifier = &dpop.Verifier{Ring: keyringtest.Keeper(t, clock).Ring(), PublicURL: public, BasePath: "/v1",
		Origins: []string{"https://app.example.com"}, Now: clock}
	return b
}

// use is a node that uses up a proof.
func (b *bench) use(p dpop.Proof) error {
	writes, err := b.Use(p)
	for _, w := range writes {
		see := w.(device.See)
		if until, known := b.seen[see.ID]; known && until.After(see.At) {
			return errors.Join(b.Used(p), commit.ErrFenced)
		}
		b.seen[see.ID] = see.Until
	}
	return err
}

func ecKey(t testing.TB) *ecdsa.PrivateKey {
	return storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
}

func edKey(t testing.TB) ed25519.PrivateKey {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	storetest.Must(t, err)
	return k
}

func (b *bench) claims() dpop.Claims {
	return dpop.Claims{Method: "POST", Target: target, IssuedAt: b.now.Unix(), TokenHash: dpop.TokenHash(token)}
}

func request(proof string) dpop.Request {
	return dpop.Request{Proof: proof, Method: "POST", Host: "10.0.0.7:8443", Path: "/v1/auth/sessions/renew", Token: token}
}

func signed(t testing.TB, k crypto.Signer, c dpop.Claims) string {
	return storetest.Value(dpop.Sign(k, c))(t)
}

// Proofs of both kinds of keys are accepted, and name their key. Each is for the public URL, an origin, a host that the
// operator has named for forwarded requests, or any host if the address of the service is unknown.
func TestGoodProofs(t *testing.T) {
	b := newBench(t)
	b.Host = func(authority string) bool { return authority == "10.0.0.7:8443" }
	for name, k := range map[string]crypto.Signer{"ES256": ecKey(t), "EdDSA": edKey(t)} {
		key, _ := device.PublicKey(k)
		for _, at := range []string{target, target + "?a=1#b", "https://10.0.0.7:8443/v1/auth/sessions/renew",
			"http://10.0.0.7:8443/v1/auth/sessions/renew", "https://app.example.com/v1/auth/sessions/renew"} {
			c := b.claims()
			c.Target = at
			r := request(signed(t, k, c))
			r.Forwarded, b.AnyHost = name == "ES256", name == "EdDSA"
			p, err := b.Check(r)
			if err != nil || p.Thumbprint != key.Thumbprint() {
				t.Fatalf("%s at %s: %v", name, at, err)
			}
			storetest.Must(t, b.use(p))
		}
	}
}

// The thumbprint is that of RFC 7638, and the proof of RFC 9449 (section 4.1) has the one of its section 6.1.
func TestProofOfTheRFC(t *testing.T) {
	const proof = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZ" +
		"OXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIs" +
		"ImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmV" +
		"yLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4Pt" +
		"FLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg"
	b := newBench(t)
	b.PublicURL, b.BasePath, b.now = "https://server.example.com", "", time.Unix(1562262616, 0)
	p, err := b.Check(dpop.Request{Proof: proof, Method: "POST", Path: "/token"})
	if err != nil || p.Thumbprint != "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" {
		t.Fatalf("%q, %v", p.Thumbprint, err)
	}
	storetest.Must(t, b.use(p))
}

// forged signs any header and claims by hand.
func forged(k *ecdsa.PrivateKey, head, claims map[string]any) string {
	h, _ := json.Marshal(head)
	c, _ := json.Marshal(claims)
	text := b64.EncodeToString(h) + "." + b64.EncodeToString(c)
	sum := sha256.Sum256([]byte(text))
	r, s, _ := ecdsa.Sign(rand.Reader, k, sum[:])
	sig := make([]byte, 64)
	r.FillBytes(sig[:32])
	s.FillBytes(sig[32:])
	return text + "." + b64.EncodeToString(sig)
}

// A target is compared by what it means, not by how it is spelled (RFC 9449, section 4.3). The header Host is the
// choice of the caller, so it names nothing, not even if it is the host of a guard route.
func TestTargets(t *testing.T) {
	b := newBench(t)
	b.Host = func(string) bool { return true }
	k := ecKey(t)
	for _, c := range []struct {
		path, target string
		right        bool
	}{
		{"/v1/a", "https://accounts.example.com/v1/a", true}, {"/v1/a", "HTTPS://Accounts.Example.COM:443/v1/a", true},
		{"/v1/a", "https://accounts.example.com:/v1/a", true},
		{"/v1/a", "https://accounts.example.com/v1/%61", true},
		{"/v1/a", "https://accounts.example.com/v1/b/../%2e/a?x=/#y", true},
		{"/v1/%7euser/a%2fb%c3%a7", "https://accounts.example.com/v1/~user/a%2Fb%C3%A7", true},
		{"/v1/ç", "https://accounts.example.com/v1/%c3%A7", true},
		{"/v1/a/", "https://accounts.example.com/v1/a/.", true},
		{"/v1//a", "https://accounts.example.com/v1//a", true},
		{"/v1/a%zz", "https://accounts.example.com/v1/a%zz", true},
		{"/v1/a", "https://app.example.com:443/v1/a", true},
		{"/v1/a", "https://10.0.0.7:8443/v1/a", false},
		{"/v1/a", "http://accounts.example.com/v1/a", false},
		{"/v1/a", "http://app.example.com/v1/a", false},
		{"/v1/a", "https://accounts.example.com:80/v1/a", false},
		{"/v1/a", "https://accounts.example.com./v1/a", false},
		{"/v1/a", "https://accounts.example.com.evil.example/v1/a", false},
		{"/v1/a", "https://accounts.example.com@evil.example/v1/a", false},
		{"/v1/a", "https://app.example.com/a", false},
		{"/v1/a", "https://accounts.example.com/v1/A", false},
		{"/v1/a", "https://accounts.example.com/v1/a/", false}, {"/v1/a", "https://accounts.example.com/v1//a", false},
		{"/v1/a/b", "https://accounts.example.com/v1/a%2Fb", false},
		{"/v1/a", "https://accounts.example.com/v1/%2561", false},
		{"/v1/a", "//accounts.example.com/v1/a", false}, {"/v1/a", "https:/v1/a", false},
	} {
		claims := b.claims()
		claims.Target = c.target
		r := request(signed(t, k, claims))
		r.Path = c.path
		if _, err := b.Check(r); (err == nil) != c.right {
			t.Errorf("%s at %s: %v", c.target, c.path, err)
		}
	}
}

// Each attack changes one part of a good proof, and gets the same refusal without a nonce.
func TestAttacks(t *testing.T) {
	b := newBench(t)
	k := ecKey(t)
	key, _ := device.PublicKey(k)
	var jwk map[string]any
	storetest.Must(t, json.Unmarshal([]byte(key.JWK()), &jwk))
	goodHead := map[string]any{"typ": "dpop+jwt", "alg": "ES256", "jwk": jwk}
	goodClaims := map[string]any{"htm": "POST", "htu": target, "iat": b.now.Unix(), "jti": "j1",
		"ath": dpop.TokenHash(token)}
	if _, err := b.Check(request(forged(k, goodHead, goodClaims))); err != nil {
		t.Fatalf("the forge is broken: %v", err)
	}
	with := func(m map[string]any, name string, value any) map[string]any {
		m = maps.Clone(m)
		if m[name] = value; value == nil {
			delete(m, name)
		}
		return m
	}
	head := func(name string, value any) string { return forged(k, with(goodHead, name, value), goodClaims) }
	claim := func(name string, value any) string { return forged(k, goodHead, with(goodClaims, name, value)) }
	secret := storetest.Value(k.Bytes())(t)
	private := with(jwk, "d", b64.EncodeToString(secret))
	other, _ := device.PublicKey(ecKey(t))
	rsaKey := storetest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
	good := forged(k, goodHead, goodClaims)
	parts := strings.Split(good, ".")
	hs := func(secret []byte) string {
		h, _ := json.Marshal(with(goodHead, "alg", "HS256"))
		text := b64.EncodeToString(h) + "." + parts[1]
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(text))
		return text + "." + b64.EncodeToString(mac.Sum(nil))
	}
	zero := b64.EncodeToString(make([]byte, 32))
	attacks := map[string]string{
		"none sent":             "",
		"typ of devices":        head("typ", "device-signature+jwt"),
		"typ JWT":               head("typ", "JWT"),
		"no typ":                head("typ", nil),
		"alg none":              head("alg", "none"),
		"alg none, no sig":      strings.Join(strings.Split(head("alg", "none"), ".")[:2], ".") + ".",
		"alg HS256":             hs([]byte(key.JWK())),
		"alg of another key":    head("alg", "EdDSA"),
		"alg RS256":             head("alg", "RS256"),
		"alg lower case":        head("alg", "es256"),
		"no alg":                head("alg", nil),
		"jwk with private part": head("jwk", private),
		"jwk of another key":    head("jwk", json.RawMessage(other.JWK())),
		"jwk symmetric":         head("jwk", map[string]any{"kty": "oct", "k": "AAAA"}),
		"jwk RSA": head("jwk", map[string]any{"kty": "RSA", "e": "AQAB",
			"n": b64.EncodeToString(rsaKey.N.Bytes())}),
		"jwk off the curve":   head("jwk", with(jwk, "y", jwk["x"])),
		"jwk at zero":         head("jwk", with(with(jwk, "x", zero), "y", zero)),
		"no jwk":              head("jwk", nil),
		"jwk as text":         head("jwk", key.JWK()),
		"kid instead":         forged(k, with(with(goodHead, "jwk", nil), "kid", key.Thumbprint()), goodClaims),
		"crit":                head("crit", []string{"b64"}),
		"htm":                 claim("htm", "GET"),
		"htm lower case":      claim("htm", "post"),
		"no htm":              claim("htm", nil),
		"htu of another":      claim("htu", public+"/auth/login"),
		"htu of another host": claim("htu", "https://evil.example/v1/auth/sessions/renew"),
		"htu below":           claim("htu", target+"/x"),
		"htu path only":       claim("htu", "/v1/auth/sessions/renew"),
		"htu with user":       claim("htu", "https://a@accounts.example.com/v1/auth/sessions/renew"),
		"htu another scheme":  claim("htu", "ftp://10.0.0.7:8443/v1/auth/sessions/renew"),
		"htu as list":         claim("htu", []string{target}),
		"no htu":              claim("htu", nil),
		"ath of another":      claim("ath", dpop.TokenHash("another.token")),
		"ath empty":           claim("ath", ""),
		"no ath":              claim("ath", nil),
		"no jti":              claim("jti", nil),
		"jti empty":           claim("jti", ""),
		"jti too long":        claim("jti", strings.Repeat("a", 257)),
		"jti a number":        claim("jti", 1),
		"no iat":              claim("iat", nil),
		"iat a text":          claim("iat", fmt.Sprint(b.now.Unix())),
		"nonce a number":      claim("nonce", 1),
		"signature cut":       good[:len(good)-4],
		"signature of DER":    parts[0] + "." + parts[1] + "." + b64.EncodeToString([]byte("0E")),
		"claims changed":      parts[0] + "." + b64.EncodeToString([]byte(`{"htm":"POST"}`)) + "." + parts[2],
		"four parts":          good + ".",
		"padding":             good + "=",
		"spaces":              " " + good,
		"too long":            claim("x", strings.Repeat("a", 5000)),
	}
	for name, proof := range attacks {
		_, err := b.Check(request(proof))
		var f *fault.Error
		if !errors.As(err, &f) || f.Nonce != "" || err.Error() != dpop.Refused().Error() {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, r := range map[string]dpop.Request{
		"another token": {Proof: good, Method: "POST", Path: "/v1/auth/sessions/renew", Token: "another.token"},
		"no token":      {Proof: good, Method: "POST", Path: "/v1/auth/sessions/renew"},
		"another path":  {Proof: good, Method: "POST", Path: "/v1/auth/login", Token: token},
		"no base path":  {Proof: claim("htu", "https:///x"), Method: "POST", Path: "/x", Token: token},
	} {
		if _, err := b.Check(r); fault.CodeOf(err) != fault.DPoPInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A proof is fresh up to five minutes on both sides of the clock. Its jti and its nonce belong to its key, and a replay
// gets no nonce. The rest is the rule of device.Fresh.
func TestFreshness(t *testing.T) {
	b := newBench(t)
	k, other := ecKey(t), edKey(t)
	use := func(k crypto.Signer, c dpop.Claims) (nonce string, ok bool) {
		t.Helper()
		p, err := b.Check(request(signed(t, k, c)))
		storetest.Must(t, err)
		var f *fault.Error
		if err = b.use(p); errors.As(err, &f) {
			return f.Nonce, false
		}
		return "", err == nil
	}
	for skew, want := range map[int64]bool{-301: false, -300: true, 300: true, 301: false} {
		c := b.claims()
		c.IssuedAt += skew
		if nonce, ok := use(k, c); ok != want || (nonce == "") != want {
			t.Errorf("%d s: %t, nonce %q", skew, ok, nonce)
		}
	}
	c := b.claims()
	c.ID = "once"
	for i, k := range []crypto.Signer{k, k, other} {
		if nonce, ok := use(k, c); ok != (i != 1) || nonce != "" {
			t.Errorf("%d: %t, nonce %q", i, ok, nonce)
		}
	}
	c.IssuedAt, c.ID = 1, ""
	c.Nonce, _ = use(k, c)
	for i, k := range []crypto.Signer{other, k, k} {
		if nonce, ok := use(k, c); ok != (i == 1) || (nonce == "") != ok || nonce == c.Nonce {
			t.Errorf("by nonce, %d: %t, nonce %q", i, ok, nonce)
		}
	}
}

// No text is accepted that the key did not sign, and none makes the reader panic.
func FuzzProof(f *testing.F) {
	k := ecKey(f)
	b := &bench{now: time.Unix(1_780_000_000, 0)}
	b.Verifier = &dpop.Verifier{PublicURL: public, BasePath: "/v1"}
	good := signed(f, k, dpop.Claims{Method: "POST", Target: target, IssuedAt: 1, ID: "a",
		TokenHash: dpop.TokenHash(token)})
	f.Add(good)
	f.Add(signed(f, edKey(f), dpop.Claims{Method: "POST", Target: target, IssuedAt: 1}))
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, raw string) {
		p, err := b.Check(request(raw))
		if key, _ := device.PublicKey(k); err == nil && p.Thumbprint == key.Thumbprint() && raw != good {
			t.Errorf("accepted: %s", raw)
		}
	})
}
