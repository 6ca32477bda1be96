package sms_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/storetest"
)

func TestNetworkFailures(t *testing.T) {
	g := newGateway(t, false)
	cfg := form(g.URL + "/?token=s3cret")
	cfg.Method = "GET"
	cfg.Timeout = 50 * time.Millisecond
	release := make(chan struct{})
	g.answers(func(http.ResponseWriter, *http.Request) { <-release })
	s := newSender(t, cfg)
	d := checkFailure(t, s.Send(t.Context(), key, text("012345")), false, "gateway not reached")
	if !errors.Is(d, context.DeadlineExceeded) {
		t.Errorf("timeout: %v", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Send(ctx, key, text("012345")); !errors.Is(err, context.Canceled) || message.IsPermanent(err) {
		t.Errorf("cancelled: %v", err)
	}
	close(release)

	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, "HTTP/1.1 012345 your text\r\n\r\n")
		c.Close()
	})
	cfg.Timeout = 5 * time.Second
	checkFailure(t, newSender(t, cfg).Send(t.Context(), key, text("012345")), false, "malformed answer")

	g.Server.Close()
	checkFailure(t, newSender(t, cfg).Send(t.Context(), key, text("012345")), false, "refused")
}

func TestCertificateIsChecked(t *testing.T) {
	g := newGateway(t, true)
	checkFailure(t, newSender(t, form(g.URL)).Send(t.Context(), key, text("x")), false, "certificate")

	cfg := form(strings.Replace(g.URL, "127.0.0.1", "localhost", 1)) // not in the certificate
	cfg.CAFile = g.caFile(t)
	checkFailure(t, newSender(t, cfg).Send(t.Context(), key, text("x")), false, "certificate")
	storetest.Equal(t, len(g.received()), 0, "something was sent")
}

func TestAnswerIsBounded(t *testing.T) {
	g := newGateway(t, false)
	blocked := make(chan error, 1)
	g.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		chunk := make([]byte, 1<<20)
		var err error
		for range 1000 { // far more than the buffers of a connection
			if _, err = w.Write(chunk); err != nil {
				break
			}
		}
		blocked <- err
	})
	storetest.Must(t, newSender(t, form(g.URL)).Send(t.Context(), key, text("x")))
	select {
	case err := <-blocked:
		storetest.Fails(t, err, "", "the whole answer was read")
	case <-time.After(10 * time.Second):
		t.Fatal("the gateway is still writing")
	}
}

func TestConnectionsAreReused(t *testing.T) {
	g := newGateway(t, false)
	g.answers(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 10_000)) })
	s := newSender(t, form(g.URL))
	for range 5 {
		storetest.Must(t, s.Send(t.Context(), key, text("x")))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	storetest.Equal(t, g.opened, 1, "connections")
}
