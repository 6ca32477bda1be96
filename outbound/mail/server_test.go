package mail_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"castellan/domain/kit/storetest"
)

// authority is a certificate authority for one test.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	file string // PEM
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der := storetest.Value(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	cert := storetest.Value(x509.ParseCertificate(der))(t)
	file := filepath.Join(t.TempDir(), "ca.pem")
	storetest.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return &authority{key, cert, file}
}

// issue creates a server certificate for a host name or address.
func (a *authority) issue(t *testing.T, host string) *tls.Config {
	t.Helper()
	key := storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der := storetest.Value(x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key))(t)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// received is one message as the server saw it.
type received struct {
	from, to string
	user     string // the authenticated user
	utf8     bool
	secure   bool
	data     string
}

// relay is a real SMTP server in this process.
type relay struct {
	port       int
	mechanisms []string
	onMail     func(c *smtp.Conn, nth int) error // nth message of the connection, from 1
	onRcpt     func(to string) error
	onData     func(c *smtp.Conn, data string) error
	onKept     func(c *smtp.Conn) // the message is in the inbox, and its sender does not know it

	mu          sync.Mutex
	inbox       []received
	connections int
	attempts    []string // user/password pairs tried
	left        chan struct{}
}

type relayOption func(*smtp.Server)

// newRelay starts a server on 127.0.0.1. With secure it offers STARTTLS; with implicit it uses TLS from the first byte.
func newRelay(t *testing.T, secure *tls.Config, implicit bool, options ...relayOption) *relay {
	t.Helper()
	r := &relay{mechanisms: []string{"PLAIN"}, left: make(chan struct{}, 100)}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &relaySession{relay: r, conn: c}, nil
	}))
	server.Domain = "relay.test"
	server.ErrorLog = log.New(io.Discard, "", 0)
	server.AllowInsecureAuth = true // so that only the client protects the password
	listener := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	r.port = listener.Addr().(*net.TCPAddr).Port
	listener = &countingListener{listener, r}
	if implicit {
		listener = tls.NewListener(listener, secure)
	} else {
		server.TLSConfig = secure
	}
	for _, o := range options {
		o(server)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close(); <-done })
	return r
}

func (r *relay) messages() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received(nil), r.inbox...)
}

func (r *relay) counts() (connections, attempts int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.connections, len(r.attempts)
}

type relaySession struct {
	relay *relay
	conn  *smtp.Conn
	user  string
	count int
	open  bool // a message was begun and neither accepted nor reset
	now   received
}

func (s *relaySession) AuthMechanisms() []string { return s.relay.mechanisms }

const relayUser, relayPassword = "castellan", "correct horse"

func (s *relaySession) check(user, password string) error {
	s.relay.mu.Lock()
	s.relay.attempts = append(s.relay.attempts, user+"/"+password)
	s.relay.mu.Unlock()
	if user != relayUser || password != relayPassword {
		return &smtp.SMTPError{
			Code:         535,
			EnhancedCode: smtp.EnhancedCode{5, 7, 8},
			Message:      "bad password " + password + " of " + user,
		}
	}
	s.user = user
	return nil
}

func (s *relaySession) Auth(mechanism string) (sasl.Server, error) {
	switch mechanism {
	case "PLAIN":
		return sasl.NewPlainServer(func(_, user, password string) error { return s.check(user, password) }), nil
	case "LOGIN":
		return &loginServer{session: s}, nil
	}
	return nil, smtp.ErrAuthUnknownMechanism
}

func (s *relaySession) Mail(from string, o *smtp.MailOptions) error {
	if s.open {
		return reply(503, smtp.EnhancedCode{5, 5, 1}, "nested MAIL command")
	}
	s.count++
	_, secure := s.conn.TLSConnectionState()
	s.now = received{from: from, user: s.user, secure: secure, utf8: o != nil && o.UTF8}
	if f := s.relay.onMail; f != nil {
		if err := f(s.conn, s.count); err != nil {
			return err
		}
	}
	s.open = true
	return nil
}

func (s *relaySession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.now.to = to
	if f := s.relay.onRcpt; f != nil {
		return f(to)
	}
	return nil
}

func (s *relaySession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if f := s.relay.onData; f != nil {
		if err := f(s.conn, string(data)); err != nil {
			return err
		}
	}
	s.now.data = string(data)
	s.relay.mu.Lock()
	s.relay.inbox = append(s.relay.inbox, s.now)
	s.relay.mu.Unlock()
	if f := s.relay.onKept; f != nil {
		f(s.conn)
	}
	return nil
}

func (s *relaySession) Reset() { s.open = false }

func (s *relaySession) Logout() error { return nil }

// countingListener counts connections and reports when one ended.
type countingListener struct {
	net.Listener
	relay *relay
}

func (l *countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.relay.mu.Lock()
	l.relay.connections++
	l.relay.mu.Unlock()
	return &countedConn{Conn: c, relay: l.relay}, nil
}

type countedConn struct {
	net.Conn
	relay *relay
	once  sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.relay.left <- struct{}{} })
	return c.Conn.Close()
}

// loginServer is the server side of the LOGIN mechanism; go-sasl has only the client side.
type loginServer struct {
	session *relaySession
	step    int
	user    string
}

func (l *loginServer) Next(response []byte) ([]byte, bool, error) {
	l.step++
	switch l.step {
	case 1:
		return []byte("Username:"), false, nil
	case 2:
		l.user = string(response)
		return []byte("Password:"), false, nil
	case 3:
		return nil, true, l.session.check(l.user, string(response))
	}
	return nil, false, errors.New("too many steps")
}

func reply(code int, enhanced smtp.EnhancedCode, words ...string) error {
	return &smtp.SMTPError{Code: code, EnhancedCode: enhanced, Message: strings.Join(words, " ")}
}
