package push

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"unicode"
)

// webhook is the request of Standard Webhooks. Its id is that of the message and the same in every repetition; its time
// is that of the attempt.
func (s *Sender) webhook(ctx context.Context, to *url.URL, id string, w wakeUp) (*http.Request, error) {
	if len(s.secrets) == 0 {
		return nil, errors.New("webhooks are off: no signing secret is configured")
	}
	if id == "" || strings.ContainsFunc(id, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f }) {
		return nil, errors.New("malformed message key")
	}
	body := w.json()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("request cannot be made")
	}
	request.Header.Set("Content-Type", "application/json")
	s.secrets.Sign(request.Header, id, s.cfg.Now(), body)
	return request, nil
}
