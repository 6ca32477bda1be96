package user

import (
	"crypto/sha256"
	"encoding/base64"
)

// Networks are the networks from which the account logged in, oldest first: concatenated marks of MarkLen characters.
// The account's row contains them, so a login needs no further read (D-EXT-07).
type Networks string

const (
	// MarkLen is the length of a mark in bytes.
	MarkLen = 4
	// MaxNetworks bounds the remembered networks; beyond it the oldest is forgotten.
	MaxNetworks = 256
)

// Mark returns the stored form of a network: 24 bits of a hash with the account's id. So it fits a row, and the marks
// of two accounts cannot be compared.
func Mark(userID, network string) string {
	sum := sha256.Sum256([]byte(userID + " " + network))
	return base64.RawURLEncoding.EncodeToString(sum[:3])
}

// Has reports whether a mark is among the networks.
func (n Networks) Has(mark string) bool {
	for ; len(n) >= MarkLen; n = n[MarkLen:] {
		if string(n[:MarkLen]) == mark {
			return true
		}
	}
	return false
}
