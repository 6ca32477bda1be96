package push

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
)

var clock = time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)

const (
	messageID = "01JD0000000000000000000000.01JD0000000000000000000001.0"
	wakeup    = `{"challengeId":"01JD0000000000000000000000","action":"LOGIN","expire":90}`
	// Standard Webhooks' own example of a secret.
	hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	capability = "n0b0dy-else-kn0ws"
)

// call is one request as the receiver saw it.
type seen struct {
	method, path string
	header       http.Header
	body         []byte
}

// service is a real HTTPS server in this process: a push service, or the receiver of a webhook.
type service struct {
	*httptest.Server
	caFile string

	mu     sync.Mutex
	calls  []seen
	opened int
	answer http.HandlerFunc
}

func newService(t *testing.T, secure bool) *service {
	t.Helper()
	s := &service{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		storetest.Is(t, err, nil)
		s.mu.Lock()
		s.calls = append(s.calls, seen{r.Method, r.URL.Path, r.Header, body})
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.mu.Lock()
			s.opened++
			s.mu.Unlock()
		}
	}
	if !secure {
		s.Start()
	} else {
		s.StartTLS()
		s.caFile = filepath.Join(t.TempDir(), "ca.pem")
		block := &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}
		storetest.Must(t, os.WriteFile(s.caFile, pem.EncodeToMemory(block), 0o600))
	}
	t.Cleanup(s.Server.Close)
	return s
}

func (s *service) answers(f http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func (s *service) received() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.calls...)
}

func (s *service) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// sender returns a sender that trusts the service and may call it.
func (s *service) sender(t *testing.T, change func(*Config)) *Sender {
	t.Helper()
	cfg := Config{
		VAPID:         keyringtest.Ring(t, nil).VAPIDs,
		Contact:       "mailto:ops@example.com",
		WebhookSecret: hookSecret,
		AllowPrivate:  true,
		CAFile:        s.caFile,
		Timeout:       3 * time.Second,
		Now:           func() time.Time { return clock },
	}
	if change != nil {
		change(&cfg)
	}
	sender := storetest.Value(New(cfg))(t)
	t.Cleanup(func() { sender.Close() })
	return sender
}

// device has a subscription at a push service and the keys that open its messages.
type device struct {
	private *ecdh.PrivateKey
	auth    []byte
	target  string
}

func newDevice(t *testing.T, endpoint string) device {
	t.Helper()
	private := storetest.Value(ecdh.P256().GenerateKey(rand.Reader))(t)
	d := device{private: private, auth: make([]byte, 16)}
	rand.Read(d.auth)
	code := base64.RawURLEncoding.EncodeToString
	target, err := json.Marshal(map[string]any{"type": "webpush", "endpoint": endpoint, "expirationTime": nil,
		"keys": map[string]string{"p256dh": code(private.PublicKey().Bytes()), "auth": code(d.auth)}})
	storetest.Must(t, err)
	d.target = string(target)
	return d
}

func hook(url string) string { return `{"type":"webhook","url":"` + url + `"}` }

func to(target string) message.Rendered {
	return message.Rendered{Channel: message.Push, To: target, Text: wakeup}
}

func send(t *testing.T, s *Sender, m message.Rendered) error {
	t.Helper()
	return s.Send(context.Background(), messageID, m)
}

// failure requires a DeliveryError of a class, without confidential content.
func failure(t *testing.T, err error, permanent bool, part string) *message.DeliveryError {
	t.Helper()
	var d *message.DeliveryError
	if !errors.As(err, &d) || d.Permanent != permanent {
		t.Fatalf("want a delivery error with permanent=%v, got %v", permanent, err)
	}
	storetest.Contains(t, err.Error(), part)
	for _, secret := range []string{capability, "127.0.0.1", "localhost", "example", "01JD0", "LOGIN", hookSecret} {
		storetest.Lacks(t, err.Error(), secret)
	}
	return d
}
