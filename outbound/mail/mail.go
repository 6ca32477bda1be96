// Package mail sends rendered messages over SMTP (the MAIL half of D-2FA-29 and D-EXT-05). It owns the connection. The
// connection is always encrypted unless the server is on this machine, and authenticated only when encrypted. It is
// kept for a few seconds, so that consecutive messages share it.
//
// The one idea: a reply refuses a message, an error breaks a connection, and only a refusal of the message itself is
// permanent. Start at Sender.Send. pool.go keeps connections, session.go runs the protocol on one, compose.go encodes
// messages, and refusal.go classifies failures.
package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	netmail "net/mail"
	"strings"
	"time"
	"unicode"

	"castellan/domain/delivery/message"
	"castellan/outbound/fetch"
)

// Ways to encrypt the connection.
const (
	STARTTLS = "starttls" // mandatory: a server without it gets nothing
	TLS      = "tls"      // from the first byte
	None     = "none"     // to a loopback address only, and never with a password
)

// Config configures a Sender.
type Config struct {
	Host string
	Port int // 0: 587, 465 or 25, by TLS
	TLS  string

	// Username and Password authenticate with the best mechanism that the server offers; both empty: no authentication.
	Username, Password string

	From     string // the bare address; its domain is that of the Message-ID
	FromName string
	// CAFile holds the only trusted certificates (PEM) for the server; "" trusts those of the system.
	CAFile  string
	Timeout time.Duration // of one Send
	// Connections limits the open connections. Relays often allow at most ten from one client.
	Connections int
	Now         func() time.Time // sets the Date header
}

const (
	// keepIdle is how long an unused connection stays open. Servers close idle ones after minutes; a short time
	// occupies few of their slots.
	keepIdle = 5 * time.Second
	// messagesPerConnection stays under the limit of common relays (100).
	messagesPerConnection = 90
)

// Sender is a message.Sender. It is safe for concurrent use; Close it when the process drains.
type Sender struct {
	cfg  Config
	from netmail.Address
	tls  *tls.Config
	pool *pool
}

var _ message.Sender = (*Sender)(nil)

// New checks cfg and reports all its errors together. It opens no connection: the service starts while its relay is
// unavailable.
func New(cfg Config) (*Sender, error) {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if cfg.Host == "" ||
		strings.ContainsFunc(cfg.Host, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == '/' }) {
		fault("host must name the server")
	}
	if cfg.TLS == None {
		if !fetch.Loopback(cfg.Host) {
			fault("tls %s is for a server on a loopback address only", None)
		}
		if cfg.Username != "" || cfg.Password != "" {
			fault("a password is not sent over an unencrypted connection: tls must be %s or %s", STARTTLS, TLS)
		}
	}
	cfg.Port = cmp.Or(cfg.Port, map[string]int{STARTTLS: 587, TLS: 465, None: 25}[cfg.TLS])
	if (cfg.Username == "") != (cfg.Password == "") {
		fault("username and password must be set together")
	}
	from, err := bareAddress(cfg.From)
	if err != nil || !isASCII(cfg.From) {
		fault("from must be a bare ASCII address such as no-reply@example.com")
	}
	if strings.ContainsFunc(cfg.FromName, unicode.IsControl) {
		fault("from_name must not hold control characters")
	}
	roots, err := fetch.Roots(cfg.CAFile, false)
	if err != nil {
		fault("ca_file: %w", err)
	}
	if faults != nil {
		return nil, fmt.Errorf("mail: %w", errors.Join(faults...))
	}
	s := &Sender{cfg: cfg, from: netmail.Address{Name: cfg.FromName, Address: from},
		tls: &tls.Config{ServerName: cfg.Host, MinVersion: tls.VersionTLS12, RootCAs: roots}}
	s.pool = newPool(s.cfg.Connections, s.dial)
	return s, nil
}

// Send passes m to the server under the Message-ID <messageID@domain of From>, the same for every repetition. nil means
// that the server accepted it. Errors are those of message.Sender; after the content was sent, an error may hide a
// delivery.
func (s *Sender) Send(ctx context.Context, messageID string, m message.Rendered) error {
	envelope, err := s.compose(messageID, m)
	if err != nil {
		return &message.DeliveryError{Permanent: true, Err: fmt.Errorf("mail: %w", err)}
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	if err := s.pool.do(ctx, func(c *session) error { return c.transact(ctx, envelope) }); err != nil {
		return deliveryError(ctx, err)
	}
	return nil
}

// Probe opens a separate connection, encrypts it, authenticates and quits. No message is sent. Errors are those of
// Send.
func (s *Sender) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	c, err := s.dial(ctx)
	if err != nil {
		return deliveryError(ctx, err)
	}
	c.quit()
	return nil
}

// Close closes the idle connections, within a second, and those in use after their message. Every later Send returns a
// temporary error.
func (s *Sender) Close() error {
	s.pool.close()
	return nil
}
