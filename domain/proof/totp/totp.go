// Package totp owns the authenticator of an account: its secret, its time-based codes and its recovery codes
// (sections 3.2 and 4.2 of the interface, decisions D-TOTP-01…09 and D-AUTH-08).
//
// The one idea: a code is judged by its time step, and a step is used once. Accepting a code commits UseStep with the
// permitted change, fenced by the last used step. So one code succeeds only once, in challenges and at guarded
// endpoints, on all nodes (SEC-06).
//
// Start reading at Match, then service.go for the operations of an account and judge.go for the checks of codes.
package totp

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
)

// The parameters that every authenticator app supports (D-TOTP-05): SHA-1, six digits, a secret as long as the hash.
const (
	periodSeconds = 30
	secretBytes   = 20
	skewSteps     = 1 // the permitted clock difference, in either direction
)

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // crypto/rand.Read never fails
	return secret
}

// StepAt returns the time step of an instant.
func StepAt(now time.Time) int64 {
	s := now.Unix()
	if s < 0 { // authenticators have no codes before 1970
		return -skewSteps - 1
	}
	return s / periodSeconds
}

// Match returns the time step of a code: the current one, the one before or the one after. It compares every step, in
// constant time. For a code of two steps it returns the newer one, so that using it uses up both. Only six ASCII
// digits can match.
func Match(secret []byte, now time.Time, code string) (step int64, ok bool) {
	if !challenge.Code(code) {
		return 0, false
	}
	t := StepAt(now)
	for s := t - skewSteps; s <= t+skewSteps; s++ {
		if s < 0 {
			continue
		}
		if subtle.ConstantTimeCompare([]byte(CodeAt(secret, s)), []byte(code)) == 1 {
			step, ok = s, true
		}
	}
	return step, ok
}

// CodeAt returns the code of a time step, which must not be negative.
func CodeAt(secret []byte, step int64) string {
	code, err := hotp.GenerateCodeCustom(base32Text.EncodeToString(secret), uint64(step),
		hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
	if err != nil {
		panic(fmt.Sprintf("totp: %v", err)) // the library refuses only bad base32, and this is valid
	}
	return code
}

// Bounds of a secret that another service made, in bytes (RFC 4226 asks for 16).
const minSecret, maxSecret = 10, 64

// ParseSecret reads a secret in base32, as authenticator apps show it: case, spaces and padding do not matter.
//
// Errors: INVALID_FIELD naming totpSecret. It never contains the text.
func ParseSecret(text string) ([]byte, error) {
	text = strings.ToUpper(strings.TrimRight(strings.ReplaceAll(text, " ", ""), "="))
	secret, err := base32Text.DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") || len(secret) < minSecret || len(secret) > maxSecret {
		return nil, fault.Invalid("totpSecret", "must be base32 of %d to %d bytes", minSecret, maxSecret)
	}
	return secret, nil
}

func FormatSecret(secret []byte) string { return base32Text.EncodeToString(secret) }

// Adopt returns the definition of an authenticator that the user defined at another service. It has no recovery codes.
func Adopt(ring *keyring.Ring, userID string, secret []byte, now time.Time) Define {
	d := Definition{UserID: userID, ID: id.New(now), CreatedAt: now}
	d.Sealed = ring.Seal(secret, SecretData(d.UserID, d.ID))
	return Define{Definition: d}
}

// Reveal opens the secret of a definition.
func Reveal(ring *keyring.Ring, d Definition) ([]byte, error) {
	secret, err := ring.Open(d.Sealed, SecretData(d.UserID, d.ID))
	if err != nil {
		return nil, fmt.Errorf("authenticator %s: %w", d.ID, err)
	}
	return secret, nil
}
