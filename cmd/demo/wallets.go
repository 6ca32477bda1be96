package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"
)

// The alphabets of base 58.
const (
	bitcoinAlphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	rippleAlphabet  = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
)

// outside returns a network address without a known key: its bytes are random, and its form and checksum are valid.
func outside(s source, network string) string {
	switch network {
	case "BTC":
		return checked(bitcoinAlphabet, append([]byte{0}, s.bytes(20)...))
	case "TRX":
		return checked(bitcoinAlphabet, append([]byte{0x41}, s.bytes(20)...))
	case "XRP":
		return checked(rippleAlphabet, append([]byte{0}, s.bytes(20)...))
	case "SOL":
		return base58(bitcoinAlphabet, s.bytes(32))
	case "BANK":
		return "TR" + s.number(24)
	}
	return "0x" + hex.EncodeToString(s.bytes(20))
}

// checked returns Base58Check: a version and a payload, followed by a checksum.
func checked(alphabet string, b []byte) string {
	once := sha256.Sum256(b)
	twice := sha256.Sum256(once[:])
	return base58(alphabet, append(b, twice[:4]...))
}

func base58(alphabet string, b []byte) string {
	var digits []byte
	for n, base, d := new(big.Int).SetBytes(b), big.NewInt(58), new(big.Int); n.Sign() > 0; {
		n.DivMod(n, base, d)
		digits = append(digits, alphabet[d.Int64()])
	}
	var out strings.Builder
	for i := 0; i < len(b) && b[i] == 0; i++ {
		out.WriteByte(alphabet[0])
	}
	for i := len(digits) - 1; i >= 0; i-- {
		out.WriteByte(digits[i])
	}
	return out.String()
}
