package legacy

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// ErrUnknown reports a hash of no supported kind.
var ErrUnknown = errors.New("the kind of the hash is not supported")

// ErrUnsupported reports a hash of a known kind that is not computed here.
var ErrUnsupported = errors.New("hashes of yescrypt, gost-yescrypt and scrypt of crypt(3) are not supported")

// maxText is the longest text of a hash in bytes.
const maxText = 1024

// Read reads the spelling of another service: modular crypt ($2b$…, $6$…), PHC ($argon2id$…), passlib
// ($pbkdf2-sha256$…), Django (pbkdf2_sha256$…), PHPass ($P$…), WordPress ($wp$2y$…), LDAP ({SSHA}…), Spring
// ({bcrypt}…) and ASP.NET Identity (base64). none is true for a text that no password matches: an
// empty one, or Django's unusable password ("!…").
//
// Errors: ErrUnknown, ErrMalformed, ErrCost. They never contain the text.
func Read(text string) (h Hash, none bool, err error) {
	switch {
	case text == "", text[0] == '!', text[0] == '*':
		return h, true, nil
	case len(text) > maxText, strings.ContainsAny(text, "\r\n\x00"):
		return h, false, ErrMalformed
	case text[0] == '{':
		var ok bool
		if h, ok, err = spring(text); !ok {
			h, err = ldap(text)
		}
	case text[0] == '$':
		h, err = modular(text)
	default:
		h, err = django(text)
	}
	if err == nil {
		err = h.Check()
	}
	if err != nil {
		return Hash{}, false, err
	}
	return h, false, nil
}

// Check completes a hash that was read. It returns an error for one beyond the bounds, or without a tag.
//
// Errors: ErrMalformed, ErrCost.
func (h *Hash) Check() error {
	if err := h.Recipe.Check(); err != nil {
		return err
	}
	if h.Alg == PBKDF2 && len(h.Tag) > size[h.Function] {
		h.Tag = h.Tag[:size[h.Function]] // the blocks are independent; one of them decides
	}
	h.Size = len(h.Tag)
	return h.checkBytes()
}

// modular reads a text that begins with a dollar sign.
func modular(text string) (h Hash, err error) {
	parts := strings.Split(text[1:], "$")
	switch kind := parts[0]; {
	case kind == "2a", kind == "2b", kind == "2y":
		return bcryptText(parts)
	case kind == "P", kind == "H":
		return phpassText(parts)
	case kind == "1":
		return md5cryptText(parts)
	case kind == "5", kind == "6":
		return shacryptText(parts)
	case kind == "wp" && len(parts) == 4:
		if h, err = bcryptText(parts[1:]); parts[1] != "2y" {
			err = ErrMalformed
		}
		h.Variant = PreWordPress
		return h, err
	case kind == "y", kind == "gy", kind == "7":
		return h, ErrUnsupported
	case kind == "argon2id", kind == "argon2i":
		return argonText(parts)
	case kind == "scrypt":
		return scryptText(parts)
	case kind == "pbkdf2", strings.HasPrefix(kind, "pbkdf2-"):
		return passlibText(parts)
	}
	return h, ErrUnknown
}

var bcrypt64 = base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").
	WithPadding(base64.NoPadding)

// bcryptText reads "2b", cost, and 22 characters of salt with 31 of the tag. $2x$, the hash of a faulty program, is
// refused elsewhere.
func bcryptText(parts []string) (h Hash, err error) {
	if len(parts) != 3 || len(parts[1]) != 2 || len(parts[2]) != 53 {
		return h, ErrMalformed
	}
	cost, err := number(strings.TrimPrefix(parts[1], "0"))
	if err != nil {
		return h, err
	}
	h.Recipe = Recipe{Alg: Bcrypt, Cost: cost}
	if h.Salt, err = bcrypt64.DecodeString(parts[2][:22]); err != nil { // the last bits of a salt are ignored everywhere
		return h, ErrMalformed
	}
	if h.Tag, err = bcrypt64.Strict().DecodeString(parts[2][22:]); err != nil {
		return h, ErrMalformed
	}
	return h, nil
}

