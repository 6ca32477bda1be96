package access

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
)

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
