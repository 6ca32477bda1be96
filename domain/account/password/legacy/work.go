package legacy

import "crypto/rand"

// Hundredths of a work unit for one step of each function. A unit is about a microsecond of one processor of 2026. The
// table is fixed, so that a limit admits the same hashes on every machine.
const (
	workBcrypt = 6000 // a round
	workScrypt = 28   // N·r·p
	workArgon  = 50   // a KiB of a pass
	workPHPass = 10   // a round
	workMD5    = 25   // a round of MD5-crypt
	workDigest = 100
)

var (
	workPBKDF2   = map[string]uint64{"sha1": 16, "sha224": 16, "sha256": 16, "sha384": 40, "sha512": 40}
	workSHACrypt = map[string]uint64{"sha256": 15, "sha512": 35}
)

// Work is the cost of a hash in work units, at least 1.
func (r Recipe) Work() uint64 {
	return max(1, r.hundredths()/100)
}

func (r Recipe) hundredths() uint64 {
	n := uint64(r.Cost)
	switch r.Alg {
	case Bcrypt:
		return workBcrypt << n
	case PHPass:
		return workPHPass << n
	case Scrypt, FirebaseScrypt:
		return workScrypt * (uint64(r.Memory) << n) * uint64(r.Lanes)
	case PBKDF2:
		return workPBKDF2[r.Function] * n
	case SHACrypt:
		return workSHACrypt[r.Function] * n
	case Argon2id, Argon2i:
		return workArgon * uint64(r.Memory) * n
	case MD5Crypt:
		return workMD5 * md5Rounds
	}
	return workDigest
}

// Decoy returns a hash of the recipe that no password has. It is computed like any other.
func (r Recipe) Decoy() Hash {
	h := Hash{Recipe: r, Salt: make([]byte, 16), Tag: make([]byte, 32)}
	switch r.Alg {
	case Bcrypt:
		h.Tag = h.Tag[:bcryptTag]
	case Digest, SHACrypt:
		h.Tag = make([]byte, size[r.Function])
	case PBKDF2:
		h.Tag = h.Tag[:min(len(h.Tag), size[r.Function])]
	case PHPass, MD5Crypt:
		h.Salt, h.Tag = h.Salt[:8], h.Tag[:md5Size]
	}
	rand.Read(h.Salt) // never fails
	rand.Read(h.Tag)
	h.Size = len(h.Tag)
	return h
}
