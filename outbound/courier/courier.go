// Package courier posts files of the service to an address that the operator configures, signed according to Standard
// Webhooks (domain/kit/webhook).
//
// Start reading at Courier.Post.
package courier

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"castellan/domain/kit/webhook"
	"castellan/outbound/fetch"
)

type Config struct {
	URL    string
	Secret string // of webhook.ParseSecrets
	CAFile string // PEM; trusted in addition to the system's certificates
}

const timeout = 30 * time.Second // of one Post

// Courier posts to one address. It is safe for concurrent use.
type Courier struct {
	url     string
	secrets webhook.Secrets
	client  *http.Client
	now     func() time.Time
}

// New checks cfg. It opens no connection.
func New(cfg Config) (*Courier, error) {
	secrets, err := webhook.ParseSecrets(cfg.Secret)
	if err == nil && len(secrets) == 0 {
		err = errors.New("a webhook secret is missing")
	}
	if err != nil {
		return nil, err
	}
	roots, err := fetch.Roots(cfg.CAFile, true)
	if err != nil {
		return nil, fmt.Errorf("ca file: %w", err)
	}
	return &Courier{url: cfg.URL, secrets: secrets, now: time.Now,
		client: fetch.HTTPClient(timeout, roots, &http.Transport{Proxy: http.ProxyFromEnvironment})}, nil
}

// Post posts a file under an id that is the same for every repetition. It returns nil if the receiver answered with a
// 2xx status. Its errors do not contain the address.
func (c *Courier) Post(ctx context.Context, id, mediaType string, body []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("request cannot be made")
	}
	request.Header.Set("Content-Type", mediaType)
	request.Header.Set("User-Agent", "castellan")
	c.secrets.Sign(request.Header, id, c.now(), body)
	response, err := c.client.Do(request)
	if err != nil {
		return errors.New("the server cannot be reached")
	}
	defer fetch.Drain(response)
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the server answered %d", response.StatusCode)
	}
	return nil
}
