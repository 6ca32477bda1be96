package access

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

// The pages of development mode answer only this machine, and no page of another origin can read them through
// its browser. Each page of the console has a nonce of its own.
func TestDevelopmentPagesAnswerOnlyThisMachine(t *testing.T) {
	t.Parallel()
	s := blackbox.NewSite(t, "sqlite")
	n := s.Start()
	n.Login(t, s.Seeded("user"))
	port := n.URL[strings.LastIndex(n.URL, ":"):]
	for _, path := range []string{"/", "/dev/outbox/page", "/dev/outbox", "/dev/service",
		"/dev/outbox?to=%2B905320000002"} {
		for _, host := range []string{"127.0.0.1" + port, "localhost" + port, "LOCALHOST", "[::1]" + port, "127.8.9.1"} {
			n.Ok(t, "GET", path, nil, blackbox.Headers{"Host": host})
		}
		for _, host := range []string{"evil.example.test", "127.0.0.1.evil.test" + port, "localhost.evil.test",
			"10.0.0.1" + port, "0.0.0.0" + port, "[::]", "127.0.0.1@evil.test"} {
			if a := n.Do(t, "GET", path, nil, blackbox.Headers{"Host": host}); a.Status != 403 && a.Status != 400 ||
				bytes.Contains(a.Body, []byte(`"code":"0`)) {
				t.Errorf("%s for the host %s: %s", path, host, a)
			}
		}
		for _, site := range []string{"cross-site", "same-site", "x"} {
			n.Do(t, "GET", path, nil, blackbox.Headers{"Sec-Fetch-Site": site}).Is(t, 403, "FORBIDDEN")
		}
		for _, site := range []string{"same-origin", "none"} {
			n.Ok(t, "GET", path, nil, blackbox.Headers{"Sec-Fetch-Site": site})
		}
		for _, origin := range []string{"http://evil.example.test", "null", "http://127.0.0.1:1",
			"https://evil.test" + port} {
			n.Do(t, "GET", path, nil, blackbox.Headers{"Origin": origin}).Is(t, 403, "FORBIDDEN")
		}
		n.Ok(t, "GET", path, nil, blackbox.Headers{"Origin": n.URL})
	}
	for _, page := range []string{"/static/index.html", "/static/outbox.html"} { // no way around the checks
		n.Do(t, "GET", page, nil, nil).Is(t, 404, "NOT_FOUND")
	}
	letters := n.Letters(t, "+90 532 000 00 02")
	if len(letters) == 0 || len(letters) != len(n.Letters(t, "0090 5320000002")) || letters[0].Channel != "SMS" ||
		letters[0].To != "+905320000002" || letters[0].Code == "" ||
		!strings.Contains(letters[0].Body, letters[0].Code) {
		t.Errorf("letters %+v", letters)
	}
	storetest.Equal(t, len(n.Letters(t, "")), 2, "letters in all")
	storetest.Equal(t, string(n.Do(t, "GET", "/dev/outbox?to=absent@example.test", nil, nil).Body), "[]",
		"letters of an unknown address")
	console := n.Ok(t, "GET", "/console", nil, nil).Header.Get("Content-Security-Policy")
	before, after, _ := strings.Cut(console, "'nonce-")
	nonce, after, _ := strings.Cut(after, "'")
	if again := n.Ok(t, "GET", "/console/users/x", nil, nil).Header.Get("Content-Security-Policy"); len(nonce) < 16 ||
		strings.Contains(again, nonce) || before+"'nonce-…'"+after != "default-src 'none'; script-src 'self'; "+
		"style-src 'self' 'nonce-…'; img-src 'self' blob: data:; connect-src 'self'; font-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "+
		"trusted-types default" {
		t.Errorf("the console's policies are %s and %s", console, again)
	}
}

// Clients that send a byte now and then are disconnected, and other clients do not notice them.
func TestSlowClientsAreDisconnected(t *testing.T) {
	t.Parallel()
	n := blackbox.NewSite(t, "sqlite").Start("HTTP_READ_TIMEOUT=1s")
	var conns []net.Conn
	for range 100 {
		c := storetest.Value(net.Dial("tcp", strings.TrimPrefix(n.URL, "http://")))(t)
		defer c.Close()
		fmt.Fprint(c, "POST /auth/login HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		conns = append(conns, c)
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Millisecond):
				for _, c := range conns {
					c.Write([]byte("x"))
				}
			}
		}
	}()
	began := time.Now()
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(blackbox.Within(10)))
		for buf := make([]byte, 1024); ; {
			if _, err := c.Read(buf); err != nil {
				if e, ok := err.(net.Error); ok && e.Timeout() {
					t.Fatal("a slow client is still connected")
				}
				break
			}
		}
		if at := time.Now(); at.Sub(began) < blackbox.Within(1) {
			n.Ok(t, "GET", "/health/ready", nil, nil)
		}
	}
	if took := time.Since(began); took > blackbox.Within(5) {
		t.Errorf("it took %v to show them out", took)
	}
}

// The listener of Envoy's rate limit service has at most 256 connections at a time (D-WAF-22). The service ends
// although clients keep theirs.
func TestConnectionsOfRateLimitServiceAreLimited(t *testing.T) {
	t.Parallel()
	addr := porttest.Free(t)
	n := blackbox.NewSite(t, "sqlite").Start("LIMITS_RLS_ADDR=" + addr)
	open := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		storetest.Must(t, err)
		t.Cleanup(func() { c.Close() })
		// The preface and the empty settings of a client, RFC 9113, section 3.4.
		_, err = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		storetest.Must(t, err)
		return c
	}
	served := func(c net.Conn, within time.Duration) bool {
		storetest.Must(t, c.SetReadDeadline(time.Now().Add(within)))
		_, err := io.ReadFull(c, make([]byte, 9)) // the settings of the server
		return err == nil
	}
	var all []net.Conn
	for range 256 {
		all = append(all, open())
	}
	for i, c := range all {
		if !served(c, time.Minute) {
			t.Fatalf("connection %d is not served", i)
		}
	}
	last := open()
	if served(last, 100*time.Millisecond) {
		t.Error("connection 257 is served")
	}
	all[0].Close()
	if !served(last, time.Minute) {
		t.Error("no connection is served in place of a closed one")
	}
	n.Stop()
}
