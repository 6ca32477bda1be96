package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"
)

// session is one open connection. One message at a time uses it.
type session struct {
	smtp    *smtp.Client
	raw     net.Conn // closing it ends any conversation at once
	timeout time.Duration
	begun   int // messages
}

// dial opens a connection, encrypts it as configured and authenticates. Every error is a *failure and leaves nothing
// open (go-mail keeps a connection open if a step after the first one fails).
func (s *Sender) dial(ctx context.Context) (*session, error) {
	var raw net.Conn
	stop := func() bool { return true }
	open := func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(dialing, network, address)
		if err != nil {
			return nil, err
		}
		raw = conn
		// The following conversation supports only deadlines.
		stop = context.AfterFunc(ctx, func() { conn.Close() })
		if remote, ok := conn.RemoteAddr().(*net.TCPAddr); s.cfg.TLS == None && (!ok || !remote.IP.IsLoopback()) {
			return nil, errors.New("the server is not on a loopback address")
		}
		if s.cfg.TLS != TLS {
			return conn, nil
		}
		secure := tls.Client(conn, s.tls)
		return secure, secure.HandshakeContext(dialing)
	}
	options := []gomail.Option{
		gomail.WithPort(s.cfg.Port), gomail.WithTimeout(s.cfg.Timeout),
		gomail.WithTLSConfig(s.tls), gomail.WithDialContextFunc(open),
	}
	switch s.cfg.TLS {
	case TLS:
		options = append(options, gomail.WithSSL())
	case None:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	auth := &authentication{username: s.cfg.Username, password: s.cfg.Password, host: s.cfg.Host}
	if s.cfg.Username != "" {
		options = append(options, gomail.WithSMTPAuthCustom(auth))
	}
	client, err := gomail.NewClient(s.cfg.Host, options...)
	if err != nil {
		return nil, failed(connecting, err)
	}
	conversation, err := client.DialToSMTPClientWithContext(ctx)
	if err == nil && !stop() {
		err = ctx.Err()
	}
	if err != nil {
		stop()
		if raw != nil {
			raw.Close()
		}
		if auth.begun {
			return nil, failed(authenticating, err)
		}
		return nil, failed(connecting, err)
	}
	return &session{smtp: conversation, raw: raw, timeout: s.cfg.Timeout}, nil
}

// transact sends one message to the server. Every error is a *failure; after an error that is not lost, the session can
// send the next message.
func (c *session) transact(ctx context.Context, e envelope) error {
	c.begun++
	stop := context.AfterFunc(ctx, func() { c.raw.Close() })
	defer stop()
	if err := c.smtp.UpdateDeadline(c.timeout); err != nil {
		return failed(naming, err)
	}
	// Some relays do not support SMTPUTF8 and bounce a message that declares it without need.
	c.smtp.SkipSMTPUTF8(!e.utf8)
	if ok, _ := c.smtp.Extension("SMTPUTF8"); e.utf8 && !ok {
		return &failure{stage: addressing, code: 553, text: "(not sent: the server does not take addresses beyond ASCII)"}
	}
	if err := c.smtp.Mail(e.from); err != nil {
		return c.refused(naming, err)
	}
	if err := c.smtp.Rcpt(e.to); err != nil {
		return c.refused(addressing, err)
	}
	w, err := c.smtp.Data()
	if err != nil {
		return c.refused(announcing, err)
	}
	if _, err := w.Write(e.content); err != nil {
		// Closing w would deliver the partial message.
		return &failure{stage: transferring, cause: err}
	}
	if err := w.Close(); err != nil {
		return c.refused(transferring, err)
	}
	return nil
}

// refused resets the server's state for the next message on this connection.
func (c *session) refused(at stage, err error) error {
	f := failed(at, err)
	if !f.lost() && c.smtp.Reset() != nil {
		f.gone = true
	}
	return f
}

// quit sends QUIT and closes, within a second.
func (c *session) quit() {
	defer c.raw.Close()
	if c.smtp.UpdateDeadline(time.Second) == nil {
		_ = c.smtp.Quit() // the connection ends either way
	}
}

// authentication picks the best mechanism that the server offers, once the connection is encrypted. go-mail's own
// choice would prefer NTLM, and send a password unencrypted to a server named localhost.
type authentication struct {
	username, password, host string

	begun  bool
	chosen smtp.Auth
}

var (
	errUnencrypted = errors.New("the connection is not encrypted: no password was sent")
	errNoMechanism = errors.New("the server offers none of SCRAM-SHA-256, SCRAM-SHA-1, PLAIN, LOGIN, CRAM-MD5")
)

func (a *authentication) Start(server *smtp.ServerInfo) (string, []byte, error) {
	a.begun = true
	if !server.TLS {
		return "", nil, errUnencrypted
	}
	for _, m := range []struct {
		name string
		auth func() smtp.Auth
	}{
		{"SCRAM-SHA-256", func() smtp.Auth { return smtp.ScramSHA256Auth(a.username, a.password) }},
		{"SCRAM-SHA-1", func() smtp.Auth { return smtp.ScramSHA1Auth(a.username, a.password) }},
		{"PLAIN", func() smtp.Auth { return smtp.PlainAuth("", a.username, a.password, a.host, false) }},
		{"LOGIN", func() smtp.Auth { return smtp.LoginAuth(a.username, a.password, a.host, false) }},
		{"CRAM-MD5", func() smtp.Auth { return smtp.CRAMMD5Auth(a.username, a.password) }},
	} {
		if slices.Contains(server.Auth, m.name) {
			a.chosen = m.auth()
			return a.chosen.Start(server)
		}
	}
	return "", nil, errNoMechanism
}

func (a *authentication) Next(fromServer []byte, more bool) ([]byte, error) {
	return a.chosen.Next(fromServer, more)
}