// argonText reads the PHC string of version 0x13.
func argonText(parts []string) (h Hash, err error) {
	if len(parts) != 5 || parts[1] != "v=19" {
		return h, ErrMalformed
	}
	h.Alg = Alg(parts[0])
	if _, err := fmt.Sscanf(parts[2], "m=%d,t=%d,p=%d", &h.Memory, &h.Cost, &h.Lanes); err != nil ||
		h.Recipe.String() != parts[0]+"$"+parts[2] {
		return h, ErrMalformed
	}
	return h, h.bytes(base64.RawStdEncoding, parts[3], parts[4])
}

// maxLogarithm is the largest cost of scrypt that is a logarithm.
const maxLogarithm = 63

func unpadded(text string) string { return strings.TrimRight(text, "=") }

func scryptText(parts []string) (h Hash, err error) {
	if len(parts) != 4 {
		return h, ErrMalformed
	}
	h.Alg = Scrypt
	if _, err := fmt.Sscanf(parts[1], "ln=%d,r=%d,p=%d", &h.Cost, &h.Memory, &h.Lanes); err != nil ||
		h.Recipe.String() != "scrypt$"+parts[1] {
		return h, ErrMalformed
	}
	if h.Cost > maxLogarithm { // Kratos writes N itself, and pads
		if h.Cost, err = log2(uint64(h.Cost)); err != nil {
			return h, ErrCost
		}
	}
	return h, h.bytes(base64.RawStdEncoding, unpadded(parts[2]), unpadded(parts[3]))
}

// passlibText reads "pbkdf2-sha256", parameters, salt and tag. The parameters are the iterations (passlib), or those of
// the PHC form (Auth0, Kratos, RustCrypto). passlib writes base64 with a dot in place of the plus sign.
func passlibText(parts []string) (h Hash, err error) {
	if len(parts) != 4 {
		return h, ErrMalformed
	}
	h.Recipe = Recipe{Alg: PBKDF2, Function: "sha1"}
	if _, named, ok := strings.Cut(parts[0], "-"); ok {
		h.Function = named
	}
	length := 0
	if h.Cost, length, err = phcPBKDF2(parts[1]); err != nil {
		return h, err
	}
	plus := func(s string) string { return strings.ReplaceAll(unpadded(s), ".", "+") }
	if err = h.bytes(base64.RawStdEncoding, plus(parts[2]), plus(parts[3])); length != 0 && length != len(h.Tag) {
		err = ErrMalformed
	}
	return h, err
}

// bytes decodes salt and tag.
func (h *Hash) bytes(e *base64.Encoding, salt, tag string) (err error) {
	if h.Salt, err = e.Strict().DecodeString(salt); err == nil {
		h.Tag, err = e.Strict().DecodeString(tag)
	}
	if err != nil || strings.ContainsAny(salt+tag, "\r\n") {
		return ErrMalformed
	}
	return nil
}

// django reads "algorithm$…" of Django. Its salts are texts.
func django(text string) (h Hash, err error) {
	kind, rest, ok := strings.Cut(text, "$")
	if !ok {
		if h, ok = aspNet(text); !ok {
			err = ErrUnknown
		}
		return h, err
	}
	parts := strings.Split(rest, "$")
	switch kind {
	case "argon2":
		return modular("$" + rest)
	case "bcrypt", "bcrypt_sha256":
		if !strings.HasPrefix(rest, "$2") {
			return h, ErrMalformed
		}
		if h, err = modular(rest); kind == "bcrypt_sha256" {
			h.Variant = PreSHA256
		}
		return h, err
	case "pbkdf2_sha256", "pbkdf2_sha1":
		if len(parts) != 3 {
			return h, ErrMalformed
		}
		h = Hash{Recipe: Recipe{Alg: PBKDF2, Function: strings.TrimPrefix(kind, "pbkdf2_")}, Salt: []byte(parts[1])}
		if h.Cost, err = number(parts[0]); err == nil {
			h.Tag, err = base64.StdEncoding.Strict().DecodeString(parts[2])
		}
	case "scrypt": // N, salt, r, p, tag
		if len(parts) != 5 {
			return h, ErrMalformed
		}
		h = Hash{Recipe: Recipe{Alg: Scrypt}, Salt: []byte(parts[1])}
		var n uint32
		if n, err = number(parts[0]); err == nil {
			h.Cost, err = log2(uint64(n))
		}
		if err == nil {
			h.Memory, err = number(parts[2])
		}
		if err == nil {
			h.Lanes, err = number(parts[3])
		}
		if err == nil {
			h.Tag, err = base64.StdEncoding.Strict().DecodeString(parts[4])
		}
	case "sha1", "md5", "sha256", "sha512":
		if len(parts) != 2 {
			return h, ErrMalformed
		}
		h = Hash{Recipe: Recipe{Alg: Digest, Function: kind, Variant: SaltFirst}, Salt: []byte(parts[0])}
		h.Tag, err = hex.DecodeString(parts[1])
	default:
		return h, ErrUnknown
	}
	if err != nil {
		return h, ErrMalformed
	}
	return h, nil
}

