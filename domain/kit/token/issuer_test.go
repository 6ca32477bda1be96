package token_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/domain/kit/token"
)

const issuerURL = "https://accounts.example.com"

var classes = []token.Class{token.XAuth, token.PAuth, token.OTAuth}

// bench is an issuer with a cache, one without, and the clock of both.
type bench struct {
	now        time.Time
	keeper     *keyring.Keeper
	ring       *keyring.Ring
	warm, cold *token.Issuer
}

func newBench(t *testing.T) *bench {
	b := &bench{now: time.Date(2026, 5, 1, 12, 0, 0, 750e6, time.UTC)}
	b.keeper = keyringtest.Keeper(t, b.clock)
	b.ring = b.keeper.Ring()
	b.warm, b.cold = b.issuer(issuerURL, "default", 100), b.issuer(issuerURL, "default", 0)
	return b
}

func (b *bench) clock() time.Time { return b.now }

func (b *bench) issuer(iss, tenant string, capacity int) *token.Issuer {
	return token.NewIssuer(b.ring, iss, tenant, b.clock, capacity)
}

func (b *bench) claims(class token.Class) token.Claims {
	c := session(b.now)
	c.Class, c.AuthTime, c.ChallengeID = class, b.now.Add(-time.Minute), "01CHALLENGE0000000000000000"
	return c
}

func (b *bench) sign(t *testing.T, i *token.Issuer, c token.Claims) string {
	t.Helper()
	raw := storetest.Value(i.Sign(c))(t)
	return raw
}

func (b *bench) refused(t *testing.T, what string, class token.Class, raw string) {
	t.Helper()
	for _, i := range []*token.Issuer{b.warm, b.cold} {
		if c, err := i.Verify(class, raw); fault.CodeOf(err) != fault.Unauthenticated ||
			!reflect.DeepEqual(c, token.Claims{}) {
			t.Errorf("%s: %v, %v", what, c, err)
		}
	}
}

// forge signs any header and payload with the real key.
func (b *bench) forge(header, payload string) string {
	_, key := b.ring.Signer(b.now)
	text := enc(header) + "." + enc(payload)
	return text + "." + enc(string(ed25519.Sign(key, []byte(text))))
}

