package push

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
)

// parseSecrets reads the secrets of webhooks; its errors do not quote them.
func parseSecrets(text string) (secrets [][]byte, err error) {
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

// webhook is the request of Standard Webhooks. Its id is that of the message and
// the same in every repeat; its time is that of the attempt.
func (s *Sender) webhook(ctx context.Context, to *url.URL, id string, w Wakeup) (*http.Request, error) {
	if len(s.secrets) == 0 {
		return nil, errors.New("webhooks are off: there is no secret to sign them with")
	}
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f }) {
		return nil, errors.New("malformed message key")
	}
	body := w.json()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("request cannot be made")
	}
	at := strconv.FormatInt(s.cfg.Now().Unix(), 10)
	signatures := make([]string, len(s.secrets))
	for i, secret := range s.secrets {
		signatures[i] = sign(secret, id, at, body)
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", at)
	h.Set("webhook-signature", strings.Join(signatures, " "))
	return request, nil
}

func sign(secret []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
