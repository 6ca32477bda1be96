package jose

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"math/big"
	"strings"

	"filippo.io/edwards25519"
	"github.com/golang-jwt/jwt/v5"
)

// The algorithms of the keys.
const (
	ES256 = "ES256" // ECDSA over P-256 with SHA-256
	EdDSA = "EdDSA" // Ed25519
	RS256 = "RS256" // RSA with PKCS #1 v1.5 and SHA-256
)

// coordinate is the length in bytes of a coordinate of P-256 and of an Ed25519 key.
const coordinate = 32

// minRSABits and maxRSABits bound the keys of RS256. Longer ones cost more time than a request may.
const minRSABits, maxRSABits = 2048, 8192

// ErrKey and ErrPrivate refuse a JWK.
var (
	ErrKey     = errors.New("jose: not a public JWK of a known kind")
	ErrPrivate = errors.New("jose: a private key")
)

// Key is a public key with the one algorithm that it is used with. The zero Key verifies nothing. As JSON it is its
// JWK.
type Key struct {
	method jwt.SigningMethod
	public crypto.PublicKey // what the method takes
}

// ParseKey reads a JWK: EC with P-256, OKP with Ed25519, or RSA. Errors: ErrPrivate, and ErrKey for anything else.
func ParseKey(jwk []byte) (Key, error) {
	all, ok := Members(jwk)
	if _, private := all["d"]; private && ok {
		return Key{}, ErrPrivate
	}
	value := func(name string) []byte {
		b, _ := Decode(strings.TrimRight(Text(all[name]), "=")) // the padding that some libraries add
		return b
	}
	var k Key
	switch Text(all["kty"]) + " " + Text(all["crv"]) {
	case "EC P-256":
		k = EC(value("x"), value("y"))
	case "OKP Ed25519":
		k = ed(value("x"))
	case "RSA ":
		k = RSA(value("n"), value("e"))
	}
	if !ok || k.method == nil {
		return Key{}, ErrKey
	}
	return k, nil
}

// EC returns the key with these coordinates; the zero Key if P-256 has no such point.
func EC(x, y []byte) Key {
	if len(x) != coordinate || len(y) != coordinate {
		return Key{}
	}
	public, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...))
	if err != nil {
		return Key{}
	}
	return Key{jwt.SigningMethodES256, public}
}

// ed refuses what is not the canonical encoding of a point whose signatures need a private key. For a point of small
// order, signatures of any message can be forged. RFC 8032, section 8.4, leaves the check to the protocol.
func ed(x []byte) Key {
	p, err := new(edwards25519.Point).SetBytes(x)
	if err != nil || !bytes.Equal(p.Bytes(), x) ||
		new(edwards25519.Point).MultByCofactor(p).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return Key{}
	}
	return Key{jwt.SigningMethodEdDSA, ed25519.PublicKey(x)}
}

// RSA returns the key with this modulus and exponent; the zero Key if it is too short, too long or malformed.
func RSA(n, e []byte) Key {
	if len(e) == 0 || len(e) > 4 || len(n) > maxRSABits/8+1 {
		return Key{}
	}
	public := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(new(big.Int).SetBytes(e).Int64())}
	if bits := public.N.BitLen(); bits < minRSABits || bits > maxRSABits || public.E < 3 || public.E%2 == 0 ||
		public.N.Bit(0) == 0 || public.E > 1<<31-1 {
		return Key{}
	}
	return Key{jwt.SigningMethodRS256, public}
}

// PublicKey returns the Key of a private one that signs with ES256 or EdDSA; false for any other.
func PublicKey(k crypto.Signer) (Key, bool) {
	if k == nil {
		return Key{}, false
	}
	switch p := k.Public().(type) {
	case *ecdsa.PublicKey:
		return Key{jwt.SigningMethodES256, p}, p.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return Key{jwt.SigningMethodEdDSA, p}, true
	}
	return Key{}, false
}

// Public returns the key for the functions of its algorithm; nil for the zero Key.
func (k Key) Public() crypto.PublicKey { return k.public }

// Alg returns the algorithm of the key; "" for the zero Key.
func (k Key) Alg() string {
	if k.method == nil {
		return ""
	}
	return k.method.Alg()
}

// JWK returns the key with its required members in the order of RFC 7638; "" for the zero Key.
func (k Key) JWK() string {
	switch p := k.public.(type) {
	case *ecdsa.PublicKey:
		b, err := p.Bytes()
		if err != nil {
			return ""
		}
		return `{"crv":"P-256","kty":"EC","x":"` + Encode(b[1:1+coordinate]) + `","y":"` + Encode(b[1+coordinate:]) + `"}`
	case ed25519.PublicKey:
		return `{"crv":"Ed25519","kty":"OKP","x":"` + Encode(p) + `"}`
	case *rsa.PublicKey:
		return `{"e":"` + Encode(big.NewInt(int64(p.E)).Bytes()) + `","kty":"RSA","n":"` + Encode(p.N.Bytes()) + `"}`
	}
	return ""
}

// Thumbprint returns the thumbprint of RFC 7638.
func (k Key) Thumbprint() string {
	sum := sha256.Sum256([]byte(k.JWK()))
	return Encode(sum[:])
}

func (k Key) MarshalJSON() ([]byte, error) { return []byte(k.JWK()), nil }

// UnmarshalJSON reads the form of MarshalJSON.
func (k *Key) UnmarshalJSON(jwk []byte) (err error) {
	*k, err = ParseKey(jwk)
	return err
}

// Verify reports whether sig is the key's signature of signed, under the algorithm that the signature names.
func (k Key) Verify(alg, signed string, sig []byte) bool {
	return k.method != nil && alg == k.Alg() && k.method.Verify(signed, sig, k.public) == nil
}
