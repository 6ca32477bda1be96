package legacy

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5" // #nosec G501: other services have such hashes; they are wrapped at the import.
	"crypto/pbkdf2"
	"crypto/sha1" // #nosec G505: as above.
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"strings"

	//lint:ignore SA1019 bcrypt is made of it, and the package bcrypt returns no bytes.
	"golang.org/x/crypto/blowfish"
	"golang.org/x/crypto/scrypt"
)

// Argon computes argon2 over memory of the caller. independent selects argon2i; otherwise it is argon2id.
type Argon func(password, salt []byte, kib, passes uint32, lanes uint8, independent bool, n uint32) []byte

var functions = map[string]func() hash.Hash{"md5": md5.New, "sha1": sha1.New, "sha224": sha256.New224,
	"sha256": sha256.New, "sha384": sha512.New384, "sha512": sha512.New}

// Fits reports whether a password can match the hash at all. Several functions of other services ignore the bytes after
// a NUL, or after the 72nd. The first login stores a new hash of the whole password, so an ignored rest would become
// the password. An empty password never matches.
func (r Recipe) Fits(password string) bool {
	if password == "" || len(password) > MaxPassword || strings.IndexByte(password, 0) >= 0 {
		return false
	}
	switch r.Variant {
	case PreWordPress:
		return strings.Trim(password, wordPressBlanks) == password
	case "":
		return r.Alg != Bcrypt || len(password) <= maxBcryptPassword
	}
	return true
}

// Derive computes the tag of a password. A password beyond MaxPassword is cut, so it costs no more. Use Fits to decide
// whether the result may be compared.
//
// Errors: internal, for parameters beyond the bounds.
func (h Hash) Derive(password []byte, argon Argon) ([]byte, error) {
	if err := h.Recipe.Check(); err != nil {
		return nil, err
	}
	n := h.Size
	password = password[:min(len(password), MaxPassword)]
	switch h.Alg {
	case Bcrypt:
		switch h.Variant {
		case PreSHA256:
			sum := sha256.Sum256(password)
			password = hex.AppendEncode(nil, sum[:])
		case PreWordPress:
			mac := hmac.New(sha512.New384, []byte("wp-sha384"))
			mac.Write(password)
			password = base64.StdEncoding.AppendEncode(nil, mac.Sum(nil))
		}
		return bcrypt(password, h.Cost, h.Salt)
	case Scrypt:
		return scrypt.Key(password, h.Salt, 1<<h.Cost, int(h.Memory), int(h.Lanes), n)
	case FirebaseScrypt:
		key, err := scrypt.Key(password, h.Salt, 1<<h.Cost, int(h.Memory), int(h.Lanes), firebaseKey)
		if err != nil {
			return nil, err
		}
		return keyStream(key, n)
	case PBKDF2:
		return pbkdf2.Key(functions[h.Function], string(password), h.Salt, int(h.Cost), n)
	case Argon2id, Argon2i:
		return argon(password, h.Salt, h.Memory, h.Cost, uint8(h.Lanes), h.Alg == Argon2i, uint32(n)), nil
	case Digest:
		f := functions[h.Function]()
		first, last := h.Salt, password
		if h.Variant == SaltLast {
			first, last = password, h.Salt
		}
		f.Write(first)
		f.Write(last)
		return f.Sum(nil), nil
	case PHPass:
		return phpass(password, h.Salt, h.Cost), nil
	case MD5Crypt:
		return md5crypt(password, h.Salt), nil
	case SHACrypt:
		return shacrypt(functions[h.Function], password, h.Salt, h.Cost), nil
	}
	return nil, ErrMalformed
}

// wordPressBlanks are the characters that WordPress removes from both ends of a password.
const wordPressBlanks = " \t\n\r\x00\v"

// firebaseKey is the length of the AES key of a Firebase hash in bytes.
const firebaseKey = 32

// keyStream is AES-256 in counter mode from zero. A Firebase hash is the signer key, encrypted with it.
func keyStream(key []byte, n int) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	out := make([]byte, n)
	// #nosec G407: the function of Firebase has no other; each key is of one salt and password.
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(out, out)
	return out, nil
}

var errSalt = errors.New("legacy: a salt of bcrypt has 16 bytes")

// bcrypt is the function of Provos and Mazières with the 192 bits of output, of which 23 bytes are kept. The usual
// package returns only texts, and a wrapped hash needs the bytes.
func bcrypt(password []byte, cost uint32, salt []byte) ([]byte, error) {
	if len(salt) != bcryptSalt {
		return nil, errSalt
	}
	key := append(append(make([]byte, 0, len(password)+1), password...), 0)
	if len(key) > maxBcryptPassword {
		key = key[:maxBcryptPassword]
	}
	defer clear(key)
	c, err := blowfish.NewSaltedCipher(key, salt)
	if err != nil {
		return nil, err
	}
	for range uint64(1) << cost {
		blowfish.ExpandKey(key, c)
		blowfish.ExpandKey(salt, c)
	}
	out := []byte("OrpheanBeholderScryDoubt")
	for i := 0; i < len(out); i += blowfish.BlockSize {
		for range 64 {
			c.Encrypt(out[i:], out[i:])
		}
	}
	return out[:bcryptTag], nil
}

// phpass is the portable hash of PHPass: MD5 of salt and password, then MD5 of the sum and the password, 2^cost times.
func phpass(password, salt []byte, cost uint32) []byte {
	// #nosec G401: the function of PHPass.
	sum := md5.Sum(append(append([]byte(nil), salt...), password...))
	in := make([]byte, md5.Size+len(password))
	defer clear(in)
	copy(in[md5.Size:], password)
	for range uint64(1) << cost {
		copy(in, sum[:])
		sum = md5.Sum(in) // #nosec G401: as above.
	}
	return sum[:]
}

const md5Rounds = 1000

// md5crypt is crypt(3) with $1$, of Poul-Henning Kamp.
func md5crypt(password, salt []byte) []byte {
	newMD5 := functions["md5"]
	inner := sum(newMD5, password, salt, password)
	parts := [][]byte{password, []byte("$1$"), salt, stretched(inner, len(password))}
	for n := len(password); n > 0; n >>= 1 {
		if n&1 != 0 {
			parts = append(parts, []byte{0})
		} else {
			parts = append(parts, password[:1])
		}
	}
	return iterated(newMD5, sum(newMD5, parts...), password, salt, md5Rounds)
}

func sum(newHash func() hash.Hash, parts ...[]byte) []byte {
	h := newHash()
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}

// stretched is a sum repeated to n bytes.
func stretched(sum []byte, n int) []byte { return bytes.Repeat(sum, n/len(sum)+1)[:n] }

// iterated returns the state after the rounds of crypt(3).
func iterated(newHash func() hash.Hash, state, password, salt []byte, rounds uint32) []byte {
	h := newHash()
	for i := range rounds {
		h.Reset()
		first, last := state, password
		if i%2 != 0 {
			first, last = password, state
		}
		h.Write(first)
		if i%3 != 0 {
			h.Write(salt)
		}
		if i%7 != 0 {
			h.Write(password)
		}
		h.Write(last)
		state = h.Sum(state[:0])
	}
	return state
}
