// Package webhook signs messages posted to other systems by the Standard Webhooks specification. A signature covers the
// id, the time and the body of a message. It is an HMAC-SHA256 (Secrets), or Ed25519 with a signing key of this service
// (SignPublic).
package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
)

// Secrets sign messages. With several, each signs every message while receivers change over.
type Secrets [][]byte

// ParseSecrets parses secrets separated by spaces: whsec_ and base64 of 24 to 64 bytes. Its errors do not quote them.
func ParseSecrets(text string) (secrets Secrets, err error) {
	for _, one := range strings.Fields(text) {
		coded, ok := strings.CutPrefix(one, secretPrefix)
		secret, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(coded, "="))
		if !ok || err != nil || len(secret) < minSecretBytes || len(secret) > maxSecretBytes {
			return nil, errors.New("a webhook secret must be whsec_ and base64 of 24 to 64 bytes")
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// Sign sets the headers of a message. All attempts have the same id; the time is that of the attempt.
func (s Secrets) Sign(h http.Header, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(s))
	for i, secret := range s {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", strings.Join(signatures, " "))
}

// SignPublic is Sign with scheme v1a. The header webhook-key-id names the key, which any receiver reads from the JWKS.
func SignPublic(h http.Header, kid string, key ed25519.PrivateKey, id string, at time.Time, body []byte) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	signed := append([]byte(id+"."+stamp+"."), body...)
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed)))
	h.Set("webhook-key-id", kid)
}
