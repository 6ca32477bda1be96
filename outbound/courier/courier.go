// Package courier posts files of the service to an address that the operator configures, signed according to Standard
// Webhooks (domain/kit/webhook).
//
// Start reading at Courier.Post.
package courier

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"castellan/domain/kit/webhook"
)

type Config struct {
	URL    string
	Secret string // of webhook.ParseSecrets
	CAFile string // PEM; trusted in addition to the system's certificates
}

const (
	timeout = 30 * time.Second // of one Post
	// maxAnswerBytes is how much of a response is read, so that the connection can be reused.
	maxAnswerBytes = 64 << 10
)

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
	roots, err := x509.SystemCertPool()
	if err == nil && cfg.CAFile != "" {
		var pem []byte
		if pem, err = os.ReadFile(cfg.CAFile); err == nil && !roots.AppendCertsFromPEM(pem) {
			err = errors.New("the file contains no certificate")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ca file: %w", err)
	}
	return &Courier{url: cfg.URL, secrets: secrets, now: time.Now, client: &http.Client{Timeout: timeout,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
			Proxy: http.ProxyFromEnvironment},
		// The signature is intended only for the configured address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
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
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswerBytes)) // only so that the connection can be reused
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("the server answered %d", response.StatusCode)
	}
	return nil
}
