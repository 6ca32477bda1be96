package address

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"

	"github.com/btcsuite/btcd/btcutil/bech32"
	"github.com/mr-tron/base58"
)

var (
	number = regexp.MustCompile(`^(?:0[xX])?[0-9A-Fa-f]+$`)
	ton    = regexp.MustCompile(`^-?[0-9]+:[0-9A-Fa-f]{64}$`)
)

// Canonical returns the common form of all spellings of an address or of the hash of a transaction (D-WAD-06). It has
// no blanks and invisible characters. A hexadecimal number is in lower case and without 0x, and a bech32 text in
// capitals is in lower case; so are CashAddr, without its prefix, and a raw address of TON. The base58 of TRON becomes
// its hexadecimal. Any other text is unchanged, because in base58 each letter counts. The form follows from the text,
// so a network needs no rule: the forms of networks do not overlap. It is a key, and is never shown.
func Canonical(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == ' ' || !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text)
	lower := strings.ToLower(text)
	if number.MatchString(text) {
		return strings.TrimPrefix(lower, "0x")
	}
	if len(text) == tronLength && tron(text) {
		payload, _ := base58check(text, base58.BTCAlphabet, 21)
		return hex.EncodeToString(payload)
	}
	if ton.MatchString(text) {
		return lower
	}
	if payload, ok := cashAddr(text); ok {
		return payload
	}
	if text == strings.ToUpper(text) {
		if _, _, _, err := bech32.DecodeGeneric(lower); err == nil {
			return lower
		}
	}
	return text
}

// tronLength is the length of every address of TRON in base58.
const tronLength = 34

// Spellings returns the texts to which every spelling of an address or a hash becomes in lower case, without blanks and
// invisible characters and without 0x.
func Spellings(text string) []string {
	c := Canonical(text)
	all := []string{strings.ReplaceAll(strings.ToLower(c), "0x", "")}
	if _, ok := cashAddr(c); ok {
		all = append(all, cashPrefix+c)
	}
	if payload, err := hex.DecodeString(c); err == nil && len(payload) == 21 && payload[0] == 0x41 {
		once := sha256.Sum256(payload)
		twice := sha256.Sum256(once[:])
		all = append(all, strings.ToLower(base58.Encode(append(payload, twice[:4]...))))
	}
	return all
}

const cashPrefix = "bitcoincash:"

// cashAddr returns an address of Bitcoin Cash in lower case and without its prefix (CashAddr: 160 or 256 bits).
func cashAddr(text string) (payload string, ok bool) {
	lower := strings.ToLower(text)
	payload = strings.TrimPrefix(lower, cashPrefix)
	if !Plain(text) || len(payload) != 42 && len(payload) != 61 {
		return "", false
	}
	if sent := text[len(text)-len(payload):]; sent != payload && sent != strings.ToUpper(sent) {
		return "", false
	}
	sum := uint64(1)
	add := func(v uint64) {
		top := sum >> 35
		sum = (sum&0x07ffffffff)<<5 ^ v
		for i, g := range []uint64{0x98f2bc8e61, 0x79b76d99e2, 0xf33e5fb3c4, 0xae2eabe2a8, 0x1e4f43e470} {
			if top>>i&1 == 1 {
				sum ^= g
			}
		}
	}
	for _, c := range strings.TrimSuffix(cashPrefix, ":") {
		add(uint64(c) & 31)
	}
	add(0)
	for _, c := range payload {
		v := strings.IndexRune("qpzry9x8gf2tvdw0s3jn54khce6mua7l", c)
		if v < 0 {
			return "", false
		}
		add(uint64(v))
	}
	return payload, sum == 1
}

// Same reports whether two texts are spellings of one address, or of one hash.
func Same(a, b string) bool { return Canonical(a) == Canonical(b) }

// Plain reports whether a text consists of visible ASCII characters, apart from blanks around it. No network writes an
// address or a hash with others, and a reader cannot tell some of them apart.
func Plain(text string) bool {
	return strings.IndexFunc(strings.TrimSpace(text), func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}
