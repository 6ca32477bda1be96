package mail_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
	"castellan/outbound/mail"
)

func TestConcurrentMessages(t *testing.T) {
	r, ca := secured(t)
	s := newSender(t, r, ca, func(c *mail.Config) { c.Username, c.Password = relayUser, relayPassword })
	storetest.Race(t, 50, "", func(i int) error {
		m := rendered("tr")
		m.To = fmt.Sprintf("user%d@example.org", i)
		return s.Send(t.Context(), fmt.Sprint("id-", i), m)
	})
	seen := map[string]bool{}
	for _, m := range r.messages() {
		id, _, _ := strings.Cut(strings.TrimPrefix(m.to, "user"), "@")
		if !strings.Contains(m.data, "<id-"+id+"@id.example.com>") || seen[id] {
			t.Errorf("message to %s mixed up or twice", m.to)
		}
		seen[id] = true
	}
	storetest.Equal(t, len(seen), 50, "of 50 arrived")
	if connections, _ := r.counts(); connections > 4 {
		t.Errorf("%d connections", connections)
	}
}

func TestConnectionIsReusedAndClosed(t *testing.T) {
	r, ca := secured(t)
	s := newSender(t, r, ca, nil)
	for i := range 5 {
		storetest.Must(t, s.Send(t.Context(), fmt.Sprint(i), rendered("en")))
	}
	if connections, _ := r.counts(); connections != 1 {
		t.Errorf("%d connections for messages in a row", connections)
	}
	s.Close()
	waitFor(t, r.left, "the connection to end")
	checkFailure(t, s.Send(t.Context(), "9", rendered("en")), false, "closed")
}

func TestConnectionIsChangedBeforeTheServerTires(t *testing.T) {
	r, ca := secured(t)
	s := newSender(t, r, ca, nil)
	r.onMail = func(_ *smtp.Conn, nth int) error {
		if nth > 100 {
			return reply(451, smtp.EnhancedCode{4, 7, 0}, "too many messages")
		}
		return nil
	}
	for i := range 120 {
		if err := s.Send(t.Context(), fmt.Sprint(i), rendered("en")); err != nil {
			t.Fatal(i, err)
		}
	}
	if connections, _ := r.counts(); connections != 2 {
		t.Errorf("%d connections", connections)
	}
}

// A kept connection that the server has closed costs a new connection, not the message.
func TestStaleConnection(t *testing.T) {
	for name, onMail := range map[string]func(c *smtp.Conn, nth int) error{
		"421": func(_ *smtp.Conn, nth int) error {
			if nth > 1 {
				return reply(421, smtp.EnhancedCode{4, 4, 2}, "idle too long")
			}
			return nil
		},
		"cut": func(c *smtp.Conn, nth int) error {
			if nth > 1 {
				c.Conn().Close()
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, ca := secured(t)
			r.onMail = onMail
			s := newSender(t, r, ca, nil)
			for i := range 3 {
				storetest.Must(t, s.Send(t.Context(), fmt.Sprint(i), rendered("en")))
			}
			if connections, _ := r.counts(); connections != 3 || len(r.messages()) != 3 {
				t.Errorf("%d connections, %d messages", connections, len(r.messages()))
			}
		})
	}
}

func TestConnectionLostAfterContent(t *testing.T) {
	r, ca := secured(t)
	r.onKept = func(c *smtp.Conn) { c.Conn().Close() }
	s := newSender(t, r, ca, nil)
	lost := s.Send(t.Context(), "same", rendered("en"))
	checkFailure(t, lost, false, "content")
	storetest.Equal(t, message.IsUnsent(lost), false, "a mail that the server may have is said not to be sent")
	r.onKept = nil
	r.onData = func(*smtp.Conn, string) error { return &smtp.SMTPError{Code: 451, Message: "later"} }
	if err := s.Send(t.Context(), "refused", rendered("en")); !message.IsUnsent(err) {
		t.Errorf("refused after its content: %v", err)
	}
	r.onData = nil
	storetest.Must(t, s.Send(t.Context(), "same", rendered("en")))
	// The server may have kept the first: the repetition has the same id.
	inbox := r.messages()
	if len(inbox) != 2 || !strings.Contains(inbox[0].data, "<same@id.example.com>") ||
		!strings.Contains(inbox[1].data, "<same@id.example.com>") {
		t.Errorf("%d messages", len(inbox))
	}
}

func TestCancelledCall(t *testing.T) {
	r, ca := secured(t)
	reached, release := make(chan struct{}), make(chan struct{})
	r.onData = func(*smtp.Conn, string) error {
		close(reached)
		<-release
		return reply(451, smtp.EnhancedCode{4, 0, 0}, "late")
	}
	s := newSender(t, r, ca, func(c *mail.Config) { c.Connections = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-reached
		// The only connection is in use: other callers wait no longer than permitted.
		short, stop := context.WithTimeout(ctx, 10*time.Millisecond)
		defer stop()
		if err := s.Send(short, "2", rendered("en")); !errors.Is(err, context.DeadlineExceeded) || message.IsPermanent(err) {
			t.Errorf("without a free connection: %v", err)
		}
		cancel()
	}()
	begin := time.Now()
	err := s.Send(ctx, "1", rendered("en"))
	close(release)
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("the call went on for %v", took)
	}
	checkFailure(t, err, false, "content: context canceled")
	storetest.Is(t, err, context.Canceled, "the cause is lost")
}

func TestSilentServer(t *testing.T) {
	listener := storetest.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	r := &relay{port: listener.Addr().(*net.TCPAddr).Port}
	for _, tls := range []string{mail.None, mail.STARTTLS, mail.TLS} {
		s := newSender(t, r, nil, func(c *mail.Config) { c.TLS, c.Timeout = tls, 50*time.Millisecond })
		checkFailure(t, s.Send(t.Context(), "1", rendered("en")), false, "connect")
	}
	listener.Close()
	s := newSender(t, r, nil, nil)
	checkFailure(t, s.Send(t.Context(), "1", rendered("en")), false, "refused")
}

func waitFor(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("waited in vain for " + what)
	}
}
