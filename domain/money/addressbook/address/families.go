package address

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/btcsuite/btcd/btcutil/bech32"
	"github.com/mr-tron/base58"
	"golang.org/x/crypto/sha3"
)

// evm accepts 20 bytes in hexadecimal. Letters of a single case carry no checksum; mixed case is the checksum of
// EIP-55.
func evm(address string) bool {
	digits, ok := strings.CutPrefix(address, "0x")
	if !ok || len(digits) != 40 {
		return false
	}
	lower := strings.ToLower(digits)
	if _, err := hex.DecodeString(lower); err != nil {
		return false
	}
	if digits == lower || digits == strings.ToUpper(digits) {
		return true
	}
	h := sha3.NewLegacyKeccak256()
	h.Write([]byte(lower))
	sum := hex.EncodeToString(h.Sum(nil))
	for i := range len(digits) {
		letter := lower[i] >= 'a'
		if capital := digits[i] != lower[i]; letter && capital != (sum[i] >= '8') {
			return false
		}
	}
	return true
}

// bitcoin accepts addresses of the main network: P2PKH and P2SH in base58check, version 0 of witness programs in bech32
// and taproot in bech32m. Programs of later versions, and of version 1 with other lengths, are rejected although they
// can be encoded: until they are defined, anyone can spend funds sent to them.
func bitcoin(address string) bool {
	if payload, ok := base58check(address, base58.BTCAlphabet, 21); ok {
		return payload[0] == 0x00 || payload[0] == 0x05
	}
	part, words, encoding, err := bech32.DecodeGeneric(address)
	if err != nil || part != "bc" || len(words) == 0 {
		return false
	}
	program, err := bech32.ConvertBits(words[1:], 5, 8, false)
	if err != nil {
		return false
	}
	switch words[0] {
	case 0:
		return encoding == bech32.Version0 && (len(program) == 20 || len(program) == 32)
	case 1:
		return encoding == bech32.VersionM && len(program) == 32
	}
	return false
}

// tron accepts base58check of 0x41 and 20 bytes.
func tron(address string) bool {
	payload, ok := base58check(address, base58.BTCAlphabet, 21)
	return ok && payload[0] == 0x41
}

// solana accepts base58 of 32 bytes. It has no checksum: a typing error may go undetected.
func solana(address string) bool {
	key, err := base58.Decode(address)
	return err == nil && len(key) == 32
}

var xrpAlphabet = base58.NewAlphabet("rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz")

// xrp accepts classic addresses, and X-addresses of the main network, which include the destination tag (XLS-5d).
func xrp(address string) bool {
	if payload, ok := base58check(address, xrpAlphabet, 21); ok {
		return payload[0] == 0x00
	}
	payload, ok := base58check(address, xrpAlphabet, 31)
	if !ok || payload[0] != 0x05 || payload[1] != 0x44 {
		return false
	}
	switch flag, tag := payload[22], binary.LittleEndian.Uint64(payload[23:]); flag {
	case 0:
		return tag == 0
	case 1:
		return tag <= 0xffffffff
	}
	return false
}

// base58check decodes n bytes and their checksum.
func base58check(text string, alphabet *base58.Alphabet, n int) (payload []byte, ok bool) {
	b, err := base58.DecodeAlphabet(text, alphabet)
	if err != nil || len(b) != n+4 {
		return nil, false
	}
	once := sha256.Sum256(b[:n])
	twice := sha256.Sum256(once[:])
	return b[:n], bytes.Equal(twice[:4], b[n:])
}
