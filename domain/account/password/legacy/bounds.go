package legacy

import "errors"

// ErrCost reports cost parameters beyond the bounds. A login must not wait for a hash of minutes, or need gigabytes.
var ErrCost = errors.New("the cost of the hash is out of bounds")

// Bounds of the cost parameters. At each of them a hash takes about a second on one processor, and 128 MiB at most.
const (
	minBcrypt, maxBcrypt = 4, 14
	minScrypt, maxScrypt = 1, 20     // base 2 logarithm of N
	maxScryptKiB         = 128 << 10 // 128·N·r bytes
	maxScryptWork        = 1 << 21   // N·r·p
	maxIterations        = 2_000_000 // PBKDF2
	maxArgonKiB          = 128 << 10
	maxArgonPasses       = 64
	maxArgonWork         = 1 << 20 // KiB times passes
	maxLanes             = 16
	minRounds, maxRounds = 1000, 1_000_000 // SHA-crypt
	minPHPass, maxPHPass = 7, 20
	maxSalt              = 128 // bytes
	maxTag               = 128 // bytes
	minTag               = 16  // bytes
	bcryptSalt           = 16
	bcryptTag            = 23
)

// MaxPassword is the longest password, in bytes, that matches a foreign hash. Iterated functions read the whole
// password in each round, so a password of megabytes would be an attack.
const MaxPassword = 512

// maxBcryptPassword is the longest password that bcrypt reads. Longer ones match their first 72 bytes elsewhere.
const maxBcryptPassword = 72

// size is the length of the output of each function in bytes.
var size = map[string]int{"md5": md5Size, "sha1": 20, "sha224": 28, "sha256": 32, "sha384": 48, "sha512": 64}

// md5Size is the length of the output of MD5 in bytes.
const md5Size = 16

// Check returns an error for an unknown recipe, or one that costs too much.
func (r Recipe) Check() error {
	within := func(ok bool) error {
		if !ok {
			return ErrCost
		}
		return nil
	}
	n, m, p := uint64(r.Cost), uint64(r.Memory), uint64(r.Lanes)
	switch r.Alg {
	case Bcrypt:
		if r.Variant != "" && r.Variant != PreSHA256 && r.Variant != PreWordPress {
			return ErrMalformed
		}
		return within(minBcrypt <= n && n <= maxBcrypt)
	case Scrypt, FirebaseScrypt:
		return within(minScrypt <= n && n <= maxScrypt && 1 <= m && m <= 1<<10 && 1 <= p && p <= maxLanes &&
			m<<n <= maxScryptKiB*8 && m<<n*p <= maxScryptWork)
	case PBKDF2:
		if size[r.Function] == 0 || r.Function == "md5" {
			return ErrMalformed
		}
		return within(1 <= n && n <= maxIterations)
	case Argon2id, Argon2i:
		return within(1 <= p && p <= maxLanes && 8*p <= m && m <= maxArgonKiB && 1 <= n && n <= maxArgonPasses &&
			m*n <= maxArgonWork)
	case Digest:
		if size[r.Function] == 0 || r.Variant != SaltFirst && r.Variant != SaltLast {
			return ErrMalformed
		}
		return nil
	case PHPass:
		return within(minPHPass <= n && n <= maxPHPass)
	case MD5Crypt:
		return nil
	case SHACrypt:
		if shaOrder[r.Function] == nil {
			return ErrMalformed
		}
		return within(minRounds <= n && n <= maxRounds)
	}
	return ErrMalformed
}

// checkBytes checks the lengths of salt and tag.
func (h Hash) checkBytes() error {
	salt, tag := len(h.Salt), h.Size
	if salt > maxSalt || tag < minTag || tag > maxTag {
		return ErrMalformed
	}
	ok, exact := true, 0
	switch h.Alg {
	case Bcrypt:
		ok, exact = salt == bcryptSalt, bcryptTag
	case Digest:
		exact = size[h.Function]
	case PHPass:
		ok, exact = salt == 8, md5Size
	case MD5Crypt:
		ok, exact = salt <= 8, md5Size
	case SHACrypt:
		ok, exact = salt <= maxSHASalt, size[h.Function]
	case Argon2id, Argon2i:
		ok = salt >= 8
	case PBKDF2:
		ok = salt >= 1 && tag <= size[h.Function]
	default:
		ok = salt >= 1
	}
	if !ok || exact != 0 && tag != exact {
		return ErrMalformed
	}
	return nil
}

// Thresholds of a strong hash: OWASP's recommendations for stored passwords. Argon2 must fill 7 MiB and write 35 MiB,
// scrypt must fill 16 MiB.
const (
	strongBcrypt    = 10
	strongScrypt    = 17 // base 2 logarithm of N·r
	strongArgonKiB  = 7 << 10
	strongArgonWork = 35 << 10
)

var strongIterations = map[string]uint32{"sha1": 1_300_000, "sha224": 600_000, "sha256": 600_000, "sha384": 210_000,
	"sha512": 210_000}

// Strong reports whether a hash may be stored as it is until the next login. Any other hash is wrapped in argon2id at
// the import.
func (r Recipe) Strong() bool {
	switch r.Alg {
	case Bcrypt:
		return r.Cost >= strongBcrypt
	case Scrypt, FirebaseScrypt:
		return uint64(r.Memory)<<r.Cost >= 1<<strongScrypt
	case PBKDF2:
		return r.Cost >= strongIterations[r.Function]
	case Argon2id, Argon2i:
		return r.Memory >= strongArgonKiB && uint64(r.Memory)*uint64(r.Cost) >= strongArgonWork
	}
	return false
}
