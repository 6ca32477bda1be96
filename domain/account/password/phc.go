package password

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"castellan/domain/account/password/argon2id"
)

// Params are the cost parameters of a hash.
type Params argon2id.Params

// DefaultParams returns the parameters of D-PWD-05: 19 MiB, two passes, one lane.
func DefaultParams() Params { return Params{MemoryKiB: 19 * 1024, Passes: 2, Lanes: 1} }

// version is the version of argon2 in a stored hash.
const version = 0x13

// Bounds of the parameters in a stored hash: a damaged row must not be able to claim all memory.
const (
	maxMemoryKiB = 1 << 22
	maxPasses    = 100
	maxLanes     = 64
	saltBytes    = 16
	tagBytes     = 32
)

// Validate returns an error for parameters that argon2 does not allow or that are beyond the bounds.
func (p Params) Validate() error {
	switch {
	case p.Lanes < 1 || p.Lanes > maxLanes:
		return fmt.Errorf("password: lanes must be 1 to %d", maxLanes)
	case p.Passes < 1 || p.Passes > maxPasses:
		return fmt.Errorf("password: passes must be 1 to %d", maxPasses)
	case p.MemoryKiB < 8*uint32(p.Lanes) || p.MemoryKiB > maxMemoryKiB:
		return fmt.Errorf("password: memory must be 8 KiB per lane to %d KiB", maxMemoryKiB)
	}
	return nil
}

// stored is a hash as the database stores it.
type stored struct {
	params    Params
	salt, tag []byte
}

// String returns the PHC string format.
func (s stored) String() string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", version, s.params.MemoryKiB, s.params.Passes, s.params.Lanes,
		b64(s.salt), b64(s.tag))
}

// errMalformed never contains the text: it may be a password in the wrong column.
var errMalformed = errors.New("password: the stored hash is malformed")

func parse(phc string) (s stored, err error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", version) {
		return s, errMalformed
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &s.params.MemoryKiB, &s.params.Passes,
		&s.params.Lanes); err != nil {
		return s, errMalformed
	}
	b64 := base64.RawStdEncoding.Strict()
	if s.salt, err = b64.DecodeString(parts[4]); err != nil || len(s.salt) < 8 {
		return s, errMalformed
	}
	if s.tag, err = b64.DecodeString(parts[5]); err != nil || len(s.tag) < 16 || len(s.tag) > 128 {
		return s, errMalformed
	}
	// Formatting it again detects what Sscanf accepts: signs, zeros, a tail.
	if s.params.Validate() != nil || s.String() != phc {
		return s, errMalformed
	}
	return s, nil
}