// ldap reads "{SSHA}" and base64 of the tag with the salt behind it.
func ldap(text string) (h Hash, err error) {
	kind, body, _ := strings.Cut(text[1:], "}")
	function, ok := map[string]string{"SHA": "sha1", "SSHA": "sha1", "SHA256": "sha256", "SSHA256": "sha256",
		"SHA512": "sha512", "SSHA512": "sha512", "MD5": "md5", "SMD5": "md5"}[strings.ToUpper(kind)]
	if !ok {
		return h, ErrUnknown
	}
	both, err := base64.StdEncoding.Strict().DecodeString(body)
	if n := size[function]; err == nil && len(both) >= n {
		h = Hash{Recipe: Recipe{Alg: Digest, Function: function, Variant: SaltLast}, Salt: both[n:], Tag: both[:n]}
		return h, nil
	}
	return h, ErrMalformed
}

const itoa64 = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// crypt64 decodes the base 64 of crypt(3): the least significant six bits first, three bytes in four characters.
func crypt64(text string, n int) ([]byte, bool) {
	out, acc, have := make([]byte, 0, n), uint32(0), 0
	for i := range len(text) {
		v := strings.IndexByte(itoa64, text[i])
		if v < 0 {
			return nil, false
		}
		acc |= uint32(v) << have
		for have += 6; have >= 8; have -= 8 {
			out = append(out, byte(acc))
			acc >>= 8
		}
	}
	return out, len(out) == n && acc == 0
}

// phpassText reads "P", one character of cost, 8 of salt, 22 of the tag.
func phpassText(parts []string) (h Hash, err error) {
	if len(parts) != 2 || len(parts[1]) != 31 {
		return h, ErrMalformed
	}
	cost := strings.IndexByte(itoa64, parts[1][0])
	tag, ok := crypt64(parts[1][9:], 16)
	if cost < 0 || !ok {
		return h, ErrMalformed
	}
	return Hash{Recipe: Recipe{Alg: PHPass, Cost: uint32(cost)}, Salt: []byte(parts[1][1:9]), Tag: tag}, nil
}

// md5cryptOrder is the order in which crypt(3) writes the bytes of the tag.
var md5cryptOrder = [16]int{12, 6, 0, 13, 7, 1, 14, 8, 2, 15, 9, 3, 5, 10, 4, 11}

// md5cryptText reads "1", up to 8 characters of salt, 22 of the tag.
func md5cryptText(parts []string) (h Hash, err error) {
	if len(parts) != 3 || len(parts[2]) != 22 {
		return h, ErrMalformed
	}
	mixed, ok := crypt64(parts[2], 16)
	if !ok {
		return h, ErrMalformed
	}
	tag := make([]byte, 16)
	for i, at := range md5cryptOrder {
		tag[at] = mixed[i]
	}
	return Hash{Recipe: Recipe{Alg: MD5Crypt}, Salt: []byte(parts[1]), Tag: tag}, nil
}

// number reads a decimal number in its one spelling.
//
// Errors: ErrMalformed; ErrCost beyond 32 bits.
func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, ErrCost
	case err != nil, strconv.FormatUint(n, 10) != text:
		return 0, ErrMalformed
	}
	return uint32(n), nil
}

// log2 returns the logarithm of a power of two.
func log2(n uint64) (uint32, error) {
	if n < 2 || n&(n-1) != 0 {
		return 0, ErrMalformed
	}
	return uint32(bits.TrailingZeros64(n)), nil
}
