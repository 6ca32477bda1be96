package jose

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"math/big"
	"testing"

	"castellan/domain/kit/storetest"
)

// A key of RSA has 2048 to 8192 bits, an odd modulus, and an odd exponent from 3 to 31 bits.
func TestBoundsOfRSA(t *testing.T) {
	modulus := func(bits uint, last byte) []byte {
		n := new(big.Int).Lsh(big.NewInt(1), bits-1)
		return n.Or(n, big.NewInt(int64(last))).Bytes()
	}
	good, three := modulus(2048, 1), []byte{3}
	for _, c := range []struct {
		n, e []byte
		want bool
	}{
		{good, three, true}, {good, []byte{1, 0, 1}, true}, {good, []byte{5}, true},
		{good, []byte{0x7f, 255, 255, 255}, true},
		{modulus(8192, 1), three, true}, {append([]byte{0}, modulus(8192, 1)...), three, true},
		{modulus(2047, 1), three, false}, {modulus(8193, 1), three, false}, {modulus(2048, 2), three, false},
		{append([]byte{0, 0}, modulus(8192, 1)...), three, false}, {good, nil, false}, {good, []byte{1}, false},
		{good, []byte{2}, false}, {good, []byte{4}, false}, {good, []byte{0x80, 0, 0, 1}, false},
		{good, []byte{0, 0, 0, 0, 3}, false},
	} {
		storetest.Equal(t, RSA(c.n, c.e).public != nil, c.want, len(c.n), c.e)
	}
}

// A signature is verified only under the algorithm of its key, and only in its full length. A key is read
// from its own JWK.
func TestSignatureNeedsTheAlgorithmOfItsKey(t *testing.T) {
	const signed = "a proof"
	_, private, err := ed25519.GenerateKey(rand.Reader)
	storetest.Must(t, err)
	ec := storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	ed, _ := PublicKey(private)
	p256, _ := PublicKey(ec)
	sigEd := storetest.Value(ed.method.Sign(signed, private))(t)
	sigEC := storetest.Value(p256.method.Sign(signed, ec))(t)
	for _, c := range []struct {
		key  Key
		alg  string
		sig  []byte
		want bool
	}{
		{ed, EdDSA, sigEd, true},
		{ed, ES256, sigEd, false},
		{ed, "none", sigEd, false},
		{ed, EdDSA, sigEC, false},
		{ed, EdDSA, sigEd[:63], false},
		{p256, ES256, sigEC, true},
		{p256, EdDSA, sigEC, false},
		{p256, ES256, sigEd, false},
		{p256, ES256, sigEC[:63], false},
		{p256, ES256, append(sigEC[:64:64], 0), false},
		{Key{}, "", sigEd, false},
	} {
		storetest.Equal(t, c.key.Verify(c.alg, signed, c.sig), c.want, c.key.Alg(), c.alg, len(c.sig))
	}
	storetest.Equal(t, ed.Verify(EdDSA, "another proof", sigEd), false, "a signature of another proof was accepted")
	for _, k := range []Key{ed, p256} {
		again := storetest.Value(ParseKey([]byte(k.JWK())))(t)
		storetest.Same(t, again, k)
	}
	storetest.Fails(t, storetest.Err(Sign(nil, nil, signed)), "", "signed without a key")
}
