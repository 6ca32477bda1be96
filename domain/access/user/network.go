package user

import (
	"crypto/sha256"
	"encoding/base64"
)

// Networks are the networks from which an account was logged in to, oldest first:
// marks of MarkLen characters, one after the other. They stand in the account's row,
// so that a login knows them without another read (D-EXT-07).
type Networks string

const (
	// MarkLen is the length of a mark in bytes.
	MarkLen = 4
	// MaxNetworks bounds what is remembered; beyond it the oldest is forgotten.
	MaxNetworks = 256
)

// Mark is what is kept of a network: 24 bits of a hash with the account's id, so that
// it fits a row, and the marks of two accounts cannot be compared.
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
