// Package totp owns the authenticator of an account: its secret, the codes that
// are right at an instant, and the recovery codes beside it (sections 3.2 and
// 4.2 of the interface, decisions D-TOTP-01…09 and D-AUTH-08).
//
// The one idea: a code is judged by its time step, and a step is used once.
// The code that accepts a value commits UseStep with what the code allows, fenced by
// the last step that was used, so that of all who hold the same code, in
// challenges, at guarded endpoints, on any node, one gets through (SEC-06).
//
// Start reading at Match, then service.go for what an account can do and
// judge.go for where codes are taken.
package totp

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

// The parameters every authenticator app supports (D-TOTP-05): SHA-1, six
// digits, a secret as long as the hash.
const (
	periodSeconds = 30
	digits        = 6
	secretBytes   = 20
	skewSteps     = 1 // how far a clock may be off, either way
)

var base32Text = base32.StdEncoding.WithPadding(base32.NoPadding)

func newSecret() []byte {
	secret := make([]byte, secretBytes)
	rand.Read(secret) // crypto/rand.Read never fails
	return secret
}

// StepAt is the time step of an instant.
func StepAt(now time.Time) int64 {
	s := now.Unix()
	if s < 0 { // no authenticator has a code for a time before 1970
		return -skewSteps - 1
	}
	return s / periodSeconds
}

// Match finds the time step whose code this is: the present one, the one before
// or the one after. Every step is compared, in constant time; where the code is
// that of two, the newer one is reported, so that using it up uses up both.
// Anything but six ASCII digits matches nothing.
func Match(secret []byte, now time.Time, code string) (step int64, ok bool) {
	if !sixDigits(code) {
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

// CodeAt is the code of a time step, which must not be negative.
func CodeAt(secret []byte, step int64) string {
	code, err := hotp.GenerateCodeCustom(base32Text.EncodeToString(secret), uint64(step),
		hotp.ValidateOpts{Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
	if err != nil {
		panic(fmt.Sprintf("totp: %v", err)) // the library refuses bad base32 only, and this is ours
	}
	return code
}

func sixDigits(code string) bool {
	if len(code) != digits {
		return false
	}
	for i := range len(code) {
		if code[i] < '0' || code[i] > '9' {
			return false
		}
	}
	return true
}
