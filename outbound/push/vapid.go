package push

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// vapidLife is how long a push service may accept a token; RFC 8292 permits a day. Tokens are not cached: hosts come
// from users, who could fill the memory.
const vapidLife = time.Hour

// webPush is the request of RFC 8030. A message of the same challenge replaces one that the push service still holds.
func (s *Sender) webPush(ctx context.Context, to *url.URL, keys deviceKeys, w wakeUp,
	vapid *ecdsa.PrivateKey) (*http.Request, error) {
	device, err := keys.receiver()
	if err != nil {
		return nil, err
	}
	body, err := device.encrypt(w.json())
	if err != nil {
		return nil, errors.New("message cannot be encrypted")
	}
	authorization, err := s.vapid(to, vapid)
	if err != nil {
		return nil, errors.New("message cannot be signed")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("request cannot be made")
	}
	h := request.Header
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Encoding", "aes128gcm")
	h.Set("TTL", strconv.FormatInt(w.Expire, 10))
	h.Set("Urgency", "high")
	h.Set("Topic", topic(w.ChallengeID))
	h.Set("Authorization", authorization)
	return request, nil
}

// vapid returns the Authorization header that identifies the sender (RFC 8292).
func (s *Sender) vapid(to *url.URL, key *ecdsa.PrivateKey) (string, error) {
	claims := jwt.MapClaims{"aud": origin(to), "exp": s.cfg.Now().Add(vapidLife).Unix()}
	if s.cfg.Contact != "" {
		claims["sub"] = s.cfg.Contact
	}
	signed, err := jwt.NewWithClaims(jwt.SigningMethodES256, claims).SignedString(key)
	if err != nil {
		return "", err
	}
	public, err := PublicKey(key)
	if err != nil {
		return "", err
	}
	return "vapid t=" + signed + ", k=" + public, nil
}

// origin returns the origin of an address, as browsers write it.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		host = strings.TrimSuffix(host, ":443")
	}
	return u.Scheme + "://" + host
}

// topic returns at most 32 characters of base64url. It reveals to the push service only which messages belong together.
func topic(challengeID string) string {
	sum := sha256.Sum256([]byte("topic " + challengeID))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}
