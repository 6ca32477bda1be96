package demo

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/mr-tron/base58"
)

var rippleAlphabet = base58.NewAlphabet("rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz")

// outside returns a network address without a known key: its bytes are random, and its form and checksum are valid.
func outside(s source, network string) string {
	switch network {
	case "BTC":
		return checked(base58.BTCAlphabet, append([]byte{0}, s.bytes(20)...))
	case "TRX":
		return checked(base58.BTCAlphabet, append([]byte{0x41}, s.bytes(20)...))
	case "XRP":
		return checked(rippleAlphabet, append([]byte{0}, s.bytes(20)...))
	case "SOL":
		return base58.Encode(s.bytes(32))
	case "BANK":
		return "TR" + s.number(24)
	}
	return "0x" + hex.EncodeToString(s.bytes(20))
}

// checked returns Base58Check: a version and a payload, followed by a checksum.
func checked(alphabet *base58.Alphabet, b []byte) string {
	once := sha256.Sum256(b)
	twice := sha256.Sum256(once[:])
	return base58.EncodeAlphabet(append(b, twice[:4]...), alphabet)
}
