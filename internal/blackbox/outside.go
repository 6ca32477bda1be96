package blackbox

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"castellan/domain/kit/storetest"
)

// Delivery is a message as received by a mail server or an SMS gateway. A refused delivery is one too.
type Delivery struct {
	To      string
	Key     string // Message-ID or Idempotency-Key: equal for repetitions
	Text    string
	Refused bool
}

// Postbox collects deliveries. It can refuse the next ones, for a while.
type Postbox struct {
	mu     sync.Mutex
	all    []Delivery
	refuse int
	slow   time.Duration
}

// Refuse makes the postbox refuse the next n deliveries temporarily.
func (p *Postbox) Refuse(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = n
}

// Slow makes every delivery take d from now on.
func (p *Postbox) Slow(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = d
}

// Taken returns the number of deliveries, including refused ones.
func (p *Postbox) Taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all)
}

// Deliveries returns all deliveries so far, oldest first.
func (p *Postbox) Deliveries() []Delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Delivery(nil), p.all...)
}

func (p *Postbox) take(d Delivery) (accepted bool) {
	p.mu.Lock()
	slow := p.slow
	p.mu.Unlock()
	time.Sleep(slow)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse > 0 {
		p.refuse--
		d.Refused = true
	}
	p.all = append(p.all, d)
	return !d.Refused
}

// Wait waits for the n-th accepted delivery to an address, from 1.
func (p *Postbox) Wait(t testing.TB, to string, n int) Delivery {
	t.Helper()
	var found Delivery
	Until(t, patience, "delivered to "+to, func() bool {
		left := n
		for _, d := range p.Deliveries() {
			if d.To == to && !d.Refused {
				if left--; left == 0 {
					found = d
					return true
				}
			}
		}
		return false
	})
	return found
}

// CodeIn finds the code in a message: exactly six digits.
func CodeIn(t testing.TB, text string) string {
	t.Helper()
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r < '0' || r > '9' }) {
		if len(word) == 6 {
			return word
		}
	}
	t.Fatalf("no code in %q", text)
	return ""
}

// Gateway starts an SMS gateway and configures the site to use it.
func (s *Site) Gateway() *Postbox {
	s.t.Helper()
	p := &Postbox{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "castellan" || password != GatewaySecret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if !p.take(Delivery{To: r.FormValue("to"), Key: r.Header.Get("Idempotency-Key"), Text: r.FormValue("text")}) {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	s.t.Cleanup(server.Close)
	s.Set("SMS_URL="+server.URL+"/send", "SMS_PARAMS=to={{to}},text={{text}}", "SMS_USERNAME=castellan",
		"SMS_PASSWORD="+GatewaySecret)
	return p
}

// Secrets of the site's own accounts at the external services.
const (
	GatewaySecret = "gateway-secret-7261"
	RelaySecret   = "relay-secret-9154"
)

// Relay starts a mail server that requires TLS after its greeting and a password, and configures the site to use it.
func (s *Site) Relay() *Postbox {
	s.t.Helper()
	p := &Postbox{}
	server := smtp.NewServer(
		smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &relaySession{box: p, conn: c}, nil }),
	)
	server.Domain, server.ErrorLog = "relay.test", log.New(io.Discard, "", 0)
	caFile := filepath.Join(s.t.TempDir(), "ca.pem")
	server.TLSConfig = certificate(s.t, caFile)
	l := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(s.t)
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	s.t.Cleanup(func() { server.Close(); <-done })
	s.Set("MAIL_HOST=127.0.0.1", "MAIL_PORT="+strconv.Itoa(l.Addr().(*net.TCPAddr).Port), "MAIL_TLS=starttls",
		"MAIL_CA_FILE="+caFile, "MAIL_FROM=no-reply@castellan.test", "MAIL_USERNAME=castellan",
		"MAIL_PASSWORD="+RelaySecret)
	return p
}

type relaySession struct {
	box   *Postbox
	conn  *smtp.Conn
	known bool
	to    string
}

func (s *relaySession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *relaySession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		_, encrypted := s.conn.TLSConnectionState()
		if !encrypted || user != "castellan" || password != RelaySecret {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "no"}
		}
		s.known = true
		return nil
	}), nil
}

func (s *relaySession) Mail(string, *smtp.MailOptions) error {
	if !s.known {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (s *relaySession) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *relaySession) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := plain(m)
	if err != nil {
		return err
	}
	if !s.box.take(Delivery{To: s.to, Key: m.Header.Get("Message-Id"), Text: text}) {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "later"}
	}
	return nil
}

// plain returns the part of a message that every reader shows.
func plain(m *mail.Message) (string, error) {
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return "", err
	}
	if kind == "text/plain" { // it has no other part
		body := m.Body
		if strings.EqualFold(m.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
			body = quotedprintable.NewReader(body)
		}
		text, err := io.ReadAll(body)
		return string(text), err
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextPart()
		if err != nil {
			return "", err
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/plain") {
			text, err := io.ReadAll(part)
			return string(text), err
		}
	}
}

func (s *relaySession) Reset()        {}
func (s *relaySession) Logout() error { return nil }

// certificate writes a self-signed server certificate for 127.0.0.1 to a file.
func certificate(t testing.TB, file string) *tls.Config {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	server.Close()
	storetest.Must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: server.Certificate().Raw}), 0o600))
	return server.TLS
}
