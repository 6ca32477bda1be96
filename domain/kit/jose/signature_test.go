package jose

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"castellan/domain/kit/storetest"
)

// A signature is verified only under the algorithm of its key, and only in its full length.
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
	if ed.Verify(EdDSA, "another proof", sigEd) {
		t.Error("a signature of another proof was accepted")
	}
	storetest.Fails(t, storetest.Err(Sign(nil, nil, signed)), "", "signed without a key")
}
