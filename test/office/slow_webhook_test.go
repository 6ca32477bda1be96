package office

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/domain/proof/device"
	"castellan/internal/blackbox"
)

// A webhook of one user that accepts and never answers does not delay other users' wake-ups (D-EXT-06). It is
// called one at a time, and suspended after three timeouts.
func TestSlowWebhookDelaysNoOtherUser(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := blackbox.Patient(s).Start("PUSH_WEBHOOK_SECRET=whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	storetest.Must(t, err)
	defer silent.Close()
	calls := make(chan time.Time, 64)
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			calls <- time.Now()
			go func() {
				defer c.Close()
				for b := make([]byte, 4096); ; { // until the caller gives up
					if _, err := c.Read(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	woken := make(chan time.Time, 64)
	prompt := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { woken <- time.Now() }))
	defer prompt.Close()

	a, b := s.Seeded("user"), s.AddUser("user")
	x, _ := n.Session(t, a)
	blackbox.Enroll(t, n, a, x, device.ES256,
		`,"pushTarget":{"type":"webhook","url":"http://`+silent.Addr().String()+`/"}`)
	x, _ = n.Session(t, b)
	// The same host under another name counts as another host.
	blackbox.Enroll(t, n, b, x, device.ES256, `,"pushTarget":{"type":"webhook","url":"`+
		strings.Replace(prompt.URL, "127.0.0.1", "localhost", 1)+`/"}`)
	for range 40 {
		if !blackbox.Offered(n.Login(t, a)) {
			t.Fatal("no push is offered")
		}
	}
	for range 3 {
		begun := time.Now()
		n.Login(t, b)
		select {
		case at := <-woken:
			t.Logf("woken %v after the start", at.Sub(begun))
		case <-time.After(blackbox.Within(1)):
			t.Fatal("the wake-up waits behind those of another user")
		}
	}
	blackbox.Until(t, blackbox.Within(20), "the silent host is left alone", func() bool {
		return s.Count("outbox WHERE channel = 'push' AND state = 3") > 30
	})
	if len(calls) != 3 {
		t.Fatalf("%d calls", len(calls))
	}
	for before := <-calls; len(calls) > 0; { // each call begins after the timeout of the one before
		at := <-calls
		if apart := at.Sub(before); apart < 2*time.Second {
			t.Errorf("called again after %v", apart)
		}
		before = at
	}
}
