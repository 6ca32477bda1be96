package totp

import (
	"fmt"
	"strings"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
	"castellan/domain/kit/keyring"
)

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
