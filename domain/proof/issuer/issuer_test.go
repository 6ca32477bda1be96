package issuer

import (
	"context"
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
	"maps"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
)

const (
	home  = "https://id.example/realms/shop"
	other = "https://other.example"
)

var (
	start     = time.Unix(1_800_000_000, 0).UTC()
	issuerOne = Issuer{Issuer: home, JWKSURL: home + "/certs", Audience: "castellan"}
	issuerTwo = Issuer{Issuer: other, JWKSURL: other + "/certs", Audience: "castellan", SubjectClaim: "uid"}
)

// signers are the keys of a test by kid.
type signers map[string]crypto.Signer

func newSigners(t *testing.T) signers {
	t.Helper()
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	storetest.Must(t, err)
	ec := storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	long := storetest.Value(rsa.GenerateKey(rand.Reader, 2048))(t)
	return signers{"ed": ed, "ec": ec, "rsa": long}
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// jwk returns the members of a public key.
func jwk(t *testing.T, kid string, k crypto.Signer) map[string]any {
	t.Helper()
	out := map[string]any{"kid": kid, "use": "sig"}
	if r, is := k.Public().(*rsa.PublicKey); is {
		out["kty"], out["alg"], out["n"], out["e"] = "RSA", "RS256", b64(r.N.Bytes()), "AQAB"
		return out
	}
	public, ok := device.PublicKey(k)
	if !ok {
		t.Fatal("no key")
	}
	storetest.Must(t, json.Unmarshal([]byte(public.JWK()), &out))
	return out
}

func set(t *testing.T, all signers) []byte {
	t.Helper()
	list := []any{}
	for kid, k := range all {
		list = append(list, jwk(t, kid, k))
	}
	return storetest.Value(json.Marshal(map[string]any{"keys": list}))(t)
}

func signature(t *testing.T, k crypto.Signer, signed string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(signed))
	switch k := k.(type) {
	case zeroes:
		return make([]byte, 64)
	case ed25519.PrivateKey:
		return ed25519.Sign(k, []byte(signed))
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, k, sum[:])
		storetest.Must(t, err)
		out := make([]byte, 64)
		r.FillBytes(out[:32])
		s.FillBytes(out[32:])
		return out
	}
	return storetest.Value(k.Sign(rand.Reader, sum[:], crypto.SHA256))(t)
}

// sign makes a token.
func sign(t *testing.T, k crypto.Signer, head, claims map[string]any) string {
	t.Helper()
	h := storetest.Value(json.Marshal(head))(t)
	c := storetest.Value(json.Marshal(claims))(t)
	signed := b64(h) + "." + b64(c)
	return signed + "." + b64(signature(t, k, signed))
}

func header(kid string) map[string]any {
	return map[string]any{"typ": "JWT", "kid": kid, "alg": map[string]string{"ed": "EdDSA", "ec": "ES256"}[kid]}
}

func claims() map[string]any {
	return map[string]any{"iss": home, "sub": "f:1:jane", "aud": "castellan", "exp": start.Add(time.Minute).Unix(),
		"iat": start.Unix(), "sid": "s1"}
}

func with(m map[string]any, changes map[string]any) map[string]any {
	m = maps.Clone(m)
	for name, value := range changes {
		if m[name] = value; value == nil {
			delete(m, name)
		}
	}
	return m
}

