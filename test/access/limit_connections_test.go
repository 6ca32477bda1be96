package access

import (
	"io"
	"net"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/blackbox"
	"castellan/internal/porttest"
)

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
