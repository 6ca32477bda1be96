package legacy

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
)

// spring reads "{id}text" of Spring's DelegatingPasswordEncoder. ok is false for any other id, such as one of LDAP. The
// texts of PBKDF2 have no parameters: they are those of the version that the id names.
func spring(text string) (h Hash, ok bool, err error) {
	id, body, _ := strings.Cut(text[1:], "}")
	id, version, _ := strings.Cut(id, "@")
	if version != "" && version != "SpringSecurity_v5_8" {
		return h, false, nil
	}
	switch id {
	case "bcrypt", "argon2":
		if !strings.HasPrefix(body, "$") {
			return h, true, ErrMalformed
		}
		h, err = modular(body)
		return h, true, err
	case "scrypt":
		h, err = springScrypt(body)
		return h, true, err
	case "pbkdf2":
		r, salt := Recipe{Alg: PBKDF2, Function: "sha1", Cost: 185_000}, 8
		if version != "" {
			r, salt = Recipe{Alg: PBKDF2, Function: "sha256", Cost: 310_000}, 16
		}
		both, err := hex.DecodeString(body)
		if err != nil || len(both) != salt+32 {
			return h, true, ErrMalformed
		}
		h = Hash{Recipe: r, Salt: both[:salt], Tag: both[salt:]}
		return h, true, nil
	case "ldap":
		h, err = ldap(body)
		return h, true, err
	}
	return h, false, nil
}

// springScrypt reads "$e0801$salt$tag": in hexadecimal the logarithm of N, r and p, the last ones with two digits each.
func springScrypt(text string) (h Hash, err error) {
	parts := strings.Split(text, "$")
	if len(parts) != 4 || parts[0] != "" {
		return h, ErrMalformed
	}
	n, err := strconv.ParseUint(parts[1], 16, 24)
	if err != nil {
		return h, ErrMalformed
	}
	h.Recipe = Recipe{Alg: Scrypt, Cost: uint32(n >> 16), Memory: uint32(n>>8) & 0xff, Lanes: uint32(n) & 0xff}
	return h, h.bytes(base64.StdEncoding, parts[2], parts[3])
}

// aspNet reads the base64 of ASP.NET Identity: a byte 0 (version 2), salt and tag of PBKDF2-SHA1; or a byte 1 (version
// 3), the function, the iterations and the length of the salt, salt and tag. ok is false for any other text.
func aspNet(text string) (h Hash, ok bool) {
	const saltBytes, tagBytes, head = 16, 32, 13
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil || len(b) == 0:
		return h, false
	case b[0] == 0 && len(b) == 1+saltBytes+tagBytes:
		return Hash{Recipe: Recipe{Alg: PBKDF2, Function: "sha1", Cost: 1000}, Salt: b[1 : 1+saltBytes],
			Tag: b[1+saltBytes:]}, true
	case b[0] != 1 || len(b) <= head:
		return h, false
	}
	function, salt := binary.BigEndian.Uint32(b[1:]), uint64(binary.BigEndian.Uint32(b[9:]))
	names := [...]string{"sha1", "sha256", "sha512"}
	if function >= uint32(len(names)) || salt > maxSalt || head+salt >= uint64(len(b)) {
		return h, false
	}
	// #nosec G602: function is compared with the length above.
	h.Recipe = Recipe{Alg: PBKDF2, Function: names[function], Cost: binary.BigEndian.Uint32(b[5:])}
	h.Salt, h.Tag = b[head:head+salt], b[head+salt:]
	return h, true
}

// phcPBKDF2 reads the parameters "i=1000,l=64" of PBKDF2 in the PHC form. length is 0 if it is left out.
func phcPBKDF2(text string) (iterations uint32, length int, err error) {
	text, size, sized := strings.Cut(text, ",")
	if sized {
		if _, size, sized = strings.Cut(size, "="); !sized {
			return 0, 0, ErrMalformed
		}
		if length, err = strconv.Atoi(size); err != nil || length <= 0 {
			return 0, 0, ErrMalformed
		}
	}
	iterations, err = number(strings.TrimPrefix(text, "i="))
	return iterations, length, err
}
