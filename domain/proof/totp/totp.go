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
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"castellan/domain/factor/challenge"
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