func enc(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

func parts(t *testing.T, raw string) (header, payload string) {
	t.Helper()
	p := strings.Split(raw, ".")
	h, err1 := base64.RawURLEncoding.DecodeString(p[0])
	c, err2 := base64.RawURLEncoding.DecodeString(p[1])
	if err1 != nil || err2 != nil || len(p) != 3 {
		t.Fatal(raw)
	}
	return string(h), string(c)
}

// Another library reads exactly the documented claims from a token, under the published key.
func TestWire(t *testing.T) {
	b := newBench(t)
	kid, _ := b.ring.Signer(b.now)
	common := map[string]any{"iss": issuerURL, "iat": json.Number("1777636800"), "exp": json.Number("1777638600"),
		"jti": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "tid": "default"}
	for class, own := range map[token.Class]map[string]any{
		token.XAuth: {"sub": "01BX5ZZKBKACTAV9WEVGEMMVRZ", "sid": "01BX5ZZKBKACTAV9WEVGEMMVS0", "sv": json.Number("3"),
			"roles": []any{"user"}, "amr": []any{"pwd", "sms", "mfa"}, "auth_time": json.Number("1777636740")},
		token.PAuth:  {"cid": "01CHALLENGE0000000000000000"},
		token.OTAuth: {},
	} {
		raw := b.sign(t, b.warm, b.claims(class))
		got := jwt.MapClaims{}
		parser := jwt.NewParser(jwt.WithValidMethods([]string{"EdDSA"}), jwt.WithAudience(string(class)),
			jwt.WithIssuer(issuerURL),
			jwt.WithExpirationRequired(), jwt.WithStrictDecoding(), jwt.WithJSONNumber(), jwt.WithTimeFunc(b.clock))
		parsed, err := parser.ParseWithClaims(raw, got, func(tok *jwt.Token) (any, error) {
			var set struct{ Keys []struct{ Kid, X string } }
			if err := json.Unmarshal(b.ring.JWKS(), &set); err != nil || set.Keys[0].Kid != tok.Header["kid"] {
				return nil, fmt.Errorf("key set %s: %w", b.ring.JWKS(), err)
			}
			x, err := base64.RawURLEncoding.DecodeString(set.Keys[0].X)
			return ed25519.PublicKey(x), err
		})
		if err != nil {
			t.Fatalf("%s: %v", class, err)
		}
		header := map[string]any{"alg": "EdDSA", "kid": kid, "typ": string(class) + "+jwt"}
		storetest.Same(t, parsed.Header, header, class, "header")
		want := jwt.MapClaims{"aud": string(class)}
		for _, m := range []map[string]any{common, own} {
			maps.Copy(want, m)
		}
		storetest.Same(t, got, want, class)
	}
}

func TestVerifyReadsWhatWasSigned(t *testing.T) {
	b := newBench(t)
	for _, class := range classes {
		raw := b.sign(t, b.warm, b.claims(class))
		warm, err1 := b.warm.Verify(class, raw)
		cold, err2 := b.cold.Verify(class, raw)
		if err1 != nil || err2 != nil || !reflect.DeepEqual(warm, cold) {
			t.Errorf("%s: remembered %+v, %v; read %+v, %v", class, warm, err1, cold, err2)
		}
		want := token.Claims{Class: class, ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Tenant: "default",
			IssuedAt: b.now.Truncate(time.Second), ExpiresAt: b.now.Truncate(time.Second).Add(30 * time.Minute)}
		switch class {
		case token.XAuth:
			c := b.claims(class)
			want.Subject, want.SessionID, want.SV = c.Subject, c.SessionID, c.SV
			want.Roles, want.AMR, want.AuthTime = c.Roles, c.AMR, c.AuthTime.Truncate(time.Second)
		case token.PAuth:
			want.ChallengeID = "01CHALLENGE0000000000000000"
		}
		storetest.Same(t, cold, want, class)
	}
	// Without roles the list is empty, not absent, and unusual strings survive.
	c := b.claims(token.XAuth)
	c.Roles, c.AMR, c.Subject = nil, []string{`a"b\c<&>`}, "ışık \u2028 ö"
	raw := b.sign(t, b.warm, c)
	if _, payload := parts(t, raw); !strings.Contains(payload, `"roles":[]`) {
		t.Error(payload)
	}
	if got, err := b.cold.Verify(token.XAuth, raw); err != nil || got.Subject != c.Subject ||
		!slices.Equal(got.AMR, c.AMR) {
		t.Errorf("%+v, %v", got, err)
	}
}

// A caller that modifies the slices it passed or received modifies no cached token.
func TestSignCopiesSlices(t *testing.T) {
	b := newBench(t)
	c := b.claims(token.XAuth)
	raw := b.sign(t, b.warm, c)
	c.Roles[0] = "admin"
	got, err := b.warm.Verify(token.XAuth, raw)
	if err != nil || got.Roles[0] != "user" {
		t.Fatalf("%v, %v", got.Roles, err)
	}
	got.Roles[0] = "admin"
	storetest.Equal(t, storetest.Value(b.warm.Verify(token.XAuth, raw))(t).Roles[0], "user")
}

func TestClassMatrix(t *testing.T) {
	b := newBench(t)
	for _, is := range classes {
		raw := b.sign(t, b.warm, b.claims(is))
		for _, want := range append(classes, "", "cron", "x-auth+jwt", "X-AUTH") {
			if want != is {
				b.refused(t, fmt.Sprintf("%s as %q", is, want), want, raw)
				continue
			}
			for _, i := range []*token.Issuer{b.warm, b.cold} {
				storetest.Value(i.Verify(want, raw))(t)
			}
		}
	}
	// Both the type and the audience are checked.
	header, payload := parts(t, b.sign(t, b.cold, b.claims(token.OTAuth)))
	b.refused(t, "type of another class", token.PAuth, b.forge(strings.Replace(header, "ot-auth", "p-auth", 1), payload))
	b.refused(t, "audience of another class", token.OTAuth, b.forge(header,
		strings.Replace(payload, "ot-auth", "p-auth", 1)))
}

func TestIssuerAndTenant(t *testing.T) {
	b := newBench(t)
	for what, i := range map[string]*token.Issuer{
		"another tenant": b.issuer(issuerURL, "other", 0), "another issuer": b.issuer(issuerURL+"/", "default", 0),
	} {
		b.refused(t, what, token.XAuth, b.sign(t, i, b.claims(token.XAuth)))
	}
	other := newBench(t) // other keys
	b.refused(t, "another service", token.XAuth, other.sign(t, other.warm, other.claims(token.XAuth)))
}

func TestAlgorithms(t *testing.T) {
	b := newBench(t)
	kid, key := b.ring.Signer(b.now)
	_, payload := parts(t, b.sign(t, b.cold, b.claims(token.XAuth)))
	var claims jwt.MapClaims
	storetest.Must(t, json.Unmarshal([]byte(payload), &claims))
	make := func(m jwt.SigningMethod, key any) string {
		tok := jwt.NewWithClaims(m, claims)
		tok.Header["kid"], tok.Header["typ"] = kid, "x-auth+jwt"
		raw := storetest.Value(tok.SignedString(key))(t)
		return raw
	}
	public := key.Public().(ed25519.PublicKey)
	b.refused(t, "none", token.XAuth, make(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType))
	b.refused(t, "HS256 with the public key", token.XAuth, make(jwt.SigningMethodHS256, []byte(public)))
	b.refused(t, "HS256 with the key set", token.XAuth, make(jwt.SigningMethodHS256, b.ring.JWKS()))
	for _, alg := range []string{"none", "None", "", "HS256", "eddsa", "Ed25519", "ES256"} {
		header := fmt.Sprintf(`{"alg":%q,"kid":%q,"typ":"x-auth+jwt"}`, alg, kid)
		b.refused(t, "alg "+alg, token.XAuth, b.forge(header, payload))
		b.refused(t, "alg "+alg+" unsigned", token.XAuth, enc(header)+"."+enc(payload)+".")
	}
}

// Only one header is accepted, even with a valid signature.
func TestHeaders(t *testing.T) {
	b := newBench(t)
	kid, _ := b.ring.Signer(b.now)
	header, payload := parts(t, b.sign(t, b.cold, b.claims(token.XAuth)))
	storetest.Value(b.cold.Verify(token.XAuth, b.forge(header, payload)))(t)
	insert := func(s string) string { return strings.Replace(header, `,"typ"`, `,`+s+`,"typ"`, 1) }
	for what, bad := range map[string]string{
		"crit":          insert(`"crit":["exp"]`),
		"jku":           insert(`"jku":"https://evil.example/jwks.json"`),
		"x5u":           insert(`"x5u":"https://evil.example/x"`),
		"jwk":           insert(`"jwk":{"kty":"OKP"}`),
		"b64":           insert(`"b64":false`),
		"two kids":      insert(`"kid":"` + kid + `"`),
		"two algs":      insert(`"alg":"none"`),
		"other order":   fmt.Sprintf(`{"typ":"x-auth+jwt","alg":"EdDSA","kid":%q}`, kid),
		"spaces":        strings.ReplaceAll(header, ":", ": "),
		"trailing":      header + " ",
		"JWT":           strings.Replace(header, "x-auth+jwt", "JWT", 1),
		"upper case":    strings.Replace(header, "x-auth+jwt", "X-AUTH+JWT", 1),
		"mime":          strings.Replace(header, "x-auth+jwt", "application/x-auth+jwt", 1),
		"no typ":        fmt.Sprintf(`{"alg":"EdDSA","kid":%q}`, kid),
		"no kid":        `{"alg":"EdDSA","typ":"x-auth+jwt"}`,
		"kid number":    `{"alg":"EdDSA","kid":1,"typ":"x-auth+jwt"}`,
		"kid traversal": strings.Replace(header, kid, "../../../dev/null", 1),
		"kid absolute":  strings.Replace(header, kid, "/etc/passwd", 1),
		"kid sql":       strings.Replace(header, kid, "' OR 1=1 --", 1),
		"kid url":       strings.Replace(header, kid, "https://evil", 1),
		"kid empty":     strings.Replace(header, kid, "", 1),
		"kid NUL":       strings.Replace(header, kid, kid+`\u0000`, 1),
		"kid upper":     strings.Replace(header, kid, strings.ToUpper(kid), 1),
		"kid unknown":   strings.Replace(header, kid, strings.Repeat("a", len(kid)), 1),
		"kid escaped":   strings.Replace(header, kid, fmt.Sprintf(`\u%04x`, kid[0])+kid[1:], 1),
		"empty":         "",
		"null":          "null",
		"no JSON":       "{",
	} {
		if bad == header {
			t.Fatalf("%s changes nothing", what)
		}
		b.refused(t, what, token.XAuth, b.forge(bad, payload))
	}
}

// Only one spelling of the claims is accepted, even with a valid signature.
func TestClaimSpellings(t *testing.T) {
	b := newBench(t)
	header, payload := parts(t, b.sign(t, b.cold, b.claims(token.XAuth)))
	exp := `"exp":1777638600`
	for what, bad := range map[string]string{
		"duplicate":         strings.Replace(payload, exp, exp+","+exp, 1),
		"duplicate, later":  strings.Replace(payload, exp, `"exp":1,`+exp, 1),
		"duplicate, first":  strings.Replace(payload, exp, exp+`,"exp":9999999999`, 1),
		"other case":        strings.Replace(payload, `"exp"`, `"Exp"`, 1),
		"case duplicate":    strings.Replace(payload, exp, exp+`,"EXP":9999999999`, 1),
		"exp string":        strings.Replace(payload, exp, `"exp":"1777638600"`, 1),
		"exp 1e400":         strings.Replace(payload, exp, `"exp":1e400`, 1),
		"exp 1e10":          strings.Replace(payload, exp, `"exp":1e10`, 1),
		"exp fraction":      strings.Replace(payload, exp, exp+".0", 1),
		"exp too long":      strings.Replace(payload, exp, `"exp":99999999999999999999`, 1),
		"exp null":          strings.Replace(payload, exp, `"exp":null`, 1),
		"exp missing":       strings.Replace(payload, exp+",", "", 1),
		"exp list":          strings.Replace(payload, exp, `"exp":[9999999999]`, 1),
		"exp minus zero":    strings.Replace(payload, exp, `"exp":-0`, 1),
		"aud list":          strings.Replace(payload, `"x-auth"`, `["x-auth"]`, 1),
		"unknown claim":     strings.Replace(payload, exp, exp+`,"admin":true`, 1),
		"nbf":               strings.Replace(payload, exp, exp+`,"nbf":1`, 1),
		"roles string":      strings.Replace(payload, `["user"]`, `"user"`, 1),
		"escaped name":      strings.Replace(payload, `"sub"`, `"\u0073ub"`, 1),
		"escaped value":     strings.Replace(payload, `"default"`, `"d\u0065fault"`, 1),
		"lone surrogate":    strings.Replace(payload, `"user"`, `"\ud800"`, 1),
		"bad UTF-8":         strings.Replace(payload, `"user"`, "\"\xff\"", 1),
		"spaces":            strings.Replace(payload, `,`, `, `, 1),
		"leading space":     " " + payload,
		"trailing newline":  payload + "\n",
		"trailing document": payload + "{}",
		"other order":       strings.Replace(`{"aud":"x-auth",`+payload[1:], `,"aud":"x-auth",`, ",", 1),
		"no object":         `["` + exp + `]`,
		"empty":             "",
	} {
		if bad == payload {
			t.Fatalf("%s changes nothing", what)
		}
		b.refused(t, what, token.XAuth, b.forge(header, bad))
	}
	// The claims of another class, with the right type and audience.
	header, payload = parts(t, b.sign(t, b.cold, b.claims(token.OTAuth)))
	b.refused(t, "ot-auth with a subject", token.OTAuth, b.forge(header, strings.Replace(payload, `}`, `,"sub":"u"}`, 1)))
	header, _ = parts(t, b.sign(t, b.cold, b.claims(token.PAuth)))
	b.refused(t, "p-auth without a challenge", token.PAuth, b.forge(header,
		strings.Replace(payload, "ot-auth", "p-auth", 1)))
}
