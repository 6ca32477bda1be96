// Package sms sends rendered messages through an operator's HTTP gateway (the SMS half of D-2FA-29 and D-EXT-05).
//
// The one idea: a gateway is data. An address, a form or a JSON document with placeholders, and some headers describe
// nearly all of them. So a new provider is configuration and not code; Twilio comes as a preset. Only the operator sets
// the address. No value of a message is part of it (except for GET), and redirects are not followed. Start at
// Sender.Send; request.go fills the templates, config.go checks them, answer.go reads the response.
package sms

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"castellan/domain/delivery/message"
	"castellan/outbound/fetch"
)

// Sender is a message.Sender. It is safe for concurrent use; Close it when the process drains.
type Sender struct {
	cfg    Config
	target *url.URL
	body   body
	header []headerTemplate
	sign   sign
	client *http.Client
}

var _ message.Sender = (*Sender)(nil)

// New checks cfg and reports all its errors together. It opens no connection.
func New(cfg Config) (*Sender, error) {
	s, roots, err := prepare(cfg)
	if err != nil {
		return nil, fmt.Errorf("sms: %w", err)
	}
	dialer := &net.Dialer{Timeout: s.cfg.Timeout}
	if s.target.Scheme == "http" {
		dialer.Control = fetch.Guard{Loopback: true}.Judge
	}
	s.client = fetch.HTTPClient(s.cfg.Timeout, roots, &http.Transport{
		Proxy:               http.ProxyFromEnvironment, // never used for a loopback address
		DialContext:         dialer.DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 8,
		MaxConnsPerHost:     32,
		IdleConnTimeout:     30 * time.Second,
	})
	return s, nil
}

// Send passes m to the gateway with key in the idempotency header. nil means that the gateway answered with a success
// status and, if one is configured, with the sign of success. Errors are those of message.Sender.
func (s *Sender) Send(ctx context.Context, key string, m message.Rendered) error {
	request, err := s.request(ctx, key, m)
	if err != nil {
		return &message.DeliveryError{Permanent: true, Err: fmt.Errorf("sms: %w", err)}
	}
	response, err := s.client.Do(request)
	if err != nil {
		dial, is := errors.AsType[*net.OpError](err)
		return &message.DeliveryError{Unsent: is && dial.Op == "dial",
			Err: fmt.Errorf("sms: gateway not reached: %w", unquoted(err))}
	}
	return s.judge(response)
}

// Close closes the idle connections.
func (s *Sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// unquoted removes the values that net/http quotes: the address, which may contain a secret and, for GET, the text; and
// the bytes of an answer that is not HTTP.
func unquoted(err error) error {
	if err = fetch.Unaddressed(err); strings.Contains(err.Error(), "malformed") {
		return errors.New("malformed answer")
	}
	return err
}
