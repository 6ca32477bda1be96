// Package rate fetches exchange rates from a provider that answers JSON over HTTP,
// as nearly all of them do: {"base":"USD","rates":{"TRY":41.7352,…}}. The address,
// a header with the key and the wanted currencies are configuration.
//
// The one idea: what arrives is read as text and judged rate by rate; no number
// becomes a float. A provider that fails is left alone for a while. Start reading at
// Provider.Fetch.
package rate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
	"unicode"

	"castellan/domain/rate"
)

// Config describes the provider.
type Config struct {
	URL         string   // https, or http to a loopback address
	Header, Key string   // a header and its whole value; no key: none is sent
	Codes       []string // of the other currencies to keep; none: all
	CAFile      string   // certificates (PEM) that may vouch for the provider; "": those of the system
	Timeout     time.Duration
	Now         func() time.Time
}

const (
	maxAnswerBytes = 1 << 20
	// After so many failures in a row the provider is left alone for a minute, and
	// twice as long after each further one.
	failuresInARow = 3
	shortestPause  = time.Minute
	longestPause   = 30 * time.Minute
)

// Provider implements rate.Provider. It is safe for concurrent use.
type Provider struct {
	cfg    Config
	client *http.Client

	mu       sync.Mutex
	failures int
	until    time.Time // nothing is asked before
}

var _ rate.Provider = (*Provider)(nil)

// New checks cfg. It opens no connection.
func New(cfg Config) (*Provider, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && !(u.Scheme == "http" && local(u.Hostname())) {
		return nil, errors.New("url must be https://host/path without a user, or http to a loopback address")
	}
	if slices.ContainsFunc([]rune(cfg.Key), unicode.IsControl) {
		return nil, errors.New("key must not hold control characters")
	}
	for _, c := range cfg.Codes {
		if code, ok := rate.Code(c); !ok || code != c {
			return nil, fmt.Errorf("currencies: %.40q is not the code of a currency", c)
		}
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, err
		}
		if trust.RootCAs = x509.NewCertPool(); !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("ca_file holds no certificate")
		}
	}
	return &Provider{cfg: cfg, client: &http.Client{
		Timeout:   cfg.Timeout,
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: trust, ForceAttemptHTTP2: true},
		// Another address would be given the key.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func local(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Host is the provider's name in the rows of its rates.
func (p *Provider) Host() string {
	u, _ := url.Parse(p.cfg.URL) // New has parsed it
	return u.Host
}

// Fetch implements rate.Provider. An error says nothing of the address and the key.
func (p *Provider) Fetch(ctx context.Context) ([]rate.Quote, int, error) {
	p.mu.Lock()
	defer p.mu.Unlock() // one request at a time
	now := p.cfg.Now()
	if now.Before(p.until) {
		return nil, 0, fmt.Errorf("the provider failed %d times and is left alone for a while", p.failures)
	}
	quotes, leftOut, err := p.ask(ctx)
	switch {
	case err == nil:
		p.failures = 0
	case ctx.Err() == nil:
		if p.failures++; p.failures >= failuresInARow {
			p.until = now.Add(min(shortestPause<<min(p.failures-failuresInARow, 10), longestPause))
		}
	}
	return quotes, leftOut, err
}

func (p *Provider) ask(ctx context.Context) ([]rate.Quote, int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.cfg.URL, nil)
	if err != nil {
		return nil, 0, errors.New("the address cannot be asked")
	}
	request.Header.Set("Accept", "application/json")
	if p.cfg.Key != "" {
		request.Header.Set(p.cfg.Header, p.cfg.Key)
	}
	answer, err := p.client.Do(request)
	if err != nil {
		return nil, 0, fmt.Errorf("the provider is not reached: %w", unaddressed(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, 0, fmt.Errorf("the provider answered %d", answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("the answer breaks off: %w", err)
	case len(body) > maxAnswerBytes:
		return nil, 0, errors.New("the answer is longer than 1 MiB")
	}
	return p.read(body)
}

// read takes what are rates of wanted currencies, and counts what are no rates.
func (p *Provider) read(body []byte) (quotes []rate.Quote, leftOut int, err error) {
	var told struct {
		Base  string
		Rates map[string]json.RawMessage
	}
	if json.Unmarshal(body, &told) != nil {
		return nil, 0, errors.New(`the answer is not {"base":…,"rates":{…}}`)
	}
	base, ok := rate.Code(told.Base)
	if !ok {
		return nil, 0, errors.New("the answer names no base")
	}
	for code, value := range told.Rates {
		quote, ok := rate.Code(code)
		if ok && (quote == base || len(p.cfg.Codes) > 0 && !slices.Contains(p.cfg.Codes, quote)) {
			continue
		}
		r, err := rate.Parse(string(value))
		if !ok || err != nil {
			leftOut++
			continue
		}
		quotes = append(quotes, rate.Quote{Pair: rate.Pair{Base: base, Quote: quote}, Rate: r})
	}
	if len(quotes) == 0 {
		return nil, 0, errors.New("the answer has no rate of a wanted currency")
	}
	return quotes, leftOut, nil
}

// unaddressed strips the address, which may hold a key.
func unaddressed(err error) error {
	var with *url.Error
	if errors.As(err, &with) {
		return with.Err
	}
	return err
}
