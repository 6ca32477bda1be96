// Package fetch requests small JSON answers from other services over HTTP, as the adapters of rates and of balances do.
// It also has what all adapters of HTTP services share: the check of addresses (dial.go) and the handling of answers
// (answer.go).
//
// The one idea: the other side is not trusted. An answer has a time limit and a size limit, no redirect is followed,
// and a failing service is not called for a while. No error contains a path, a query, a header or a key. Start reading
// at Client.Read.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"
	"unicode"
)

const (
	maxAnswerBytes = 1 << 20
	// After this many failures in a row the service is not called for a minute, and twice as long after each further
	// failure.
	failuresInARow = 3
	shortestPause  = time.Minute
	longestPause   = 30 * time.Minute
)

// Client calls one service, one request of Read at a time. It is safe for concurrent use.
type Client struct {
	client *http.Client
	now    func() time.Time

	mu       sync.Mutex
	failures int
	until    time.Time // no request before
}

// New returns a client that trusts the certificates (PEM) in a file; "": those of the system. It opens no connection.
func New(caFile string, timeout time.Duration, now func() time.Time) (*Client, error) {
	roots, err := Roots(caFile, false)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	return &Client{now: now, client: HTTPClient(timeout, roots, transport)}, nil
}

// Address checks the address of a service: https, or http to a loopback address.
func Address(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && local(u.Hostname())) {
		return errors.New("url must be https://host/path without a user, or http to a loopback address")
	}
	return nil
}

func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Header checks the value of a header.
func Header(value string) error {
	if slices.ContainsFunc([]rune(value), unicode.IsControl) {
		return errors.New("key must not hold control characters")
	}
	return nil
}

// Read requests an address, with a header unless its value is empty, and passes the answer to read. An error of read
// counts as a failure of the service too.
func (c *Client) Read(ctx context.Context, address, header, value string, read func(body []byte) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Before(c.until) {
		return fmt.Errorf("the provider failed %d times and is paused", c.failures)
	}
	body, err := c.ask(ctx, address, header, value)
	if err == nil {
		err = read(body)
	}
	switch {
	case err == nil:
		c.failures = 0
	case ctx.Err() == nil:
		if c.failures++; c.failures >= failuresInARow {
			c.until = now.Add(min(shortestPause<<min(c.failures-failuresInARow, 10), longestPause))
		}
	}
	return err
}

// Get requests an address once and returns the answer. It neither counts failures nor pauses, and requests may overlap:
// it is for a caller that limits its own requests.
func (c *Client) Get(ctx context.Context, address string) ([]byte, error) {
	return c.ask(ctx, address, "", "")
}

func (c *Client) ask(ctx context.Context, address, header, value string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("no request can be made to the address")
	}
	request.Header.Set("Accept", "application/json")
	if value != "" {
		request.Header.Set(header, value)
	}
	return Body(c.client, request, "provider", maxAnswerBytes)
}
