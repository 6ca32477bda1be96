// Package clientkey makes and verifies the keys with which machines authenticate: a name and a secret of 256 random
// bits, sent in one header as "<name>.<secret>".
//
// The one idea: a secret is shown once, and only its keyed hash is stored. A reader of the database can neither use a
// key nor make one.
//
// Start reading at New, then Matches.
package clientkey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/keyring"
)

// Hasher makes and compares keyed hashes; keyring.Ring is one.
type Hasher interface {
	Matches(stored keyring.Sum, domain string, parts ...string) bool
	Hash(domain string, parts ...string) keyring.Sum
}

const (
	secretBytes = 32
	// maxHeaderBytes limits the hashed length of a header.
	maxHeaderBytes = 256
)

// nameShape has no dot: a dot ends the name in the header.
var nameShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckName returns INVALID_FIELD (field name) unless a name consists of 1 to 64 letters, digits, _ and -, and begins
// with a letter or a digit.
func CheckName(name string) error {
	if !nameShape.MatchString(name) {
		return fault.Invalid("name", "must be 1 to 64 letters, digits, _ or -, and begin with a letter or digit")
	}
	return nil
}

// New makes a key for a client. The client sends header, which cannot be derived from hash. domain separates the hashes
// of different kinds of keys.
func New(h Hasher, domain, name string) (header string, hash keyring.Sum) {
	var random [secretBytes]byte
	rand.Read(random[:]) // crypto/rand.Read never fails
	secret := base64.RawURLEncoding.EncodeToString(random[:])
	return name + "." + secret, h.Hash(domain, name, secret)
}

// Split returns the name and the secret of a header, and false for a text that cannot be
// a key.
func Split(header string) (name, secret string, ok bool) {
	if len(header) > maxHeaderBytes {
		return "", "", false
	}
	return strings.Cut(header, ".")
}

// Matches reports whether the hash of a secret is among the stored ones. It compares in constant time. An unknown
// client has no stored hash and costs as much as a known one with a wrong secret.
func Matches(h Hasher, domain, name, secret string, stored ...keyring.Sum) bool {
	if len(stored) == 0 {
		none := h.Hash(domain)
		none.Sum = make([]byte, sha256.Size)
		stored = append(stored, none)
	}
	right := false
	for _, sum := range stored {
		right = h.Matches(sum, domain, name, secret) || right
	}
	return right
}
