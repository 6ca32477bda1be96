package legacy

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// Parts is a hash whose recipe is given by fields, as in the JSON object of an import file. Hash and Salt are base64
// (either alphabet, padded or not), or hexadecimal if Encoding is "hex".
type Parts struct {
	Alg      string `json:"alg"`
	Hash     string `json:"hash"`
	Salt     string `json:"salt"`
	Encoding string `json:"encoding"` // "" or "base64", "hex"

	Iterations uint32 `json:"iterations"` // PBKDF2
	N          uint64 `json:"n"`          // scrypt
	R          uint32 `json:"r"`
	P          uint32 `json:"p"`
	Memory     uint32 `json:"memory"` // argon2, in KiB
	Passes     uint32 `json:"passes"`
	Lanes      uint32 `json:"lanes"`
	Order      string `json:"order"` // of a digest: "salt-first" (default), "salt-last"

	SignerKey     string `json:"signerKey"` // Firebase
	SaltSeparator string `json:"saltSeparator"`
	Rounds        uint32 `json:"rounds"`
	MemCost       uint32 `json:"memCost"`
}

// Read returns the hash.
//
// Errors: ErrUnknown, ErrMalformed, ErrCost.
func (p Parts) Read() (h Hash, err error) {
	if strings.HasPrefix(p.Hash, "$") { // a complete text
		if h, _, err = Read(p.Hash); err == nil && p.Alg != string(h.Alg) {
			err = ErrMalformed
		}
		return h, err
	}
	decode := Base64
	switch p.Encoding {
	case "", "base64":
	case "hex":
		decode = hex.DecodeString
	default:
		return h, ErrMalformed
	}
	if h.Recipe, err = p.recipe(); err != nil {
		return h, err
	}
	if h.Salt, err = decode(p.Salt); err != nil {
		return h, ErrMalformed
	}
	if h.Tag, err = decode(p.Hash); err != nil {
		return h, ErrMalformed
	}
	if h.Alg == FirebaseScrypt {
		return Firebase{p.SignerKey, p.SaltSeparator, p.Rounds, p.MemCost}.Hash(p.Hash, p.Salt)
	}
	return h, h.Check()
}

func (p Parts) recipe() (r Recipe, err error) {
	alg, function, _ := strings.Cut(p.Alg, "-")
	switch {
	case alg == "pbkdf2" && function != "":
		return Recipe{Alg: PBKDF2, Cost: p.Iterations, Function: function}, nil
	case p.Alg == "scrypt":
		r = Recipe{Alg: Scrypt, Memory: p.R, Lanes: p.P}
		r.Cost, err = log2(p.N)
		return r, err
	case p.Alg == "firebase-scrypt":
		return Recipe{Alg: FirebaseScrypt}, nil
	case p.Alg == "argon2id", p.Alg == "argon2i":
		return Recipe{Alg: Alg(p.Alg), Memory: p.Memory, Cost: p.Passes, Lanes: p.Lanes}, nil
	case size[p.Alg] > 0:
		order, ok := map[string]string{"": SaltFirst, "salt-first": SaltFirst, "salt-last": SaltLast}[p.Order]
		if !ok {
			return r, ErrMalformed
		}
		return Recipe{Alg: Digest, Function: p.Alg, Variant: order}, nil
	}
	return r, ErrUnknown
}

// Base64 decodes base64 in the standard or the URL alphabet, padded or not.
//
// Errors: ErrMalformed.
func Base64(text string) ([]byte, error) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return nil, ErrMalformed
	}
	return b, nil
}

// Firebase holds the hash parameters of a Firebase project, as its console shows them.
type Firebase struct {
	SignerKey     string // base64
	SaltSeparator string // base64
	Rounds        uint32
	MemCost       uint32
}

// Hash returns the hash of a user. The signer key is not kept: a hash is the key, encrypted with a key stream of the
// password, so the key stream itself is the tag.
//
// Errors: ErrMalformed, ErrCost.
func (f Firebase) Hash(hash, salt string) (h Hash, err error) {
	var signer, separator []byte
	for _, part := range []struct {
		to   *[]byte
		text string
	}{{&signer, f.SignerKey}, {&separator, f.SaltSeparator}, {&h.Tag, hash}, {&h.Salt, salt}} {
		if *part.to, err = Base64(part.text); err != nil {
			return Hash{}, err
		}
	}
	if len(signer) == 0 || len(h.Tag) != len(signer) {
		return Hash{}, ErrMalformed
	}
	h.Recipe = Recipe{Alg: FirebaseScrypt, Cost: f.MemCost, Memory: f.Rounds, Lanes: 1}
	h.Salt = append(h.Salt, separator...)
	for i := range h.Tag {
		h.Tag[i] ^= signer[i]
	}
	return h, h.Check()
}
