// Package legacy owns the password hashes of other services: it reads their spellings, bounds their cost, and computes
// them for a typed password (D-AUTH-19).
//
// The one idea: every foreign hash is read once, at the import, into one form: a recipe, a salt and a tag. The recipe
// says how the tag is computed. So a login parses one grammar, and no cost is accepted there that was not bounded.
//
// Start reading at Hash, then bounds.go (accepted costs, weak hashes), derive.go (the functions) and text.go (the
// spellings of other services).
package legacy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Alg names the function of a hash.
type Alg string

// The functions.
const (
	Bcrypt         Alg = "bcrypt"
	Scrypt         Alg = "scrypt"
	FirebaseScrypt Alg = "fbscrypt" // the tag is the key stream that encrypts the signer key
	PBKDF2         Alg = "pbkdf2"
	Argon2id       Alg = "argon2id"
	Argon2i        Alg = "argon2i"
	Digest         Alg = "digest" // one MD5 or SHA of password and salt
	PHPass         Alg = "phpass" // portable hashes of PHP, iterated MD5
	MD5Crypt       Alg = "md5crypt"
	SHACrypt       Alg = "shacrypt" // crypt(3) with $5$ and $6$
)

// Orders of a Digest: the salt before the password, or after it.
const (
	SaltFirst = "sp"
	SaltLast  = "ps"
)

// Variants of a bcrypt that is not over the password itself.
const (
	PreSHA256    = "sha256" // over its hexadecimal SHA-256, of Django
	PreWordPress = "wp"     // over the base64 of its HMAC-SHA384 with the key "wp-sha384", of WordPress
)

// Recipe is how a tag is computed. Recipes are comparable; unused fields are zero.
type Recipe struct {
	Alg Alg
	// Cost is the base 2 logarithm of the rounds (bcrypt, PHPass) or of N (scrypt), the iterations (PBKDF2, SHACrypt) or
	// the passes (argon2).
	Cost uint32
	// Memory is r of scrypt, or the KiB of argon2.
	Memory uint32
	// Lanes is p of scrypt and argon2.
	Lanes uint32
	// Function is md5, sha1, sha224, sha256, sha384 or sha512, of PBKDF2, Digest and SHACrypt.
	Function string
	// Variant is the order of a Digest, PreSHA256 or PreWordPress.
	Variant string
}

// Hash is a foreign password hash.
type Hash struct {
	Recipe
	Salt []byte
	// Tag is the expected result. It is empty where the tag is the input of another hash, which wraps this one.
	Tag []byte
	// Size is the length of the tag in bytes.
	Size int
}

// String returns the recipe without a leading dollar sign, such as "bcrypt$r=12".
func (r Recipe) String() string {
	p := ""
	switch r.Alg {
	case Bcrypt:
		if p = fmt.Sprintf("r=%d", r.Cost); r.Variant != "" {
			p += ",pre=" + r.Variant
		}
	case Scrypt, FirebaseScrypt:
		p = fmt.Sprintf("ln=%d,r=%d,p=%d", r.Cost, r.Memory, r.Lanes)
	case PBKDF2, SHACrypt:
		p = fmt.Sprintf("h=%s,i=%d", r.Function, r.Cost)
	case Argon2id, Argon2i:
		p = fmt.Sprintf("m=%d,t=%d,p=%d", r.Memory, r.Cost, r.Lanes)
	case Digest:
		p = fmt.Sprintf("h=%s,o=%s", r.Function, r.Variant)
	case PHPass:
		p = fmt.Sprintf("c=%d", r.Cost)
	case MD5Crypt:
		p = "i=1000"
	}
	return string(r.Alg) + "$" + p
}

// ErrMalformed never contains the text: it may be a password in the wrong column.
var ErrMalformed = errors.New("the hash is malformed")

// ParseRecipe reads the text of Recipe.String, and checks the bounds.
//
// Errors: ErrMalformed, or ErrCost.
func ParseRecipe(text string) (r Recipe, err error) {
	alg, params, ok := strings.Cut(text, "$")
	if !ok {
		return r, ErrMalformed
	}
	r.Alg = Alg(alg)
	switch r.Alg {
	case Bcrypt:
		params, r.Variant, _ = strings.Cut(params, ",pre=")
		_, err = fmt.Sscanf(params, "r=%d", &r.Cost)
	case Scrypt, FirebaseScrypt:
		_, err = fmt.Sscanf(params, "ln=%d,r=%d,p=%d", &r.Cost, &r.Memory, &r.Lanes)
	case PBKDF2, SHACrypt:
		r.Function, params, _ = strings.Cut(strings.TrimPrefix(params, "h="), ",")
		_, err = fmt.Sscanf(params, "i=%d", &r.Cost)
	case Argon2id, Argon2i:
		_, err = fmt.Sscanf(params, "m=%d,t=%d,p=%d", &r.Memory, &r.Cost, &r.Lanes)
	case Digest:
		r.Function, r.Variant, _ = strings.Cut(strings.TrimPrefix(params, "h="), ",o=")
	case PHPass:
		_, err = fmt.Sscanf(params, "c=%d", &r.Cost)
	case MD5Crypt:
	default:
		return r, ErrMalformed
	}
	// Formatting it again detects what Sscanf accepts: signs, zeros, a tail.
	if err != nil || r.String() != text {
		return r, ErrMalformed
	}
	return r, r.Check()
}

// String returns recipe, salt and tag, separated by dollar signs. In place of a missing tag it has its size, such as
// "n=32". The text is a secret.
func (h Hash) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	tag := b64(h.Tag)
	if tag == "" {
		tag = "n=" + strconv.Itoa(h.Size)
	}
	return h.Recipe.String() + "$" + b64(h.Salt) + "$" + tag
}

// Parse reads the text of Hash.String.
//
// Errors: ErrMalformed, or ErrCost.
func Parse(text string) (h Hash, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 4 {
		return h, ErrMalformed
	}
	if h.Recipe, err = ParseRecipe(parts[0] + "$" + parts[1]); err != nil {
		return h, err
	}
	b64 := base64.RawStdEncoding.Strict()
	if h.Salt, err = b64.DecodeString(parts[2]); err != nil {
		return h, ErrMalformed
	}
	if n, missing := strings.CutPrefix(parts[3], "n="); missing {
		h.Size, err = strconv.Atoi(n)
	} else {
		h.Tag, err = b64.DecodeString(parts[3])
		h.Size = len(h.Tag)
	}
	if err != nil || h.checkBytes() != nil || h.String() != text {
		return Hash{}, ErrMalformed
	}
	return h, nil
}

// Inner returns the hash without its tag: the part that is stored where another hash wraps this one.
func (h Hash) Inner() Hash {
	h.Tag = nil
	return h
}
