// Package rate fetches exchange rates from a provider that answers JSON over HTTP, as nearly all of them do:
// {"base":"USD","rates":{"TRY":41.7352,…}}. The address, a header with the key and the wanted currencies are
// configuration.
//
// The one idea: an answer is read as text and checked rate by rate; no number becomes a float. A failing provider is
// not called for a while. Start reading at Provider.Fetch.
package rate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"castellan/domain/money/rate"
	"castellan/outbound/fetch"
)

// Config describes the provider.
type Config struct {
	URL         string   // https, or http to a loopback address
	Header, Key string   // a header and its whole value; no key: none is sent
	Codes       []string // of the other currencies to keep; none: all
	CAFile      string   // trusted certificates (PEM); "": those of the system
	Timeout     time.Duration
	Now         func() time.Time
}

// Provider is a rate.Provider. It is safe for concurrent use.
type Provider struct {
	cfg    Config
	client *fetch.Client
}

var _ rate.Provider = (*Provider)(nil)

// New checks cfg. It opens no connection.
func New(cfg Config) (*Provider, error) {
	if err := errors.Join(fetch.Address(cfg.URL), fetch.Header(cfg.Key)); err != nil {
		return nil, err
	}
	for _, c := range cfg.Codes {
		if code, ok := rate.Code(c); !ok || code != c {
			return nil, fmt.Errorf("currencies: %.40q is not the code of a currency", c)
		}
	}
	client, err := fetch.New(cfg.CAFile, cfg.Timeout, cfg.Now)
	return &Provider{cfg, client}, err
}

// Host returns the provider's name in the rows of its rates.
func (p *Provider) Host() string {
	u, _ := url.Parse(p.cfg.URL) // New has parsed it
	return u.Host
}

// Fetch requests the rates. An error contains neither the address nor the key.
func (p *Provider) Fetch(ctx context.Context) (quotes []rate.Quote, leftOut int, err error) {
	err = p.client.Read(ctx, p.cfg.URL, p.cfg.Header, p.cfg.Key, func(body []byte) (err error) {
		quotes, leftOut, err = p.read(body)
		return err
	})
	return quotes, leftOut, err
}

// read keeps the valid rates of wanted currencies, and counts the invalid ones.
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
		return nil, 0, errors.New("the response has no base")
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
