// Package keyring manages every secret key of the service (decisions D-AUTH-01, D-EXT-03, D-EXT-04). The keys sign
// tokens, seal values at rest, hash values that are only compared, and chain the audit trail.
//
// The one idea: keys are rows that all nodes share, each wrapped by one master key that never enters the database. A
// Ring is a process's view of the keys at one instant. Every value made with a key carries the key's id, so keys rotate
// without an interruption.
//
// Start reading at Ring for the use of keys, at Open for their origin, and at Keeper.Rotate for their rotation.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"hash"
	"strings"
	"sync"
	"time"
)

// Purpose is the purpose of a key. A key serves one purpose for its whole life.
type Purpose string

// The purposes.
const (
	Signing  Purpose = "signing"  // Ed25519, for tokens
	Sealing  Purpose = "sealing"  // AES-256-GCM, for values at rest
	Hashing  Purpose = "hashing"  // HMAC-SHA256, for codes and other values that are only compared
	Auditing Purpose = "auditing" // HMAC-SHA256, for the audit chain; one permanent key
)

var purposes = []Purpose{Signing, Sealing, Hashing, Auditing}

// Record is a stored key. It holds no secret in the clear.
type Record struct {
	ID      string
	Purpose Purpose
	// Seq counts the keys of a purpose from 1; the newest key has the highest. It is unique within Purpose, so several
	// processes may make keys at once and end with one set.
	Seq       int64
	CreatedAt time.Time
	// NotBefore is when the key comes into use. Every node knows the key before that.
	NotBefore time.Time
	// RetiredAt is when the key stops verifying; zero means never.
	RetiredAt time.Time
	Wrapped   []byte // the secret, sealed by the master key
	MasterID  string
}

const (
	secretLen = 32 // length of every key: an Ed25519 seed, an AES-256 key, an HMAC-SHA256 key
	// IDLen is the length of a key's id in bytes.
	IDLen = 16
)

// newID returns 80 random bits in lower-case base32: safe in a JSON string, a file name and a URL, and not usable as a
// path.
func newID() string { return strings.ToLower(rand.Text()[:IDLen]) }

// wellFormed reports whether an id has the form of newID. It keeps garbage from causing a read of the store.
func wellFormed(id string) bool {
	if len(id) != IDLen {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// newKey makes a key. Times are truncated to milliseconds, the precision of the store, so that every node reads the
// same values.
func newKey(m Master, p Purpose, seq int64, now, notBefore time.Time) Record {
	secret := make([]byte, secretLen)
	rand.Read(secret) // crypto/rand.Read never fails
	defer clear(secret)
	r := Record{ID: newID(), Purpose: p, Seq: seq, CreatedAt: now.Truncate(time.Millisecond),
		NotBefore: notBefore.Truncate(time.Millisecond)}
	return m.wrap(r, secret)
}

// key is a Record with its secret, ready for use.
type key struct {
	Record
	*material
}

// material is the immutable part of a key, which is reused from one view to the next. Only the fields of the key's
// purpose are set.
type material struct {
	private ed25519.PrivateKey // Signing
	public  ed25519.PublicKey
	aead    cipher.AEAD // Sealing
	macs    *sync.Pool  // Hashing: holds *macState
	secret  []byte      // Auditing
}

func newMaterial(p Purpose, secret []byte) (*material, error) {
	if len(secret) != secretLen {
		return nil, fmt.Errorf("a secret of %d bytes", len(secret))
	}
	switch p {
	case Signing:
		private := ed25519.NewKeyFromSeed(secret)
		return &material{private: private, public: private.Public().(ed25519.PublicKey)}, nil
	case Sealing:
		aead, err := newAEAD(secret)
		return &material{aead: aead}, err
	case Hashing:
		own := [secretLen]byte(secret)
		return &material{macs: &sync.Pool{New: func() any { return &macState{mac: hmac.New(sha256.New, own[:])} }}}, nil
	case Auditing:
		own := [secretLen]byte(secret)
		return &material{secret: own[:]}, nil
	}
	return nil, fmt.Errorf("unknown purpose %q", p)
}

// newAEAD returns AES-256-GCM that generates its nonce and puts it in front of the ciphertext.
func newAEAD(secret []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// macState is the state of a keyed hash. An HMAC that was reset once caches the state after its key block, which halves
// the cost of a short message.
type macState struct {
	mac hash.Hash
	buf []byte
}

// maxScratch limits the buffer that a macState keeps after a long message.
const maxScratch = 1 << 10

// sum hashes domain and parts. A length precedes each, so that no two lists of parts give the same bytes.
func (m *material) sum(domain string, parts []string) []byte {
	s := m.macs.Get().(*macState)
	b := appendPart(s.buf[:0], domain)
	for _, p := range parts {
		b = appendPart(b, p)
	}
	s.mac.Write(b)
	out := s.mac.Sum(make([]byte, 0, sha256.Size))
	s.mac.Reset()
	clear(b) // it may hold a code
	if s.buf = b[:0]; cap(b) > maxScratch {
		s.buf = nil
	}
	m.macs.Put(s)
	return out
}

func appendPart(b []byte, p string) []byte {
	n := uint32(len(p))
	b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return append(b, p...)
}
