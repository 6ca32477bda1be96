package device

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"castellan/domain/kit/jose"
	"castellan/domain/kit/storetest"
)

// The vector of D-AUTH-06: the key of RFC 8037 A.1, whose thumbprint is that of
// its A.3, and the hash of the body of an approval.
func TestVector(t *testing.T) {
	private := ed25519.NewKeyFromSeed(decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"))
	k, err := ParseKey([]byte(`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`))
	storetest.Must(t, err)
	if public, _ := PublicKey(private); public.JWK() != k.JWK() {
		t.Errorf("the private key belongs to %s, not %s", public.JWK(), k.JWK())
	}
	storetest.Equal(t, k.Thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", "thumbprint")
	const body = `{"challengeId":"01JD0000000000000000000000","methodId":"01JD0000000000000000000001",` +
		`"method":"PUSH","value":"APPROVED","deviceId":"dev-1"}`
	const bh = "xVDfe40N3yeKlI_bSvgpcfqRzqY4415VfZC-X4htK-o"
	storetest.Equal(t, HashBody([]byte(body)), bh, "bh")
	raw, err := Sign(private, Claims{Issuer: "dev-1", Audience: "https://id.example.com", Method: "POST",
		Target:   "/auth/2fa/challenge/complete",
		IssuedAt: 1_700_000_000, ID: "jti-1", BodyHash: bh, Challenge: "01JD0000000000000000000000",
		MethodID: "01JD0000000000000000000001", Value: "APPROVED"})
	storetest.Must(t, err)
	p, ok := parse(raw)
	if !ok || !p.By(k.Key) || p.Alg != EdDSA || p.kid != "dev-1" {
		t.Fatalf("%t %+v", ok, p)
	}
	s := &Service{Audience: "https://id.example.com"}
	r := Request{Method: "POST", Target: "/auth/2fa/challenge/complete", HasBody: true,
		BodyHash: sha256.Sum256([]byte(body))}
	storetest.Equal(t, s.matches(r, p.claims), 1, "the claims do not stand")
	// Ed25519 signatures are deterministic, so the whole proof is a vector.
	if sum := sha256.Sum256([]byte(raw)); jose.Encode(sum[:]) != vectorProof {
		t.Errorf("the proof is %s (hash %s)", raw, jose.Encode(sum[:]))
	}
}

const vectorProof = "zFcBzgSSCv47TTcwHlnYfMlI7mdKUY3khDoNOuKzJ6E"

// The P-256 key is that of RFC 7517 A.1.
func TestKeys(t *testing.T) {
	const x, y = "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
	const edX = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
	for _, c := range []struct {
		jwk string
		alg string
	}{
		{`{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + y + `"}`, ES256},
		{`{"use":"sig","kid":"1","y":"` + y + `","x":"` + x + `","crv":"P-256","kty":"EC"}`, ES256},
		{`{"kty":"OKP","crv":"Ed25519","x":"` + edX + `"}`, EdDSA},
		{`{"kty":"EC","crv":"P-256","x":"` + x + `","y":"` + y + `","d":"AA"}`, ""},
		{`{"kty":"EC","crv":"P-256","x":"` + y + `","y":"` + x + `"}`, ""}, // not on the curve
		{`{"kty":"EC","crv":"P-256","x":"` + x + `"}`, ""},
		{`{"kty":"EC","crv":"P-384","x":"` + x + `","y":"` + y + `"}`, ""},
		{`{"kty":"EC","crv":"Ed25519","x":"` + edX + `"}`, ""},
		{`{"kty":"OKP","crv":"X25519","x":"` + edX + `"}`, ""},
		{`{"kty":"OKP","crv":"Ed25519","x":"` + edX[:40] + `"}`, ""},
		{`{"kty":"OKP","crv":"Ed25519","x":"` + edX + `A"}`, ""},
		{`{"KTY":"OKP","crv":"Ed25519","x":"` + edX + `"}`, ""},
		{`{"kty":"OKP","kty":"OKP","crv":"Ed25519","x":"` + edX + `"}`, ""},
		{`{"kty":"oct","k":"AA"}`, ""},
		{`{"kty":"OKP","crv":"Ed25519","x":"` + edX + `"} `, EdDSA},
		{`{"kty":"OKP","crv":"Ed25519","x":"` + edX + `"}{}`, ""},
		{`[]`, ""}, {``, ""}, {`null`, ""},
	} {
		k, err := ParseKey([]byte(c.jwk))
		if (err == nil) != (c.alg != "") || k.Alg() != c.alg {
			t.Errorf("%s: %q, %v", c.jwk, k.Alg(), err)
			continue
		}
		var again Key
		if err == nil && (again.UnmarshalJSON([]byte(k.JWK())) != nil || again.JWK() != k.JWK() ||
			again.Thumbprint() != k.Thumbprint()) {
			t.Errorf("%s becomes %s", k.JWK(), again.JWK())
		}
	}
}

// A key whose signatures can be forged is refused: the eight points of small order in every encoding, and second
// encodings of other points (SEC-15).
func TestWeakKeys(t *testing.T) {
	const ed8a, ed8b = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc",
		"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03"
	zero, ones := strings.Repeat("00", 30), strings.Repeat("ff", 30)
	for _, x := range []string{
		"01" + zero + "00", "01" + zero + "80", // order 1
		"ec" + ones + "7f", "ec" + ones + "ff", // order 2
		"00" + zero + "00", "00" + zero + "80", // order 4
		ed8a + "05", ed8a + "85", ed8b + "7a", ed8b + "fa", // order 8
		"ed" + ones + "7f", "ed" + ones + "ff", "ee" + ones + "7f", "ee" + ones + "ff", // 0 and 1, as p and p + 1
		"f0" + ones + "7f", // 3, as p + 3
		"02" + zero + "00", // no point
	} {
		b, err := hex.DecodeString(x)
		if err != nil || len(b) != ed25519.PublicKeySize {
			t.Fatalf("%s: %v", x, err)
		}
		if _, err := ParseKey([]byte(`{"kty":"OKP","crv":"Ed25519","x":"` + jose.Encode(b) + `"}`)); err == nil {
			t.Errorf("the key %s is taken", x)
		}
	}
}

// A text that is not one of our proofs is refused unread.
func TestParseIsStrict(t *testing.T) {
	private := ed25519.NewKeyFromSeed(make([]byte, 32))
	good := storetest.Value(Sign(private, Claims{Issuer: "d", ID: "j", IssuedAt: 1}))(t)
	if _, ok := parse(good); !ok {
		t.Fatal("a good one is refused")
	}
	parts := strings.Split(good, ".")
	made := func(head, claims string) string {
		return jose.Encode([]byte(head)) + "." + jose.Encode([]byte(claims)) + "." + parts[2]
	}
	const head, claims = `{"alg":"EdDSA","typ":"device-signature+jwt","kid":"d"}`, `{"iss":"d","iat":1,"jti":"j"}`
	if _, ok := parse(made(head, claims)); !ok {
		t.Fatal("a good one is refused")
	}
	for name, raw := range map[string]string{
		"nothing": "", "two parts": parts[0] + "." + parts[1], "four parts": good + ".AA", "padding": good + "=",
		"a line break": good + "\n",
		"a space":      " " + good, "no signature": parts[0] + "." + parts[1] + ".",
		"another alphabet": parts[0] + "." + parts[1] + ".++//",
		"stray bits":       parts[0] + "." + parts[1] + "." + parts[2][:85] + "B",
		"too long":         parts[0] + "." + strings.Repeat("A", maxProofBytes) + "." + parts[2],
		"another type":     made(`{"alg":"EdDSA","typ":"dpop+jwt","kid":"d"}`, claims),
		"no type":          made(`{"alg":"EdDSA","kid":"d"}`, claims),
		"an extension":     made(`{"alg":"EdDSA","typ":"device-signature+jwt","kid":"d","crit":["b64"],"b64":false}`, claims),
		"alg twice":        made(`{"alg":"none","alg":"EdDSA","typ":"device-signature+jwt","kid":"d"}`, claims),
		"no kid":           made(`{"alg":"EdDSA","typ":"device-signature+jwt"}`, claims),
		"kid is not iss":   made(head, `{"iss":"e","iat":1,"jti":"j"}`),
		"no jti":           made(head, `{"iss":"d","iat":1}`),
		"val no text":      made(head, `{"iss":"d","iat":1,"jti":"j","val":1}`),
		"claims no object": made(head, `[]`), "header no object": made(`"x"`, claims),
		"two documents": made(head, claims+claims), "no JSON": made(head, `{`),
	} {
		if p, ok := parse(raw); ok {
			t.Errorf("%s is read as %+v", name, p)
		}
	}
}

// FuzzProof: no header panics, and a parsed proof has what a verifier needs.
func FuzzProof(f *testing.F) {
	private := ed25519.NewKeyFromSeed(make([]byte, 32))
	good, _ := Sign(private, Claims{Issuer: "d", ID: "j", IssuedAt: 1})
	f.Add(good)
	f.Add("e30.e30.AA")
	f.Add("..")
	k, _ := PublicKey(private)
	f.Fuzz(func(t *testing.T, raw string) {
		p, ok := parse(raw)
		if ok && (p.kid == "" || p.claims.ID == "" || p.claims.Issuer != p.kid) {
			t.Errorf("%+v", p)
		}
		if right := ok && p.By(k.Key); right && raw != good {
			t.Errorf("%q verifies", raw)
		}
	})
}

func TestTargets(t *testing.T) {
	const p256dh = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4" // RFC 8291
	const auth = "BTBZMqHH6r4Tts7J_aSIgg"
	for _, c := range []struct {
		in       string
		loopback bool
		want     string
	}{
		{`{"type":"webhook","url":"https://a.example/x?y=z"}`, false, `{"type":"webhook","url":"https://a.example/x?y=z"}`},
		{`{"type":"webhook","url":"https://a.example/x","more":1}`, false, `{"type":"webhook","url":"https://a.example/x"}`},
		{`{"keys":{"auth":"` + auth + `==","p256dh":"` + p256dh + `="},"endpoint":"https://push.example/1","type":"webpush"}`,
			false,
			`{"type":"webpush","endpoint":"https://push.example/1","keys":{"p256dh":"` + p256dh + `","auth":"` + auth + `"}}`},
		{`{"type":"webhook","url":"http://127.0.0.1:9/x"}`, true, `{"type":"webhook","url":"http://127.0.0.1:9/x"}`},
		{`{"type":"webhook","url":"http://127.0.0.1:9/x"}`, false, ""},
		{`{"type":"webhook","url":"http://a.example/x"}`, true, ""},
		{`{"type":"webhook","url":"https://user:secret@a.example/x"}`, false, ""},
		{`{"type":"webhook","url":"file:///etc/passwd"}`, true, ""},
		{`{"type":"webhook","url":"https:///x"}`, false, ""},
		{`{"type":"webhook"}`, false, ""},
		{`{"type":"webhook","url":"https://a.example/` + strings.Repeat("x", maxTargetBytes) + `"}`, false, ""},
		{`{"type":"webpush","endpoint":"https://push.example/1"}`, false, ""},
		{`{"type":"webpush","endpoint":"https://push.example/1","keys":{"p256dh":"` + p256dh + `","auth":"AA"}}`, false, ""},
		{`{"type":"webpush","endpoint":"https://push.example/1","keys":{"p256dh":"` + auth + `","auth":"` + auth + `"}}`,
			false, ""},
		{`{"type":"webpush","endpoint":"http://push.example/1","keys":{"p256dh":"` + p256dh + `","auth":"` + auth + `"}}`,
			true, ""},
		{`{"type":"smoke"}`, false, ""}, {`"x"`, false, ""}, {`null`, false, ""},
	} {
		got, err := ParseTarget([]byte(c.in), c.loopback)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %s, %v", c.in, got, err)
		}
	}
}

// FuzzKey: an accepted key has one form, which parses to the same key.
func FuzzKey(f *testing.F) {
	k, _ := PublicKey(ed25519.NewKeyFromSeed(make([]byte, 32)))
	f.Add(k.JWK())
	f.Add(`{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`)
	f.Add(`{"kty":"OKP","crv":"Ed25519","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`)
	f.Fuzz(func(t *testing.T, jwk string) {
		k, err := ParseKey([]byte(jwk))
		if err != nil {
			return
		}
		again, err := ParseKey([]byte(k.JWK()))
		if err != nil || again.JWK() != k.JWK() || again.Thumbprint() != k.Thumbprint() || k.Alg() == "" {
			t.Fatalf("%q: %q and %q, %v", jwk, k.JWK(), again.JWK(), err)
		}
	})
}

// FuzzTarget: an accepted push target names an https address without a user, and its stored form parses to itself.
func FuzzTarget(f *testing.F) {
	f.Add(`{"type":"webhook","url":"https://example.com/a"}`)
	f.Add(`{"type":"webpush","endpoint":"https://example.com/a","keys":{"p256dh":"AA","auth":"AAAAAAAAAAAAAAAAAAAAAA"}}`)
	f.Add(`{"type":"webhook","url":"http://127.0.0.1/a"}`)
	f.Fuzz(func(t *testing.T, text string) {
		kept, err := ParseTarget([]byte(text), false)
		if err != nil {
			return
		}
		if again, err := ParseTarget([]byte(kept), false); err != nil || again != kept {
			t.Fatalf("%q is kept as %q and read as %q, %v", text, kept, again, err)
		}
		var in struct{ URL, Endpoint string }
		decodeJSON(t, kept, &in)
		u, err := url.Parse(in.URL + in.Endpoint)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			t.Fatalf("%q is kept with the address %v, %v", text, u, err)
		}
	})
}

func decodeJSON(t *testing.T, text string, into any) {
	t.Helper()
	storetest.Must(t, json.Unmarshal([]byte(text), into))
}