// Genuine tokens of each algorithm are accepted, and their sessions are told apart.
func TestTokens(t *testing.T) {
	all := newSigners(t)
	now := start
	published := func(context.Context, string) ([]byte, error) { return set(t, all), nil }
	v := NewVerifier([]Issuer{issuerOne, issuerTwo}, published, func() time.Time { return now })
	head := func(kid string) map[string]any {
		h := header(kid)
		if kid == "rsa" {
			h["alg"] = "RS256"
		}
		return h
	}
	var first Identity
	for kid, k := range all {
		for _, typ := range []any{"JWT", "at+jwt", "application/at+jwt", nil} {
			raw := sign(t, k, with(head(kid), map[string]any{"typ": typ}), claims())
			got, err := v.Verify(t.Context(), raw)
			if err != nil || got.Subject != "f:1:jane" || got.Issuer != home || !got.ExpiresAt.Equal(start.Add(time.Minute)) {
				t.Errorf("%s %v: %+v, %v", kid, typ, got, err)
			}
			if !v.Names(raw) {
				t.Errorf("%s: the issuer is not named", kid)
			}
			first = got
		}
	}
	for name, c := range map[string]map[string]any{"list": {"aud": []string{"account", "castellan"}},
		"fraction": {"exp": 1_800_000_060.5},
		"clock":    {"iat": start.Add(Skew).Unix(), "nbf": start.Add(Skew).Unix()}} {
		if got, err := v.Verify(t.Context(), sign(t, all["ed"], head("ed"), with(claims(), c))); err != nil ||
			got.Session != first.Session {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	sessions := map[string]string{first.Session: "s1"}
	for name, c := range map[string]map[string]any{"another session": {"sid": "s2"}, "none": {"sid": nil},
		"another subject": {"sub": "f:1:kurt"}, "another issuer": {"iss": other, "uid": "f:1:jane"}} {
		got, err := v.Verify(t.Context(), sign(t, all["ec"], head("ec"), with(claims(), c)))
		if err != nil || sessions[got.Session] != "" || !strings.HasPrefix(got.Session, "foreign.") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		sessions[got.Session] = name
	}
	now = start.Add(time.Minute)
	_, err := v.Verify(t.Context(), sign(t, all["ed"], head("ed"), claims()))
	storetest.Wants(t, err, fault.TokenExpired)
	now = now.Add(-time.Millisecond)
	_, err = v.Verify(t.Context(), sign(t, all["ed"], head("ed"), claims()))
	storetest.Must(t, err)
}

// Nothing that an attacker can write is accepted.
func TestAttacks(t *testing.T) {
	all, foreign := newSigners(t), newSigners(t)
	short := shortKey(t)
	encrypting := newSigners(t)["rsa"]
	list := []any{jwk(t, "ed", all["ed"]), jwk(t, "ec", all["ec"]), jwk(t, "rsa", all["rsa"]),
		with(jwk(t, "enc", encrypting), map[string]any{"use": "enc"}),
		with(jwk(t, "pss", encrypting), map[string]any{"alg": "PS256"}),
		with(jwk(t, "open", encrypting), map[string]any{"d": "AQAB"}), jwk(t, "short", short),
		jwk(t, "twice", foreign["rsa"]), jwk(t, "twice", foreign["ec"]),
		map[string]any{"kid": "oct", "kty": "oct", "k": b64([]byte("secret")), "alg": "HS256"}, "nonsense",
		map[string]any{"kid": "point", "kty": "OKP", "crv": "Ed25519", "x": b64(make([]byte, 32))}}
	body := storetest.Value(json.Marshal(map[string]any{"keys": list}))(t)
	theirs := set(t, signers{"foreign": foreign["ed"]})
	v := NewVerifier([]Issuer{issuerOne, issuerTwo}, func(_ context.Context, url string) ([]byte, error) {
		if url == issuerTwo.JWKSURL {
			return theirs, nil
		}
		return body, nil
	}, func() time.Time { return start })

	rsaHead := map[string]any{"typ": "JWT", "kid": "rsa", "alg": "RS256"}
	ed := func(h, c map[string]any) string { return sign(t, all["ed"], with(header("ed"), h), with(claims(), c)) }
	if _, err := v.Verify(t.Context(), ed(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), sign(t, all["rsa"], rsaHead, claims())); err != nil {
		t.Fatal(err)
	}
	none := func(alg string) string {
		head, _ := json.Marshal(with(header("ed"), map[string]any{"alg": alg}))
		body, _ := json.Marshal(claims())
		return b64(head) + "." + b64(body) + "."
	}
	mac := func(kid string, secret []byte) string {
		head, _ := json.Marshal(map[string]any{"typ": "JWT", "kid": kid, "alg": "HS256"})
		body, _ := json.Marshal(claims())
		h := hmac.New(sha256.New, secret)
		h.Write([]byte(b64(head) + "." + b64(body)))
		return b64(head) + "." + b64(body) + "." + b64(h.Sum(nil))
	}
	raw := func(k crypto.Signer, head, claims string) string {
		signed := b64([]byte(head)) + "." + b64([]byte(claims))
		return signed + "." + b64(signature(t, k, signed))
	}
	good := ed(nil, nil)
	text, _ := json.Marshal(claims())
	modulus := all["rsa"].Public().(*rsa.PublicKey).N.Bytes()
	for name, token := range map[string]string{
		"nothing":      "",
		"no parts":     "x",
		"four parts":   good + ".x",
		"no signature": strings.Join(strings.Split(good, ".")[:2], ".") + ".",
		"alg none":     none("none"), "alg NONE": none("None"), "no alg": none(""),
		"alg none, signed":     ed(map[string]any{"alg": "none"}, nil),
		"HS256 by the modulus": mac("rsa", modulus),
		"HS256 by the JWK set": mac("rsa", body),
		"HS256 by its key":     mac("oct", []byte("secret")),
		"HS256 by x":           mac("ed", all["ed"].Public().(ed25519.PublicKey)),
		"RS512":                sign(t, all["rsa"], with(rsaHead, map[string]any{"alg": "RS512"}), claims()),
		"PS256":                sign(t, all["rsa"], with(rsaHead, map[string]any{"alg": "PS256"}), claims()),
		"another alg of the key": sign(t, all["ec"], with(header("ec"), map[string]any{"alg": "EdDSA"}),
			claims()),
		"another key of the issuer": sign(t, all["ed"], header("ec"), claims()),
		"an unknown key":            sign(t, foreign["ed"], header("ed"), claims()),
		"kid of another issuer": sign(t, foreign["ed"], with(header("ed"),
			map[string]any{"kid": "foreign"}), claims()),
		"iss of another issuer": ed(nil, map[string]any{"iss": other, "uid": "u"}),
		"kid unknown":           ed(map[string]any{"kid": "unknown"}, nil),
		"no kid":                ed(map[string]any{"kid": nil}, nil),
		"kid a number":          ed(map[string]any{"kid": 1}, nil), "kid a path": ed(map[string]any{"kid": "../ed"}, nil),
		"RSA of 1024 bits": sign(t, short, with(rsaHead, map[string]any{"kid": "short"}), claims()),
		"for encryption":   sign(t, encrypting, with(rsaHead, map[string]any{"kid": "enc"}), claims()),
		"for PS256":        sign(t, encrypting, with(rsaHead, map[string]any{"kid": "pss"}), claims()),
		"a private JWK":    sign(t, encrypting, with(rsaHead, map[string]any{"kid": "open"}), claims()),
		"kid of two keys":  sign(t, foreign["rsa"], with(rsaHead, map[string]any{"kid": "twice"}), claims()),
		"jwk header": sign(t, foreign["ed"], with(header("ed"), map[string]any{"jwk": jwk(t, "ed", foreign["ed"])}),
			claims()),
		"jwk header of a good token": ed(map[string]any{"jwk": jwk(t, "ed", all["ed"])}, nil),
		"jku":                        ed(map[string]any{"jku": "https://evil.example"}, nil),
		"x5u":                        ed(map[string]any{"x5u": "https://evil.example"}, nil),
		"x5c":                        ed(map[string]any{"x5c": []string{"x"}}, nil),
		"crit":                       ed(map[string]any{"crit": []string{"exp"}}, nil),
		"b64":                        ed(map[string]any{"b64": false}, nil),
		"typ":                        ed(map[string]any{"typ": "logout+jwt"}, nil),
		"typ a number":               ed(map[string]any{"typ": 1}, nil),
		"our typ":                    ed(map[string]any{"typ": "x-auth+jwt"}, nil),
		"another audience":           ed(nil, map[string]any{"aud": "account"}),
		"no audience":                ed(nil, map[string]any{"aud": nil}),
		"audience list":              ed(nil, map[string]any{"aud": []string{"account", "castellan2"}}),
		"unknown issuer":             ed(nil, map[string]any{"iss": home + "/"}),
		"no issuer":                  ed(nil, map[string]any{"iss": nil}),
		"issuer list":                ed(nil, map[string]any{"iss": []string{home}}),
		"no sub":                     ed(nil, map[string]any{"sub": nil}),
		"sub empty":                  ed(nil, map[string]any{"sub": ""}), "sub a number": ed(nil, map[string]any{"sub": 1}),
		"sub long":     ed(nil, map[string]any{"sub": strings.Repeat("x", 256)}),
		"sub control":  ed(nil, map[string]any{"sub": "a\x00b"}),
		"sid a number": ed(nil, map[string]any{"sid": 1}),
		"no exp":       ed(nil, map[string]any{"exp": nil}),
		"exp null": raw(all["ed"], `{"alg":"EdDSA","kid":"ed"}`, strings.Replace(string(text),
			`"exp":1800000060`, `"exp":null`, 1)),
		"exp a text":   ed(nil, map[string]any{"exp": "1800000060"}),
		"exp huge":     ed(nil, map[string]any{"exp": 1e18}),
		"exp negative": ed(nil, map[string]any{"exp": -1}),
		"nbf":          ed(nil, map[string]any{"nbf": start.Add(Skew + time.Second).Unix()}),
		"nbf a text":   ed(nil, map[string]any{"nbf": "1"}),
		"iat":          ed(nil, map[string]any{"iat": start.Add(Skew + time.Second).Unix()}),
		"alg twice":    raw(all["ed"], `{"alg":"none","alg":"EdDSA","kid":"ed"}`, string(text)),
		"sub twice": raw(all["ed"], `{"alg":"EdDSA","kid":"ed"}`, strings.Replace(string(text), "{",
			`{"sub":"root",`, 1)),
		"trailing":  raw(all["ed"], `{"alg":"EdDSA","kid":"ed"}`, string(text)+"{}"),
		"no object": raw(all["ed"], `{"alg":"EdDSA","kid":"ed"}`, `["x"]`),
		"ALG":       raw(all["ed"], `{"ALG":"EdDSA","kid":"ed"}`, string(text)),
		"too long":  ed(nil, map[string]any{"x": strings.Repeat("x", MaxLen)}),
		"padding":   strings.Replace(good, ".", "=.", 1), "line break": strings.Replace(good, ".", "\n.", 1),
		"small order": raw(zeroes{}, `{"alg":"EdDSA","kid":"point"}`, string(text)),
	} {
		if got, err := v.Verify(t.Context(), token); fault.CodeOf(err) != fault.Unauthenticated || got != (Identity{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for i := range good {
		for _, c := range []byte{'A', 'z', '.'} {
			changed := good[:i] + string(c) + good[i+1:]
			if got, err := v.Verify(t.Context(), changed); changed != good && err == nil {
				t.Fatalf("byte %d became %c: %+v", i, c, got)
			}
		}
	}
	if (NewVerifier(nil, nil, time.Now)).Names(good) {
		t.Error("an unknown issuer is named")
	}
}

// zeroes signs for the point of small order whose encoding is zero.
type zeroes struct{ crypto.Signer }

// shortKey returns an RSA key that is too short.
func shortKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	return storetest.Value(rsa.GenerateKey(rand.Reader, 1024))(t)
}
