package passkey_test

import (
	"encoding/base64"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"testing"

	"castellan/domain/factor/passkey"
	"castellan/domain/factor/passkey/passkeytest"
)

// spoilt is how many spoilt inputs TestSpoiltInputs sends; a million takes about a minute.
var spoilt = flag.Int("spoilt", 20_000, "spoilt inputs")

// FuzzRegistration: a registration that is accepted has a key that its own form gives again.
func FuzzRegistration(f *testing.F) {
	p := party(f)
	a := passkeytest.New(f, "id.example.com", site)
	f.Add(a.Create(f, p.Creation(first, passkey.User{Handle: "AA"}, nil)))
	f.Fuzz(func(t *testing.T, raw []byte) { register(t, p, raw) })
}

func register(t testing.TB, p passkey.Party, raw []byte) bool {
	c, err := p.Register(raw, issued)
	if err != nil {
		return false
	}
	again, err := passkey.ParseKey([]byte(c.Key.JWK()))
	if err != nil || again.JWK() != c.Key.JWK() || len(c.ID) < 16 {
		t.Fatalf("%s: %v, %+v", raw, err, c)
	}
	return true
}

// FuzzAssertion: an assertion that another text than the signed one makes is never of the credential.
func FuzzAssertion(f *testing.F) {
	p := party(f)
	a, c := registered(f, p, nil)
	raw := a.Get(f, p.Request(first, nil))
	good, err := p.Parse(raw)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) { assert(t, p, c, good.Challenge, raw) })
}

func assert(t testing.TB, p passkey.Party, c passkey.Credential, challenge string, raw []byte) bool {
	got, err := p.Parse(raw)
	if err != nil || got.By(c) != nil {
		return false
	}
	if got.Challenge != challenge || got.Falls(c.Count) {
		t.Fatalf("%s: %+v", raw, got)
	}
	return true
}

// Spoilt inputs neither panic nor verify: bytes of the JSON, of the client data, of the CBOR and of the authenticator
// data are changed, removed and doubled. The correct ones among them still verify.
func TestSpoiltInputs(t *testing.T) {
	p := party(t)
	a, c := registered(t, p, nil)
	create := a.Create(t, p.Creation(first, passkey.User{Handle: "AA"}, nil))
	get := a.Get(t, p.Request(first, nil))
	r := rand.New(rand.NewPCG(1, 2))
	right := 0
	for i := range *spoilt {
		raw, members := create, []string{"clientDataJSON", "attestationObject", "transports"}
		if i%2 == 1 {
			raw, members = get, []string{"clientDataJSON", "authenticatorData", "signature", "userHandle"}
		}
		if i%1000 > 1 {
			raw = spoilIn(t, r, raw, members)
		}
		ok := false
		if i%2 == 1 {
			ok = assert(t, p, c, first, raw)
		} else {
			ok = register(t, p, raw)
		}
		if ok {
			right++
		} else if i%1000 < 2 {
			t.Fatalf("the correct input is refused: %s", raw)
		}
	}
	if right < *spoilt/1000 {
		t.Errorf("%d of %d are accepted", right, *spoilt)
	}
}

func spoilIn(t *testing.T, r *rand.Rand, raw []byte, members []string) []byte {
	if r.IntN(4) == 0 {
		return spoilBytes(r, raw)
	}
	var all map[string]any
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	in, _ := all["response"].(map[string]any)
	name := members[r.IntN(len(members))]
	value, _ := in[name].(string)
	b, _ := base64.RawURLEncoding.DecodeString(value)
	in[name] = passkeytest.Encode(spoilBytes(r, b))
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func spoilBytes(r *rand.Rand, b []byte) []byte {
	b = append([]byte{}, b...)
	for range 1 + r.IntN(3) {
		if len(b) == 0 {
			return []byte{byte(r.Uint32())}
		}
		at := r.IntN(len(b))
		switch r.IntN(5) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = []byte{0, 0xff, 0x5f, 0x7f, 0x9f, 0xbf, 0xa0, 0xfb, 0x1b, 0x3b, 0xdb, '"', '{', '}'}[r.IntN(14)]
		case 2:
			b = append(b[:at], b[at+1:]...)
		case 3:
			b = append(b[:at:at], append([]byte{byte(r.Uint32())}, b[at:]...)...)
		case 4:
			b = b[:at]
		}
	}
	return b
}
