// Package devicetest creates keys of devices for tests.
package devicetest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	"castellan/domain/proof/device"
)

// Signer creates a private key for an algorithm, and its public part.
func Signer(t testing.TB, alg string) (crypto.Signer, device.Key) {
	t.Helper()
	var k crypto.Signer
	var err error
	if alg == device.ES256 {
		k, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, k, err = ed25519.GenerateKey(rand.Reader)
	}
	public, ok := device.PublicKey(k)
	if err != nil || !ok {
		t.Fatal(alg, err)
	}
	return k, public
}
