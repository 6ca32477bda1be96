package device

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"testing"
)

// A signature is verified only under the algorithm of its key, and only in its full length.
func TestSignatureNeedsTheAlgorithmOfItsKey(t *testing.T) {
	signed := []byte("a proof")
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sigEd, err := sign(private, signed)
	if err != nil {
		t.Fatal(err)
	}
	sigEC, err := sign(ec, signed)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		key  Key
		alg  string
		sig  []byte
		want bool
	}{
		{Key{ed: public}, EdDSA, sigEd, true},
		{Key{ed: public}, ES256, sigEd, false},
		{Key{ed: public}, "none", sigEd, false},
		{Key{ed: public}, EdDSA, sigEC, false},
		{Key{ed: public}, EdDSA, sigEd[:63], false},
		{Key{ec: &ec.PublicKey}, ES256, sigEC, true},
		{Key{ec: &ec.PublicKey}, EdDSA, sigEC, false},
		{Key{ec: &ec.PublicKey}, ES256, sigEd, false},
		{Key{ec: &ec.PublicKey}, ES256, sigEC[:63], false},
		{Key{ec: &ec.PublicKey}, ES256, append(sigEC[:64:64], 0), false},
		{Key{}, "", sigEd, false},
	} {
		if got := c.key.Verify(c.alg, signed, c.sig); got != c.want {
			t.Errorf("%s key, algorithm %q, %d bytes: %t", c.key.Alg(), c.alg, len(c.sig), got)
		}
	}
	if (Key{ed: public}).Verify(EdDSA, []byte("another proof"), sigEd) {
		t.Error("a signature of another proof was accepted")
	}
	if _, err := sign(nil, signed); err == nil {
		t.Error("signed without a key")
	}
}
