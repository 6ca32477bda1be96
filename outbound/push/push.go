// Package push wakes the devices of users: by Web Push, and by a signed webhook of an app that sends its own
// notifications. Approvals never depend on it: a device that was not woken reads the pending requests when it is
// opened.
//
// The one idea: the address comes from a user, so this process calls no host that it would not call for a stranger. A
// target is https on the usual port, and its resolved address is checked at dial time. No redirect is followed, and
// time and answer are limited. A message contains no secret, and for Web Push it is also encrypted for the device.
//
// Start at Sender.Send and at target.go, which defines the messages of this channel. fetch.Guard decides which
// addresses may be dialled, and answer.go classifies responses. encrypt.go is RFC 8291, vapid.go RFC 8292, webhook.go
// the Standard Webhooks signature.
//
// The library webpush-go (1.4.0) cannot replace encrypt.go and vapid.go. It ignores the requested life of a token,
// takes the origin of the target as it is spelled, always names a contact, and sends the request itself.
package push

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/webhook"
	"castellan/outbound/fetch"
)

// Config configures a Sender.
type Config struct {
	// VAPID returns the current P-256 keys of this service: first the one that clients subscribe with, then the
	// replaced ones until they expire.
	VAPID func() []*ecdsa.PrivateKey
	// Contact is a mailto: or https: address for the operators of push services; "" sends none, which some of them
	// refuse.
	Contact string
	// WebhookSecret signs webhooks: whsec_ and base64 of 24 to 64 bytes. Two secrets separated by a space both sign,
	// during the change of receivers. "": no webhook is called.
	WebhookSecret string
	// Hosts are the only hosts that may be called: a name, or *.name for every host below it. Empty: every public one.
	Hosts []string
	// AllowPrivate permits loopback and private addresses and any port.
	AllowPrivate bool
	// AllowPlain permits http to loopback, for development.
	AllowPlain bool
	// CAFile holds certificates (PEM) that are trusted in addition to those of the system.
	CAFile  string
	Timeout time.Duration // of one Send
	Now     func() time.Time
}

// Sender is a message.Sender for the channel Push. It is safe for concurrent use; Close it when the process drains.
type Sender struct {
	cfg     Config
	secrets webhook.Secrets
	secure  *http.Client
	plain   *http.Client
}

var _ message.Sender = (*Sender)(nil)

// New checks cfg and reports all its errors together. It opens no connection.
func New(cfg Config) (*Sender, error) {
	var faults []error
	s := &Sender{cfg: cfg}
	var err error
	if cfg.VAPID == nil {
		faults = append(faults, errors.New("a VAPID key is missing"))
	} else if _, err = PublicKey(cfg.VAPID()[0]); err != nil {
		faults = append(faults, err)
	}
	if s.secrets, err = webhook.ParseSecrets(cfg.WebhookSecret); err != nil {
		faults = append(faults, err)
	}
	if c := cfg.Contact; c != "" && !strings.HasPrefix(c, "mailto:") && !strings.HasPrefix(c, "https://") {
		faults = append(faults, errors.New("contact must be a mailto: or https: address"))
	}
	roots, err := fetch.Roots(cfg.CAFile, true)
	if err != nil {
		faults = append(faults, fmt.Errorf("ca_file: %w", err))
	}
	if faults != nil {
		return nil, fmt.Errorf("push: %w", errors.Join(faults...))
	}
	s.secure = s.client(fetch.Guard{Private: cfg.AllowPrivate}.Judge, roots)
	s.plain = s.client(fetch.Guard{Loopback: true}.Judge, nil)
	return s, nil
}

// PublicKey returns the public half of a VAPID key in the form that browsers accept: the uncompressed point in
// base64url.
func PublicKey(key *ecdsa.PrivateKey) (string, error) {
	if key == nil {
		return "", errors.New("a VAPID key is missing")
	}
	exchange, err := key.ECDH()
	if err != nil || exchange.PublicKey().Curve() != p256 {
		return "", errors.New("the VAPID key is not of the curve P-256")
	}
	return base64.RawURLEncoding.EncodeToString(exchange.PublicKey().Bytes()), nil
}

// client dials only addresses that judge permits. No proxy is used: with one, judge would check the proxy's address and
// not the target's.
func (s *Sender) client(judge func(string, string, syscall.RawConn) error, roots *x509.CertPool) *http.Client {
	dialer := &net.Dialer{Timeout: s.cfg.Timeout, Control: judge}
	return fetch.HTTPClient(s.cfg.Timeout, roots, &http.Transport{
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    s.cfg.Timeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    4,
		MaxConnsPerHost:        32,
		IdleConnTimeout:        30 * time.Second,
	})
}

// Send wakes the device that m.To describes with the wakeUp in m.Text; key is the id of a webhook. nil means that the
// push service or the webhook accepted it. Errors are those of message.Sender, and contain no address either.
func (s *Sender) Send(ctx context.Context, key string, m message.Rendered) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout) // of all tries together
	defer cancel()
	for i, vapid := range s.cfg.VAPID() {
		call, err := s.prepare(ctx, key, m, vapid)
		if err != nil {
			return &message.DeliveryError{Permanent: true, Err: fmt.Errorf("push: %w", err)}
		}
		response, err := call.client.Do(call.request)
		if err != nil {
			return &message.DeliveryError{
				Permanent: errors.Is(err, fetch.ErrRefused),
				Timeout:   timedOut(err),
				Err:       fmt.Errorf("push: target not reached: %s", reason(err)),
			}
		}
		// A subscription for the previous key is refused under this one.
		again := call.kind == webPushKind && i+1 < len(s.cfg.VAPID()) &&
			(response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized)
		if err := s.judge(response, call.kind); !again {
			return err
		}
	}
	return nil
}

// call is a request that is ready to be sent.
type call struct {
	kind    string // of the target
	request *http.Request
	client  *http.Client
}

// prepare builds the call that carries m. Its errors name no target.
func (s *Sender) prepare(ctx context.Context, key string, m message.Rendered, vapid *ecdsa.PrivateKey) (call,
	error) {
	if m.Channel != message.Push {
		return call{}, fmt.Errorf("message of channel %q", string(m.Channel))
	}
	wakeup, err := parseWakeup(m.Text)
	if err != nil {
		return call{}, err
	}
	target, err := parseTarget(m.To)
	if err != nil {
		return call{}, err
	}
	to, err := s.address(target)
	if err != nil {
		return call{}, err
	}
	c := call{kind: target.Type, client: s.secure}
	if to.Scheme == "http" {
		c.client = s.plain
	}
	if c.kind == webPushKind {
		c.request, err = s.webPush(ctx, to, target.Keys, wakeup, vapid)
	} else {
		c.request, err = s.webhook(ctx, to, key, wakeup)
	}
	if err != nil {
		return call{}, err
	}
	c.request.Header.Set("User-Agent", "castellan")
	return c, nil
}

// address returns the address of a target, or an error if it may not be called.
func (s *Sender) address(t target) (*url.URL, error) {
	u, err := parseAddress(t.address())
	switch {
	case err != nil:
		return nil, err
	case u.Scheme == "http" && !(s.cfg.AllowPlain && fetch.Loopback(u.Hostname())):
		return nil, errors.New("target is not https")
	case !listed(s.cfg.Hosts, u.Hostname()):
		return nil, errors.New("host of the target is not in the list of hosts")
	}
	return u, nil
}

// Close closes the idle connections.
func (s *Sender) Close() error {
	s.secure.CloseIdleConnections()
	s.plain.CloseIdleConnections()
	return nil
}
